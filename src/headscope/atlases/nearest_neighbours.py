"""Exact nearest neighbours by products of blocks, and how far a map keeps them; on any device."""

from typing import NamedTuple

import torch
from torch import Tensor

from headscope.errors import InputError

# Cells of a block of distances.
_BLOCK = 2**22
# Of this many points at most the neighbourhoods are looked at for trustworthiness.
MOST_ROWS = 1000
N_NEIGHBOURS = 10


class Neighbours(NamedTuple):
    """The nearest other points of each point, nearest first [point, neighbour]: their numbers and distances."""

    places: Tensor
    distances: Tensor


def squared_distances(rows: Tensor, points: Tensor) -> Tensor:
    """|row − point|² [row, point] by one matrix product, never below zero."""
    norms = points.square().sum(-1)
    return (torch.addmm(norms[None], rows, points.T, alpha=-2.0) + rows.square().sum(-1)[:, None]).clamp_min_(0.0)


def nearest_neighbours(points: Tensor, k: int) -> Neighbours:
    """The k nearest other points of every point."""
    n = len(points)
    if not 0 < k < n:
        raise InputError(f"{k} neighbours cannot be found among {n} points.")
    points = (points - points.mean(0)).float()
    places, distances = [], []
    for first in range(0, n, max(1, _BLOCK // n)):
        rows = points[first : first + max(1, _BLOCK // n)]
        squares = squared_distances(rows, points)
        numbers = torch.arange(first, first + len(rows), device=points.device)
        squares[torch.arange(len(rows), device=points.device), numbers] = torch.inf
        near = squares.topk(k, dim=1, largest=False).indices
        # Products round: equal points would be a little apart.
        exact = torch.stack([(rows - points[column]).norm(dim=-1) for column in near.T], 1)
        ordered = exact.sort(dim=1, stable=True)
        places.append(near.gather(1, ordered.indices))
        distances.append(ordered.values)
    return Neighbours(torch.cat(places), torch.cat(distances))


def trustworthiness(points: Tensor, drawn: Tensor, *, k: int = N_NEIGHBOURS, most_rows: int | None = None) -> float:
    """How far neighbours on a map are neighbours in the full space (Venna & Kaski, 2001): 1 if all are, 0.5 by chance.

    Of more than `most_rows` points an even sample is looked at; among their neighbours all count. NaN for too few
    points.
    """
    n = len(points)
    if n < 3 * k + 2:
        return float("nan")
    points, drawn = (part - part.mean(0) for part in (points.double(), drawn.double()))
    step = 1 if most_rows is None else max(1, -(-n // most_rows))
    chosen = torch.arange(0, n, step, device=points.device)
    penalty = 0.0
    for rows in chosen.split(max(1, _BLOCK // (n * k))):
        places = torch.arange(len(rows), device=points.device)
        far = squared_distances(points[rows], points)
        far[places, rows] = -1.0
        near = squared_distances(drawn[rows], drawn)
        near[places, rows] = torch.inf
        neighbours = near.topk(k, dim=1, largest=False).indices
        # The rank of a neighbour in the full space: how many points, the point itself among them, are nearer.
        ranks = (far[:, None, :] < far.gather(1, neighbours)[..., None]).sum(-1)
        penalty += float((ranks - k).clamp_min(0).sum())
    return 1.0 - penalty * 2.0 / (len(chosen) * k * (2 * n - 3 * k - 1))
