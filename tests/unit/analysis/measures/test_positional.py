"""Positional heads: the most frequent offset, and how often it is met."""

import pytest
import torch
from made_treebank import example, one_hot, tokens, trace, uniform

import headscope as hs

TOKENS = tokens(example())


def test_a_previous_token_head_looks_one_back_every_time():
    scores = hs.measure("positional", trace(one_hot([6, 0, 1, 2, 3, 4, 5]), on=TOKENS))
    assert scores["L0H0"] == 1.0 and scores.settings["offsets"] == {"L0H0": -1}
    # The first word has no word before it, so it is not asked; chance is one of five words.
    assert scores.settings["queries"] == 4 and scores.baseline == pytest.approx(1 / 5)
    assert scores.settings["positional"] == ["L0H0"]


def test_heads_have_offsets_of_their_own():
    itself, following = one_hot(range(7)), one_hot([1, 2, 3, 4, 5, 6, 6])
    scores = hs.measure("positional", trace(itself, following, on=TOKENS))
    assert scores.settings["offsets"] == {"L0H0": 0, "L0H1": 1} and list(scores.values()) == [1.0, 1.0]


def test_a_head_that_goes_astray_falls_below_the_criterion():
    scores = hs.measure("positional", trace(one_hot([0, 0, 1, 2, 3, 1, 5]), on=TOKENS))
    assert scores["L0H0"] == pytest.approx(3 / 4) and scores.settings["positional"] == []


def test_a_sink_does_not_hide_where_a_head_looks_otherwise():
    causal = torch.tensor([[1.0, 0, 0, 0], [0.9, 0.1, 0, 0], [0.8, 0.15, 0.05, 0], [0.7, 0.1, 0.15, 0.05]])
    plain = tokens(example(("a", "b", "c", "d"), heads=(), relations=()), special=False)
    scores = hs.measure("positional", trace(causal, on=plain))
    # Queries 2 and 3 have a kept token before them; query 1 has but the first, which is left out.
    assert scores["L0H0"] == 1.0 and scores.settings["offsets"] == {"L0H0": -1} and scores.settings["queries"] == 2


def test_intervals_resample_groups_of_neighbours():
    traces = [trace(one_hot([0, 0, 1, 2, 3, 4, 5]), uniform(7), on=TOKENS) for _ in range(40)]
    scores = hs.measure("positional", traces)
    assert scores.intervals[scores.top(1)[0][0]] == (1.0, 1.0) and scores.n_samples == 40


def test_chance_of_a_causal_head_is_among_the_keys_in_sight():
    plain = tokens(example(), special=False)
    previous = one_hot([0, 0, 1, 2, 3])
    scores = hs.measure("positional", trace(previous, on=plain))
    # Queries 2, 3 and 4 have a kept token before them, one of the two, three and four that they see.
    assert scores["L0H0"] == 1.0 and scores.baseline == pytest.approx((1 / 2 + 1 / 3 + 1 / 4) / 3)
