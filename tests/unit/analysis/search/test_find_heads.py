"""Finding heads by example and by pattern, on patterns made by hand."""

import numpy as np
import pytest
import tiny_models
import torch

import headscope as hs
from headscope.analysis.search.find_heads import example_problem, named_positions
from headscope.errors import HeadscopeError, InputError, UnknownTokenError
from headscope.traces import Token, Tokens, Trace

TEXTS = ["the", "nurse", "said", "she", "left"]


def tokens():
    return Tokens(tuple(Token(text, id=place, word=place) for place, text in enumerate(TEXTS)))


def one_hot(*keys):
    return torch.eye(5)[list(keys)]


def nurse_trace():
    """L0H0 always looks two back, L0H1 links she to nurse and nothing else, L0H2 looks everywhere alike."""
    two_back = one_hot(0, 0, 0, 1, 2)
    link = one_hot(0, 0, 0, 1, 0)
    return Trace.from_patterns([torch.stack([two_back, link, torch.full((5, 5), 0.2)])], tokens())


def test_an_example_is_judged_against_what_the_head_does_at_that_distance_anyway():
    scores = hs.find_heads(nurse_trace(), example=("she", "nurse"))
    assert scores["L0H0"] == 1 and scores["L0H1"] == 1
    # Other queries with a key two back: said → the, left → said. L0H0 puts 1 there, L0H1 1 and 0.
    assert scores.baselines[hs.Head("main", 0, 0)] == pytest.approx(1)
    assert scores.baselines[hs.Head("main", 0, 1)] == pytest.approx(0.5)
    assert [str(head) for head, _, _ in scores.above(3)] == ["L0H1", "L0H0", "L0H2"]


def test_examples_of_several_runs_are_averaged_with_an_interval():
    scores = hs.find_heads([nurse_trace(), nurse_trace()], example=[("she", "nurse"), (4, 2)])
    assert scores["L0H0"] == 1 and scores["L0H1"] == 0.5 and scores.n_samples == 2
    low, high = scores.intervals[hs.Head("main", 0, 1)]
    assert low == 0 and high == 1


def test_a_painted_pattern_ranks_heads_by_the_weight_inside_it():
    painted = np.zeros((5, 5))
    painted[3, 1] = painted[2, 0] = painted[4, 2] = 1
    scores = hs.find_heads(nurse_trace(), pattern=painted)
    assert [str(head) for head, _ in scores.top(3)] == ["L0H0", "L0H1", "L0H2"]
    assert scores["L0H1"] == pytest.approx(2 / 3) and scores["L0H2"] == pytest.approx(0.2)


def test_a_pattern_by_name_is_the_measure_of_that_name():
    assert dict(hs.find_heads(nurse_trace(), pattern="first_token")) == dict(hs.measure("first_token", nurse_trace()))


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


def test_words_are_found_in_another_case_and_in_pieces():
    pieces = Tokens(
        tuple(
            Token(text, id=place, word=word)
            for place, (text, word) in enumerate([("The", 0), ("house", 1), ("keeper", 1), ("said", 2), ("she", 3)])
        )
    )
    assert named_positions(pieces, "the") == [0] and named_positions(pieces, "Housekeeper") == [1, 2]
    assert (
        named_positions(pieces, "keeper") == [2]
        and named_positions(pieces, 4) == [4]
        and named_positions(pieces, ["said", 0]) == [0, 3]
    )
    pattern = torch.eye(5)
    pattern[4] = torch.tensor([0, 0.25, 0.5, 0.25, 0])
    scores = hs.find_heads(Trace.from_patterns([pattern[None]], pieces), example=("She", "housekeeper"))
    assert scores["L0H0"] == pytest.approx(0.75)
    with pytest.raises(UnknownTokenError, match="its words are The, housekeeper, said, she"):
        named_positions(pieces, "doctor")
    with pytest.raises(UnknownTokenError, match="no word was given"):
        named_positions(pieces, " ")


def test_a_word_is_an_exact_one_first():
    assert named_positions(Tokens.of(["She", "she"]), "she") == [1]
    assert named_positions(Tokens.of(["She", "SHE"]), "she") == [0, 1]


def test_an_example_that_a_text_lacks_is_told_before_looking():
    assert example_problem(nurse_trace(), ("she", "nurse")) is None
    assert "doctor" in str(example_problem(nurse_trace(), ("she", "doctor")))


def test_heads_are_found_in_windows_with_global_tokens():
    """Longformer's own code has its weights in bands."""
    family = tiny_models.FAMILIES["longformer"]
    model = hs.Model(family.build(), tiny_models.tiny_bert_tokenizer())
    trace = model.run("the cat sat on the mat")
    texts = trace.tokens["main"].texts
    scores = hs.find_heads(trace, example=(texts[3], texts[2]))
    assert len(scores) == len(model.heads) and all(value == value for value in scores.values())
    assert hs.find_heads(trace, pattern="previous_token")["L0H0"] == pytest.approx(
        hs.measure("previous_token", trace)["L0H0"]
    )


# Patterns that were asked for by name: each is there, with chance as its baseline.
PATTERNS = [
    "self_token",
    "previous_token",
    "next_token",
    "first_token",
    "last_token",
    "same_token",
    "induction",
    "same_word_across",
    "a_to_a",
    "a_to_b",
    "b_to_a",
    "b_to_b",
    "punctuation",
    "paired_marks",
    "names",
]


@pytest.mark.parametrize("name", PATTERNS)
def test_every_pattern_has_a_baseline(name):
    texts = ["the", "Ann", "(", "cat", ")", "the", "Ann", "."]
    rows = [
        Token(text, id=sum(map(ord, text)), word=place, sentence=0, segment="A") for place, text in enumerate(texts)
    ]
    rows += [
        Token(text, id=sum(map(ord, text)), word=place, sentence=0, segment="B") for place, text in enumerate(texts)
    ]
    even = torch.full((1, 16, 16), 1 / 16)
    scores = hs.find_heads(Trace.from_patterns([even], Tokens(tuple(rows))), pattern=name)
    assert scores["L0H0"] == pytest.approx(
        scores.baselines[hs.Head("main", 0, 0)], abs=1e-6
    )  # even attention is chance


def test_what_cannot_be_found_says_why():
    with pytest.raises(UnknownTokenError, match="doctor"):
        hs.find_heads(nurse_trace(), example=("she", "doctor"))
    with pytest.raises(InputError, match="one of the two"):
        hs.find_heads(nurse_trace())
    with pytest.raises(HeadscopeError, match="previous_token"):
        hs.find_heads(nurse_trace(), pattern="confidence")
    with pytest.raises(InputError, match="5 × 5"):
        hs.find_heads(nurse_trace(), pattern=np.ones((2, 2)))
    with pytest.raises(InputError, match="not zero"):
        hs.find_heads(nurse_trace(), pattern=np.zeros((5, 5)))
    with pytest.raises(InputError, match="2 were given for 1"):
        hs.find_heads([nurse_trace()], example=[("she", "nurse"), ("she", "the")])
    with pytest.raises(HeadscopeError, match="no traces"):
        hs.find_heads([], pattern="first_token")
