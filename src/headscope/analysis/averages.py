"""Per-input numbers of heads as Scores, and how much two Scores agree."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from headscope.analysis.samples import Sample, interval
from headscope.errors import HeadscopeError
from headscope.scores import Scores
from headscope.sites import Head, Site


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
