"""Statistics of heads: means with bootstrap intervals, rank correlation, and p-values corrected for many heads."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from headscope.errors import HeadscopeError
from headscope.scores import Scores
from headscope.sites import Head, Site

N_BOOTSTRAP = 1000
N_PERMUTATIONS = 2000


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
    chosen = np.random.default_rng(0).integers(0, len(samples), (N_BOOTSTRAP, len(samples)))
    with np.errstate(invalid="ignore", divide="ignore"):
        means = totals[chosen].sum(1) / counts[chosen].sum(1)
    if np.isnan(means).all():
        return float("nan"), float("nan")
    low, high = np.nanquantile(means, [0.025, 0.975])
    return float(low), float(high)


def averaged(method: str, samples: Sequence[Mapping[Head, float]], settings: dict[str, Any]) -> Scores:
    """The mean over inputs of one number a head, with 95 % bootstrap intervals from two inputs on."""
    if not samples:
        raise HeadscopeError(f"there is nothing to compute {method} on: no inputs were given.")
    held = {head: [Sample(one[head], 1, float("nan")) for one in samples if head in one] for head in samples[0]}
    means = {head: float(np.mean([one.total for one in found])) for head, found in held.items()}
    intervals = {head: interval(found) for head, found in held.items()} if len(samples) > 1 else {}
    return Scores(method, means, settings=settings, n_samples=len(samples), intervals=intervals)


def per_layer(values: Mapping[Head, np.ndarray]) -> dict[Head, np.ndarray]:
    """Each head's share of its layer: divided by the sum of absolute values, since signed sums may cancel."""
    totals: dict[Site, np.ndarray] = {}
    for head, value in values.items():
        totals[head.site] = totals.get(head.site, 0.0) + np.abs(value)
    return {head: value / np.where(totals[head.site] == 0, 1.0, totals[head.site]) for head, value in values.items()}


def rank_correlation(one: Mapping[Head, float], other: Mapping[Head, float], *, within_layers: bool = False) -> float:
    """Spearman's rank correlation over the heads that both score; within layers, the mean of the layers' own.

    >>> heads = [Head("main", 0, index) for index in range(3)]
    >>> rank_correlation(dict(zip(heads, (1.0, 2.0, 3.0))), dict(zip(heads, (10.0, 30.0, 20.0))))
    0.5
    """
    heads = [head for head in one if head in other and one[head] == one[head] and other[head] == other[head]]
    if within_layers:
        sites = dict.fromkeys(head.site for head in heads)
        groups = [[head for head in heads if head.site == site] for site in sites]
    else:
        groups = [heads]
    found = [_spearman([one[head] for head in group], [other[head] for head in group]) for group in groups]
    known = [value for value in found if value == value]
    return float(np.mean(known)) if known else float("nan")


def _spearman(one: Sequence[float], other: Sequence[float]) -> float:
    if len(one) < 3:
        return float("nan")
    first, second = _ranks(one), _ranks(other)
    first, second = first - first.mean(), second - second.mean()
    scale = np.sqrt((first**2).sum() * (second**2).sum())
    return float((first * second).sum() / scale) if scale else float("nan")


def _ranks(values: Sequence[float]) -> np.ndarray:
    """Ranks from 1; equal values share the mean of theirs."""
    given = np.asarray(values)
    _, place, count = np.unique(given, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return (last - (count - 1) / 2)[place]


class Tested(NamedTuple):
    """For each head: the mean difference, its 95 % bootstrap interval, and the corrected p-value [head]."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    p: np.ndarray


def paired(differences: np.ndarray, *, seed: int = 0) -> Tested:
    """Test paired differences [pair, head] against zero.

    p-values come from flipping signs of whole pairs, and are corrected by comparing each head's |t| with the largest
    |t| over all heads in each flip (Westfall & Young, 1993), which keeps the chance of any false find at p.
    """
    n_pairs, n_heads = differences.shape
    generator = np.random.default_rng(seed)
    mean = differences.mean(0)
    if n_pairs < 2:
        unknown = np.full(n_heads, np.nan)
        return Tested(mean, unknown, unknown, unknown)
    # How often each pair is drawn, and the sign it gets: then all resamples are one product.
    counts = generator.multinomial(n_pairs, np.full(n_pairs, 1 / n_pairs), N_PERMUTATIONS)
    low, high = np.quantile(counts @ differences / n_pairs, [0.025, 0.975], axis=0)
    signs = generator.choice([-1.0, 1.0], (N_PERMUTATIONS, n_pairs))
    squares = (differences**2).sum(0)
    observed = np.abs(_t(mean[None], squares, n_pairs))[0]
    largest = np.abs(_t(signs @ differences / n_pairs, squares, n_pairs)).max(1)
    p = (1 + (largest[:, None] >= observed[None, :] - 1e-9).sum(0)) / (1 + N_PERMUTATIONS)
    return Tested(mean, low, high, p)


def _t(means: np.ndarray, squares: np.ndarray, n_pairs: int) -> np.ndarray:
    """The t statistics of means [resample, head], given the sums of squares, which signs do not change [head].

    0 where a head never differs; without end where all pairs differ alike.
    """
    variance = np.maximum(squares - n_pairs * means**2, 0) / (n_pairs - 1)
    spread = np.sqrt(variance / n_pairs)
    size = np.sqrt(squares / n_pairs)  # what rounding leaves of no variance at all is small beside it
    t = np.divide(means, spread, out=np.zeros_like(means), where=spread > 1e-7 * size)
    return np.where((spread <= 1e-7 * size) & (size > 1e-12), np.copysign(np.inf, means), t)
