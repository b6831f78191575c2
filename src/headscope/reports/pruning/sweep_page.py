"""The report of a sweep as one HTML file: script, style and numbers in it, and nothing from anywhere else."""

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from headscope import __version__
from headscope.analysis.measures.roles import Verdict
from headscope.glossary import role_short
from headscope.pruning import PrunePoint, attention_type
from headscope.pruning.chosen_point import chosen_on
from headscope.reports.pruning import conclusions, published_results
from headscope.reports.pruning.curves import (
    GATES,
    RANDOM,
    UNTOUCHED,
    Panel,
    Series,
    heads_kept,
    is_gated,
    is_tuned,
    series_label,
    type_label,
    types_label,
)
from headscope.reports.pruning.page_tables import (
    alternatives_table,
    lambda_text,
    results_table,
    score_data,
    smaller_model_table,
)
from headscope.reports.pruning.survivor_roles import SurvivorRoles, family_of
from headscope.reports.pruning.sweep_tables import as_csv, point_rows
from headscope.reports.report_page import fill_frame
from headscope.tasks.score import HIGHER_IS_BETTER
from headscope.views.saved_page import page_files

if TYPE_CHECKING:
    from headscope.reports.pruning.sweep_report import PruneReport


def page(report: "PruneReport") -> str:
    """The page, complete."""
    about = report.about
    points = [point for point in report.points if point.method != UNTOUCHED]
    texts = {
        "title": f"Which heads {about['model']} can do without",
        "where": f"{about['model']}, {about['task'].replace('_', ' ')}",
        "about": _about(report, points),
        "footer": (
            f"Headscope {__version__}. points.parquet and heads.parquet beside this page hold all numbers, prune.json "
            "all settings."
        ),
    }
    return fill_frame("sweep.html", texts, *script_and_style(), data_of(report))


def script_and_style() -> tuple[str, str]:
    """The script and the style that draw it, as `scripts/web` built them."""
    return page_files(("prune.js", "prune.css"))


def data_of(report: "PruneReport") -> dict[str, Any]:
    """All that the page draws."""
    about, metric = report.about, report.about["metric"]
    label, unit = conclusions.METRIC_LABELS[metric]
    return {
        "metric": {"name": metric, "label": label, "unit": unit, "higher_is_better": HIGHER_IS_BETTER[metric]},
        "types": [{"name": name, "label": type_label(name), "heads": count} for name, count in _types(about).items()],
        "layers": about["layers"],
        "baseline": None if report.baseline is None else score_data(report.baseline),
        "panels": [_panel(report, panel) for panel in report.panels],
        "types_figure": _types_figure(report),
        "layers_figure": _layers_figure(report),
        "roles": [roles for panel in report.panels if (roles := _roles(report, panel)) is not None],
        "roles_about": report.roles_about,
        "table": results_table(report),
        "alternatives": alternatives_table(report),
        "smaller": smaller_model_table(report),
        "points": [_point(report, point) for point in report.points],
        "csv": as_csv(point_rows(report.points)),
    }


def _about(report: "PruneReport", points: Sequence[PrunePoint]) -> str:
    about = report.about
    n_heads = sum(layer["heads"] for layer in about["layers"])
    splits = ", ".join(
        f"{split} {data['name']} ({data['n']:,})" for split, data in about["data"].items() if data is not None
    )
    chosen = "" if report.chosen is None else f" Point {report.chosen} was chosen on {chosen_on(report.points)}."
    if report.chosen is not None and all(point.split == "dev" for point in points):
        chosen += " Scores are on dev too: there is no test data, so they are a little too good."
    return (
        f"{about['model_class']}, {n_heads} heads in {len(about['layers'])} attention layers. Data: {splits}. "
        f"{len(points)} points{'' if points else ' so far'}.{chosen}"
    )


def _types(about: dict[str, Any]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for layer in about["layers"]:
        counts[layer["type"]] = counts.get(layer["type"], 0) + layer["heads"]
    return counts


def _tuned_baseline(report: "PruneReport", key: str) -> dict[str, Any] | None:
    """The model with all its heads after as much fine-tuning of the same weights: the mean over seeds, and extremes."""
    tuned = [point for point in report.points if point.method == UNTOUCHED and is_tuned(point)]
    scores = [point.score.value for point in tuned if (point.parameters == "encoder") == (key == "encoder")]
    return {"value": fmean(scores), "low": min(scores), "high": max(scores), "n": len(scores)} if scores else None


def _point(report: "PruneReport", point: PrunePoint) -> dict[str, Any]:
    roles = report.roles.get(point.id)
    return {
        "id": point.id,
        "label": _label(point),
        "lambda": lambda_text(point),
        "seed": point.seed,
        "counts": {name: list(pair) for name, pair in point.counts().items()},
        "total": list(point.total()),
        "score": score_data(point),
        "mask": {str(site): [int(survives) for survives in row] for site, row in point.mask.rows()},
        "roles": None
        if roles is None
        else {
            str(head): {"role": verdict.role, "family": family_of(verdict), "short": _short(verdict)}
            for head, verdict in roles.verdicts.items()
        },
        "is_chosen": point.id == report.chosen,
    }


def _short(verdict: Verdict) -> str:
    """A role in a few letters, so that colour is not all that says it."""
    return role_short(verdict.findings[0].kind, verdict.findings[0].role) if verdict.findings else ""


def _label(point: PrunePoint) -> str:
    if point.method != UNTOUCHED:
        return series_label(point)
    return "all heads, fine-tuned" if is_tuned(point) else "untouched model"


# Figure 7: score against heads kept


def _panel(report: "PruneReport", panel: Panel) -> dict[str, Any]:
    every = tuple(_types(report.about))
    return {
        "key": panel.key,
        "title": panel.title,
        "axis": f"{types_label(panel.types, every).capitalize()} kept, of {panel.total}",
        "total": panel.total,
        "tuned_baseline": _tuned_baseline(report, panel.key),
        "series": [_series(series, panel.types) for series in panel.series],
        "conclusion": conclusions.cost(panel, report.baseline),
        "published": _published_encoder() if panel.key == "encoder" else [],
    }


def _series(series: Series, types: tuple[str, ...]) -> dict[str, Any]:
    first = series.curve[0].points[0]
    return {
        "label": series.label,
        "method": "l0-mask" if series.method == GATES and not is_gated(first) else series.method,
        "is_tuned": series.is_tuned,
        "is_own": series.is_own_allocation,
        "is_scratch": first.start == "scratch",
        "curve": [
            {
                "heads": setting.heads,
                "score": setting.score,
                "low": setting.extremes[0],
                "high": setting.extremes[1],
                "points": [
                    {"id": point.id, "heads": heads_kept(point, types), "score": point.score.value}
                    for point in setting.points
                ],
            }
            for setting in series.curve
        ],
    }


def _published_encoder() -> list[str]:
    return [
        f"{data}: {heads} of 48 encoder heads kept, −{lost} BLEU."
        for data, heads, lost in published_results.ENCODER_ONLY
    ]


# Figures 9 and 10: types of attention, and layers


def _types_figure(report: "PruneReport") -> dict[str, Any]:
    points = _from_trained(report)
    return {
        "curves": [
            {
                "type": name,
                "points": [
                    {"id": point.id, "total": point.total()[0], "heads": point.counts()[name][0]} for point in points
                ],
            }
            for name in _types(report.about)
        ],
        "total": sum(_types(report.about).values()),
        "conclusion": conclusions.types_conclusion(points) if points else "",
        "published": published_results.TYPES,
    }


def _layers_figure(report: "PruneReport") -> list[dict[str, Any]]:
    """By type: heads kept in each layer (a row) at each point (a column), most heads first."""
    points = _from_trained(report)
    if not points:
        return []
    grids = []
    for name in _types(report.about):
        sites = [site for site in points[0].mask.survivors if attention_type(site) == name]
        rows = [
            {
                "site": str(site),
                "heads": len(points[0].mask.survivors[site]),
                "kept": [sum(point.mask.survivors[site]) for point in points],
            }
            for site in sites
        ]
        grids.append(
            {
                "type": name,
                "columns": [{"id": point.id, "total": point.total()[0]} for point in points],
                "rows": rows,
                "conclusion": conclusions.layers_conclusion(points, name),
            }
        )
    return grids


def _from_trained(report: "PruneReport") -> list[PrunePoint]:
    """L0's points over all types that began with the trained model, most heads first."""
    points = [point for point in report.gated() if point.start == "trained" and point.parameters != "encoder"]
    points = points or [point for point in report.gated() if point.start == "trained"]
    return sorted(points, key=lambda point: -point.total()[0])


# Figure 8: roles of the survivors


def _roles(report: "PruneReport", panel: Panel) -> dict[str, Any] | None:
    members = {point.id for series in panel.series for setting in series.curve for point in setting.points}
    measured = [roles for name, roles in report.roles.items() if name in members]
    drawn = [roles for roles in measured if roles.point.method == RANDOM]
    chosen = sorted(
        (roles for roles in measured if roles.point.method != RANDOM), key=lambda roles: -roles.point.total()[0]
    )
    whole = next((roles for roles in report.roles.values() if roles.point.method == UNTOUCHED), None)
    if not chosen:
        return None
    bars = [] if whole is None else [_bar("untouched", [whole])]
    for roles in chosen:
        bars.append(_bar("L0", [roles]))
        if rivals := conclusions.rivals_of(roles, drawn):
            bars.append(_bar("random", rivals))
    return {
        "title": panel.title,
        "bars": bars,
        "conclusion": conclusions.roles_conclusion(whole, chosen, drawn),
        "published": published_results.ROLES,
    }


def _bar(label: str, members: Sequence[SurvivorRoles]) -> dict[str, Any]:
    """Survivors by the family of their role, the mean over the members, and the extremes of those with a role."""
    families = {name for roles in members for name in roles.families()}
    with_role = [roles.n_with_role() for roles in members]
    return {
        "label": label,
        "heads": members[0].point.total()[0],
        "n_seeds": len(members),
        "families": {name: fmean(roles.families().get(name, 0) for roles in members) for name in sorted(families)},
        "low": min(with_role),
        "high": max(with_role),
    }
