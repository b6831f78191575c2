"""t-SNE (van der Maaten & Hinton, 2008) with exact forces in plain torch, for a GPU.

Affinities come from the 3 × perplexity nearest neighbours, as in openTSNE; repulsion is summed over all pairs, in one
compiled kernel that holds none of them, or rows of points at a time where nothing can be compiled. Settings are
openTSNE's: early exaggeration 12 for 250 steps, then 500, learning rate n / exaggeration, momentum 0.8. The processor
computes the same, slowly.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils._triton import has_triton

from headscope.atlases.nearest_neighbours import nearest_neighbours

EXAGGERATION, N_EARLY, N_STEPS, MOMENTUM = 12.0, 250, 500, 0.8
_ROWS = 2**25
_SEARCH_STEPS = 64


def exact_tsne(
    points: Tensor, start: Tensor, *, perplexity: float = 30.0, n_early: int = N_EARLY, n_steps: int = N_STEPS
) -> Tensor:
    """A map [point, dimension] of points [point, dim], on their device, beginning with `start`."""
    affinities = joint_affinities(points, perplexity)
    layout = start.float() * (1e-4 / start[:, 0].float().std().clamp_min(1e-30))
    for steps, exaggeration in ((n_early, EXAGGERATION), (n_steps, 1.0)):
        layout = _descend(layout, affinities, steps, exaggeration)
    return layout


class Affinities(NamedTuple):
    """Which pairs of points belong together [2, pair] and how much [pair]: symmetric, with sum 1."""

    places: Tensor
    values: Tensor


def joint_affinities(points: Tensor, perplexity: float) -> Affinities:
    """Affinities of points [point, dim] by Gaussians that reach as many neighbours as the perplexity says."""
    n = len(points)
    k = min(n - 1, int(3 * perplexity))
    neighbours = nearest_neighbours(points, k)
    squares = neighbours.distances.double().square()
    squares = squares - squares[:, :1]
    low, high = squares.new_zeros(n, 1), squares.new_full((n, 1), torch.inf)
    precision = squares.new_ones(n, 1)
    target = torch.log(squares.new_tensor(min(perplexity, k)))
    shares = torch.full_like(squares, 1 / k)
    for _ in range(_SEARCH_STEPS):
        weights = torch.exp(-precision * squares)
        shares = weights / weights.sum(1, keepdim=True)
        entropy = torch.special.entr(shares).sum(1, keepdim=True)
        is_wide = entropy > target
        low, high = torch.where(is_wide, precision, low), torch.where(is_wide, high, precision)
        precision = torch.where(high.isinf(), precision * 2, (low + high) / 2)
    rows = torch.arange(n, device=points.device)[:, None].expand(-1, k)
    forward, backward = rows * n + neighbours.places, neighbours.places * n + rows
    pairs, place = torch.cat([forward.flatten(), backward.flatten()]).unique(return_inverse=True)
    values = shares.new_zeros(len(pairs)).index_add_(0, place, shares.flatten().repeat(2) / (2 * n))
    return Affinities(torch.stack([pairs // n, pairs % n]), values.float())


def divergence(layout: Tensor, affinities: Affinities) -> float:
    """KL divergence of a map from affinities: what t-SNE makes small."""
    places, values = affinities
    squares = (layout[places[0]] - layout[places[1]]).square().sum(-1)
    total = _repulsion(layout)[1]
    return float((values * (values.clamp_min(1e-30).log() + (1 + squares).log() + total.log())).sum())


def _descend(layout: Tensor, affinities: Affinities, n_steps: int, exaggeration: float) -> Tensor:
    rate = max(len(layout) / exaggeration, 200.0 / 4)
    update, gains = torch.zeros_like(layout), torch.ones_like(layout)
    places, values = affinities.places, affinities.values * exaggeration
    for _ in range(n_steps):
        differences = layout[places[0]] - layout[places[1]]
        forces = values / (1 + differences.square().sum(-1))
        gradient = torch.zeros_like(layout).index_add_(0, places[0], forces[:, None] * differences)
        repulsion, total = _repulsion(layout)
        gradient = 4 * (gradient - repulsion / total)
        agrees = gradient.sign() == update.sign()
        gains = torch.where(agrees, gains * 0.8, gains + 0.2).clamp_min_(0.01)
        update = MOMENTUM * update - rate * gains * gradient
        layout = layout + update
        layout = layout - layout.mean(0)
    return layout


def _repulsion(layout: Tensor) -> tuple[Tensor, Tensor]:
    """Σ w² (y_i − y_j) of every point [point, dimension], and Σ w over all pairs, with w = 1 / (1 + d²)."""
    if layout.is_cuda and has_triton():
        parts = [_compiled_sums()(layout, layout)]
    else:
        parts = [_sums_over_pairs(rows, layout) for rows in layout.split(max(1, _ROWS // len(layout)))]
    forces, totals = (torch.cat(columns) for columns in zip(*parts, strict=True))
    return forces, totals.sum() - len(layout)


def _sums_over_pairs(rows: Tensor, layout: Tensor) -> tuple[Tensor, Tensor]:
    """Σ w² (y_i − y_j) [row, dimension] and Σ w [row] over all points of the layout."""
    differences = [rows[:, None, axis] - layout[None, :, axis] for axis in range(layout.shape[1])]
    squares = torch.zeros_like(differences[0])
    for difference in differences:
        squares = squares + difference * difference
    weights = 1 / (1 + squares)
    squared = weights * weights
    return torch.stack([(squared * difference).sum(1) for difference in differences], 1), weights.sum(1)


@functools.cache
def _compiled_sums() -> Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]:
    return torch.compile(_sums_over_pairs, dynamic=True)
