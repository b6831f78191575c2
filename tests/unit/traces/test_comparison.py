"""Two runs side by side."""

import math

import numpy as np
import pytest
import torch

from headscope.attention import Formula
from headscope.attention.masks import Mask
from headscope.errors import InputError, NotRecordedError, UnknownTokenError
from headscope.sites import Head
from headscope.traces import Difference, Inputs, Predictions, Tokens, Trace, compare
from headscope.traces.tokens import Token
from tests.made_traces import random_layer, trace_of_layers


def trace(*patterns: torch.Tensor, tokens=("a", "b", "c")) -> Trace:
    return Trace.from_patterns(list(patterns), list(tokens))


def patterns(length: int, n_heads: int = 2) -> torch.Tensor:
    return torch.rand(n_heads, length, length).softmax(-1)


STILL = torch.full((1, 3, 3), 1 / 3)
BEFORE = trace(torch.stack([torch.eye(3), STILL[0]]), STILL)
# The first head turns away from itself altogether for one query; the second does not move.
TURNED = torch.tensor([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.5, 0.5]])
AFTER = trace(torch.stack([TURNED, STILL[0]]), STILL)


def test_a_difference_is_the_first_minus_the_second():
    difference = compare(AFTER, BEFORE)
    assert difference.pattern("L0H0").tolist() == [[0.0, 0.0, 0.0], [1.0, -1.0, 0.0], [0.0, 0.5, -0.5]]
    assert difference.pattern("L0")[1].tolist() == [0.5, -0.5, 0.0]
    assert difference.pattern("L0H0", rows=1, columns=slice(1, 3)).tolist() == [[-1.0, 0.0]]
    # From the trace itself: the other one minus this one, as after minus before.
    assert compare(AFTER, BEFORE).pattern("L0H0").tolist() == difference.pattern("L0H0").tolist()


def test_a_run_does_not_differ_from_itself():
    comparison = compare(BEFORE, BEFORE)
    assert all(not comparison.pattern(head).any() for head in BEFORE.heads)
    for distance in ("total_variation", "jensen_shannon"):
        assert set(comparison.change(distance).values()) == {0.0}


def test_heads_are_ranked_by_how_far_they_moved():
    change = compare(AFTER, BEFORE).change()
    assert change.top(1) == [(Head("main", 0, 0), pytest.approx(0.5))]  # (0 + 1 + ½) / 3
    assert change["L0H1"] == change["L1H0"] == 0.0
    assert compare(AFTER, BEFORE).change(over="max")["L0H0"] == pytest.approx(1.0)
    # In nats: 0, then ln 2 (no key in common), then half of a row moved: by hand ¾ ln 4/3.
    nats = compare(AFTER, BEFORE).change("jensen_shannon")["L0H0"]
    half = 0.5 * (0.5 * math.log(0.5 / 0.25) + 0.5 * math.log(0.5 / 0.75)) + 0.5 * math.log(1 / 0.75)
    assert half == pytest.approx(0.75 * math.log(4 / 3))
    assert nats == pytest.approx((0 + math.log(2) + half) / 3)


def test_tokens_that_both_have_are_compared_and_the_rest_counts_as_one_more_key():
    torch.manual_seed(0)
    first, other = patterns(3), patterns(5)
    comparison = compare(trace(first, tokens="abc"), trace(other, tokens="axybc"))
    positions = [0, 3, 4]
    expected = first.numpy() - other.numpy()[:, positions][:, :, positions]
    assert comparison.pattern("L0H1") == pytest.approx(expected[1], abs=1e-7)
    assert comparison.difference().tokens["main"].texts == ["a", "b", "c"]
    rest = other.numpy()[:, positions][:, :, [1, 2]].sum(-1)
    moved = (np.abs(expected).sum(-1) + rest) / 2
    assert comparison.change()["L0H0"] == pytest.approx(moved[0].mean(), abs=1e-6)


def test_a_difference_is_computed_from_queries_and_keys_band_by_band():
    torch.manual_seed(1)
    formula = Formula(scaling=0.4, mask=Mask.causal(600, 600))
    first, other = (trace_of_layers(random_layer(formula, 600), random_layer(formula, 600)) for _ in range(2))
    difference = compare(first, other).difference()
    assert isinstance(difference, Difference) and difference.nbytes() == 0
    for head in ("L0H0", "L1H3"):
        assert difference.pattern(head) == pytest.approx(first.pattern(head) - other.pattern(head), abs=1e-7)
    assert difference.pattern("L1H2", rows=range(10, 500, 7)) == pytest.approx(
        (first.pattern("L1H2") - other.pattern("L1H2"))[10:500:7], abs=1e-7
    )
    with pytest.raises(NotRecordedError, match="save the two traces"):
        difference.save("anywhere")
    with pytest.raises(InputError, match="cannot be compared again"):
        compare(difference, first)


def test_words_are_compared_with_words():
    assert compare(AFTER.words(), BEFORE.words()).pattern("L0H0")[1].tolist() == [1.0, -1.0, 0.0]
    assert compare(AFTER.without("a"), BEFORE.without("a")).change()["L0H0"] == pytest.approx(0.75)  # (1 + ½) / 2
    assert compare(AFTER.without(["a", "b"]), BEFORE).line == "1 of 1 and 3 tokens aligned"


def test_tokens_are_hidden_in_both_runs_before_they_are_subtracted():
    torch.manual_seed(2)
    first, other = patterns(4), patterns(4)
    difference = compare(trace(first, tokens="abcd"), trace(other, tokens="abcd")).difference(hide=[(None, 0)])
    left = [side[:, 1:, 1:] / side[:, 1:, 1:].sum(-1, keepdim=True) for side in (first, other)]
    assert difference.pattern("L0H0") == pytest.approx((left[0] - left[1])[0].numpy(), abs=1e-6)


def test_runs_that_do_not_correspond_are_refused():
    with pytest.raises(
        InputError, match=r"different heads \(1 layer of 1 head and 2 layers of 1 or 2 heads\).*side by side"
    ):
        compare(trace(STILL), BEFORE).pattern("L0H0")
    assert "different heads" in compare(BEFORE, trace(STILL)).no_difference
    with pytest.raises(InputError, match="no tokens"):
        compare(BEFORE, Trace("other", "heads", BEFORE.layers, {}))
    with pytest.raises(InputError, match="b must be a trace"):
        compare(BEFORE, "text")  # type: ignore[arg-type]
    for options in ({"by": "letters"}, {"align": "colour"}):
        with pytest.raises(InputError, match="is not known: choose"):
            compare(BEFORE, AFTER, **options)
    with pytest.raises(InputError, match="no distance 'euclid'"):
        compare(BEFORE, AFTER).change("euclid")  # type: ignore[arg-type]


def test_predictions_show_the_change_in_log_probability():
    def trace_with_logits(*logits: float) -> Trace:
        answers = Predictions.of(torch.tensor([logits]), stack="main", positions=(2,), names="abcdef".__getitem__)
        return Trace("m", "heads", BEFORE.layers, BEFORE.tokens, answers=answers)

    before, after = trace_with_logits(2.0, 1.0, 0.0), trace_with_logits(0.0, 1.0, 2.0)
    changes = {prediction.text: change for prediction, change in compare(after, before).predictions(3)}
    assert changes == {"a": pytest.approx(-2.0), "b": pytest.approx(0.0), "c": pytest.approx(2.0)}
    assert [prediction.text for prediction, _ in compare(after, before).predictions(1)] == ["c", "a"]


def test_what_one_side_did_not_keep_has_no_number():
    def trace_with_answer(first: int) -> Trace:
        ids = torch.arange(first, first + 2)[None].int()
        answers = Predictions("main", (2,), ids, torch.tensor([[-0.1, -2.0]]), ((str(first), str(first + 1)),))
        return Trace("m", "heads", BEFORE.layers, BEFORE.tokens, answers=answers)

    changes = {
        prediction.text: change
        for prediction, change in compare(trace_with_answer(1), trace_with_answer(0)).predictions()
    }
    assert changes["1"] == pytest.approx(1.9)
    assert math.isnan(changes["0"]) and math.isnan(changes["2"])


# Two models of the same text


def _read(model: str, weights: list[torch.Tensor], *tokens: Token, text: str = "she saw a nurse") -> Trace:
    bare = Trace.from_patterns(weights, Tokens(tokens), model=model)
    return Trace(model, "heads", bare.layers, bare.tokens, inputs=Inputs("text", {}, bare.tokens, text=text))


def _two_models() -> tuple[Trace, Trace]:
    """One reads "nurse" whole, in one layer; the other in two pieces after a mark of its own, in three layers."""
    whole = [Token(text, word=index) for index, text in enumerate(["she", "saw", "a", "nurse"])]
    first = torch.full((2, 4, 4), 0.25)
    first[1, 0] = torch.tensor([0.0, 0.0, 0.0, 1.0])  # she → nurse
    pieces = [Token("[CLS]", special=True), *whole[:3], Token("nur", word=3), Token("se", word=3)]
    second = [torch.full((1, 6, 6), 1 / 6) for _ in range(3)]
    second[2][0, 1] = torch.tensor([0.0, 0.0, 0.0, 0.0, 0.4, 0.5])  # she → nur, se
    return _read("one", [first], *whole), _read("two", second, *pieces)


def test_models_of_different_shape_are_compared_by_word():
    comparison = compare(*_two_models())
    assert comparison.by == "words" and comparison.words == ["she", "saw", "a", "nurse"]
    assert comparison.alignment["main"].others == ((1,), (2,), (3,), (4, 5))
    assert "different heads" in comparison.no_difference


def test_a_relation_is_ranked_in_each_model_with_relative_depth():
    relation = compare(*_two_models()).relation("She", "nurse")
    best, second = relation.a.heads[0], relation.b.heads[0]
    assert (str(best.head), best.weight, best.depth, best.rank) == ("L0H1", pytest.approx(1.0), 0.0, 1)
    # No other word has a word three places on, so there is no habit to compare with.
    assert best.baseline == 0.0
    assert (str(second.head), second.weight, second.depth) == ("L2H0", pytest.approx(0.9), 1.0)
    assert relation.b.n_layers == 3 and len(relation.b.heads) == 3
    assert [row["model"] for row in relation.table(1)] == ["one", "two"]
    assert "she → nurse" in str(relation)


def test_the_baseline_is_what_the_head_gives_any_word_at_that_distance():
    weights = torch.tensor([[[1.0, 0, 0, 0], [0.5, 0.5, 0, 0], [0, 0.7, 0.3, 0], [0, 0, 0.8, 0.2]]])
    only_trace = _read("one", [weights], *[Token(text, word=index) for index, text in enumerate("abcd")])
    relation = compare(only_trace, only_trace).relation("d", "c")
    best = relation.a.heads[0]
    assert best.weight == pytest.approx(0.8) and best.baseline == pytest.approx((0.5 + 0.7) / 2)
    assert best.above == pytest.approx(0.2)
    assert "before them only" in compare(only_trace, only_trace).relation("a", "d").a.note


def test_a_word_that_is_not_there_is_named():
    with pytest.raises(UnknownTokenError, match=r"no word that both runs have reads 'doctor': they are \['she'"):
        compare(*_two_models()).relation("doctor", "nurse")
    with pytest.raises(UnknownTokenError, match="no token 9"):
        compare(*_two_models()).relation(9, 0)


def test_two_models_that_read_differently_are_not_subtracted_even_where_they_have_the_same_shape():
    first, other = _two_models()
    same = _read("two", [torch.full((2, 6, 6), 1 / 6)], *other.tokens["main"])
    assert "different tokens" in compare(first, same).no_difference
