"""The points of a sweep as curves: a series for each way of choosing heads, its settings averaged over seeds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from headscope.pruning import PrunePoint
from headscope.pruning.sweep import UNTOUCHED

GATES = "l0"
RANDOM = "random"
METHODS = {
    GATES: "L0 gates",
    "importance": "importance",
    "relevance": "relevance",
    "confidence": "confidence",
    RANDOM: "random",
}
TYPE_LABELS = {"encoder": "Encoder", "decoder": "Decoder", "cross": "Cross-attention", "self": "Self-attention"}


@dataclass(frozen=True)
class CurvePoint:
    """A setting of a series: heads kept and score, each the mean over its `points`, which are its seeds."""

    heads: float
    score: float
    points: tuple[PrunePoint, ...]

    @property
    def extremes(self) -> tuple[float, float]:
        """The lowest and the highest score of its seeds."""
        scores = [point.score.value for point in self.points]
        return min(scores), max(scores)


@dataclass(frozen=True)
class Series:
    """Points that were made the same way with more or fewer heads, fewest heads first."""

    key: str
    label: str
    method: str
    is_tuned: bool
    is_own_allocation: bool
    curve: tuple[CurvePoint, ...]


@dataclass(frozen=True)
class Panel:
    """Series with one horizontal axis: the heads of the `types` that any of its points prunes."""

    key: str
    title: str
    types: tuple[str, ...]
    total: int
    series: tuple[Series, ...]

    def gated(self, *, tuned: bool) -> list[Series]:
        """The series of L0 training that begin with the trained model."""
        return [
            series
            for series in self.series
            for first in [series.curve[0].points[0]]
            if is_gated(first) and first.start == "trained" and series.is_tuned == tuned
        ]

    def random(self, *, tuned: bool) -> list[Series]:
        """The series of random heads; those with L0's counts per type first."""
        series = [series for series in self.series if series.method == RANDOM and series.is_tuned == tuned]
        return sorted(series, key=lambda series: series.is_own_allocation)


def panels_of(points: Sequence[PrunePoint]) -> list[Panel]:
    """A panel for everything but pruning the encoder beside a frozen decoder, which has one of its own."""
    by_id = {point.id: point for point in points}
    scored = [point for point in points if point.method != UNTOUCHED and point.score.value == point.score.value]
    groups: dict[str, list[PrunePoint]] = {"all": [], "encoder": []}
    for point in scored:
        groups["encoder" if l0_point(point, by_id).parameters == "encoder" else "all"].append(point)
    return [_panel(key, members) for key, members in groups.items() if members]


def l0_point(point: PrunePoint, by_id: Mapping[str, PrunePoint]) -> PrunePoint:
    """The L0 point whose number of heads a point has; the point itself where there is none."""
    return point if point.like is None else by_id.get(point.like, point)


def is_gated(point: PrunePoint) -> bool:
    """Whether its weights were trained with L0 gates, and not only its mask chosen by them."""
    return point.method == GATES and point.lambda_ is not None


def is_tuned(point: PrunePoint) -> bool:
    """Whether the model was trained further with its mask fixed."""
    return point.tuning != "none"


def tuned_where_there_are(points: Sequence[PrunePoint]) -> list[PrunePoint]:
    """Points in their order: of those of one L0 point the fine-tuned, where there are any, and else the others."""
    sources = {point.like or point.id for point in points if is_tuned(point)}
    return [point for point in points if is_tuned(point) or (point.like or point.id) not in sources]


def heads_kept(point: PrunePoint, types: Sequence[str]) -> int:
    """How many heads of some types survive."""
    return sum(point.counts()[name][0] for name in types)


def series_label(point: PrunePoint) -> str:
    """How the heads of a point were chosen and what followed, in words."""
    return f"{way_label(point)}, {'fine-tuned' if is_tuned(point) else untuned_weights(point)}"


def way_label(point: PrunePoint) -> str:
    """How the heads of a point were chosen, in words."""
    parts = [
        METHODS.get(point.method, point.method),
        "its mask on the original weights" if point.method == GATES and not is_gated(point) else "",
        "gates trained alone" if is_gated(point) and point.parameters == "gates" else "",
        "from scratch" if point.start == "scratch" else "",
        "scores normalised by layer" if point.normalised else "",
        "L0's counts per type" if point.allocation == GATES else "",
    ]
    return ", ".join(part for part in parts if part)


def has_original_weights(point: PrunePoint) -> bool:
    """Whether only the mask changed: weights that were trained with gates are fine-tuned in effect."""
    return not is_tuned(point) and point.parameters in ("none", "gates")


def untuned_weights(point: PrunePoint) -> str:
    """What was done to the weights of a point that was not fine-tuned, in words."""
    if has_original_weights(point) or not is_gated(point):
        return "not fine-tuned"
    return f"{'encoder' if point.parameters == 'encoder' else 'weights'} trained with gates"


def type_label(name: str) -> str:
    """A type of attention as it is written on axes."""
    return TYPE_LABELS.get(name, name.capitalize())


def types_label(types: Sequence[str], every: Sequence[str]) -> str:
    """Whose heads an axis counts."""
    if list(types) == list(every):
        return "heads" if len(types) == 1 else "heads of all types"
    return f"{' and '.join(type_label(name).lower() for name in types)} heads"


def _panel(key: str, points: list[PrunePoint]) -> Panel:
    counts = [point.counts() for point in points]
    every = tuple(counts[0])
    pruned = tuple(name for name in every if any(count[name][0] < count[name][1] for count in counts))
    types = pruned or every
    groups: dict[tuple, list[PrunePoint]] = {}
    for point in points:
        groups.setdefault(_way(point), []).append(point)
    series = sorted((_series(members, types) for members in groups.values()), key=_order)
    pruned_heads = types_label(types, every)
    title = f"{pruned_heads[:1].upper()}{pruned_heads[1:]} may be pruned"
    title = "The encoder is pruned beside a frozen decoder" if key == "encoder" else title
    return Panel(key, title, types, sum(counts[0][name][1] for name in types), tuple(series))


def _way(point: PrunePoint) -> tuple:
    trained = point.parameters if is_gated(point) else None
    return point.method, point.start, trained, point.allocation, point.tuning


def _series(points: list[PrunePoint], types: tuple[str, ...]) -> Series:
    settings: dict[tuple, list[PrunePoint]] = {}
    for point in points:
        settings.setdefault(_setting(point), []).append(point)
    curve = [
        CurvePoint(
            fmean(heads_kept(point, types) for point in seeds),
            fmean(point.score.value for point in seeds),
            tuple(seeds),
        )
        for seeds in settings.values()
    ]
    first = points[0]
    return Series(
        "/".join(str(part) for part in _way(first)),
        series_label(first),
        first.method,
        is_tuned(first),
        first.allocation != GATES,
        tuple(sorted(curve, key=lambda setting: setting.heads)),
    )


def _setting(point: PrunePoint) -> tuple:
    """What points share that differ in their seed alone."""
    if point.lambda_ is not None:
        return tuple(sorted(point.lambda_.items())), point.keep
    return (point.like,)


def _order(series: Series) -> tuple:
    methods, first = [*METHODS], series.curve[0].points[0]
    place = methods.index(series.method) if series.method in methods else len(methods)
    return place, not is_gated(first), not series.is_own_allocation, not series.is_tuned, series.key
