"""Does a map lay tokens out by position? AttentionViz's spirals (layer 3 of BERT), found by a number.

Of each position the centroid of its points is taken. `explained` is the share of all spread that is between positions:
1 where position alone decides, and for shuffled positions `chance`. Along a spiral or a ring the centroids turn around
the middle: `turns` counts how often, `angle` is the rank correlation of the unwrapped angle with position, `radius`
that of the distance from the middle.
"""

from dataclasses import dataclass

import numpy as np

from headscope.analysis.statistics import rank_correlation
from headscope.sites import Head

# A position counts where so many texts are as long.
FEWEST = 10
_N_SHUFFLES = 20


@dataclass(frozen=True)
class PositionLayout:
    """How a map lays out positions; correlations are absolute values, `turns` has a sign (counter-clockwise)."""

    n_positions: int
    explained: float
    chance: float
    angle: float
    radius: float
    turns: float

    @property
    def is_spiral(self) -> bool:
        """Position explains more than half, and centroids turn steadily, at least half a turn."""
        return self.explained > 0.5 and self.angle > 0.9 and abs(self.turns) > 0.5


def position_layout(points: np.ndarray, positions: np.ndarray, *, seed: int = 0) -> PositionLayout:
    """How a 2-D map [point, 2] lays out the positions of its points [point]."""
    numbers, counts = np.unique(positions, return_counts=True)
    usable = numbers[counts >= FEWEST]
    chosen = np.isin(positions, usable)
    if len(usable) < 4:
        return PositionLayout(len(usable), *[float("nan")] * 5)
    points, places = points[chosen].astype(np.float64), np.searchsorted(usable, positions[chosen])
    points = points - points.mean(0)
    centroids = _centroids(points, places, len(usable))
    generator = np.random.default_rng(seed)
    shuffled = [_explained(points, generator.permutation(places), len(usable)) for _ in range(_N_SHUFFLES)]
    middle = centroids - centroids.mean(0)
    angles = np.unwrap(np.arctan2(middle[:, 1], middle[:, 0]))
    return PositionLayout(
        len(usable),
        _explained(points, places, len(usable)),
        float(np.mean(shuffled)),
        abs(_rank_correlation(angles)),
        abs(_rank_correlation(np.hypot(*middle.T))),
        float((angles[-1] - angles[0]) / (2 * np.pi)),
    )


def _centroids(points: np.ndarray, places: np.ndarray, n: int) -> np.ndarray:
    counts = np.bincount(places, minlength=n)[:, None]
    return np.stack([np.bincount(places, column, n) for column in points.T], 1) / counts


def _explained(points: np.ndarray, places: np.ndarray, n: int) -> float:
    """The share of the squared distances from the middle that is between positions."""
    total = float(np.square(points).sum())
    inside = float(np.square(points - _centroids(points, places, n)[places]).sum())
    return 1 - inside / total if total > 0 else float("nan")


def _rank_correlation(values: np.ndarray) -> float:
    keys = [Head("main", 0, index) for index in range(len(values))]
    order = dict(zip(keys, map(float, range(len(values))), strict=True))
    return rank_correlation(order, dict(zip(keys, map(float, values), strict=True)))
