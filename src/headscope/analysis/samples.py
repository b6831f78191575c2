"""Samples: what one head did on one input, as sums, so that inputs of any length can be averaged fairly."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

N_RESAMPLES = 1000


class Sample(NamedTuple):
    """Of one head on one input: the sum of a quantity over queries, over how many, and the sum chance would give.

    Where a share is measured, `n_queries` is what it is a share of. `chance` is NaN where chance means nothing.
    """

    total: float
    n_queries: float
    chance: float


def mean(samples: Sequence[Sample]) -> float:
    """The mean over all queries of all inputs; NaN when there are none."""
    count = sum(one.n_queries for one in samples)
    return float(sum(one.total for one in samples) / count) if count else float("nan")


def chance(samples: Sequence[Sample]) -> float:
    """What chance would give, likewise."""
    count = sum(one.n_queries for one in samples)
    return float(sum(one.chance for one in samples) / count) if count else float("nan")


def interval(samples: Sequence[Sample]) -> tuple[float, float]:
    """The 95 % bootstrap interval of the mean, resampling inputs; the same resamples at every call."""
    totals, counts = np.array([(one.total, one.n_queries) for one in samples]).T
    chosen = np.random.default_rng(0).integers(0, len(samples), (N_RESAMPLES, len(samples)))
    with np.errstate(invalid="ignore", divide="ignore"):
        means = totals[chosen].sum(1) / counts[chosen].sum(1)
    if np.isnan(means).all():
        return float("nan"), float("nan")
    low, high = np.nanquantile(means, [0.025, 0.975])
    return float(low), float(high)
