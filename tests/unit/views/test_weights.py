"""Weights of all heads at once: those that the trace gives one by one, however its tokens are read."""

import numpy as np
import pytest
import torch
from made_traces import N_HEADS, random_layer, trace_of_layers

from headscope.attention import Formula, Mask
from headscope.errors import InputError, NotRecordedError
from headscope.traces import Token, Tokens, Trace
from headscope.views import weights as module
from headscope.views.weights import Weights


def causal(length: int) -> Mask:
    return Mask(length, length, stop=torch.arange(1, length + 1)[None])


def blind(length: int) -> Mask:
    """The first two queries may see nothing."""
    return Mask(length, length, stop=(torch.arange(length) - 1).clamp_min(0)[None])


FORMULAS = {
    "plain": lambda length: Formula(0.4),
    "causal": lambda length: Formula(0.4, mask=causal(length)),
    "sinks": lambda length: Formula(0.4, sinks=torch.randn(N_HEADS), mask=causal(length)),
    "soft cap": lambda length: Formula(1.0, softcap=2.0),
    "window": lambda length: Formula(
        0.4,
        mask=Mask(
            length,
            length,
            start=(torch.arange(length) - 3).clamp_min(0)[None],
            stop=torch.arange(1, length + 1)[None],
        ),
    ),
    "blind": lambda length: Formula(0.4, mask=blind(length)),
}


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    """So that a few tokens make several tiles."""
    monkeypatch.setattr(module, "TILE_ROWS", 4)
    monkeypatch.setattr(module, "TILE_CELLS", 4 * 21 * 2)


def numbered_words(length: int) -> Tokens:
    kinds = [Token("[CLS]", special=True)]
    kinds += [Token(f"t{i}", i, word=i // 2, sentence=i // 5, start=2 * i, end=2 * i + 1) for i in range(length - 1)]
    return Tokens(tuple(kinds))


def trace_of(name: str, length: int = 21, **more) -> Trace:
    torch.manual_seed(3)
    layer = random_layer(FORMULAS[name](length), length, **more)
    base_trace = trace_of_layers(layer)
    return Trace("made", "heads", base_trace.layers, {"main": numbered_words(length)})


READINGS = {
    "tokens": lambda trace: trace,
    "words": lambda trace: trace.words(),
    "sentences": lambda trace: trace.sentences(),
    "without": lambda trace: trace.without([0, 3, 20]),
    "words without": lambda trace: trace.without([0, 4]).words(),
}


@pytest.mark.parametrize("how", READINGS)
@pytest.mark.parametrize("what", ["pattern", "contribution"])
@pytest.mark.parametrize("name", FORMULAS)
def test_they_are_what_the_trace_says_of_each_head(name, what, how):
    trace = READINGS[how](trace_of(name))
    layer = trace.layer("L0")
    expected = np.stack([getattr(trace, what)(head) for head in trace.heads])
    weights = Weights(trace, layer, what)
    assert weights.whole().numpy() == pytest.approx(expected, abs=1e-6)
    for index in (0, 1, 2):
        columns = np.stack([weights.column(index).numpy()])[0]
        assert columns == pytest.approx(expected[:, :, index], abs=2e-6)
        row = weights.whole(rows=slice(index, index + 1))[:, 0].numpy()
        assert row == pytest.approx(expected[:, index], abs=1e-6)


@pytest.mark.parametrize("name", FORMULAS)
def test_scores_are_those_of_the_trace(name):
    trace = trace_of(name)
    expected = np.stack([trace.scores(head) for head in trace.heads])
    weights = Weights(trace, trace.layer("L0"), "scores")
    np.testing.assert_allclose(weights.whole().numpy(), expected, rtol=1e-5, atol=1e-6)


def test_columns_of_a_model_in_half_precision_are_exact_too():
    trace = trace_of("causal", dtype=torch.bfloat16)
    # Its own denominators were rounded: ours must not depend on them.
    trace.layer("L0").summary.lse.mul_(1.01)
    weights = Weights(trace, trace.layer("L0"))
    expected = np.stack([trace.pattern(head) for head in trace.heads])
    assert weights.column(4).numpy() == pytest.approx(expected[:, :, 4], abs=1e-6)


def test_a_column_after_the_layer_needs_no_second_pass(monkeypatch):
    trace = trace_of("causal").without([0])
    Weights(trace, trace.layer("L0")).whole()
    again = trace_of("causal")  # the same tokens left out, read anew as each request does
    again = Trace("made", "heads", trace.layers, again.tokens).without([0])
    monkeypatch.setattr(Weights, "tiles", lambda *_, **__: pytest.fail("it was computed again"))
    column = Weights(again, again.layer("L0")).column(2).numpy()
    assert column == pytest.approx(np.stack([trace.pattern(head)[:, 2] for head in trace.heads]), abs=2e-6)


def test_stored_patterns_are_taken_as_they_are():
    trace = trace_of("causal")
    layer = trace.layer("L0")
    layer.stored[2] = torch.rand(21, 21)
    weights = Weights(trace, layer)
    assert torch.equal(weights.whole()[2], layer.stored[2])
    assert torch.equal(weights.column(5)[2], layer.stored[2][:, 5])
    assert weights.whole()[1].numpy() == pytest.approx(trace.pattern("L0H1"), abs=1e-6)
    assert Weights(trace, layer, "scores").whole()[2].isnan().all()


def test_what_cannot_be_had_says_what_to_record():
    for record, error_text in (("summary", "record='heads'"), ("rows", "only row figures")):
        trace = trace_of_layers(random_layer(Formula(1.0), record=record), record=record)
        with pytest.raises(NotRecordedError, match=error_text):
            Weights(trace, trace.layer("L0"))
    trace = Trace.from_patterns([torch.eye(3)[None]], ["a", "b", "c"])
    with pytest.raises(NotRecordedError, match="only its patterns are known"):
        Weights(trace, trace.layer("L0"), "scores")
    with pytest.raises(NotRecordedError, match="only its patterns are known"):
        Weights(trace, trace.layer("L0"), "contribution")


def test_more_than_can_be_computed_in_time_is_refused(monkeypatch):
    monkeypatch.setattr(module, "MOST_CELLS", 1000)
    trace = trace_of("plain")
    with pytest.raises(InputError, match="more than 1,000"):
        Weights(trace, trace.layer("L0")).whole()
    assert Weights(trace, trace.layer("L0")).whole(heads=slice(0, 1)).shape == (1, 21, 21)
