"""Sinks, recency and effective spans on patterns whose answers are known on paper."""

import pytest
import torch
from made_treebank import example, one_hot, tokens, trace, uniform

import headscope as hs
from headscope.analysis.measures.long_inputs import WINDOW
from headscope.errors import InputError


def plain(length: int):
    words = tuple(f"w{place}" for place in range(length))
    return tokens(example(words, heads=(), relations=()), special=False)


def causal_uniform(length: int) -> torch.Tensor:
    lower = torch.ones(length, length).tril()
    return lower / lower.sum(-1, keepdim=True)


def test_the_sink_rate_is_the_share_of_heads_above_its_criterion():
    resting = torch.eye(5) * 0.6
    resting[:, 0] += 0.4
    scores = hs.measure("sink", trace(resting, one_hot([0, 0, 1, 2, 3]), one_hot([0] * 5), on=plain(5)))
    # Four later queries: 0.4 each; one of four looks at the first; all of them do.
    assert [scores[f"L0H{head}"] for head in range(3)] == pytest.approx([0.4, 0.25, 1.0])
    assert scores.settings["sinks"] == ["L0H0", "L0H2"] and scores.settings["sink_rate"] == pytest.approx(2 / 3)
    assert scores.settings["queries"] == 4


def test_chance_of_a_sink_is_an_even_share():
    causal = hs.measure("sink", trace(causal_uniform(4), on=plain(4)))
    assert causal["L0H0"] == pytest.approx((1 / 2 + 1 / 3 + 1 / 4) / 3) and causal["L0H0"] == pytest.approx(
        causal.baseline
    )
    assert causal.settings["sink_rate"] == 1.0


def test_recency_counts_the_first_token_and_the_last():
    length = WINDOW + 6
    near = torch.eye(length)
    far = near.clone()  # the last query looks just outside the window, the one before at the first token
    far[-1], far[-2] = 0, 0
    far[-1, length - 1 - WINDOW], far[-2, 0] = 1, 1
    scores = hs.measure("recency", trace(near, far, causal_uniform(length), on=plain(length)))
    n_queries = length - (WINDOW + 1)  # those that see more than 65 keys
    assert scores.settings["queries"] == n_queries
    assert scores["L0H0"] == 1.0 and scores["L0H1"] == pytest.approx((n_queries - 1) / n_queries)
    expected = sum((WINDOW + 1) / seen for seen in range(WINDOW + 2, length + 1)) / n_queries
    assert scores["L0H2"] == pytest.approx(expected) and scores.baseline == pytest.approx(expected)


def test_recency_needs_a_long_causal_text():
    with pytest.raises(InputError, match="more than 65 tokens"):
        hs.measure("recency", trace(causal_uniform(20), on=plain(20)))


def test_the_effective_span_is_the_fewest_tokens_with_nine_tenths_of_the_mass():
    skewed = torch.tensor([0.05, 0.5, 0.05, 0.38, 0.02]).expand(5, 5)
    scores = hs.measure("effective_span", trace(uniform(5), one_hot([2] * 5), skewed, on=plain(5)))
    # Even attention to five needs all five for 0.9; then one; then 0.5 + 0.38 + 0.05.
    assert [scores[f"L0H{head}"] for head in range(3)] == [5.0, 1.0, 3.0]
    assert hs.measure("effective_span", trace(uniform(10), on=plain(10)))["L0H0"] == 9.0


def test_long_texts_are_sampled_for_their_span():
    length = 130  # every third query, 43 of them
    scores = hs.measure("effective_span", trace(causal_uniform(length), on=plain(length)))
    assert scores.settings["queries"] == 43 and scores["L0H0"] == pytest.approx(scores.baseline)
