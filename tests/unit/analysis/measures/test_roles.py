"""Roles on scores made by hand: which criterion is met, what comes first, and when nothing is said."""

import pytest

from headscope.analysis.measures.roles import CRITERIA, NO_ROLE, Criterion, Verdict, roles
from headscope.scores import Scores
from headscope.sites import Head

A, B, C = (Head("main", 0, index) for index in range(3))


def uniform_scores(values, baseline=0.1, *, width=0.02, **settings) -> Scores:
    heads = dict(zip((A, B, C), values, strict=False))
    return Scores(
        "made by hand",
        heads,
        settings=settings,
        n_samples=100,
        baseline=baseline,
        intervals={head: (value - width, value + width) for head, value in heads.items()},
    )


def test_a_positional_head_looks_ninety_times_in_a_hundred_at_one_offset() -> None:
    verdicts = roles({"positional": uniform_scores((0.9, 0.89, 0.95), offsets={"L0H0": -1, "L0H1": -1, "L0H2": 3})})
    assert [verdict.role for verdict in verdicts.values()] == ["previous token", NO_ROLE, "3 tokens ahead"]
    assert verdicts[B].nearest is not None and verdicts[B].nearest.score == 0.89


def test_a_syntactic_head_is_ten_points_over_the_most_frequent_offset() -> None:
    verdicts = roles({"syntactic/nsubj→head": uniform_scores((0.46, 0.44, 0.36), baseline=0.35)})
    assert verdicts[A].role == "syntactic: nsubj→head"
    assert verdicts[A].findings[0].kind == "syntactic" and verdicts[A].findings[0].baseline == 0.35
    assert [verdicts[head].role for head in (B, C)] == [NO_ROLE, NO_ROLE]


def test_an_interval_that_reaches_down_to_chance_is_no_evidence() -> None:
    wide, narrow = (roles({"rare_word": uniform_scores((0.6,), baseline=0.2, width=width)}) for width in (0.45, 0.3))
    assert wide[A].role == NO_ROLE
    assert narrow[A].role == "rare words"


def test_half_is_nothing_where_chance_gives_nearly_as_much() -> None:
    assert roles({"rare_word": uniform_scores((0.95,), baseline=0.92)})[A].role == NO_ROLE


def test_what_was_counted_on_few_cases_is_passed_over() -> None:
    scores = {"paired_marks": uniform_scores((0.9,), queries=19), "induction": uniform_scores((0.5,), queries=20)}
    assert roles(scores)[A].role == "induction"


def test_the_first_role_is_the_most_points_over_its_baseline() -> None:
    # A score of 0.8 that a baseline of 0.7 nearly reaches says less than 0.5 over 0.1.
    verdicts = roles(
        {"same_word_across": uniform_scores((0.8,), baseline=0.69), "induction": uniform_scores((0.5,), baseline=0.1)}
    )
    assert [finding.role for finding in verdicts[A].findings] == ["induction", "same word across"]
    assert verdicts[A].findings[0].gain == pytest.approx(0.4)


def test_equal_evidence_is_ordered_as_the_criteria_are() -> None:
    scores = {name: uniform_scores((0.95,), baseline=0.0) for name in ("special_tokens", "first_token", "rare_word")}
    role_names = [finding.role for finding in roles(scores)[A].findings]
    assert role_names == ["rare words", "rests on the first token", "rests on special tokens"]


def test_a_role_with_two_measures_is_told_once() -> None:
    verdicts = roles({"rare_word": uniform_scores((0.6,)), "two_rare_words": uniform_scores((0.8,))})
    assert [(finding.role, finding.measure) for finding in verdicts[A].findings] == [("rare words", "two_rare_words")]
    tied = roles({"rare_word": uniform_scores((0.6,), once=420)})[A].findings  # 4.2 a sentence occur once
    assert [(finding.role, finding.kind) for finding in tied] == [("rare words (many tied)", "rare words")]


def test_nothing_is_said_of_a_head_without_scores() -> None:
    verdicts = roles({"induction": uniform_scores((float("nan"), 0.9))})
    assert verdicts[A].findings == () and verdicts[A].nearest is None
    assert str(verdicts[A]) == "L0H0: no clear role" and "induction 0.90" in str(verdicts[B])


def test_a_verdict_survives_json() -> None:
    for head, verdict in roles({"induction": uniform_scores((0.5, 0.2))}).items():
        assert Verdict.from_json(head, verdict.to_json()) == verdict


def test_every_criterion_says_where_it_comes_from() -> None:
    assert all(criterion.source and str(criterion) for criterion in CRITERIA)
    assert str(Criterion("x", "x", least=0.5, above=0.1)) == "≥ 0.5 and ≥ baseline + 0.1"
