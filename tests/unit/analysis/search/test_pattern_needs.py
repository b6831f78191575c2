"""Patterns that an input cannot show: an error that says why, and an example input that does show them."""

import pytest
import torch

import headscope as hs
from headscope.analysis import MEASURES
from headscope.analysis.search.pattern_needs import NEEDS
from headscope.errors import AbsentPatternError, InputError

PLAIN = "the cat sat on a mat"


@pytest.fixture(scope="module")
def gpt() -> hs.Model:
    return hs.load("builtin:gpt")


@pytest.fixture(scope="module")
def bert() -> hs.Model:
    return hs.load("builtin:bert")


@pytest.mark.parametrize("name", ["induction", "duplicate_token", "same_token"])
def test_a_text_without_repeats_cannot_show_repeats(gpt, name):
    with pytest.raises(AbsentPatternError, match=r"no token repeats in this text, so .* cannot be seen here") as caught:
        hs.find_heads(gpt.run(PLAIN), pattern=name)
    assert "red stone" in str(caught.value)
    with pytest.raises(AbsentPatternError, match="true of all 2 inputs"):
        hs.find_heads([gpt.run(PLAIN), gpt.run("a dog ran")], pattern=name)
    assert len(hs.find_heads([gpt.run(PLAIN), gpt.run("I saw the dog and the cat")], pattern=name))


def test_every_reason_names_what_this_input_lacks(gpt):
    trace = gpt.run(PLAIN)
    reasons = {
        "next_token": "causal model",
        "punctuation": "no punctuation",
        "paired_marks": "quotes or brackets",
        "names": "capital",
        "a_to_b": "not a pair of sentences",
        "patch_row": "not an image",
    }
    for name, words in reasons.items():
        with pytest.raises(AbsentPatternError, match=words):
            hs.find_heads(trace, pattern=name)


@pytest.mark.parametrize("name", [name for name, needs in NEEDS.items() if needs.text])
def test_every_example_shows_its_pattern(gpt, bert, name):
    needs = NEEDS[name]
    models = [bert] if needs.pair else [gpt, bert]
    for model in models:
        scores = hs.find_heads(model.run(needs.text, pair=needs.pair), pattern=name)
        assert scores.settings["queries"] > 0


def test_a_pattern_of_words_cannot_be_seen_in_an_image():
    pattern = torch.full((1, 4, 4), 0.25)
    trace = hs.Trace.from_patterns([pattern], ["a", "b", "c", "d"])
    with pytest.raises(AbsentPatternError, match="this input is not text"):
        hs.find_heads(trace, pattern="induction")


def test_cells_that_a_causal_model_cannot_see_are_refused(gpt):
    trace = gpt.run(PLAIN)
    n_tokens = len(trace.tokens["main"])
    cells = torch.zeros(n_tokens, n_tokens)
    cells[1, 3] = 1
    with pytest.raises(InputError, match="no query can see a painted cell"):
        hs.find_heads(trace, pattern=cells.numpy())


def test_needs_are_of_patterns_that_exist():
    assert set(NEEDS) <= {name for name, measure in MEASURES.items() if measure.target is not None}
