"""The rule by which tests become a verdict, with all its thresholds. Written down before any table was computed.

Every part is a question with one number per text, compared with a threshold:

- agreement: does attention rank tokens as the output depends on them? τ-b of attention with gradient × input, and with
  leave-one-out, each minus half of the τ-b that these two reach with each other. Both must lie above 0.
- need: does the output need this pattern? The smaller of two changes of the output: the median over permutations, and
  that of a uniform pattern. It must lie above 0.05, or above the change between seeds where that is known and larger.
- exclusive: is there no other pattern with the same output? Whether a pattern was found that changes the output by at
  most 0.05 and is at least half as far away as any pattern can be. It must hold for fewer than half of the texts.

A part passes or fails where the mean over texts differs from the threshold (sign-flip test, two-sided) at 0.05 after
Holm's correction for the number of heads; else it is unclear. With fewer than 10 texts it is not tested.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from headscope.analysis.statistics import N_BOOTSTRAP

Outcome = Literal["pass", "fail", "unclear", "not tested"]
TrustVerdict = Literal["supported", "mixed", "not supported", "not tested"]

LEVEL = 0.05
"""Of all heads together, the chance that any part is wrongly decided."""
LEAST_TEXTS = 10
SAME_OUTPUT = 0.05
"""A change of the output (total variation) up to here counts as none (Jain & Wallace, 2019)."""
SHARE_OF_YARDSTICK = 0.5
LEAST_YARDSTICK = 0.1
"""Where gradient and leave-one-out agree less than this with each other, neither can judge the attention."""
FAR = 0.5
"""Another pattern counts as far from here on, as a share of the largest JSD that the rows allow."""
SHARE_OF_TEXTS = 0.5
N_FLIPS = 50_000
_FLIPS_AT_ONCE = 2_000


@dataclass(frozen=True)
class VerdictPart:
    """One question about one head: the mean over `n` texts with its 95 % bootstrap interval, the threshold that it is
    compared with, the corrected p-value of the difference, and what follows.
    """

    name: str
    outcome: Outcome
    value: float
    low: float
    high: float
    threshold: float
    p: float
    n: int
    reason: str = ""


def agreement(tau_gradient: np.ndarray, tau_left_out: np.ndarray, yardstick: np.ndarray) -> list[VerdictPart]:
    """Whether attention ranks tokens as the output depends on them: τ-b with each reference [text, head], and of the
    references with each other [text]. The figures are those of the weaker reference, above half of the yardstick.
    """
    known = yardstick[np.isfinite(yardstick)]
    share = SHARE_OF_YARDSTICK * yardstick[:, None]
    by_gradient, by_left_out = (
        decide("agreement", tau - share, 0.0, passes="above") for tau in (tau_gradient, tau_left_out)
    )
    parts = both(by_gradient, by_left_out, "agreement")
    if len(known) >= LEAST_TEXTS and known.mean() < LEAST_YARDSTICK:
        reason = f"gradient and leave-one-out agree too little to judge by (τ {known.mean():.2f})"
        return [replace(part, outcome="not tested", p=float("nan"), reason=reason) for part in parts]
    return parts


def need(permuted: np.ndarray, uniform: np.ndarray, seed_change: float | None = None) -> list[VerdictPart]:
    """Whether the output needs the pattern: its change [text, head] by the median permutation, and by a uniform
    pattern. `seed_change` is that between models of other seeds.
    """
    floor = max(SAME_OUTPUT, seed_change or 0.0)
    return decide("need", np.minimum(permuted, uniform), floor, passes="above")


def exclusive(share_of_reachable: np.ndarray, *, was_searched: bool = True) -> list[VerdictPart]:
    """Whether no far pattern gives the same output: how far the farthest such pattern is [text, head], as a share of
    the largest JSD that the rows allow. Without an adversary's search this can fail, not pass.
    """
    is_far = np.where(np.isfinite(share_of_reachable), share_of_reachable >= FAR, np.nan)
    parts = decide("exclusive", is_far, SHARE_OF_TEXTS, passes="below")
    if was_searched:
        return parts
    reason = "no adversary was searched for, and none of the patterns tried is far with the same output"
    return [part if part.outcome == "fail" else replace(part, outcome="not tested", reason=reason) for part in parts]


def decide(name: str, values: np.ndarray, threshold: float, *, passes: Literal["above", "below"]) -> list[VerdictPart]:
    """One part for every head from values [text, head], NaN where a text was not tested."""
    p_values = holm([sign_flip_p(column[np.isfinite(column)] - threshold) for column in values.T])
    return [
        _part(name, column[np.isfinite(column)], threshold, passes, p)
        for column, p in zip(values.T, p_values, strict=True)
    ]


def combine(parts: Sequence[VerdictPart]) -> TrustVerdict:
    """The verdict of a head from its three parts; never more than they say.

    Not supported: the output does not need the pattern, or the attention neither agrees nor is exclusive. Supported:
    all three pass. Not tested: it is not known whether the output needs the pattern, or nothing else is.
    """
    outcome = {part.name: part.outcome for part in parts}
    need, others = outcome["need"], (outcome["agreement"], outcome["exclusive"])
    if need == "not tested":
        return "not tested"
    if need == "fail" or others == ("fail", "fail"):
        return "not supported"
    if others == ("not tested", "not tested"):
        return "not tested"
    return "supported" if (need, *others) == ("pass", "pass", "pass") else "mixed"


def quick_verdict(permuted: float, uniform: float) -> TrustVerdict:
    """What one input alone can say: that the pattern is not needed, or else nothing for sure. It cannot support."""
    if not (np.isfinite(permuted) and np.isfinite(uniform)):
        return "not tested"
    return "not supported" if min(permuted, uniform) <= SAME_OUTPUT else "mixed"


def both(first: Sequence[VerdictPart], second: Sequence[VerdictPart], name: str) -> list[VerdictPart]:
    """A part that passes where both pass and fails where either fails; it has the figures of the weaker one."""
    order: dict[Outcome, int] = {"fail": 0, "not tested": 1, "unclear": 2, "pass": 3}
    joined = []
    for pair in zip(first, second, strict=True):
        weaker = min(pair, key=lambda part: (order[part.outcome], part.value))
        joined.append(replace(weaker, name=name))
    return joined


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values corrected for their number (Holm, 1979); NaN stays NaN and does not count.

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=float)
    known = np.flatnonzero(np.isfinite(p))
    ordered = known[np.argsort(p[known], kind="stable")]
    factors = np.arange(len(ordered), 0, -1)
    corrected = np.full(len(p), np.nan)
    corrected[ordered] = np.minimum(np.maximum.accumulate(p[ordered] * factors), 1.0)
    return corrected.tolist()


def sign_flip_p(differences: np.ndarray) -> float:
    """Two-sided p of a mean that differs from 0: how often random signs give as large a mean; NaN for too few texts."""
    if len(differences) < LEAST_TEXTS:
        return float("nan")
    generator, observed, n_extreme = np.random.default_rng(0), abs(differences.mean()), 0
    for _ in range(N_FLIPS // _FLIPS_AT_ONCE):
        signs = generator.choice(np.array([-1.0, 1.0]), (_FLIPS_AT_ONCE, len(differences)))
        n_extreme += int((np.abs(signs @ differences) / len(differences) >= observed - 1e-12).sum())
    return (1 + n_extreme) / (1 + N_FLIPS)


def bootstrap_interval(values: np.ndarray) -> tuple[float, float]:
    """The 95 % bootstrap interval of a mean; the same resamples at every call."""
    if len(values) < 2:
        return float("nan"), float("nan")
    chosen = np.random.default_rng(0).integers(0, len(values), (N_BOOTSTRAP, len(values)))
    low, high = np.quantile(values[chosen].mean(1), [0.025, 0.975])
    return float(low), float(high)


def _part(name: str, values: np.ndarray, threshold: float, passes: str, p: float) -> VerdictPart:
    n = len(values)
    value = float(values.mean()) if n else float("nan")
    low, high = bootstrap_interval(values)
    if n < LEAST_TEXTS:
        reason = f"{n} texts could be tested, at least {LEAST_TEXTS} are needed"
        return VerdictPart(name, "not tested", value, low, high, threshold, float("nan"), n, reason)
    is_above = value > threshold
    outcome: Outcome = "unclear" if not p < LEVEL else "pass" if is_above == (passes == "above") else "fail"
    return VerdictPart(name, outcome, value, low, high, threshold, p, n)
