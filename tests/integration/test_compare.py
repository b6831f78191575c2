"""Two checkpoints, two edits and two built-in models, compared."""

import numpy as np
import pytest
import torch

import headscope as hs

TEXT = "The doctor asked the nurse a question. She"


@pytest.fixture(scope="module")
def gpt() -> hs.Model:
    return hs.load("builtin:gpt")


def test_two_checkpoints_differ_from_the_layer_that_was_trained_on(gpt, tmp_path):
    """A checkpoint whose layer 3 was disturbed: the heads below are the same to the last bit."""
    hs.bake(gpt, [], tmp_path / "checkpoint")
    later = hs.load(str(tmp_path / "checkpoint"))
    weights = dict(later.module.named_parameters())
    name = next(key for key in weights if ".3." in key and "attn" in key and key.endswith("weight"))
    with torch.no_grad():
        weights[name].add_(torch.randn(weights[name].shape, generator=torch.Generator().manual_seed(0)) * 0.05)
    both = hs.compare(later.run(TEXT), gpt.run(TEXT))
    assert both.is_identical and not both.no_difference
    change = both.change()
    assert all(value == 0.0 for head, value in change.items() if head.layer < 3)
    assert all(value > 0.0 for head, value in change.items() if head.layer == 3)


def test_an_edit_moves_only_what_comes_after_it(gpt):
    trace = gpt.run(TEXT)
    quiet = gpt.run(trace.inputs, [hs.silence("L2H1")])
    both = hs.compare(quiet, trace)
    change = both.change()
    assert all(value == 0.0 for head, value in change.items() if head.layer <= 2 and str(head) != "L2H1")
    assert max(value for head, value in change.items() if head.layer > 2) > 0.0
    assert np.abs(both.pattern("L4H0") - (quiet.pattern("L4H0") - trace.pattern("L4H0"))).max() == 0.0
    assert {text.text for text, _ in both.predictions(3)} >= {prediction.text for prediction in quiet.predictions(3)}


def test_gpt_and_bert_are_compared_by_word(gpt):
    bert = hs.load("builtin:bert")
    both = hs.compare(gpt.run(TEXT), bert.run(TEXT))
    assert both.by == "words" and "different tokens" in both.no_difference
    assert both.words == ["The", "doctor", "asked", "the", "nurse", "a", "question", ".", "She"]
    relation = both.relation("She", "nurse")
    for side, model in ((relation.a, gpt), (relation.b, bert)):
        assert [head.rank for head in side.heads] == list(range(1, len(model.heads) + 1))
        best = side.heads[0]
        words = model.run(TEXT).words()
        texts = words.query_tokens(best.head).texts
        # Some tokenizers know no upper case.
        she, nurse = (next(i for i, text in enumerate(texts) if text.lower() == word) for word in ("she", "nurse"))
        assert best.weight == pytest.approx(words.pattern(best.head)[she, nurse], abs=1e-5)
        assert 0.0 <= best.depth <= 1.0
    with pytest.raises(hs.HeadscopeError, match="side by side"):
        hs.head_view(both, "L3H2")
