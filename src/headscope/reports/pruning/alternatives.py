"""As many heads as L0 kept, chosen in other ways: a row for each way, without and with fine-tuning."""

from collections.abc import Sequence
from dataclasses import dataclass

from headscope.pruning import PrunePoint
from headscope.reports.pruning.curves import GATES, METHODS, UNTOUCHED, is_gated, is_tuned, way_label


@dataclass(frozen=True)
class Alternative:
    """A way to choose heads, with its points (one for each seed) that were not fine-tuned, and those that were."""

    label: str
    untuned: tuple[PrunePoint, ...]
    tuned: tuple[PrunePoint, ...]

    def counts(self) -> dict[str, int] | None:
        """The heads kept by type of attention; None where seeds differ."""
        kept_heads = [{name: pair[0] for name, pair in point.counts().items()} for point in self.untuned + self.tuned]
        return kept_heads[0] if all(counts == kept_heads[0] for counts in kept_heads) else None


def alternatives_of(points: Sequence[PrunePoint]) -> dict[str, list[Alternative]]:
    """By the L0 point whose number of heads they have: that point's own row, then those of the baselines."""
    sources = {point.id: point for point in points if is_gated(point) and point.like is None}
    rivals = [point for point in points if point.like in sources and not is_gated(point) and point.method != UNTOUCHED]
    groups: dict[str, list[Alternative]] = {}
    for name in (name for name in sources if any(rival.like == name for rival in rivals)):
        own = [sources[name], *(point for point in points if is_gated(point) and point.like == name)]
        members = own + sorted((rival for rival in rivals if rival.like == name), key=_order)
        labels = dict.fromkeys(way_label(point) for point in members)
        groups[name] = [
            _alternative(label, [point for point in members if way_label(point) == label]) for label in labels
        ]
    return groups


def _order(point: PrunePoint) -> tuple[int, bool]:
    return [*METHODS].index(point.method), point.allocation == GATES


def _alternative(label: str, points: Sequence[PrunePoint]) -> Alternative:
    untuned = tuple(point for point in points if not is_tuned(point))
    return Alternative(label, untuned, tuple(point for point in points if is_tuned(point)))
