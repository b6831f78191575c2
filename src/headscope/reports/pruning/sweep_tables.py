"""A sweep as tables: a row for each point, and a row for each head of each point."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

from headscope.pruning import PrunePoint, attention_type
from headscope.reports.pruning.survivor_roles import SurvivorRoles, family_of
from headscope.runs.shard import arrow
from headscope.sites import Site

Row = dict[str, Any]


def point_rows(points: Sequence[PrunePoint]) -> list[Row]:
    """Points with their settings, counts and scores."""
    types = list(dict.fromkeys(name for point in points for name in point.counts()))
    return [_point_row(point, types) for point in points]


def head_rows(points: Sequence[PrunePoint], roles: Mapping[str, SurvivorRoles]) -> list[Row]:
    """Heads with their gates, and with the roles of those that survive where they were measured."""
    return [
        _head_row(point, site, index, survives, roles.get(point.id))
        for point in points
        for site, row in point.mask.rows()
        for index, survives in enumerate(row)
    ]


def as_parquet(rows: Sequence[Row]) -> bytes:
    """The rows as a Parquet file."""
    pa, pq = arrow()
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(list(rows)), sink)
    return sink.getvalue().to_pybytes()


def as_csv(rows: Sequence[Row]) -> str:
    """The rows as CSV (RFC 4180)."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else [])
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _point_row(point: PrunePoint, types: Sequence[str]) -> Row:
    counts = point.counts()
    n_kept, n_heads = point.total()
    low, high = point.score.interval or (None, None)
    score = point.score.value
    return {
        "point": point.id,
        "method": point.method,
        "start": point.start,
        "parameters": point.parameters,
        "allocation": point.allocation,
        "like": point.like,
        "normalised": point.normalised,
        "lambda": None if point.lambda_ is None else json.dumps(dict(point.lambda_)),
        "keep": point.keep,
        "seed": point.seed,
        "tuning": point.tuning,
        "steps": point.steps,
        "heads": n_heads,
        "heads_kept": n_kept,
        **{f"kept_{name}": counts[name][0] if name in counts else None for name in types},
        "metric": point.score.metric,
        "score": score if score == score else None,
        "low": low,
        "high": high,
        "split": point.split,
        "n_examples": point.score.n,
        "loss": point.loss,
        "seconds": point.seconds,
    }


def _head_row(point: PrunePoint, site: Site, index: int, survives: bool, roles: SurvivorRoles | None) -> Row:
    head = site.head(index)
    verdict = None if roles is None else roles.verdicts.get(head)
    findings = () if verdict is None else verdict.findings
    return {
        "point": point.id,
        "head": str(head),
        "type": attention_type(site),
        "layer": site.layer,
        "index": index,
        "survives": survives,
        "log_alpha": None if point.log_alpha is None or site not in point.log_alpha else point.log_alpha[site][index],
        "p_open": None if point.p_open is None or site not in point.p_open else point.p_open[site][index],
        "role": None if verdict is None else verdict.role,
        "family": None if verdict is None else family_of(verdict),
        "roles": None if verdict is None else "; ".join(finding.role for finding in findings),
    }
