"""The rule: Holm's correction, parts that pass, fail or stay open, and what they make together."""

import itertools
import math

import numpy as np
import pytest

from headscope.faithfulness import verdict_rule as rule
from headscope.faithfulness.verdict_rule import VerdictPart
from headscope.faithfulness.verdict_text import sentence

N = 20


def column(mean: float, spread: float = 0.01, n: int = N) -> np.ndarray:
    """Values [text, 1] with exactly this mean."""
    return (mean + spread * np.linspace(-1, 1, n))[:, None]


def parts(agreement: str, need: str, exclusive: str) -> list[VerdictPart]:
    names = {"agreement": agreement, "need": need, "exclusive": exclusive}
    return [VerdictPart(name, outcome, 0.5, 0.4, 0.6, 0.1, 0.01, N) for name, outcome in names.items()]  # type: ignore[arg-type]


def test_need_passes_above_the_threshold_fails_below_and_is_open_between():
    outcomes = [rule.need(column(mean, spread), column(0.9))[0].outcome
                for mean, spread in ((0.3, 0.1), (0.01, 0.005), (0.05, 0.05))]  # fmt: skip
    assert outcomes == ["pass", "fail", "unclear"]


def test_need_is_judged_by_the_smaller_of_the_two_changes():
    assert rule.need(column(0.9), column(0.01))[0].outcome == "fail"
    assert rule.need(column(0.01), column(0.9))[0].value == pytest.approx(0.01)


def test_a_change_must_exceed_that_between_seeds():
    assert rule.need(column(0.3), column(0.3))[0].outcome == "pass"
    assert rule.need(column(0.3), column(0.3), seed_change=0.4)[0].outcome == "fail"
    assert rule.need(column(0.3), column(0.3), seed_change=0.001)[0].threshold == rule.SAME_OUTPUT


def test_agreement_needs_both_references_above_half_of_the_yardstick():
    yardstick = column(0.6)[:, 0]
    assert rule.agreement(column(0.5), column(0.5), yardstick)[0].outcome == "pass"
    assert rule.agreement(column(0.5), column(0.1), yardstick)[0].outcome == "fail"
    assert rule.agreement(column(0.5), column(0.1), yardstick)[0].value == pytest.approx(0.1 - 0.3)


def test_references_that_do_not_agree_cannot_judge():
    part = rule.agreement(column(0.5), column(0.5), column(0.02)[:, 0])[0]
    assert part.outcome == "not tested" and "agree too little" in part.reason


def test_exclusiveness_counts_texts_with_a_far_pattern_and_cannot_pass_without_a_search():
    close, far = np.full((N, 1), 0.1), np.full((N, 1), 0.9)
    assert rule.exclusive(close)[0].outcome == "pass"
    assert rule.exclusive(far)[0].outcome == "fail"
    assert rule.exclusive(close, was_searched=False)[0].outcome == "not tested"
    assert rule.exclusive(far, was_searched=False)[0].outcome == "fail"


def test_fewer_than_ten_texts_are_not_tested_and_say_so():
    part = rule.need(column(0.9, n=9), column(0.9, n=9))[0]
    assert part.outcome == "not tested" and part.n == 9 and "at least 10" in part.reason
    nothing = rule.need(np.full((N, 1), np.nan), np.full((N, 1), np.nan))[0]
    assert nothing.outcome == "not tested" and nothing.n == 0


def test_where_no_text_could_decide_for_so_many_heads_it_says_how_many_it_takes():
    sure = column(0.9, n=10)
    for n_heads, n_texts in ((1, 10), (25, 10), (26, 11), (48, 11), (144, 13)):
        assert rule.least_texts(n_heads) == n_texts
        many = [np.repeat(column(0.9, n=n), n_heads, axis=1) for n in (n_texts, max(10, n_texts - 1))]
        assert {part.outcome for part in rule.need(many[0], many[0])} == {"pass"}
        if n_texts > 10:
            parts = rule.need(many[1], many[1])
            assert {part.outcome for part in parts} == {"not tested"}
            reason = f"{n_texts - 1} texts could be tested, at least {n_texts} are needed to decide on {n_heads} heads"
            assert parts[0].reason == reason
    alone = rule.need(np.hstack([sure, np.full((10, 47), np.nan)]), np.full((10, 48), 0.9))
    assert alone[0].outcome == "pass"  # heads that were not tested do not count


def test_more_heads_need_more_evidence():
    weak = np.array([0.02] * 9 + [-0.02] * 3 + [0.02] * 4)[:, None] + 0.05
    alone = rule.need(weak, weak)[0]
    among = rule.need(np.repeat(weak, 50, axis=1), np.repeat(weak, 50, axis=1))[0]
    assert among.p > alone.p and among.outcome == "unclear"


def test_only_three_passes_are_supported_and_a_pattern_that_is_not_needed_never_is():
    outcomes = ("pass", "fail", "unclear", "not tested")
    verdicts = {chosen: rule.combine(parts(*chosen)) for chosen in itertools.product(outcomes, repeat=3)}
    assert [chosen for chosen, verdict in verdicts.items() if verdict == "supported"] == [("pass", "pass", "pass")]
    for (_, need, exclusive), verdict in verdicts.items():
        if need == "fail":
            assert verdict == ("mixed" if exclusive == "pass" else "not supported")
    assert {verdict for (_, need, _), verdict in verdicts.items() if need == "not tested"} == {"not tested"}
    assert verdicts["fail", "pass", "fail"] == "not supported"
    assert verdicts["not tested", "pass", "not tested"] == "not tested"
    assert verdicts["pass", "pass", "not tested"] == verdicts["fail", "pass", "pass"] == "mixed"


def test_every_outcome_of_every_part_has_a_sentence():
    figures = dict.fromkeys(("tau_gradient", "tau_left_out", "yardstick", "change_permuted", "change_uniform"), 0.25)
    for outcome in ("pass", "fail", "unclear", "not tested"):
        for part in parts(outcome, outcome, outcome):
            text = sentence(part, figures | {"farthest": 0.3})
            assert text.endswith(".") and "nan" not in text


def test_one_input_can_refute_and_not_support():
    assert rule.quick_verdict(0.9, 0.01, 0.0) == "not supported"
    assert rule.quick_verdict(0.01, 0.9, 0.7) == "not supported"
    assert rule.quick_verdict(0.01, 0.9, 0.2) == "mixed"  # no order that was tried is far from the row
    assert rule.quick_verdict(0.9, 0.9, 0.7) == "mixed"
    assert rule.quick_verdict(math.nan, 0.9, 0.0) == "not tested"


def test_a_pattern_that_is_not_needed_is_named_by_the_change_that_is_small():
    part = rule.need(column(0.0), column(0.7))[0]
    agrees = {"tau_gradient": 0.1, "tau_left_out": 0.2, "yardstick": 0.3}
    sink = sentence(part, agrees | {"change_permuted": 0.0, "change_uniform": 0.7})
    assert sink.startswith("The pattern can be permuted with hardly a change of the output: the smaller change is ")
    even = sentence(part, agrees | {"change_permuted": 0.3, "change_uniform": 0.02})
    assert even.startswith("The pattern can be made uniform with hardly a change")
    both = sentence(part, agrees | {"change_permuted": 0.01, "change_uniform": 0.02})
    assert both.startswith("The pattern can be permuted or made uniform with hardly a change")
    assert "either permuted or made uniform" in sentence(part, agrees | {"change_permuted": 0.3, "change_uniform": 0.3})
