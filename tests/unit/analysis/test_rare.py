"""Rare words, with frequencies that are given."""

import pytest
from made_treebank import example, one_hot, tokens, trace, uniform

import headscope as hs
from headscope.analysis.over_traces import layers
from headscope.analysis.rare import RareWord
from headscope.corpora import Example
from headscope.errors import InputError
from headscope.runs import Refusal, Tally

TOKENS = tokens(example())  # ids 11 to 15 between [CLS] and [SEP]
COMMON = {id: 1000 for id in range(100, 600)}  # the 500 most frequent are others


def tallied(counts, pattern, among=1):
    (layer,) = layers(trace(pattern, on=TOKENS), Example("one"))
    (tally,) = RareWord("rare_word", COMMON | counts, among).watch(layer)
    assert isinstance(tally, Tally)
    return float(tally.total), float(tally.n_queries), float(tally.chance)


def test_a_head_that_looks_at_the_rarest_token_hits_it_every_time():
    counts = {11: 9, 12: 2, 13: 9, 14: 5, 15: 9}
    assert tallied(counts, one_hot([2] * 7)) == pytest.approx((5, 5, 1))
    assert tallied(counts, one_hot([4] * 7)) == pytest.approx((0, 5, 1))
    assert tallied(counts, one_hot([4] * 7), among=2) == pytest.approx((5, 5, 2))


def test_equally_rare_tokens_share_the_place_and_chance_counts_them():
    assert tallied({11: 2, 12: 2, 13: 9, 14: 9, 15: 9}, one_hot([1] * 7)) == pytest.approx((5, 5, 2))


def test_special_tokens_are_never_rare():
    assert tallied({11: 9, 12: 2, 13: 9, 14: 5, 15: 9}, one_hot([0] * 7))[0] == 0


def test_sentences_of_frequent_tokens_only_are_passed_over():
    (layer,) = layers(trace(uniform(7), on=TOKENS), Example("one"))
    (refusal,) = RareWord("rare_word", dict.fromkeys(range(11, 16), 5)).watch(layer)
    assert isinstance(refusal, Refusal) and "500 most frequent" in refusal.reason
    with pytest.raises(InputError, match="500 different tokens"):
        hs.measure("rare_word", trace(uniform(7), on=TOKENS))
