"""Means over seeds with 95 % intervals, and differences of two such means."""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

# Student's t at 0.975 for 1 to 30 degrees of freedom.
_T = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
_T_OF_MANY = 1.96


class SeedMean(NamedTuple):
    """A mean over seeds, its standard error (NaN if unknown), and the degrees of freedom of that."""

    mean: float
    error: float
    freedom: float

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval, by Student's t; NaN if unknown."""
        if not self.freedom >= 1:
            return math.nan, math.nan
        half = (_T[math.floor(self.freedom) - 1] if self.freedom < len(_T) + 1 else _T_OF_MANY) * self.error
        return self.mean - half, self.mean + half

    def minus(self, other: "SeedMean") -> "SeedMean":
        """The difference of means of independent seeds (Welch)."""
        squares = (self.error**2, other.error**2)
        weights = [square**2 / freedom if freedom else math.nan for square, freedom in
                   zip(squares, (self.freedom, other.freedom), strict=True)]  # fmt: skip
        freedom = sum(squares) ** 2 / sum(weights) if sum(weights) else min(self.freedom, other.freedom)
        return SeedMean(self.mean - other.mean, math.sqrt(sum(squares)), freedom)

    def __str__(self) -> str:
        low, high = self.interval
        interval = f" [{_number(low)}, {_number(high)}]" if low == low else ""
        return f"{_number(self.mean)}{interval}"


def mean_over_seeds(values: Sequence[float]) -> SeedMean:
    """The mean of one value for each seed.

    >>> str(mean_over_seeds([1.0, 2.0, 3.0]))
    '2.000 [−0.484, 4.484]'
    """
    if len(values) < 2:
        return SeedMean(values[0], math.nan, 0)
    return SeedMean(statistics.fmean(values), statistics.stdev(values) / math.sqrt(len(values)), len(values) - 1)


def mean_over_pairs(values: Mapping[tuple[int, int], float]) -> SeedMean:
    """The mean of one value for each pair of seeds; its error by leaving out each seed in turn (the jackknife).

    >>> mean_over_pairs({(0, 1): 1.0, (0, 2): 1.0, (1, 2): 1.0}).interval
    (1.0, 1.0)
    """
    seeds = sorted({seed for pair in values for seed in pair})
    mean = statistics.fmean(values.values())
    if len(seeds) < 3:
        return SeedMean(mean, math.nan, 0)
    without = [statistics.fmean(value for pair, value in values.items() if seed not in pair) for seed in seeds]
    n = len(seeds)
    variance = (n - 1) / n * sum((value - statistics.fmean(without)) ** 2 for value in without)
    return SeedMean(mean, math.sqrt(variance), n - 1)


def _number(value: float) -> str:
    return f"{value:.3f}".replace("-", "−")
