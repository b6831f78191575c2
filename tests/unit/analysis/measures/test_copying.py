"""Copying on effects made by hand, and on the built-in language model."""

import pytest
import torch

import headscope as hs
from headscope.analysis.measures.copying import copying, copying_samples

BACK = torch.eye(4)[[0, 0, 1, 2]][None]  # each looks one back


def test_a_head_that_raises_what_it_looks_at_copies_all_of_it():
    (sample,) = copying_samples(BACK, 5.0 * BACK - 1.0)
    assert sample.total / sample.n_queries == pytest.approx(1)
    assert sample.chance / sample.n_queries == pytest.approx((1 + 1 / 2 + 1 / 3 + 1 / 4) / 4)


def test_a_head_that_raises_all_alike_copies_no_more_than_chance():
    (sample,) = copying_samples(BACK, torch.ones(1, 4, 4))
    assert sample.total == pytest.approx(sample.chance)


def test_a_head_that_lowers_what_it_looks_at_copies_nothing():
    (sample,) = copying_samples(BACK, 1.0 - 5.0 * BACK)
    assert sample.total == pytest.approx(0)


def test_the_built_in_induction_heads_copy():
    model = hs.load("builtin:gpt")
    scores = copying(model, n_inputs=2)
    traces = model.run(hs.analysis.repeated_tokens(model, n_inputs=2))
    (best, _), *_ = hs.measure("induction", traces).top(1)
    assert set(scores) == set(model.heads) and scores[best] > 2 * scores.baselines[best]
    with pytest.raises(hs.HeadscopeError, match="causal"):
        copying(hs.load("builtin:bert"))
