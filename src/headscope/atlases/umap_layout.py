"""UMAP (McInnes et al., 2018), made for many clouds of some thousand points: exact neighbours, one compiled kernel.

The graph is umap-learn's: smooth distances to the 15 nearest neighbours, joined as fuzzy sets. The layout begins with
PCA rather than with the graph's spectrum and is optimised by the same attraction, repulsion and schedule of epochs.
A cloud takes one core; the kernel releases Python's lock, so several clouds are laid out at once in threads.
"""

import functools

import numpy as np
import torch
from torch import Tensor

from headscope.atlases.nearest_neighbours import nearest_neighbours
from headscope.attention.kernels_cpu import compiled

N_NEIGHBOURS, MIN_DIST, SPREAD = 15, 0.1, 1.0
N_EPOCHS = 300
N_NEGATIVE = 5
# The side of the picture that the layout begins as, and the largest step of a coordinate.
_SIDE, _MOST_STEP = 10.0, 4.0
_SEARCH_STEPS = 64
# Attraction and repulsion are read from tables over the squared distance to the power of this.
_TABLE, _TABLE_POWER, _TABLE_END = 4096, 0.25, 12.0


def umap_layout(points: Tensor, start: Tensor, *, seed: int = 0, n_epochs: int = N_EPOCHS) -> Tensor:
    """Lay points [point, dim] out in as many dimensions as `start` [point, dimension] has."""
    head, tail, weight = fuzzy_graph(points, min(N_NEIGHBOURS, len(points) - 1))
    layout = _spread_out(start, seed)
    a, b = curve_parameters(MIN_DIST, SPREAD)
    attraction, repulsion = _tables(a, b)
    _optimise(layout, head, tail, weight, n_epochs, np.uint64(seed), attraction, repulsion)
    return torch.from_numpy(layout)


def fuzzy_graph(points: Tensor, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Edges of the fuzzy simplicial set: both ends and the weight of each, every edge once in either direction."""
    neighbours = nearest_neighbours(points, k - 1)  # umap-learn counts a point among its own neighbours
    distances, places = neighbours.distances.cpu().numpy().astype(np.float64), neighbours.places.cpu().numpy()
    weights = _memberships(distances, np.log2(k))
    n = len(points)
    rows = np.repeat(np.arange(n), places.shape[1])
    # a + b − ab of both directions of an edge; a direction that is missing has weight 0.
    order = np.argsort(rows * n + places.ravel())
    forward = (rows * n + places.ravel())[order]
    values = weights.ravel()[order]
    backward = places.ravel()[order] * n + rows[order]
    at = np.minimum(np.searchsorted(forward, backward), len(forward) - 1)
    alone = forward[at] != backward
    opposite = np.where(alone, 0.0, values[at])
    union = values + opposite - values * opposite
    edges = np.concatenate([forward, backward[alone]])
    union = np.concatenate([union, union[alone]])
    order = np.argsort(edges)
    edges, union = edges[order], union[order]
    return (edges // n).astype(np.int32), (edges % n).astype(np.int32), union.astype(np.float32)


def _memberships(distances: np.ndarray, target: float) -> np.ndarray:
    """exp(−(d − r) / σ) with the nearest distance as r and σ such that each row sums to log2(k) [point, neighbour]."""
    positive = np.where(distances > 0, distances, np.inf).min(1, keepdims=True)
    rho = np.where(np.isfinite(positive), positive, 0.0)
    excess = np.maximum(distances - rho, 0.0)
    low, high = np.zeros_like(rho), np.full_like(rho, np.inf)
    sigma = np.ones_like(rho)
    for _ in range(_SEARCH_STEPS):
        is_large = np.exp(-excess / sigma).sum(1, keepdims=True) > target
        high, low = np.where(is_large, sigma, high), np.where(is_large, low, sigma)
        sigma = np.where(np.isinf(high), sigma * 2.0, 0.5 * (low + high))
        sigma = np.maximum(sigma, 1e-300)
    floor = 1e-3 * np.where(rho > 0, distances.mean(1, keepdims=True), distances.mean())
    return np.exp(-excess / np.maximum(np.maximum(sigma, floor), 1e-300))


def _spread_out(start: Tensor, seed: int) -> np.ndarray:
    """The start as a picture of a fixed size, with a little noise, so that equal points come apart."""
    layout = start.double().cpu().numpy()
    layout = layout - layout.min(0)
    layout = layout * (_SIDE / max(float(layout.max()), 1e-12))
    noise = np.random.default_rng(seed).normal(scale=1e-4 * _SIDE, size=layout.shape)
    return np.ascontiguousarray(layout + noise, np.float32)


@functools.cache
def curve_parameters(min_dist: float, spread: float) -> tuple[float, float]:
    """a and b of 1 / (1 + a d^2b), fitted to 1 below `min_dist` and exponential decay beyond."""
    from scipy.optimize import curve_fit

    distances = np.linspace(0, 3 * spread, 300)
    target = np.where(distances < min_dist, 1.0, np.exp(-(distances - min_dist) / spread))
    (a, b), _ = curve_fit(lambda d, a, b: 1.0 / (1.0 + a * d ** (2 * b)), distances, target)
    return float(a), float(b)


@functools.cache
def _tables(a: float, b: float) -> tuple[np.ndarray, np.ndarray]:
    """Attraction and repulsion, as factors of a difference, by the fourth root of the squared distance.

    A power costs more than all else in the kernel; between the places of a table of 4,096 the error is below 1e-3.
    """
    squared = (np.arange(_TABLE + 2) * (_TABLE_END / _TABLE)) ** (1 / _TABLE_POWER)
    squared[0] = squared[1] * 1e-4
    power = squared**b
    attraction = -2.0 * a * b * power / squared / (a * power + 1.0)
    repulsion = 2.0 * b / ((0.001 + squared) * (a * power + 1.0))
    return attraction.astype(np.float32), repulsion.astype(np.float32)


@compiled
def _factor(table, squared):
    """A table's value, between its places in proportion; that of its end beyond."""
    at = np.sqrt(np.sqrt(squared)) * np.float32(_TABLE / _TABLE_END)
    place = min(np.int64(at), _TABLE)
    share = min(at - np.float32(place), np.float32(1.0))
    return table[place] + share * (table[place + 1] - table[place])


@compiled
def _optimise(layout, head, tail, weight, n_epochs, seed, attraction, repulsion):
    """Move points along edges, as often as their weight says, and away from random others."""
    n, dims = layout.shape
    largest = weight.max()
    period = largest / np.maximum(weight, np.float32(1e-30))
    due = period.copy()
    state = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0xD1B54A32D192ED03)
    step = np.empty(dims, np.float32)
    most = np.float32(_MOST_STEP)
    for epoch in range(n_epochs):
        alpha = np.float32(1.0 - epoch / n_epochs)
        for edge in range(len(head)):
            if due[edge] > epoch + 1 or period[edge] > n_epochs:
                continue
            due[edge] += period[edge]
            i, j = head[edge], tail[edge]
            squared = np.float32(0.0)
            for d in range(dims):
                step[d] = layout[i, d] - layout[j, d]
                squared += step[d] * step[d]
            if squared > 0:
                factor = _factor(attraction, squared)
                for d in range(dims):
                    move = alpha * min(max(factor * step[d], -most), most)
                    layout[i, d] += move
                    layout[j, d] -= move
            for _ in range(N_NEGATIVE):
                state ^= state << np.uint64(13)
                state ^= state >> np.uint64(7)
                state ^= state << np.uint64(17)
                other = np.int64((state >> np.uint64(33)) % np.uint64(n))
                if other == i:
                    continue
                squared = np.float32(0.0)
                for d in range(dims):
                    step[d] = layout[i, d] - layout[other, d]
                    squared += step[d] * step[d]
                if squared > 0:
                    factor = _factor(repulsion, squared)
                    for d in range(dims):
                        layout[i, d] += alpha * min(max(factor * step[d], -most), most)
