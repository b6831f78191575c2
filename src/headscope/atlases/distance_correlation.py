"""How well distance stands for the dot product: per query over the keys of its own text, and over all those pairs.

AttentionViz reports the first as its measure of quality (Pearson, mean over queries). A query sees the keys that the
head lets it see: in a causal layer itself and those before it. Queries with fewer than three keys, or whose distances
or dot products are all equal, are not counted.
"""

from dataclasses import dataclass

import numpy as np
import torch

from headscope.atlases.joint_space import near_correlation
from headscope.attention.kernels_cpu import compiled

# Pairs of query and key that pooled figures are computed from: where there are more, at random, in even shares.
MOST_PAIRS = 50_000


@dataclass(frozen=True)
class Pairs:
    """Which keys stand in the text of each query: texts begin at `query_starts` and `key_starts` [text + 1]."""

    query_starts: np.ndarray
    key_starts: np.ndarray
    is_causal: bool

    def count(self) -> int:
        """How many pairs of a query and a key that it sees there are."""
        queries, keys = np.diff(self.query_starts).astype(np.int64), np.diff(self.key_starts).astype(np.int64)
        return int((queries * (queries + 1) // 2).sum() if self.is_causal else (queries * keys).sum())

    def rows_of(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The query and the key of pairs by their numbers: counted text by text, query by query."""
        n_seen = np.concatenate([
            np.minimum(np.arange(1, n_queries + 1), n_keys) if self.is_causal else np.full(n_queries, n_keys)
            for n_queries, n_keys in zip(np.diff(self.query_starts), np.diff(self.key_starts), strict=True)
        ])  # fmt: skip
        ends = np.cumsum(n_seen)
        queries = np.searchsorted(ends, numbers, side="right")
        texts = np.searchsorted(self.query_starts, queries, side="right") - 1
        return queries, self.key_starts[texts] + numbers - (ends - n_seen)[queries]


@dataclass(frozen=True)
class DistanceCorrelation:
    """Correlations of distance with dot product: means over queries, and pooled over all pairs.

    `near` is the weighted correlation over the nearest 0.5 % of pairs, by which the paper chooses its scale.
    """

    pearson: float
    spearman: float
    pooled_pearson: float
    pooled_spearman: float
    near: float


def distance_correlation(
    query: np.ndarray,
    key: np.ndarray,
    query_points: np.ndarray,
    key_points: np.ndarray,
    pairs: Pairs,
    *,
    cosine: bool = False,
) -> DistanceCorrelation:
    """Correlate distances between points with dot products of the head's own queries and keys [token, dim]."""
    points = [np.ascontiguousarray(part, np.float64) for part in (query_points, key_points)]
    if cosine:
        points = [_unit(part) for part in points]
    vectors = [np.ascontiguousarray(part, np.float64) for part in (query, key)]
    per_query, dots, distances = _correlate(
        *vectors, *points, pairs.query_starts, pairs.key_starts, pairs.is_causal, chosen_pairs(pairs.count()), cosine
    )
    known = ~np.isnan(per_query[:, 0])
    means = per_query[known].mean(0) if known.any() else np.full(2, np.nan)
    near = near_correlation(torch.from_numpy(dots), torch.from_numpy(distances))
    pooled = (_pearson(dots, distances), _pearson(_ranks(dots), _ranks(distances)))
    return DistanceCorrelation(float(means[0]), float(means[1]), float(pooled[0]), float(pooled[1]), near)


def chosen_pairs(n_pairs: int, most: int = MOST_PAIRS) -> np.ndarray:
    """Numbers of the pairs that are pooled, ascending: of every so many in a row, a random pair.

    Every nth pair would always be the same keys where texts are of the same length, as images are.
    """
    step = max(1, -(-n_pairs // most))
    firsts = np.arange(0, n_pairs, step)
    return firsts + np.random.default_rng(0).integers(0, np.minimum(step, n_pairs - firsts))


def _unit(points: np.ndarray) -> np.ndarray:
    """Points on the unit sphere, where half the squared distance is 1 − cosine."""
    norms = np.linalg.norm(points, axis=1, keepdims=True)
    return points / np.where(norms > 0, norms, 1.0)


@compiled
def _pearson(x, y):
    """Pearson's correlation of two rows; NaN where either does not vary."""
    n = len(x)
    if n < 3:
        return np.nan
    mean_x, mean_y = 0.0, 0.0
    for i in range(n):
        mean_x += x[i]
        mean_y += y[i]
    mean_x, mean_y = mean_x / n, mean_y / n
    xx, yy, xy = 0.0, 0.0, 0.0
    for i in range(n):
        dx, dy = x[i] - mean_x, y[i] - mean_y
        xx += dx * dx
        yy += dy * dy
        xy += dx * dy
    # What rounding leaves of no variance at all is far below this share of the square of the values.
    if xx <= 1e-12 * n * mean_x * mean_x or yy <= 1e-12 * n * mean_y * mean_y or xx == 0.0 or yy == 0.0:
        return np.nan
    return xy / np.sqrt(xx * yy)


@compiled
def _ranks(values):
    """Ranks from 0; equal values share the mean of theirs."""
    n = len(values)
    order = np.argsort(values)
    ranks = np.empty(n, np.float64)
    first = 0
    while first < n:
        last = first
        while last + 1 < n and values[order[last + 1]] == values[order[first]]:
            last += 1
        for place in range(first, last + 1):
            ranks[order[place]] = 0.5 * (first + last)
        first = last + 1
    return ranks


@compiled
def _correlate(query, key, query_points, key_points, query_starts, key_starts, is_causal, chosen, is_cosine):
    """Pearson and Spearman of every query [query, 2], and dot product and distance of the chosen pairs."""
    per_query = np.full((len(query), 2), np.nan)
    all_dots, all_distances = np.empty(len(chosen), np.float64), np.empty(len(chosen), np.float64)
    pair, n_stored = 0, 0
    for text in range(len(query_starts) - 1):
        first, n_all = key_starts[text], key_starts[text + 1] - key_starts[text]
        for i in range(query_starts[text], query_starts[text + 1]):
            n_keys = min(n_all, i - query_starts[text] + 1) if is_causal else n_all
            dots, distances = np.empty(n_keys, np.float64), np.empty(n_keys, np.float64)
            for j in range(n_keys):
                dot, squared = 0.0, 0.0
                for d in range(query.shape[1]):
                    dot += query[i, d] * key[first + j, d]
                for d in range(query_points.shape[1]):
                    difference = query_points[i, d] - key_points[first + j, d]
                    squared += difference * difference
                dots[j], distances[j] = dot, 0.5 * squared if is_cosine else np.sqrt(squared)
                if n_stored < len(chosen) and pair == chosen[n_stored]:
                    all_dots[n_stored], all_distances[n_stored] = dots[j], distances[j]
                    n_stored += 1
                pair += 1
            per_query[i, 0] = _pearson(dots, distances)
            if not np.isnan(per_query[i, 0]):
                per_query[i, 1] = _pearson(_ranks(dots), _ranks(distances))
    return per_query, all_dots[:n_stored], all_distances[:n_stored]
