"""The published use cases, run on a model of the page's choice: evidence as sentences and tables."""

import math
from dataclasses import dataclass

import numpy as np

from headscope.reports.evidence import Evidence
from headscope.reports.usecases import USE_CASES, use_case
from headscope.server.messages import UseCaseOffer
from headscope.server.tasks.task import Desk, Task
from headscope.views.contract import ColumnProps, EvidenceProps, MethodProps, TableProps
from headscope.views.trace_part import short_name
from headscope.views.wire import Part


@dataclass(frozen=True)
class UseCaseOptions:
    """Which one."""

    name: str


def use_cases() -> list[UseCaseOffer]:
    """What the page can offer."""
    return [UseCaseOffer(case.name, case.title, case.about, case.needs_pairs) for case in USE_CASES.values()]


def evidence_part(evidence: Evidence) -> Part:
    """Evidence as the page reads it: numbers as arrays, a column each."""
    arrays: dict[str, np.ndarray] = {}
    tables = []
    for place, table in enumerate(evidence.tables):
        columns = []
        for number, column in enumerate(table.columns):
            cells = [row[number] for row in table.rows]
            if column.kind == "number":
                arrays[f"{place}/{number}"] = np.array(
                    [math.nan if cell is None else cell for cell in cells], np.float32
                )
            texts = [] if column.kind == "number" else [str(cell) for cell in cells]
            columns.append(ColumnProps(column.name, column.kind, texts))
        tables.append(TableProps(table.title, table.about, columns, len(table.rows)))
    scores = evidence.scores
    arrays["measure"] = np.array(list(scores.values()), np.float32)
    low, high = min(0.0, float(np.nanmin(arrays["measure"]))), float(np.nanmax(arrays["measure"]))
    baseline = scores.baseline
    method = MethodProps(scores.method, f"{evidence.title}: {scores.method}", baseline, low, max(high, low + 1e-6))
    return Part(
        "evidence",
        EvidenceProps(
            evidence.name,
            evidence.title,
            short_name(evidence.model),
            evidence.findings,
            tables,
            [str(head) for head in scores],
            method,
            evidence.python,
            evidence.example["text"],
            evidence.example.get("pair"),
        ),
        arrays,
    )


def _use_case(desk: Desk, options: UseCaseOptions) -> Part:
    return evidence_part(use_case(options.name, desk.model, progress=desk.progress, cancel=desk.cancel))


USE_CASE = Task("use_case", UseCaseOptions, _use_case, of_trace=False)
