"""What a report says of each head, for the workbench: as a part for the page, and cut short to be shipped."""

import math
from dataclasses import asdict
from typing import Any

import numpy as np

from headscope.analysis.measures.roles import Finding
from headscope.glossary import in_order, label, meaning, unit
from headscope.reports.cases import Case, DisplayToken
from headscope.reports.heads_report import HeadsReport
from headscope.scores import Scores
from headscope.sites import Head
from headscope.views.contract import CaseProps, FindingProps, MethodProps, ReportProps, RoleProps
from headscope.views.wire import Part

# Names of a report's measures begin with this, so that they are never taken for those of the input on screen.
PREFIX = "corpus:"
# Measures of one relation, tag or hue are many: those that make a role are in its evidence anyway.
_LEFT_OUT = (
    "peak_weight",
    "distance_all_keys",
    "last_token",
    "paired_marks",
    "norm",
    "norm_first",
    "norm_special",
    "norm_punctuation",
)
_SHIPPED_CASES = 1
_SHIPPED_ROLES = 3
_DIGITS = 3


def no_report() -> Part:
    """A model that no report is known of."""
    return Part("report", ReportProps("", 0, [], [], []))


def report_part(report: HeadsReport) -> Part:
    """A report as the page reads it."""
    heads = list(report.roles)
    methods: list[MethodProps] = []
    arrays: dict[str, np.ndarray] = {}
    for name in in_order(list(report.scores)):
        scores, own = report.scores[name], PREFIX + name
        values = _column(heads, scores.values_by_head)
        if np.isnan(values).all():
            continue
        methods.append(_method(own, name, scores, values))
        arrays[own] = values
        if scores.intervals:
            for at, end in enumerate(("low", "high")):
                ends = {head: bounds[at] for head, bounds in scores.intervals.items()}
                arrays[f"{end}/{own}"] = _column(heads, ends)
        if scores.baselines:
            arrays[f"baseline/{own}"] = _column(heads, scores.baselines)
    corpus = report.about["corpus"]
    roles = [
        RoleProps(
            head=str(head),
            role=verdict.role,
            findings=[_finding(finding) for finding in verdict.findings],
            nearest=None if verdict.nearest is None else _finding(verdict.nearest),
            cases=[_case(case) for case in report.cases.get(head, []) if case.image is None],
        )
        for head, verdict in report.roles.items()
    ]
    props = ReportProps(corpus["name"], corpus["n_examples"], [str(head) for head in heads], methods, roles)
    return Part("report", props, arrays)


def brief(report: HeadsReport) -> dict[str, Any]:
    """A report cut short: what `HeadsReport.load` needs for the verdicts, one number a head and measure, few cases."""
    data = report.to_json()
    has_role = {str(head) for head, verdict in report.roles.items() if verdict.findings}
    short = {
        name: measure | {"settings": {}, "intervals": {}, "baselines": {}}
        for name, measure in data["scores"].items()
        if "/" not in name and name not in _LEFT_OUT
    }
    cases = {
        head: [case for case in head_cases if case["image"] is None][:_SHIPPED_CASES]
        for head, head_cases in data["cases"].items()
        if head in has_role
    }
    roles = {
        head: verdict | {"findings": verdict["findings"][:_SHIPPED_ROLES]} for head, verdict in data["roles"].items()
    }
    about = {key: data[key] for key in ("format", "version", "model", "weights", "corpus", "sample")}
    left_out = {"notes": [], "absent": {}, "outcome": []}
    return _round(about | left_out | {"roles": roles, "cases": cases, "scores": short})


def _column(heads: list[Head], values: dict[Head, float]) -> np.ndarray:
    return np.array([values.get(head, math.nan) for head in heads], np.float32)


def _method(own: str, name: str, scores: Scores, values: np.ndarray) -> MethodProps:
    low, high = 0.0, 1.0
    if unit(name) or name in ("relevance", "gate_importance") or np.nanmin(values) < 0 or np.nanmax(values) > 1:
        low, high = min(0.0, float(np.nanmin(values))), float(np.nanmax(values))
    if low < 0:
        low, high = -max(-low, high), max(-low, high)
    return MethodProps(
        name=own,
        about=meaning(name) or label(name),
        baseline=None if scores.baseline is None or math.isnan(scores.baseline) else scores.baseline,
        low=low,
        high=high if high > low else low + 1.0,
    )


def _finding(finding: Finding) -> FindingProps:
    known = asdict(finding)
    return FindingProps(n=known.pop("n_samples"), **known)


def _case(case: Case) -> CaseProps:
    queries = case.queries
    return CaseProps(
        id=case.id,
        about=case.about,
        tokens=[text for text, *_ in case.tokens],
        spaces=_spaces(case.tokens),
        pairs=[(int(query), int(key), float(weight)) for query, key, weight in case.pairs],
        queries=None if queries is None else [text for text, *_ in queries],
        query_spaces=None if queries is None else _spaces(queries),
    )


def _spaces(tokens: list[DisplayToken]) -> list[int]:
    return [place for place, (_, has_space, *_) in enumerate(tokens) if has_space and place]


def _round(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _round(child) for key, child in value.items()}
    if isinstance(value, list):
        return [_round(child) for child in value]
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value
