"""Which point of a sweep is chosen: its model is written, and it is chosen on dev."""

from collections.abc import Sequence

from headscope.pruning.sweep import UNTOUCHED
from headscope.pruning.sweep_folder import PrunePoint, Sweep
from headscope.tasks.score import HIGHER_IS_BETTER


def choose_point(sweep: Sweep, keep: float | None, tolerance: float, *, name: str = "") -> PrunePoint | None:
    """The point whose model is written: that of `keep`, fine-tuned if it was; else the smallest of L0 that scores at
    most `tolerance` (a share) worse than the untouched model; where there is none, the best. Scores are on dev: a
    choice by test would make its score there too good. Ids of the points of `keep` begin with `name`: a folder may have
    others that were trained in another way.
    """
    points = [point for point in sweep.points if point.method == "l0" and point.lambda_ is not None]
    if keep is not None:
        points = [point for point in points if point.keep == keep and point.id.startswith(name)]
    base = sweep.baseline
    if not points or base is None:
        return None
    sign = 1.0 if HIGHER_IS_BETTER[base.score.metric] else -1.0
    is_on_dev = chosen_on(sweep.points) == "dev"

    def value(point: PrunePoint) -> float:
        return (point.dev if is_on_dev and point.dev is not None else point.score).value

    points = [point for point in points if value(point) == value(point)] or points
    if keep is not None:
        return max(points, key=lambda point: (point.tuning != "none", sign * value(point)))
    least = sign * value(base) - tolerance * abs(value(base))
    good = [point for point in points if sign * value(point) >= least]
    if good:
        return min(good, key=lambda point: (point.total()[0], -sign * value(point)))
    return max(points, key=lambda point: sign * value(point))


def chosen_on(points: Sequence[PrunePoint]) -> str:
    """The split that a point of these is chosen on: test only where an earlier version left scores on dev out."""
    candidates = [point for point in points if point.id == UNTOUCHED or point.lambda_ is not None]
    return "dev" if all(point.dev is not None or point.split == "dev" for point in candidates) else "test"
