"""Variability on patterns that are the same in every text, and on two that have nothing in common."""

import pytest
import torch
from made_treebank import one_hot

import headscope as hs
from headscope.errors import InputError
from headscope.traces import Trace


def texts(*patterns):
    return [Trace.from_patterns([pattern[None]], [str(at) for at in range(len(pattern))]) for pattern in patterns]


def test_a_pattern_that_never_changes_has_no_variability():
    fixed = one_hot([9, *range(9), 3])
    assert hs.measure("variability", texts(fixed, fixed, fixed))["L0H0"] == 0


def test_two_texts_with_nothing_in_common_are_half_away_from_their_mean():
    # |1 − ½| + |0 − ½| a query, over twice the weight: ½, the most that two texts can have.
    forward, backward = one_hot([*range(1, 11), 10]), one_hot([10, *range(10)])
    forward[9] = forward[8]  # within the first ten tokens
    backward[0] = backward[1] * 0 + torch.eye(11)[5]
    scores = hs.measure("variability", texts(forward, backward))
    assert scores["L0H0"] == pytest.approx(0.5) and scores.n_samples == 2


def test_short_texts_and_single_ones_have_nothing_to_say():
    with pytest.raises(InputError, match="ten tokens"):
        hs.measure("variability", texts(one_hot([2, 0, 1]), one_hot([1, 0, 2])))
    with pytest.raises(InputError, match="two texts"):
        hs.measure("variability", texts(one_hot([11, *range(11)])))
