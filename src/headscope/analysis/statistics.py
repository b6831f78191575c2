"""Statistics of heads: means with bootstrap intervals, rank correlation, and p-values corrected for many heads."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from headscope.errors import HeadscopeError
from headscope.runs.measure import Sample
from headscope.scores import Scores
from headscope.sites import Head, Site

N_BOOTSTRAP = 1000
N_PERMUTATIONS = 2000
N_FLIPS = 50_000
_FLIPS_AT_ONCE = 2_000
_MOST_ENUMERATED = 15
"""Up to so many differences every choice of signs is tried."""


def mean(samples: Sequence[Sample]) -> float:
    """The mean over all queries of all inputs; NaN when there are none."""
    count = sum(sample.n_queries for sample in samples)
    return float(sum(sample.total for sample in samples) / count) if count else float("nan")


def chance(samples: Sequence[Sample]) -> float:
    """What chance would give, likewise."""
    count = sum(sample.n_queries for sample in samples)
    return float(sum(sample.chance for sample in samples) / count) if count else float("nan")


def interval(samples: Sequence[Sample]) -> tuple[float, float]:
    """The 95 % bootstrap interval of the mean, resampling inputs; the same resamples at every call."""
    totals, counts = np.array([(sample.total, sample.n_queries) for sample in samples]).T
    chosen = np.random.default_rng(0).integers(0, len(samples), (N_BOOTSTRAP, len(samples)))
    with np.errstate(invalid="ignore", divide="ignore"):
        means = totals[chosen].sum(1) / counts[chosen].sum(1)
    if np.isnan(means).all():
        return float("nan"), float("nan")
    low, high = np.nanquantile(means, [0.025, 0.975])
    return float(low), float(high)


def mean_scores(method: str, samples: Sequence[Mapping[Head, float]], settings: dict[str, Any]) -> Scores:
    """The mean over inputs of one number a head, with 95 % bootstrap intervals from two inputs on."""
    if not samples:
        raise HeadscopeError(f"there is nothing to compute {method} on: no inputs were given.")
    samples_by_head = {
        head: [Sample(scores[head], 1, float("nan")) for scores in samples if head in scores] for head in samples[0]
    }
    means = {
        head: float(np.mean([sample.total for sample in head_samples]))
        for head, head_samples in samples_by_head.items()
    }
    intervals = {}
    if len(samples) > 1:
        intervals = {head: interval(head_samples) for head, head_samples in samples_by_head.items()}
    return Scores(method, means, settings=settings, n_samples=len(samples), intervals=intervals)


def per_layer(values: Mapping[Head, np.ndarray]) -> dict[Head, np.ndarray]:
    """Each head's share of its layer: divided by the sum of absolute values, since signed sums may cancel."""
    totals: dict[Site, np.ndarray] = {}
    for head, value in values.items():
        totals[head.site] = totals.get(head.site, 0.0) + np.abs(value)
    return {head: value / np.where(totals[head.site] == 0, 1.0, totals[head.site]) for head, value in values.items()}


def rank_correlation(
    first: Mapping[Head, float], second: Mapping[Head, float], *, within_layers: bool = False
) -> float:
    """Spearman's rank correlation over the heads that both score; within layers, the mean of the layers' own.

    >>> heads = [Head("main", 0, index) for index in range(3)]
    >>> rank_correlation(dict(zip(heads, (1.0, 2.0, 3.0))), dict(zip(heads, (10.0, 30.0, 20.0))))
    0.5
    """
    heads = [head for head in first if head in second and first[head] == first[head] and second[head] == second[head]]
    if within_layers:
        sites = dict.fromkeys(head.site for head in heads)
        groups = [[head for head in heads if head.site == site] for site in sites]
    else:
        groups = [heads]
    correlations = [_spearman([first[head] for head in group], [second[head] for head in group]) for group in groups]
    known = [value for value in correlations if value == value]
    return float(np.mean(known)) if known else float("nan")


def _spearman(x: Sequence[float], y: Sequence[float]) -> float:
    if len(x) < 3:
        return float("nan")
    first, second = _ranks(x), _ranks(y)
    first, second = first - first.mean(), second - second.mean()
    scale = np.sqrt((first**2).sum() * (second**2).sum())
    return float((first * second).sum() / scale) if scale else float("nan")


def _ranks(values: Sequence[float]) -> np.ndarray:
    """Ranks from 1; equal values share the mean of theirs."""
    _, place, count = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return (last - (count - 1) / 2)[place]


class PairedTest(NamedTuple):
    """For each head: the mean difference, its 95 % bootstrap interval, and the corrected p-value [head]."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    p: np.ndarray

    def scores(self, method: str, heads: Sequence[Head], n_samples: int, settings: dict[str, Any]) -> Scores:
        """The mean differences of these heads as scores, with their intervals; chance is no difference."""
        return Scores(
            method,
            dict(zip(heads, map(float, self.mean), strict=True)),
            settings=settings,
            n_samples=n_samples,
            baseline=0.0,
            intervals={head: (float(a), float(b)) for head, a, b in zip(heads, self.low, self.high, strict=True)},
        )

    def p_values(self, heads: Sequence[Head]) -> dict[Head, float]:
        """The corrected p-value of each of these heads."""
        return dict(zip(heads, map(float, self.p), strict=True))


def paired_test(differences: np.ndarray, *, seed: int = 0) -> PairedTest:
    """Test paired differences [pair, head] against zero.

    p-values come from flipping signs of whole pairs, and are corrected by comparing each head's |t| with the largest
    |t| over all heads in each flip (Westfall & Young, 1993), which keeps the chance of any false find at p.
    """
    n_pairs, n_heads = differences.shape
    generator = np.random.default_rng(seed)
    mean = differences.mean(0)
    if n_pairs < 2:
        unknown = np.full(n_heads, np.nan)
        return PairedTest(mean, unknown, unknown, unknown)
    # How often each pair is drawn, and the sign it gets: then all resamples are one product.
    counts = generator.multinomial(n_pairs, np.full(n_pairs, 1 / n_pairs), N_PERMUTATIONS)
    low, high = np.quantile(counts @ differences / n_pairs, [0.025, 0.975], axis=0)
    signs = generator.choice([-1.0, 1.0], (N_PERMUTATIONS, n_pairs))
    squares = (differences**2).sum(0)
    observed = np.abs(_t(mean[None], squares, n_pairs))[0]
    largest = np.abs(_t(signs @ differences / n_pairs, squares, n_pairs)).max(1)
    p = (1 + (largest[:, None] >= observed[None, :] - 1e-9).sum(0)) / (1 + N_PERMUTATIONS)
    return PairedTest(mean, low, high, p)


def sign_flip_p(differences: np.ndarray) -> np.ndarray:
    """For each column, how often random signs give as large a mean: the two-sided p of a mean that differs from 0.

    `differences` is [sample, head], NaN where there is none; a column without any has NaN. Columns of as many samples
    share their signs. Up to 15 samples every choice of signs is counted; beyond, random ones are, so many that the
    least p, corrected for the number of columns, is far below 0.05.
    """
    p = np.full(differences.shape[1], np.nan)
    n_samples = np.isfinite(differences).sum(0)
    for n in np.unique(n_samples[n_samples > 0]):
        columns = np.flatnonzero(n_samples == n)
        values = np.stack([column[np.isfinite(column)] for column in differences[:, columns].T], axis=1)
        observed, n_extreme, n_all = np.abs(values.mean(0)), np.zeros(len(columns), dtype=int), 0
        for signs in _sign_choices(int(n), max(N_FLIPS, 100 * differences.shape[1])):
            n_extreme += (np.abs(signs @ values) / n >= observed - 1e-12).sum(0)
            n_all += len(signs)
        p[columns] = n_extreme / n_all if n <= _MOST_ENUMERATED else (1 + n_extreme) / (1 + n_all)
    return p


def _sign_choices(n_samples: int, n_random: int) -> Iterator[np.ndarray]:
    """Blocks of signs [choice, sample]: all of them for few samples, else random ones, the same at every call."""
    if n_samples <= _MOST_ENUMERATED:
        yield np.where(np.arange(2**n_samples)[:, None] >> np.arange(n_samples) & 1, 1.0, -1.0)
        return
    generator = np.random.default_rng(0)
    for first in range(0, n_random, _FLIPS_AT_ONCE):
        n_choices = min(_FLIPS_AT_ONCE, n_random - first)
        yield generator.choice(np.array([-1.0, 1.0]), (n_choices, n_samples))


def holm(p_values: Sequence[float] | np.ndarray) -> list[float]:
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


def _t(means: np.ndarray, squares: np.ndarray, n_pairs: int) -> np.ndarray:
    """The t statistics of means [resample, head], given the sums of squares, which signs do not change [head].

    0 where a head never differs; without end where all pairs differ alike.
    """
    variance = np.maximum(squares - n_pairs * means**2, 0) / (n_pairs - 1)
    spread = np.sqrt(variance / n_pairs)
    size = np.sqrt(squares / n_pairs)  # what rounding leaves of no variance at all is small beside it
    t = np.divide(means, spread, out=np.zeros_like(means), where=spread > 1e-7 * size)
    return np.where((spread <= 1e-7 * size) & (size > 1e-12), np.copysign(np.inf, means), t)
