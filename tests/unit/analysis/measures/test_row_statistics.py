"""Confidence, entropy and distance on patterns whose answers are known on paper."""

import math

import pytest
import torch
from made_treebank import example, one_hot, tokens, trace, uniform

import headscope as hs
from headscope.analysis.measures.row_statistics import even_distance

TOKENS = tokens(example())  # [CLS] and [SEP] around five words


def of(name, *patterns, on=TOKENS):
    return hs.measure(name, trace(*patterns, on=on))


def test_uniform_attention_has_confidence_one_over_n_and_entropy_log_n_as_chance_does():
    confidence, entropy = of("peak_weight", uniform(7)), of("entropy", uniform(7))
    assert confidence["L0H0"] == pytest.approx(1 / 7) and confidence.baseline == pytest.approx(1 / 7)
    assert entropy["L0H0"] == pytest.approx(math.log(7), abs=1e-6) and entropy.baseline == pytest.approx(math.log(7))


def test_one_hot_attention_has_confidence_one():
    previous = one_hot([0, 0, 1, 2, 3, 4, 5])
    assert of("peak_weight", previous)["L0H0"] == pytest.approx(1)
    # Of the five words all but the first look at a word; that one looks at [CLS], which is no key here.
    assert of("confidence", previous)["L0H0"] == pytest.approx(4 / 5)


def test_leaving_special_keys_out_can_only_lower_confidence_and_nothing_is_brought_back_to_one():
    half = uniform(7) * 0.0
    half[:, 0], half[:, 2], half[:, 3] = 0.6, 0.3, 0.1
    assert of("peak_weight", half)["L0H0"] == pytest.approx(0.6)
    assert of("confidence", half)["L0H0"] == pytest.approx(0.3)


def test_a_causal_model_leaves_its_first_token_out():
    causal = torch.tensor([[1.0, 0, 0], [0.9, 0.1, 0], [0.7, 0.2, 0.1]])
    plain = tokens(example(("a", "b", "c"), heads=(), relations=()), special=False)
    scores = of("confidence", causal, on=plain)
    assert scores["L0H0"] == pytest.approx((0.1 + 0.2) / 2) and scores.settings["queries"] == 2


def test_distance_of_a_previous_token_head_is_one_and_of_even_attention_what_chance_gives():
    words = one_hot([1, 1, 1, 2, 3, 4, 6])
    assert of("distance", words)["L0H0"] == pytest.approx((0 + 1 + 1 + 1 + 1) / 5)
    even = of("distance_all_keys", uniform(7))
    assert even["L0H0"] == pytest.approx(even.baseline)
    even = of("distance", uniform(7))
    assert even["L0H0"] == pytest.approx((5 * 5 - 1) / (3 * 5)) and even.baseline == pytest.approx(even["L0H0"])


def test_the_even_distance_is_the_mean_over_the_keys_in_sight():
    for n_keys in (1, 3, 8):
        by_hand = [sum(abs(i - j) for j in range(n_keys)) / n_keys for i in range(5)]
        assert even_distance(torch.full((5,), n_keys), 5).tolist() == pytest.approx(by_hand)
    causal = even_distance(torch.arange(1, 5), 4)
    assert causal.tolist() == pytest.approx([0, 0.5, 1, 1.5])


def test_what_a_summary_says_is_what_patterns_say():
    model = hs.load("builtin:gpt")
    trace = model.run("The doctor asked the nurse a question, and she did not know.")
    bare = hs.Trace.from_patterns([trace.patterns(f"L{layer}") for layer in range(2)], trace.tokens["main"])
    for name in ("peak_weight", "entropy", "distance_all_keys"):
        scores, other = hs.measure(name, trace), hs.measure(name, bare)
        assert other.baseline == pytest.approx(scores.baseline)
        assert dict(other) == pytest.approx({head: scores[head] for head in other}, abs=1e-5)
