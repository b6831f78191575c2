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

Amended on 19 November 2026, after the tables of docs/trust.md were computed:

- A head whose need fails while exclusive passes is mixed; it was not supported. Permutations leave special tokens where
  they are, so they hardly move a row that rests on one, and a change that is small for this reason says nothing about
  whether the output needs the row. That no far pattern gives the same output says that it does. Of the 96 heads in the
  tables this changes 2 (L1H0 and L1H2 of `builtin:gpt`), from not supported to mixed.
- On one input a permutation refutes only where a far pattern gives the same output, for the same reason.
- Where even equal signs in all texts could not reach 0.05 for so many heads, the part is not tested and says how many
  texts it takes; it was unclear. This changes none of the tables.
- Up to 15 texts all signs are tried, which were drawn at random before. This changes none of the tables.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from headscope.analysis.statistics import holm, interval, sign_flip_p
from headscope.runs.measure import Sample

Outcome = Literal["pass", "fail", "unclear", "not tested"]
TrustVerdict = Literal["supported", "mixed", "not supported", "not tested"]

LEVEL = 0.05
"""For one comparison with a threshold, the chance that any of the heads is wrongly decided. Every comparison is
corrected by itself: agreement, which fails where either of two fails, can fail wrongly at twice this level.
"""
LEAST_TEXTS = 10
"""For few heads; see `least_texts`."""
SAME_OUTPUT = 0.05
"""A change of the output (total variation) up to here counts as none (Jain & Wallace, 2019)."""
SHARE_OF_YARDSTICK = 0.5
LEAST_YARDSTICK = 0.1
"""Where gradient and leave-one-out agree less than this with each other, neither can judge the attention."""
FAR = 0.5
"""Another pattern counts as far from here on, as a share of the largest JSD that the rows allow."""
SHARE_OF_TEXTS = 0.5


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


def least_texts(n_heads: int) -> int:
    """How many texts can decide anything about so many heads: the least p of a sign-flip test is 2 in 2 to the n.

    >>> least_texts(1), least_texts(48), least_texts(144)
    (10, 11, 13)
    """
    n_texts = LEAST_TEXTS
    while max(n_heads, 1) * 2 / 2**n_texts >= LEVEL:
        n_texts += 1
    return n_texts


def decide(name: str, values: np.ndarray, threshold: float, *, passes: Literal["above", "below"]) -> list[VerdictPart]:
    """One part for every head from values [text, head], NaN where a text was not tested."""
    n_texts = np.isfinite(values).sum(0)
    n_heads = int((n_texts >= LEAST_TEXTS).sum())
    differences = np.where(n_texts >= least_texts(n_heads), values - threshold, np.nan)
    p_values = holm(sign_flip_p(differences))
    return [
        _part(name, column[np.isfinite(column)], threshold, passes, p, n_heads)
        for column, p in zip(values.T, p_values, strict=True)
    ]


def combine(parts: Sequence[VerdictPart]) -> TrustVerdict:
    """The verdict of a head from its three parts; never more than they say.

    Not supported: need fails and exclusive does not pass, or agreement and exclusive both fail. Supported: all three
    pass. Not tested: it is not known whether the output needs the pattern, or nothing else is.
    """
    outcome = {part.name: part.outcome for part in parts}
    need, others = outcome["need"], (outcome["agreement"], outcome["exclusive"])
    if need == "not tested":
        return "not tested"
    if need == "fail":
        return "mixed" if outcome["exclusive"] == "pass" else "not supported"
    if others == ("fail", "fail"):
        return "not supported"
    if others == ("not tested", "not tested"):
        return "not tested"
    return "supported" if (need, *others) == ("pass", "pass", "pass") else "mixed"


def quick_verdict(permuted: float, uniform: float, farthest_share: float) -> TrustVerdict:
    """What one input alone can say: that the pattern is not needed, or else nothing for sure. It cannot support.

    `farthest_share` is that of the farthest pattern tried with the same output.
    """
    if not (np.isfinite(permuted) and np.isfinite(uniform)):
        return "not tested"
    is_refuted = uniform <= SAME_OUTPUT or (permuted <= SAME_OUTPUT and farthest_share >= FAR)
    return "not supported" if is_refuted else "mixed"


def both(first: Sequence[VerdictPart], second: Sequence[VerdictPart], name: str) -> list[VerdictPart]:
    """A part that passes where both pass and fails where either fails; it has the figures of the weaker one."""
    order: dict[Outcome, int] = {"fail": 0, "not tested": 1, "unclear": 2, "pass": 3}
    joined = []
    for pair in zip(first, second, strict=True):
        weaker = min(pair, key=lambda part: (order[part.outcome], part.value))
        joined.append(replace(weaker, name=name))
    return joined


def _part(name: str, values: np.ndarray, threshold: float, passes: str, p: float, n_heads: int) -> VerdictPart:
    n = len(values)
    value = float(values.mean()) if n else float("nan")
    low, high = interval([Sample(float(x), 1, float("nan")) for x in values]) if n > 1 else (float("nan"),) * 2
    if not np.isfinite(p):
        reason = f"{n} texts could be tested, at least {least_texts(n_heads)} are needed"
        reason += f" to decide on {n_heads} heads" if n >= LEAST_TEXTS else ""
        return VerdictPart(name, "not tested", value, low, high, threshold, float("nan"), n, reason)
    is_above = value > threshold
    outcome: Outcome = "unclear" if not p < LEVEL else "pass" if is_above == (passes == "above") else "fail"
    return VerdictPart(name, outcome, value, low, high, threshold, p, n)
