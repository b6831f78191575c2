"""Interventions as text: read as Python would, and nothing else is ever done with a text."""

import subprocess
import sys
import textwrap

import pytest
import torch

import headscope as hs
from headscope.errors import HeadscopeError, InterventionError, UnknownTokenError
from headscope.interventions import At, canonical, heads, parse
from headscope.interventions.calls import EXAMPLES, OtherRun, read
from headscope.traces.tokens import Tokens

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
    requests = []

    def run(other: OtherRun) -> torch.Tensor:
        requests.append((other.source, other.options))
        return torch.ones(3, 4)

    text = "patch('L0H1', model.run('the cat', pair='the dog', truncate=True), tokens=[1])"
    intervention = parse(text, run)  # type: ignore[arg-type]
    assert requests == [("the cat", {"pair": "the dog", "truncate": True})]
    assert repr(intervention) == f"hs.{text}" and intervention.edit.values.shape == (1, 3, 4)  # type: ignore[union-attr]
    assert canonical(f"hs.{text}") == text
    chat = "mean_ablate('L0H1', model.run([{'role': 'user', 'content': 'Hi'}]))"
    assert read(chat).runs[0].source == [{"role": "user", "content": "Hi"}]
    with pytest.raises(InterventionError, match="no model here"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "error_text"),
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
        ("silence(\"L0H0\", tokens='a' * 10**9)", "is not a literal"),
        ('silence("L0H0", tokens=[0] * 10**9)', "is not a literal"),
        ('silence("L0H0", tokens=[*range(9)])', "is not a literal"),
        ('silence("L0H0", tokens=slice("a"))', "'a' is not an integer"),
        ('silence("L0H0", tokens=slice(0, 9, 0))', "step must not be zero"),
        ('silence("L0H0", tokens=[0], tokens=[1])', "gives tokens twice"),
        ('silence("L0H0", tokens=b"x")', "is not a literal"),
        ('scale("L0H0", 1j)', "is not a literal"),
        ("silence(" + "-" * 9000 + "1)", "cannot read"),
        ("silence(a" + ".b" * 9000 + ")", "cannot read"),
        ("silence('a'" + "+'a'" * 4000 + ")", "cannot read"),
        ("silence(" + "[" * 90 + "]" * 90 + ")", "nested more than 8 levels deep"),
        ("silence([" + "0," * 6000 + "])", "not the address of a head"),
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
        ('mean_ablate("L0H0", "x")', "mean must be a tensor"),
        ('set_row("L0H0", 0, [[1.0]])', "one axis"),
        ('replace_pattern("L0H0", [[1], [1, 2]])', "pattern must be a tensor"),
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
def test_what_is_not_an_edit_is_refused_with_the_reason(text: str, error_text: str) -> None:
    for attempt in (canonical, lambda call_text: parse(call_text, lambda _: pytest.fail("nothing may be run"))):
        with pytest.raises(InterventionError) as refusal:
            attempt(text)
        assert error_text in str(refusal.value) and len(str(refusal.value)) < 2000
        assert isinstance(refusal.value, HeadscopeError)


HUGE = "range(1000000000000)"
TOO_LARGE = [
    (f"set_row('L3H2', 1, {HUGE})", "weights has 1,000,000,000,000 numbers; an edit takes up to 100,000"),
    (f"hs.set_row('L3H2', weights={HUGE}, query=1)", "up to 100,000"),
    (f"mean_ablate('L3H2', {HUGE})", "up to 100,000"),
    (f"patch('L3H2', [[{HUGE}]])", "up to 100,000"),
    (f"replace_pattern('L3H2', [{HUGE}, {HUGE}])", "pattern has 2,000,000,000,000 numbers"),
    ("replace_pattern('L3H2', [" + "range(1000)," * 1000 + "])", "pattern has 1,000,000 numbers"),
    (f"scale('L3H2', {HUGE})", "up to 100,000"),
    (f"set_neuron('L0', 'mlp', {HUGE}, 1.0)", "up to 100,000"),
    (f"patch('L3H2', model.run('a'), stage={HUGE})", "up to 100,000"),
    ("silence(0x" + "f" * 9000 + ")", "integer beyond ±9,007,199,254,740,992"),
    ("silence('L0H0', tokens=-0x" + "f" * 9000 + ")", "integer beyond"),
    ("silence('L0H0', tokens=range(0x" + "f" * 9000 + "))", "integer beyond"),
    ("patch('L0H0', model.run('a'), tokens={0x" + "f" * 9000 + "})", "integer beyond"),
    ("set_row('L0H0', 1, [1" + "0" * 4000 + "])", "integer beyond"),
    ("silence('L0H0', tokens=" + "[" * 9 + "0" + "]" * 9 + ")", "nested more than 8 levels deep"),
    ("silence('L0H0', tokens=" + "(" * 9 + "0" + ",)" * 9 + ")", "nested more than 8 levels deep"),
    ("silence('L0H0', tokens=" + "{0: " * 9 + "0" + "}" * 9 + ")", "nested more than 8 levels deep"),
]


@pytest.mark.parametrize(("text", "error_text"), TOO_LARGE, ids=[text[:40] for text, _ in TOO_LARGE])
def test_a_literal_that_is_too_large_is_refused_before_it_is_built(
    text: str, error_text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heads.torch, "as_tensor", lambda _: pytest.fail("a tensor was built"))
    for attempt in (canonical, lambda call_text: parse(call_text, lambda _: pytest.fail("nothing may be run"))):
        with pytest.raises(InterventionError) as refusal:
            attempt(text)
        assert error_text in str(refusal.value) and len(str(refusal.value)) < 2000


def run_limited(code: str, stdin: str = "") -> list[str]:
    """The words that Python code prints in a process that ends beyond 512 MB more than torch takes, or 20 s of CPU."""
    pytest.importorskip("resource")
    limits = """
        import pathlib, resource, sys
        import torch
        from headscope.errors import InterventionError
        from headscope.interventions import At, canonical

        pages = int(pathlib.Path("/proc/self/statm").read_text().split()[0]) if sys.platform == "linux" else 2**40
        memory = pages * resource.getpagesize() + 512 * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        seconds = int(sum(resource.getrusage(resource.RUSAGE_SELF)[:2])) + 20
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    """
    whole = textwrap.dedent(limits) + textwrap.dedent(code)
    done = subprocess.run([sys.executable, "-c", whole], input=stdin, capture_output=True, text=True, check=False)
    return [*done.stdout.split(), *done.stderr.split()]


def test_no_edit_takes_more_than_a_little_memory_and_time() -> None:
    code = """
        for text in sys.stdin.read().splitlines():
            try:
                canonical(text)
            except InterventionError:
                print("refused")
    """
    assert run_limited(code, "\n".join(text for text, _ in TOO_LARGE)) == ["refused"] * len(TOO_LARGE)


def test_ranges_of_tokens_stay_ranges_whatever_their_length() -> None:
    for text in (f"silence('L0H0', tokens={HUGE})", f"block('L0H0', [{HUGE}, 3], {HUGE})", f"replace_token({HUGE})"):
        choices = parse(text).token_choices()
        assert choices and canonical(canonical(text)) == canonical(text)
        with pytest.raises(UnknownTokenError, match="there is no token 5"):
            Tokens.numbered(5).positions(choices[0][1])


def test_a_session_without_a_tokenizer_does_not_expand_ranges() -> None:
    code = "print(*At(torch.arange(5)[None]).rows(range(1, 10**12, 2)).int().flatten().tolist())"
    assert run_limited(code) == ["0", "1", "0", "1", "0"]
    assert not At(torch.arange(5)[None]).rows(range(0)).any()
    for tokens in (range(-1, 3), range(3, -2, -1), [0, -1], ["a"]):
        with pytest.raises(InterventionError, match="counted from 0"):
            At(torch.arange(5)[None]).rows(tokens)


def test_a_row_for_thousands_of_tokens_can_be_written() -> None:
    row = ", ".join(["0"] * 6000)
    assert len(parse(f"set_row('L3H2', 1, [{row}])").edit.weights) == 6000  # type: ignore[union-attr]
    assert parse("set_row('L3H2', 1, range(4))").edit.weights.tolist() == [0, 1, 2, 3]  # type: ignore[union-attr]
    assert len(parse("set_row('L3H2', 1, range(100000))").edit.weights) == 100_000  # type: ignore[union-attr]


def test_an_edit_that_its_one_way_of_writing_makes_too_long_is_refused_at_once() -> None:
    text = "set_row('L3H2',1,[" + "0," * 9900 + "])"
    assert len(text) < 20_000
    with pytest.raises(InterventionError, match=r"at most 20,000 characters, this one 29,7"):
        canonical(text)
