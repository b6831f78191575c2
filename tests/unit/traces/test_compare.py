"""Two runs side by side."""

import math

import pytest
import torch

from headscope.errors import InputError
from headscope.sites import Head
from headscope.traces import Predictions, Trace


def trace(*patterns: torch.Tensor, tokens=("a", "b", "c")) -> Trace:
    return Trace.from_patterns(list(patterns), list(tokens))


STILL = torch.full((1, 3, 3), 1 / 3)
BEFORE = trace(torch.stack([torch.eye(3), STILL[0]]), STILL)
# The first head turns away from itself altogether for one query; the second does not move.
TURNED = torch.tensor([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.5, 0.5]])
AFTER = trace(torch.stack([TURNED, STILL[0]]), STILL)


def test_a_difference_is_after_minus_before():
    difference = BEFORE.diff(AFTER)
    assert difference.pattern("L0H0").tolist() == [[0.0, 0.0, 0.0], [1.0, -1.0, 0.0], [0.0, 0.5, -0.5]]
    assert difference.pattern("L0")[1].tolist() == [0.5, -0.5, 0.0]
    assert abs(BEFORE.diff(BEFORE).pattern("L0H0")).max() == 0.0


def test_heads_are_ranked_by_how_far_they_moved():
    first, *others = BEFORE.diff(AFTER).heads()
    assert first.head == Head("main", 0, 0)
    assert first.largest == pytest.approx(1.0) and first.mean == pytest.approx(0.5)  # (0 + 1 + ½) / 3
    assert [change.mean for change in others] == [0.0, 0.0]


def test_a_long_pattern_is_compared_in_bands():
    first, second = torch.rand(1, 1100, 1100).softmax(-1), torch.rand(1, 1100, 1100).softmax(-1)
    names = [str(index) for index in range(1100)]
    (change,) = trace(first, tokens=names).diff(trace(second, tokens=names)).heads()
    moved = (second - first).abs().sum(-1)[0] / 2
    assert change.largest == pytest.approx(float(moved.max()), rel=1e-5)
    assert change.mean == pytest.approx(float(moved.mean()), rel=1e-5)


def test_words_are_compared_with_words():
    assert BEFORE.words().diff(AFTER.words()).pattern("L0H0")[1].tolist() == [1.0, -1.0, 0.0]
    assert BEFORE.without("a").diff(AFTER.without("a")).heads()[0].mean == pytest.approx(0.5)  # (½ + ½) / 2
    # One column against three must not be stretched to fit.
    with pytest.raises(InputError, match="3 and 1 tokens"):
        BEFORE.diff(AFTER.without(["a", "b"]))


def test_traces_that_do_not_correspond_are_refused():
    with pytest.raises(InputError, match="different heads"):
        BEFORE.diff(trace(STILL))
    with pytest.raises(InputError, match="3 and 2 tokens in main"):
        trace(STILL).diff(trace(torch.eye(2)[None], tokens="ab"))
    with pytest.raises(InputError, match="3 and none tokens in main"):
        other = trace(STILL)
        trace(STILL).diff(Trace("other", "heads", other.layers, {}))


def test_predictions_show_the_change_in_log_probability():
    def answered(*logits: float) -> Trace:
        answers = Predictions.of(torch.tensor([logits]), stack="main", positions=(2,), names="abcdef".__getitem__)
        return Trace("m", "heads", BEFORE.layers, BEFORE.tokens, answers=answers)

    before, after = answered(2.0, 1.0, 0.0), answered(0.0, 1.0, 2.0)
    changes = {one.text: change for one, change in before.diff(after).predictions(3)}
    assert changes == {"a": pytest.approx(-2.0), "b": pytest.approx(0.0), "c": pytest.approx(2.0)}
    assert [one.text for one, _ in before.diff(after).predictions(1)] == ["c", "a"]


def test_what_one_side_did_not_keep_has_no_number():
    def answered(first: int) -> Trace:
        ids = torch.arange(first, first + 2)[None].int()
        answers = Predictions("main", (2,), ids, torch.tensor([[-0.1, -2.0]]), ((str(first), str(first + 1)),))
        return Trace("m", "heads", BEFORE.layers, BEFORE.tokens, answers=answers)

    changes = {one.text: change for one, change in answered(0).diff(answered(1)).predictions()}
    assert changes["1"] == pytest.approx(1.9)
    assert math.isnan(changes["0"]) and math.isnan(changes["2"])
