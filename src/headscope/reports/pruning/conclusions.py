"""What the figures of a sweep say, in a sentence each, with how sure it is."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from headscope.pruning import PrunePoint, attention_type
from headscope.reports.pruning.curves import (
    GATES,
    CurvePoint,
    Panel,
    Series,
    has_original_weights,
    is_gated,
    is_tuned,
    type_label,
    types_label,
)
from headscope.reports.pruning.role_survival import role_survival
from headscope.reports.pruning.survivor_roles import SurvivorRoles
from headscope.sites import Site

# Metrics as they are written, and what they count.
METRIC_LABELS = {
    "bleu": ("BLEU", ""),
    "bits_per_byte": ("bits per byte", ""),
    "loss": ("loss", "nats per target"),
    "accuracy": ("accuracy", ""),
    "f1": ("F1", ""),
}
# Two thirds pruned: where the paper loses less than 1 BLEU.
_SHARE = 1 / 3


def score_text(metric: str, value: float) -> str:
    """A score as every figure and table writes it: BLEU with one decimal, others with three."""
    if value != value:
        return "–"
    return f"{value:.{1 if metric == 'bleu' else 3}f}".replace("-", "−")


def cost(panel: Panel, baseline: PrunePoint | None) -> str:
    """What pruning two thirds costs, and whether L0's choice is better than chance."""
    series = main_series(panel)
    metric = series.curve[0].points[0].score.metric
    settings = [setting for setting in series.curve if setting.heads < panel.total]
    if not settings:
        return f"{series.label[:1].upper()}{series.label[1:]}: no head is pruned at any point."
    setting = min(settings, key=lambda setting: abs(setting.heads / panel.total - _SHARE))
    heads = types_label(panel.types, tuple(setting.points[0].counts()))
    sentence = (
        f"With {_number(setting.heads)} of {panel.total} {heads} kept ({series.label}), {METRIC_LABELS[metric][0]} is "
        f"{score_text(metric, setting.score)} ({_spread(setting, metric)})"
    )
    if baseline is None:
        return f"{sentence}. The untouched model was not evaluated."
    difference = score_text(metric, setting.score - baseline.score.value)
    sign = "" if difference.startswith("−") else "+"
    sentence += (
        f"; the untouched model {score_text(metric, baseline.score.value)}{_interval(baseline, metric)}: "
        f"{sign}{difference}."
    )
    return f"{sentence} {_against_random(panel)}".strip()


def types_conclusion(points: Sequence[PrunePoint]) -> str:
    """Which type of attention loses its heads first."""
    pruned = [point for point in points if _is_partly_pruned(point)]
    if not pruned:
        return "No point keeps some of its heads and loses others, so no order can be told."
    names = list(pruned[0].counts())
    if len(names) == 1:
        return "The model has one type of attention."
    means = {name: fmean(_share(point, name) for point in pruned) for name in names}
    order = sorted(names, key=lambda name: means[name])
    shares = ", ".join(f"{type_label(name).lower()} {100 * means[name]:.0f} %" for name in order)
    n_first = sum(_share(point, order[0]) == min(_share(point, name) for name in names) for point in pruned)
    n_last = sum(_share(point, order[-1]) == max(_share(point, name) for name in names) for point in pruned)
    return (
        f"Heads kept on average over {_count(len(pruned), 'point')}: {shares}. "
        f"{type_label(order[0])} has the smallest share in {n_first} of {len(pruned)}, "
        f"{type_label(order[-1]).lower()} the largest in {n_last} ({_seeds(pruned)})."
    )


def layers_conclusion(points: Sequence[PrunePoint], name: str) -> str:
    """Whether the lower or the upper half of a type's layers keeps more heads."""
    pairs = [halves for point in points if (halves := _halves(point, name)) is not None]
    if not pairs:
        return f"{type_label(name)}: no point keeps some of these heads and loses others."
    lower, upper = fmean(pair[0] for pair in pairs), fmean(pair[1] for pair in pairs)
    n_lower, n_equal = sum(low > high for low, high in pairs), sum(low == high for low, high in pairs)
    return (
        f"{type_label(name)}: the lower half of the layers keeps {100 * lower:.0f} % of its heads, the upper half "
        f"{100 * upper:.0f} % (mean over {_count(len(pairs), 'point')}; the lower half keeps more in {n_lower}, "
        f"as many in {n_equal}; {_seeds(points)})."
    )


def roles_conclusion(
    whole: SurvivorRoles | None, chosen: Sequence[SurvivorRoles], drawn: Sequence[SurvivorRoles]
) -> str:
    """Whether survivors have a role more often than random survivors of as many heads, and had one more often."""
    pruned = [roles for roles in chosen if 0 < roles.point.total()[0] < roles.point.total()[1]]
    before = "" if whole is None else f" In the untouched model {_role_share(whole)}.{_survival(whole, pruned)}"
    comparisons = []
    for roles in pruned:
        if rivals := [other.n_with_role() for other in rivals_of(roles, drawn)]:
            comparisons.append((roles, rivals))
    if not comparisons:
        return "There are no random survivors of as many heads to compare with: add random to the baselines." + before
    more = sum(roles.n_with_role() > max(rivals) for roles, rivals in comparisons)
    fewer = sum(roles.n_with_role() < min(rivals) for roles, rivals in comparisons)
    example, rivals = min(comparisons, key=lambda pair: _from_a_third(pair[0]))
    n_kept = example.point.total()[0]
    spread = _number(rivals[0]) if len(set(rivals)) == 1 else f"{min(rivals)} to {max(rivals)}"
    return (
        f"Of {n_kept} survivors of L0 {_have_role(example.n_with_role())}, of as many random survivors {spread} "
        f"({_count(len(rivals), 'seed')}). L0's survivors have a role more often than under every random seed at "
        f"{more} of {_count(len(comparisons), 'point')}, less often at {fewer}.{before}"
    )


def _survival(whole: SurvivorRoles, pruned: Sequence[SurvivorRoles]) -> str:
    """How many survivors had a role before, beside what chance would leave within the same layers."""
    if not pruned:
        return ""
    survival = role_survival(whole, min(pruned, key=_from_a_third).point)
    p_value = f"P = {survival.p_value:.2g}" if survival.p_value >= 1e-4 else "P < 0.0001"
    return (
        f" Of {_count(survival.n_survivors, 'survivor')} of L0 {survival.n_with_role} had a role before pruning; of as "
        f"many heads of each layer, drawn at random, {survival.by_chance:.1f} would ({p_value})."
    )


def _from_a_third(roles: SurvivorRoles) -> float:
    n_kept, n_heads = roles.point.total()
    return abs(n_kept / n_heads - _SHARE)


def rivals_of(roles: SurvivorRoles, drawn: Sequence[SurvivorRoles]) -> list[SurvivorRoles]:
    """The random survivors of as many heads as an L0 point has."""
    source = roles.point.like or roles.point.id
    return [other for other in drawn if other.point.like == source]


def scratch_conclusion(rows: Sequence[tuple[PrunePoint | None, PrunePoint | None]]) -> str:
    """Whether pruning the trained model is better than training with gates from scratch, at the same λ."""
    pairs = [(trained, scratch) for trained, scratch in rows if trained is not None and scratch is not None]
    if not pairs:
        return "No row has both a trained and a from-scratch model of the same λ."
    better = sum(trained.score.is_better_than(scratch.score.value) for trained, scratch in pairs)
    both = [point for pair in pairs for point in pair]
    uneven = sum(trained.counts() != scratch.counts() for trained, scratch in pairs)
    numbers = f" Numbers of heads differ in {uneven}." if uneven else ""
    return (
        f"From the trained model is better than from scratch in {better} of {_count(len(pairs), 'row')} "
        f"({_seeds(both)}).{numbers}"
    )


def main_series(panel: Panel) -> Series:
    """The series that sentences are about: L0 fine-tuned, else L0, else the first."""
    for tuned in (True, False):
        if series := panel.gated(tuned=tuned):
            return series[0]
    return panel.series[0]


def _against_random(panel: Panel) -> str:
    """At how many points L0 is better than all random seeds of as many heads, trained alike."""
    main = main_series(panel)
    rivals = panel.random(tuned=main.is_tuned)
    if not is_gated(main.curve[0].points[0]) or not rivals:
        return ""
    chosen = _comparable(panel, main)
    if chosen is None:
        return (
            "Random heads on the original weights cannot be compared with weights that were trained with gates: add "
            "l0 to the baselines."
        )
    drawn: dict[str | None, list[PrunePoint]] = {}
    for point in (point for setting in rivals[0].curve for point in setting.points):
        drawn.setdefault(point.like, []).append(point)
    pairs = [
        (point, drawn[source])
        for setting in chosen.curve
        for point in setting.points
        if (source := point.like or point.id) in drawn and _is_partly_pruned(point)
    ]
    if not pairs:
        return ""
    beyond = sum(all(point.score.is_better_than(other.score.value) for other in others) for point, others in pairs)
    n_seeds = min(len(others) for _, others in pairs)
    own = "L0" if chosen is main else f"“{chosen.label}”"
    return (
        f"{own} is better than every seed of “{rivals[0].label}” at {beyond} of {_count(len(pairs), 'point')} "
        f"(at least {_count(n_seeds, 'seed')} each)."
    )


def _comparable(panel: Panel, main: Series) -> Series | None:
    """The series of L0 whose weights were trained as those of random heads were."""
    first = main.curve[0].points[0]
    if is_tuned(first) or has_original_weights(first):
        return main
    masks = (series for series in panel.series if series.method == GATES and not series.is_tuned)
    return next((series for series in masks if has_original_weights(series.curve[0].points[0])), None)


def _spread(setting: CurvePoint, metric: str) -> str:
    low, high = setting.extremes
    interval = setting.points[0].score.interval
    if len(setting.points) > 1:
        n_seeds = _count(len(setting.points), "seed")
        return f"mean of {n_seeds}, {score_text(metric, low)} to {score_text(metric, high)}"
    if interval is None:
        return "one seed: how much it varies is not known"
    low, high = interval
    return f"one seed; 95 % interval over examples {score_text(metric, low)} to {score_text(metric, high)}"


def _interval(point: PrunePoint, metric: str) -> str:
    if point.score.interval is None:
        return ""
    low, high = point.score.interval
    return f" ({score_text(metric, low)} to {score_text(metric, high)})"


def _seeds(points: Iterable[PrunePoint]) -> str:
    n_seeds = len({point.seed for point in points})
    return "one seed" if n_seeds == 1 else f"{n_seeds} seeds"


def _share(point: PrunePoint, name: str) -> float:
    n_kept, n_heads = point.counts()[name]
    return n_kept / n_heads


def _is_partly_pruned(point: PrunePoint) -> bool:
    n_kept, n_heads = point.total()
    return 0 < n_kept < n_heads


def _halves(point: PrunePoint, name: str) -> tuple[float, float] | None:
    """The shares kept in the lower and the upper half of a type's layers; a layer in the middle is in neither."""
    rows = list(layer_rows(point.mask.survivors, name).values())
    n_kept, n_heads = point.counts()[name]
    half = len(rows) // 2
    if not half or not 0 < n_kept < n_heads:
        return None
    lower, upper = rows[:half], rows[-half:]
    return _mean_of(lower), _mean_of(upper)


def layer_rows(survivors: Mapping[Site, tuple[bool, ...]], name: str) -> dict[Site, tuple[bool, ...]]:
    """The layers of a type, lowest first."""
    return {site: survivors[site] for site in sorted(survivors) if attention_type(site) == name}


def _mean_of(rows: Sequence[tuple[bool, ...]]) -> float:
    return sum(sum(row) for row in rows) / sum(len(row) for row in rows)


def _role_share(roles: SurvivorRoles) -> str:
    return f"{roles.n_with_role()} of {len(roles.verdicts)} have one"


def _have_role(count: int) -> str:
    return f"{count} {'has' if count == 1 else 'have'} a role"


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
