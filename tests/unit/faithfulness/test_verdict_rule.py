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


def test_holm_multiplies_the_smallest_p_by_their_number_and_never_lets_them_fall():
    assert rule.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert rule.holm([0.5, 0.9]) == [1.0, 1.0]
    corrected = rule.holm([0.01, math.nan, 0.02])
    assert corrected[0] == pytest.approx(0.02) and math.isnan(corrected[1])


def test_a_sign_flip_p_is_the_share_of_signs_with_as_large_a_mean():
    # all of 10 alike: only 2 of 2**10 choices of signs reach it
    assert rule.sign_flip_p(np.ones(10)) == pytest.approx(2 / 2**10, rel=0.3)
    assert rule.sign_flip_p(np.array([1.0, -1.0] * 6)) == 1.0
    assert math.isnan(rule.sign_flip_p(np.ones(9)))


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


def test_more_heads_need_more_evidence():
    weak = np.array([0.02] * 9 + [-0.02] * 3 + [0.02] * 4)[:, None] + 0.05
    alone = rule.need(weak, weak)[0]
    among = rule.need(np.repeat(weak, 50, axis=1), np.repeat(weak, 50, axis=1))[0]
    assert among.p > alone.p and among.outcome == "unclear"


def test_only_three_passes_are_supported_and_a_pattern_that_is_not_needed_never_is():
    outcomes = ("pass", "fail", "unclear", "not tested")
    verdicts = {chosen: rule.combine(parts(*chosen)) for chosen in itertools.product(outcomes, repeat=3)}
    assert [chosen for chosen, verdict in verdicts.items() if verdict == "supported"] == [("pass", "pass", "pass")]
    assert {verdict for (_, need, _), verdict in verdicts.items() if need == "fail"} == {"not supported"}
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
    assert rule.quick_verdict(0.01, 0.9) == "not supported"
    assert rule.quick_verdict(0.9, 0.9) == "mixed"
    assert rule.quick_verdict(math.nan, 0.9) == "not tested"
