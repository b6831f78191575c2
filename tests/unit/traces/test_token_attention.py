"""How much tokens look at each other, against what a head does at that distance; on patterns known on paper."""

import pytest
import torch

from headscope.traces import Token, Tokens
from headscope.traces.token_attention import usual_at_distance, weight_between


def tokens(*texts: str) -> Tokens:
    return Tokens(tuple(Token(text, special=text == "<s>") for text in texts))


def test_keys_are_summed_and_queries_averaged():
    pattern = torch.tensor([[[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6]]])
    assert weight_between(pattern, [0, 1], [1, 2]).tolist() == pytest.approx([0.7])


def test_the_usual_is_the_mean_of_other_queries_at_that_distance():
    pattern = torch.zeros(1, 4, 4)
    pattern[0, 1, 0], pattern[0, 2, 1], pattern[0, 3, 2] = 0.2, 0.4, 0.9
    usual = usual_at_distance(pattern, [3], [2], tokens("a", "b", "c", "d"))
    assert usual.tolist() == pytest.approx([0.3])  # of b → a and c → b
    # Two keys, at distances 1 and 2: the usual of both, added up.
    pattern[0, 2, 0] = 0.5
    assert usual_at_distance(pattern, [3], [2, 1], tokens("a", "b", "c", "d")).tolist() == pytest.approx([0.8])


def test_a_head_that_rests_on_the_first_token_does_not_seem_to_look_that_far():
    rests = torch.zeros(1, 4, 4)
    rests[0, :, 0] = 1.0
    seen = tokens("<s>", "a", "b", "c")
    # From b one back: a looks one back at <s>, which is no word to compare with; c looks past b.
    assert usual_at_distance(rests, [2], [1], seen).tolist() == [0.0]
    # Asked about <s> itself, from a: b → a and c → b, and neither is looked at.
    assert usual_at_distance(rests, [1], [0], seen).tolist() == [0.0]
    # Of two special tokens the other one counts: c looks one back at it.
    rests[0, 3, 2] = 0.5
    assert usual_at_distance(rests, [1], [0], tokens("<s>", "a", "<s>", "c")).tolist() == [0.5]


def test_without_others_there_is_nothing_usual():
    assert usual_at_distance(torch.ones(2, 2, 2), [1], [0], tokens("a", "b")).tolist() == [0.0, 0.0]
