"""The tables of a sweep's page: table 2, as many heads chosen in other ways, and the smaller model."""

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from headscope.pruning import PrunePoint
from headscope.reports.pruning import conclusions, published_results
from headscope.reports.pruning.alternatives import alternatives_of
from headscope.reports.pruning.curves import type_label, untuned_weights

if TYPE_CHECKING:
    from headscope.reports.pruning.sweep_report import PruneReport


def score_data(point: PrunePoint) -> dict[str, Any]:
    """A score with its interval."""
    low, high = point.score.interval or (None, None)
    return {"value": point.score.value, "low": low, "high": high, "n": point.score.n, "split": point.split}


def lambda_text(point: PrunePoint) -> str:
    """λ, or λ by type where types differ."""
    if not point.lambda_:
        return ""
    values = {f"{value:.3g}" for value in point.lambda_.values()}
    if len(values) == 1:
        return values.pop()
    return ", ".join(f"{type_label(name).lower()} {value:.3g}" for name, value in point.lambda_.items())


# Table 2


def results_table(report: "PruneReport") -> dict[str, Any]:
    """The paper's table 2: ours from the trained model and from scratch, and the published rows."""
    rows = _table_rows(report)
    return {
        "rows": [
            {
                "lambda": next((lambda_text(point) for point in row if point is not None), ""),
                "counts": {name: pair[0] for name, pair in next(point for point in row if point).counts().items()},
                "scratch_heads": _scratch_heads(*row),
                "scores": [None if point is None else score_data(point) for point in row],
                "ids": [None if point is None else point.id for point in row],
            }
            for row in rows
        ],
        "published": [
            {
                "data": row.data,
                "counts": {"encoder": row.encoder, "decoder": row.decoder, "cross": row.cross},
                "scores": [row.trained, row.scratch],
            }
            for row in published_results.TABLE_2
        ],
        "source": published_results.SOURCE,
        "conclusion": conclusions.scratch_conclusion(rows),
    }


def _table_rows(report: "PruneReport") -> list[tuple[PrunePoint | None, PrunePoint | None]]:
    """L0's points from the trained model and from scratch, those of the same λ in one row: nearest in heads first."""
    points = [point for point in report.gated() if point.parameters != "encoder"] or report.gated()
    scratch = [point for point in points if point.start == "scratch"]
    rows: list[tuple[PrunePoint | None, PrunePoint | None]] = []
    for point in points:
        if point.start == "trained":
            partner = _nearest(point, scratch)
            scratch = [other for other in scratch if other is not partner]
            rows.append((point, partner))
    rows += [(None, point) for point in scratch]
    return sorted(rows, key=lambda row: -next(point for point in row if point is not None).total()[0])


def _scratch_heads(trained: PrunePoint | None, scratch: PrunePoint | None) -> str:
    """The heads kept from scratch by type, where they are not those of the row."""
    if trained is None or scratch is None or trained.counts() == scratch.counts():
        return ""
    return " / ".join(str(n_kept) for n_kept, _ in scratch.counts().values())


def _nearest(point: PrunePoint, others: Sequence[PrunePoint]) -> PrunePoint | None:
    """Of the same λ the one with as many heads, or nearly."""
    alike = [other for other in others if (other.lambda_, other.keep) == (point.lambda_, point.keep)]
    return min(alike, key=lambda other: abs(other.total()[0] - point.total()[0]), default=None)


# As many heads, chosen in other ways


def alternatives_table(report: "PruneReport") -> list[dict[str, Any]]:
    """As many heads as an L0 point has, without and with fine-tuning."""
    metric = report.about["metric"]
    groups = []
    for name, ways in alternatives_of(report.points).items():
        source = next(point for point in report.points if point.id == name)
        rows = [
            {
                "label": way.label,
                "counts": way.counts(),
                "untuned": _scores_text(metric, way.untuned),
                "tuned": _scores_text(metric, way.tuned),
                "is_l0": way.label == ways[0].label,
            }
            for way in ways
        ]
        untuned = untuned_weights(source)
        groups.append({"id": name, "heads": source.total()[0], "untuned": untuned, "rows": rows})
    return groups


def _scores_text(metric: str, points: Sequence[PrunePoint]) -> str:
    """A score, or the mean of those of several seeds with their range."""
    values = [point.score.value for point in points]
    if not values:
        return ""
    mean = conclusions.score_text(metric, fmean(values))
    if len(values) == 1:
        return mean
    low, high = (conclusions.score_text(metric, value) for value in (min(values), max(values)))
    return f"{mean} ({low} to {high}, {len(values)} seeds)"


# The smaller model


def smaller_model_table(report: "PruneReport") -> dict[str, Any] | None:
    """What the original and the slim model cost; `baked/` costs what the original costs."""
    smaller = report.smaller
    if smaller is None:
        return None
    costs = {"original": smaller.baked} | ({} if smaller.slim is None else {"slim": smaller.slim})
    return {
        "point": report.chosen,
        "heads": list(smaller.heads),
        "rows": [
            {
                "name": name,
                "parameters": cost.parameters,
                "bytes": cost.bytes,
                "flops": cost.flops.total,
                "seconds": cost.seconds,
            }
            for name, cost in costs.items()
        ],
        "timed": f"{smaller.timed_on}, median of several passes",
        "refused": smaller.slim_refused,
        "is_plain": smaller.is_plain,
    }
