"""Measures on patterns made by hand, whose answer is known on paper."""

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.errors import HeadscopeError, InputError
from headscope.traces import Token, Tokens, Trace


def trace_of(pattern, ids=None, **options):
    """One layer of one head on tokens a, b, c …"""
    pattern = torch.tensor(pattern, dtype=torch.float32)
    ids = ids or list(range(len(pattern)))
    tokens = Tokens(tuple(Token(chr(97 + token_id), id=token_id, word=place) for place, token_id in enumerate(ids)))
    return Trace.from_patterns([pattern[None]], tokens, **options)


CAUSAL = [[1.0, 0, 0, 0], [0.9, 0.1, 0, 0], [0.2, 0.5, 0.3, 0], [0.1, 0.1, 0.7, 0.1]]


def test_previous_token_by_hand():
    scores = hs.measure("previous_token", trace_of(CAUSAL))
    assert scores["L0H0"] == pytest.approx((0.9 + 0.5 + 0.7) / 3)
    assert scores.baseline == pytest.approx((1 / 2 + 1 / 3 + 1 / 4) / 3)
    assert scores.settings["queries"] == 3


def test_duplicate_and_induction_by_hand():
    # a b a b: the second a looks back to the first a (duplicate) and to b after it (induction).
    trace = trace_of([[1.0, 0, 0, 0], [0.5, 0.5, 0, 0], [0.3, 0.6, 0.1, 0], [0.2, 0.3, 0.4, 0.1]], ids=[0, 1, 0, 1])
    assert hs.measure("duplicate_token", trace)["L0H0"] == pytest.approx((0.3 + 0.3) / 2)
    assert hs.measure("induction", trace)["L0H0"] == pytest.approx((0.6 + 0.4) / 2)
    assert hs.measure("induction", trace).baseline == pytest.approx((1 / 3 + 1 / 4) / 2)


def test_a_token_after_itself_is_not_induction():
    # a a: what followed the first a is the query itself, which is no evidence.
    scores = hs.measure("induction", trace_of([[1.0, 0], [0.5, 0.5]], ids=[0, 0]))
    assert np.isnan(scores["L0H0"]) and scores.baseline is None


def test_same_word_across_by_hand():
    # A: "cat sat"; B: "a cat". Only cat has a partner; what crosses from it to B is 0.1 + 0.6.
    tokens = Tokens(
        (
            Token("cat", word=0, segment="A"),
            Token("sat", word=1, segment="A"),
            Token("a", word=2, segment="B"),
            Token("Cat", word=3, segment="B"),
        )
    )
    pattern = torch.tensor([[0.2, 0.1, 0.1, 0.6], [0.25] * 4, [0.25] * 4, [0.4, 0.2, 0.2, 0.2]])
    scores = hs.measure("same_word_across", Trace.from_patterns([pattern[None]], tokens))
    assert scores["L0H0"] == pytest.approx((0.6 + 0.4) / (0.7 + 0.6))
    assert scores.baseline == pytest.approx(0.5)


def test_patch_neighbour_by_hand():
    # A 2×2 grid: each patch has three neighbours; uniform attention over CLS and four patches gives 3/5.
    tokens = Tokens((Token("[CLS]", special=True), *(Token(str(patch)) for patch in range(4))), "patches", (2, 2))
    uniform = torch.full((1, 5, 5), 0.2)
    scores = hs.measure("patch_neighbour", Trace.from_patterns([uniform], tokens))
    assert scores["L0H0"] == pytest.approx(0.6) and scores.baseline == pytest.approx(0.6)


def test_intervals_come_from_resampled_traces_and_hold_the_mean():
    traces = [trace_of(np.tril(np.random.default_rng(seed).dirichlet(np.ones(4), 4)).tolist()) for seed in range(12)]
    scores = hs.measure("previous_token", traces)
    low, high = scores.intervals[scores.top(1)[0][0]]
    assert low < scores["L0H0"] < high and scores.n_samples == 12
    assert hs.measure("previous_token", traces).intervals == scores.intervals  # the same every time


def test_what_cannot_be_measured_says_why():
    with pytest.raises(HeadscopeError, match="self_token, previous_token"):
        hs.measure("telepathy", trace_of(CAUSAL))
    with pytest.raises(HeadscopeError, match="no traces"):
        hs.measure("previous_token", [])
    with pytest.raises(InputError, match="grid"):
        hs.measure("patch_neighbour", trace_of(CAUSAL))
    with pytest.raises(InputError, match="pair"):
        hs.measure("same_word_across", trace_of(CAUSAL))
    with pytest.raises(InputError, match="ids"):
        hs.measure("induction", Trace.from_patterns([torch.eye(2)[None]], ["a", "b"]))


WORDS = Tokens(
    tuple(
        Token(text, id=place, word=place, sentence=sentence)
        for place, (text, sentence) in enumerate([("(", 0), ("Hello", 0), (")", 0), (".", 0), ("Ask", 1), ("Anna", 1)])
    )
)


def uniform_over_words(name):
    return hs.measure(name, Trace.from_patterns([torch.full((1, 6, 6), 1 / 6)], WORDS))["L0H0"]


def test_uniform_attention_scores_what_chance_would():
    for name in ("self_token", "previous_token", "next_token", "first_token", "last_token", "paired_marks", "names"):
        assert uniform_over_words(name) == pytest.approx(1 / 6), name
    assert uniform_over_words("punctuation") == pytest.approx(3 / 6)
    scores = hs.measure("names", Trace.from_patterns([torch.full((1, 6, 6), 1 / 6)], WORDS))
    assert scores.baseline == pytest.approx(1 / 6)


def test_figures_of_known_patterns():
    one_hot = trace_of(np.eye(4)[[0, 0, 1, 2]].tolist())  # each query looks one back, the first at itself
    assert hs.measure("peak_weight", one_hot)["L0H0"] == pytest.approx(1)
    assert hs.measure("entropy", one_hot)["L0H0"] == pytest.approx(0, abs=1e-6)
    assert hs.measure("distance_all_keys", one_hot)["L0H0"] == pytest.approx(3 / 4)
    even = trace_of([[0.25] * 4] * 4)
    assert hs.measure("peak_weight", even)["L0H0"] == pytest.approx(1 / 4)
    assert hs.measure("entropy", even)["L0H0"] == pytest.approx(np.log(4), abs=1e-5)


def test_a_bracket_finds_its_partner_through_others():
    tokens = Tokens(tuple(Token(text, word=place) for place, text in enumerate(["(", "[", "a", "]", ")"])))
    pattern = torch.eye(5)[[4, 3, 2, 1, 0]]
    assert hs.measure("paired_marks", Trace.from_patterns([pattern[None]], tokens))["L0H0"] == pytest.approx(1)


def test_blocks_of_a_pair_share_out_what_is_not_special():
    segments = [("[CLS]", "A", True), ("a", "A", False), ("b", "B", False), ("c", "B", False)]
    tokens = Tokens(tuple(Token(text, segment=segment, special=special) for text, segment, special in segments))
    trace = Trace.from_patterns([torch.tensor([[[0.1, 0.2, 0.3, 0.4]] * 4])], tokens)
    scores_by_name = hs.analysis.measure_all(["a_to_a", "a_to_b", "b_to_a", "b_to_b", "special_tokens"], trace)
    assert {name: round(scores["L0H0"], 4) for name, scores in scores_by_name.items()} == {
        "a_to_a": 0.2,
        "a_to_b": 0.7,
        "b_to_a": 0.2,
        "b_to_b": 0.7,
        "special_tokens": 0.1,
    }


def test_measures_that_do_not_apply_can_be_skipped():
    scores_by_name = hs.analysis.measure_all(hs.analysis.MEASURES, trace_of(CAUSAL), skip=True)
    assert "previous_token" in scores_by_name and "patch_self" not in scores_by_name and "a_to_b" not in scores_by_name


def test_patches_by_row_and_column():
    tokens = Tokens(tuple(Token(str(patch)) for patch in range(6)), "patches", (2, 3))
    uniform = Trace.from_patterns([torch.full((1, 6, 6), 1 / 6)], tokens)
    scores_by_name = hs.analysis.measure_all(["patch_self", "patch_row", "patch_column"], uniform)
    assert [round(scores["L0H0"] * 6) for scores in scores_by_name.values()] == [1, 2, 1]
