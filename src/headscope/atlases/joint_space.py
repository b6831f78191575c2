"""The joint space of a head: its queries and keys as points in one space (AttentionViz, Yeh et al., 2023, section 4).

Three steps lead from what the head computes to a space in which near means large attention. Each keeps the softmax:

- translated: keys move by one vector, so that both clouds have the same mean. All logits of a query change by the same
  number. Queries may not be moved: that changes attention.
- scaled: queries × c, keys ÷ c, so that both have the same median norm. No logit changes.
- lifted: keys get one more coordinate, √(M² − |k|²), queries a zero. Then |Q − K|² = |Q|² + M² − 2 q·k: for every query
  the nearer key has the larger logit, exactly. Without this step the norms of keys hide part of it.
"""

from dataclasses import dataclass
from typing import get_args

import torch
from torch import Tensor

from headscope.choices import Coordinates, KeyScale
from headscope.errors import InputError

# Candidates of the search, the closest pairs that count, and how many queries and keys are searched (E.1's notebook).
SCALES = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.67, 2.5, 5.0)
NEAR_SHARE = 0.005
_MOST_SEARCHED = 1000


@dataclass(frozen=True, eq=False)
class JointSpace:
    """How a head's queries and keys become points: `shift` [dim] is added to keys, c = `scale`, M = `radius`.

    `query_mean` and `key_mean` [dim] are those of the vectors as the head uses them.
    """

    query_mean: Tensor
    key_mean: Tensor
    scale: float
    radius: float

    @classmethod
    def fit(cls, query: Tensor, key: Tensor, *, scale: KeyScale = "norms") -> "JointSpace":
        """The space of queries [token, dim] and keys [token, dim].

        `scale="norms"` is the closed form √(median|k| / median|q|); "correlation" is the paper's search: the candidate
        with which distances of near pairs correlate best with dot products. 1 where all queries or keys are zero.
        """
        query, key = query.double(), key.double()
        query_mean, key_mean = query.mean(0), key.mean(0)
        moved = key + (query_mean - key_mean)
        if scale == "norms":
            c = norm_scale(query, moved)
        elif scale == "correlation":
            c = searched_scale(query, moved)
        else:
            raise InputError(f"there is no scale {scale!r}: choose one of {', '.join(get_args(KeyScale))}.")
        return cls(query_mean, key_mean, c, float((moved / c).norm(dim=-1).max()))

    @property
    def shift(self) -> Tensor:
        """What is added to every key."""
        return self.query_mean - self.key_mean

    def queries(self, query: Tensor, coordinates: Coordinates = "scaled") -> Tensor:
        """Queries as points [token, dim], or [token, dim + 1] where they are lifted."""
        query = query.double()
        if coordinates in ("raw", "translated"):
            return query
        points = query * self.scale
        return points if _check(coordinates) == "scaled" else torch.cat([points, points.new_zeros(len(points), 1)], 1)

    def keys(self, key: Tensor, coordinates: Coordinates = "scaled") -> Tensor:
        """Keys as points [token, dim], or [token, dim + 1] where they are lifted."""
        key = key.double()
        if coordinates == "raw":
            return key
        points = key + self.shift.to(key)
        if coordinates == "translated":
            return points
        points = points / self.scale
        if _check(coordinates) == "scaled":
            return points
        height = (self.radius**2 - points.square().sum(-1, keepdim=True)).clamp_min(0.0).sqrt()
        return torch.cat([points, height], 1)

    def points(self, query: Tensor, key: Tensor, coordinates: Coordinates = "scaled") -> Tensor:
        """All points, queries first, then keys [query + key, dim]."""
        return torch.cat([self.queries(query, coordinates), self.keys(key, coordinates)])

    def key_bias(self, key: Tensor) -> Tensor:
        """The part of every logit that belongs to the key alone, q̄·(k − k̄) [token]: translation hides it."""
        return (key.double() - self.key_mean.to(key.device)) @ self.query_mean.to(key.device)


def norm_scale(query: Tensor, key: Tensor) -> float:
    """c with which queries × c and keys ÷ c have the same median norm; 1 where all of either are zero."""
    queries, keys = float(query.norm(dim=-1).median()), float(key.norm(dim=-1).median())
    return (keys / queries) ** 0.5 if queries > 0 and keys > 0 else 1.0


def searched_scale(query: Tensor, key: Tensor) -> float:
    """The candidate whose weighted correlation of distance and dot product is nearest −1."""
    query, key = _some(query), _some(key)
    dots = (query @ key.T).flatten()
    correlations = {c: near_correlation(dots, torch.cdist(query * c, key / c).flatten()) for c in SCALES}
    known = {c: value for c, value in correlations.items() if value == value}
    return min(known, key=lambda c: (known[c], abs(c - 1.0))) if known else 1.0


def _some(vectors: Tensor) -> Tensor:
    """At most so many vectors as are searched, at random: every nth would favour some positions."""
    if len(vectors) <= _MOST_SEARCHED:
        return vectors
    order = torch.randperm(len(vectors), generator=torch.Generator().manual_seed(0))
    return vectors[order[:_MOST_SEARCHED].sort().values.to(vectors.device)]


def near_correlation(dots: Tensor, distances: Tensor) -> float:
    """Weighted Pearson correlation over the nearest 0.5 % of pairs, weights (d* − d)²; NaN for too few pairs."""
    n_near = int(len(distances) * NEAR_SHARE)
    if n_near < 3:
        return float("nan")
    border = distances.kthvalue(n_near).values
    is_near = distances < border
    weights = (border - distances[is_near]).square()
    return weighted_correlation(dots[is_near], distances[is_near], weights)


def weighted_correlation(x: Tensor, y: Tensor, weights: Tensor) -> float:
    """Pearson's correlation with weights; NaN where either does not vary."""
    total = weights.sum()
    if len(x) < 3 or not total > 0:
        return float("nan")
    weights = weights / total
    x, y = x - (weights * x).sum(), y - (weights * y).sum()
    spread = (weights * x * x).sum() * (weights * y * y).sum()
    return float((weights * x * y).sum() / spread.sqrt()) if spread > 0 else float("nan")


def key_bias_share(query: Tensor, key: Tensor) -> float:
    """How much of the variance of logits over keys is the keys' own, q̄·(k − k̄): 0 to 1.

    Over all pairs of the sample, not only those of one text: there the two parts of a logit are uncorrelated, so the
    shares add up to 1. NaN where logits do not vary.
    """
    query, key = query.double(), key.double()
    mean = query.mean(0)
    query, key = query - mean, key - key.mean(0)
    spread = key.T @ key / len(key)
    bias = float(mean @ spread @ mean)
    rest = float(((query.T @ query / len(query)) * spread).sum())
    return bias / (bias + rest) if bias + rest > 0 else float("nan")


def _check(coordinates: str) -> str:
    if coordinates not in get_args(Coordinates):
        raise InputError(f"there are no coordinates {coordinates!r}: choose one of {', '.join(get_args(Coordinates))}.")
    return coordinates
