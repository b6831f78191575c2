"""Finding heads by example and by pattern, on patterns made by hand."""

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.errors import HeadscopeError, InputError, UnknownTokenError
from headscope.traces import Token, Tokens, Trace

TEXTS = ["the", "nurse", "said", "she", "left"]


def tokens():
    return Tokens(tuple(Token(text, id=place, word=place) for place, text in enumerate(TEXTS)))


def one_hot(*keys):
    return torch.eye(5)[list(keys)]


def made():
    """L0H0 always looks two back, L0H1 links she to nurse and nothing else, L0H2 looks everywhere alike."""
    two_back = one_hot(0, 0, 0, 1, 2)
    link = one_hot(0, 0, 0, 1, 0)
    return Trace.from_patterns([torch.stack([two_back, link, torch.full((5, 5), 0.2)])], tokens())


def test_an_example_is_judged_against_what_the_head_does_at_that_distance_anyway():
    scores = hs.find_heads(made(), example=("she", "nurse"))
    assert scores["L0H0"] == 1 and scores["L0H1"] == 1
    # Other queries with a key two back: said → the, left → said. L0H0 puts 1 there, L0H1 1 and 0.
    assert scores.baselines[hs.Head("main", 0, 0)] == pytest.approx(1)
    assert scores.baselines[hs.Head("main", 0, 1)] == pytest.approx(0.5)
    assert [str(head) for head, _, _ in scores.above(3)] == ["L0H1", "L0H0", "L0H2"]


def test_examples_of_several_runs_are_averaged_with_an_interval():
    scores = hs.find_heads([made(), made()], example=[("she", "nurse"), (4, 2)])
    assert scores["L0H0"] == 1 and scores["L0H1"] == 0.5 and scores.n_samples == 2
    low, high = scores.intervals[hs.Head("main", 0, 1)]
    assert low == 0 and high == 1


def test_a_painted_pattern_ranks_heads_by_the_weight_inside_it():
    painted = np.zeros((5, 5))
    painted[3, 1] = painted[2, 0] = painted[4, 2] = 1
    scores = hs.find_heads(made(), pattern=painted)
    assert [str(head) for head, _ in scores.top(3)] == ["L0H0", "L0H1", "L0H2"]
    assert scores["L0H1"] == pytest.approx(2 / 3) and scores["L0H2"] == pytest.approx(0.2)


def test_a_pattern_by_name_is_the_measure_of_that_name():
    assert dict(hs.find_heads(made(), pattern="first_token")) == dict(hs.measure("first_token", made()))


def test_across_to_the_source_the_baseline_is_what_other_queries_put_on_the_same_keys():
    cross = torch.tensor([[[0.9, 0.1], [0.2, 0.8], [0.4, 0.6]]])
    trace = Trace.from_patterns(
        {"encoder": [torch.eye(2)[None]], "decoder": [torch.eye(3)[None]], "cross": [cross]},
        {"encoder": ["cat", "sat"], "decoder": ["кошка", "сидела", "."]},
    )
    scores = hs.find_heads(trace, example=("кошка", "cat"))
    head = hs.Head("decoder", 0, 0, "cross")
    assert list(scores) == [head]
    assert scores[head] == pytest.approx(0.9) and scores.baselines[head] == pytest.approx(0.3)


def test_what_cannot_be_found_says_why():
    with pytest.raises(UnknownTokenError, match="doctor"):
        hs.find_heads(made(), example=("she", "doctor"))
    with pytest.raises(InputError, match="one of the two"):
        hs.find_heads(made())
    with pytest.raises(HeadscopeError, match="previous_token"):
        hs.find_heads(made(), pattern="confidence")
    with pytest.raises(InputError, match="5 × 5"):
        hs.find_heads(made(), pattern=np.ones((2, 2)))
    with pytest.raises(InputError, match="not zero"):
        hs.find_heads(made(), pattern=np.zeros((5, 5)))
    with pytest.raises(InputError, match="2 were given for 1"):
        hs.find_heads([made()], example=[("she", "nurse"), ("she", "the")])
    with pytest.raises(HeadscopeError, match="no traces"):
        hs.find_heads([], pattern="first_token")
