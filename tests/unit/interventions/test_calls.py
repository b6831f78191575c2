"""Interventions as text: read as Python would, and nothing else is ever done with a text."""

import pytest
import torch

import headscope as hs
from headscope.errors import HeadscopeError, InterventionError
from headscope.interventions import canonical, parse
from headscope.interventions.calls import EXAMPLES, OtherRun, read

PLAIN = [text for text in EXAMPLES.values() if "model.run" not in text and "[0.5" not in text and "[[" not in text]


@pytest.mark.parametrize("example", PLAIN)
def test_every_example_is_read_as_python_would(example: str) -> None:
    expected = eval(f"hs.{example}", {"hs": hs})
    assert repr(parse(example)) == repr(parse(f" hs.{example}")) == repr(expected)
    assert canonical(canonical(example)) == canonical(example) == expected.label


def test_ranges_and_lists_name_tokens() -> None:
    assert parse('silence("L0", tokens=range(1, 3))').tokens == range(1, 3)
    assert parse('silence("L0", tokens={2, 1})').tokens == [1, 2]
    assert parse('block(None, [0, "cat"], slice(None, -1))').token_choices() == [
        ("rows", [0, "cat"]),
        ("keys", slice(None, -1)),
    ]


def test_weights_that_are_written_out_print_as_they_were_given() -> None:
    row = parse("set_row('L0H0', 1, [0.25, 0.75])")
    assert repr(row) == "hs.set_row('L0H0', 1, [0.25, 0.75])"
    assert torch.equal(row.edit.weights, torch.tensor([0.25, 0.75]))  # type: ignore[union-attr]
    whole = parse("replace_pattern('L0H0', [[1, 0], [0.5, 0.5]])")
    assert whole.edit.weights.shape == (1, 2, 2)  # type: ignore[union-attr]


def test_another_run_is_read_and_made_by_whoever_has_a_model() -> None:
    asked = []

    def run(other: OtherRun) -> torch.Tensor:
        asked.append((other.source, other.options))
        return torch.ones(3, 4)

    text = "patch('L0H1', model.run('the cat', pair='the dog', truncate=True), tokens=[1])"
    made = parse(text, run)  # type: ignore[arg-type]
    assert asked == [("the cat", {"pair": "the dog", "truncate": True})]
    assert repr(made) == f"hs.{text}" and made.edit.values.shape == (1, 3, 4)  # type: ignore[union-attr]
    assert canonical(f"hs.{text}") == text
    chat = "mean_ablate('L0H1', model.run([{'role': 'user', 'content': 'Hi'}]))"
    assert read(chat).runs[0].source == [{"role": "user", "content": "Hi"}]
    with pytest.raises(InterventionError, match="no model here"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "not valid Python"),
        ('silence("L0H0"', "not valid Python"),
        ("(" * 500, "not valid Python"),
        ('silence("L0\0")', "not valid Python"),
        ('silence("L3H2"); print(1)', "not valid Python"),
        ('__import__("os").system("true")', "not the call of an edit"),
        ('os.silence("L0H0")', "not the call of an edit"),
        ('hs.interventions.silence("L0H0")', "not the call of an edit"),
        ('silence.__call__("L0H0")', "not the call of an edit"),
        ('"silence"', "not the call of an edit"),
        ("lambda: silence('L0H0')", "not the call of an edit"),
        ('gate("L0H0", 1)', "there is no edit 'gate'"),
        ('eval("1")', "there is no edit 'eval'"),
        ('silence(open("/etc/passwd"))', "is not a literal"),
        ('silence(f"{1}")', "is not a literal"),
        ('silence("L0" + "H0")', "is not a literal"),
        ('silence((x := "L0H0"))', "is not a literal"),
        ('silence(*["L0H0"])', "is not a literal"),
        ('silence(**{"head": "L0H0"})', "unpacked"),
        ('silence("L0H0", tokens=range("a"))', "is no range"),
        ('silence("L0H0", tokens=range(10**12))', "is not a literal"),
        ('silence("L0H0", tokens=b"x")', "is not a literal"),
        ('scale("L0H0", 1j)', "is not a literal"),
        ("silence(" + "-" * 9000 + "1)", "cannot read"),
        ("silence(a" + ".b" * 9000 + ")", "cannot read"),
        ("silence('a'" + "+'a'" * 4000 + ")", "cannot read"),
        ("silence(" + "[" * 90 + "]" * 90 + ")", "not the address of a head"),
        ("replace_token(0, '\\ud800')", "half of a character"),
        ("silence()", "missing a required argument: 'head'"),
        ('silence("L0H0", loud=True)', "unexpected keyword argument 'loud'"),
        ("silence(3)", "not the address of a head"),
        ('silence("L3-H2")', "not the address of a head"),
        ("silence('L" + "9" * 5000 + "')", "cannot read"),
        ('scale("L0H0", "much")', "finite number"),
        ('scale("L0H0", 1e999)', "finite number"),
        ('scale("L0H0", 1' + "0" * 400 + ")", "finite number"),
        ('temperature("L0H0", 0)', "above 0"),
        ('set_weight("L0H0", 1, 0, -0.5)', "between 0 and 1"),
        ('set_neuron("L0H0", "knee", 1, 0.5)', "there is no part 'knee'"),
        ('mean_ablate("L0H0", "x")', "TypeError"),
        ('set_row("L0H0", 0, [[1.0]])', "one axis"),
        ('replace_pattern("L0H0", [[1], [1, 2]])', "ValueError"),
        ('patch("L0H0", None)', "cannot read"),
        ('patch("L0H0", hs.interventions.payload("/etc/passwd"))', "is not a literal"),
        ('patch("L0H0", model.run())', "one text or one chat"),
        ('patch("L0H0", model.run(3))', "one text or one chat"),
        ('patch("L0H0", model.run([]))', "one text or one chat"),
        ('patch("L0H0", model.run([{"role": "user"}]))', "one text or one chat"),
        ('patch("L0H0", model.run("a", image="/etc/passwd"))', "not image"),
        ('patch("L0H0", model.run("a", truncate="yes"))', "not truncate"),
        ('patch("L0H0", model.save("a"))', "is not a literal"),
        ('silence(model.run("a"))', "not the address of a head"),
        ('silence("L0H0", tokens=model.run("a"))', "tokens cannot be another run"),
        ("x" * 30_000, "at most 20,000 characters"),
    ],
)
def test_what_is_not_an_edit_is_refused_with_the_reason(text: str, told: str) -> None:
    for attempt in (canonical, lambda given: parse(given, lambda _: pytest.fail("nothing may be run"))):
        with pytest.raises(InterventionError) as refusal:
            attempt(text)
        assert told in str(refusal.value) and len(str(refusal.value)) < 2000
        assert isinstance(refusal.value, HeadscopeError)
