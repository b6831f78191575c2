"""Sweeps of pruned heads that the workbench was started with: every point is a model, offered by name."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from headscope.errors import LoadError
from headscope.models import Model
from headscope.models.baking import baked_model
from headscope.pruning import PrunePoint, Sweep
from headscope.reports.pruning.conclusions import METRIC_LABELS, score_text
from headscope.reports.pruning.curves import is_gated, series_label, tuned_where_there_are
from headscope.server.messages import PointOffer, SweepOffer
from headscope.sites import Head

# Names of pruned models begin with this: "sweep:FOLDER/POINT".
PREFIX = "sweep:"


@dataclass(frozen=True)
class _Offered:
    """A sweep, the model that it is of, and its points as they were when the server started."""

    sweep: Sweep
    model: str
    points: dict[str, PrunePoint]
    untouched: PrunePoint | None


class Sweeps:
    """Points of sweeps by the names of their models. A sweep is read once, when the server starts."""

    def __init__(self, folders: tuple[Path, ...], canonical: Callable[[str], str]):
        self._offered: list[_Offered] = []
        taken: set[str] = set()
        for folder in folders:
            sweep = Sweep.open(folder)
            name = _unused(sweep.folder.resolve().name, taken)
            points = {f"{PREFIX}{name}/{point.id}": point for point in points_to_offer(sweep.points)}
            if not points:
                raise LoadError(f"the sweep in {folder} has no finished point with pruned heads yet.")
            self._offered.append(_Offered(sweep, canonical(sweep.read()["model"]), points, sweep.baseline))

    @property
    def models(self) -> list[str]:
        """The original models, which the server offers too."""
        return list(dict.fromkeys(offered.model for offered in self._offered))

    def has(self, name: str) -> bool:
        """Whether a name is that of a pruned model."""
        return self._of(name) is not None

    def names(self) -> list[str]:
        """The names of all pruned models."""
        return [name for offered in self._offered for name in offered.points]

    def load(self, name: str, load: Callable[[str], Model]) -> Model:
        """A pruned model: the weights of its point, with the pruned heads folded away. `load` gives the original."""
        offered = self._of(name)
        assert offered is not None
        original, point = load(offered.model), offered.points[name]
        offered.sweep.check_weights(original)
        pruned = baked_model(offered.sweep.load(original, point), point.mask.interventions())
        pruned.name = name
        return pruned

    def pruned_heads(self, name: str) -> tuple[Head, ...]:
        """The heads that are pruned in a model; none in one that is not of a sweep."""
        offered = self._of(name)
        return () if offered is None else tuple(offered.points[name].mask.heads_pruned())

    def about(self, name: str) -> str:
        """What the page says of a pruned model."""
        offered = self._of(name)
        return "" if offered is None else f"{offered.model}, {_in_words(offered.points[name])}"

    def offers(self) -> list[SweepOffer]:
        """The sweeps as the page is told of them: the untouched model first, then fewer and fewer heads."""
        return [_offer(offered) for offered in self._offered]

    def _of(self, name: str) -> _Offered | None:
        return next((offered for offered in self._offered if name in offered.points), None)


def points_to_offer(points: list[PrunePoint]) -> list[PrunePoint]:
    """L0's points that began with the trained model, fine-tuned where they were, most heads first.

    All points with pruned heads where L0 made none.
    """
    gated = [point for point in points if is_gated(point) and point.start == "trained"]
    chosen = tuned_where_there_are(gated) or [point for point in points if point.method != "none"]
    return sorted(chosen, key=lambda point: (-point.total()[0], point.id))


def _offer(offered: _Offered) -> SweepOffer:
    first = next(iter(offered.points.values()))
    total = first.total()[1]
    points = [_point(name, point) for name, point in offered.points.items()]
    score = "" if offered.untouched is None else _score(offered.untouched)
    whole = PointOffer(offered.model, "untouched model", total, score)
    return SweepOffer(offered.sweep.folder.resolve().name, offered.model, total, [whole, *points])


def _point(name: str, point: PrunePoint) -> PointOffer:
    return PointOffer(name, f"{point.id}: {series_label(point)}", point.total()[0], _score(point))


def _in_words(point: PrunePoint) -> str:
    n_kept, n_heads = point.total()
    return f"{n_kept} of {n_heads} heads kept"


def _score(point: PrunePoint) -> str:
    label, _ = METRIC_LABELS[point.score.metric]
    return f"{label} {score_text(point.score.metric, point.score.value)}"


def _unused(name: str, taken: set[str]) -> str:
    """A name that no other sweep has: those of folders are not always different."""
    own, number = name, 1
    while own in taken:
        number += 1
        own = f"{name}-{number}"
    taken.add(own)
    return own
