"""Rare words, with frequencies that are given."""

import pytest
import torch
from made_treebank import example, one_hot, tokens, trace, uniform

import headscope as hs
from headscope.analysis.measures.rare_words import RareWord
from headscope.analysis.trace_measures import layers
from headscope.corpora import Example
from headscope.errors import InputError
from headscope.runs import Refusal, Tally
from headscope.traces import Trace

TOKENS = tokens(example())  # ids 11 to 15 between [CLS] and [SEP]
COMMON = {id: 1000 for id in range(100, 600)}  # the 500 most frequent are others


def tally_of(counts, pattern, among=1):
    (layer,) = layers(trace(pattern, on=TOKENS), Example("one"))
    (tally,) = RareWord("rare_word", COMMON | counts, among).watch(layer)
    assert isinstance(tally, Tally)
    return float(tally.total), float(tally.n_queries), float(tally.chance)


def test_a_head_that_looks_at_the_rarest_token_hits_it_every_time():
    counts = {11: 9, 12: 2, 13: 9, 14: 5, 15: 9}
    assert tally_of(counts, one_hot([2] * 7)) == pytest.approx((5, 5, 1))
    assert tally_of(counts, one_hot([4] * 7)) == pytest.approx((0, 5, 1))
    assert tally_of(counts, one_hot([4] * 7), among=2) == pytest.approx((5, 5, 2))


def test_equally_rare_tokens_share_the_place_and_chance_counts_them():
    assert tally_of({11: 2, 12: 2, 13: 9, 14: 9, 15: 9}, one_hot([1] * 7)) == pytest.approx((5, 5, 2))


def test_how_many_tokens_occur_once_is_kept_with_the_score():
    assert RareWord("rare_word", COMMON | {11: 1, 12: 1, 13: 9}).settings["once"] == 2


def test_special_tokens_are_never_rare():
    assert tally_of({11: 9, 12: 2, 13: 9, 14: 5, 15: 9}, one_hot([0] * 7))[0] == 0


def test_sentences_of_frequent_tokens_only_are_passed_over():
    (layer,) = layers(trace(uniform(7), on=TOKENS), Example("one"))
    (refusal,) = RareWord("rare_word", dict.fromkeys(range(11, 16), 5)).watch(layer)
    assert isinstance(refusal, Refusal) and "500 most frequent" in refusal.reason
    with pytest.raises(InputError, match="500 different tokens"):
        hs.measure("rare_word", trace(uniform(7), on=TOKENS))


def test_a_causal_query_is_given_chance_of_what_it_can_see_only():
    on = tokens(example(), special=False)  # ids 10 to 14; the first is no key in a causal model
    causal = torch.tril(torch.ones(5, 5)) / torch.arange(1, 6)[:, None]
    (layer,) = layers(trace(causal, on=on), Example("one"))
    (tally,) = RareWord("rare_word", COMMON | {10: 9, 11: 9, 12: 2, 13: 9, 14: 9}).watch(layer)
    assert isinstance(tally, Tally)
    # Of positions 1 to 4 as keys, the rare one is 2: not in sight of query 1, then one of two, of three, of four.
    assert float(tally.n_queries) == 4 and float(tally.chance) == pytest.approx(0 + 1 / 2 + 1 / 3 + 1 / 4)
    # Even attention: the first of equals counts as the strongest, and that is position 1.
    assert float(tally.total) == 0


def test_targets_that_the_model_wrote_itself_are_refused():
    stacks = {"encoder": TOKENS, "decoder": TOKENS}
    patterns = {"encoder": [uniform(7)[None]], "decoder": [uniform(7)[None]], "cross": [uniform(7)[None]]}
    trace = Trace.from_patterns(patterns, stacks)
    measure = RareWord("rare_word", COMMON | dict.fromkeys(range(11, 16), 3))

    def tally_crosswise(example):
        return {str(layer.site): next(iter(measure.watch(layer))) for layer in layers(trace, example)}

    written = tally_crosswise(Example("one", text="a text"))
    refused = {site: result.reason for site, result in written.items() if isinstance(result, Refusal)}
    assert refused.keys() == {"decoder.L0"} and "wrote the targets itself" in refused["decoder.L0"]
    tallies = tally_crosswise(Example("one", text="a text", target="its translation"))
    assert len(tallies) == 3 and all(isinstance(tally, Tally) for tally in tallies.values())
