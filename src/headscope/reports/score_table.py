"""Scores as one long table in Parquet: a row a head and measure."""

from collections.abc import Mapping

import numpy as np

from headscope.runs.shard import arrow
from headscope.scores import Scores

COLUMNS = ("head", "stack", "layer", "index", "measure", "key", "value", "baseline", "low", "high", "n")


def scores_table(scores: Mapping[str, Scores]) -> bytes:
    """The table as a Parquet file."""
    pa, pq = arrow()
    columns: dict[str, list] = {name: [] for name in COLUMNS}
    for name, measure_scores in scores.items():
        measure, _, key = name.partition("/")
        for head, value in measure_scores.items():
            low, high = measure_scores.intervals.get(head, (np.nan, np.nan))
            base = measure_scores.baselines.get(
                head, np.nan if measure_scores.baseline is None else measure_scores.baseline
            )
            stack = "cross" if head.kind == "cross" else head.stack
            row = (
                str(head),
                stack,
                head.layer,
                head.index,
                measure,
                key,
                value,
                base,
                low,
                high,
                measure_scores.n_samples,
            )
            for column, cell in zip(COLUMNS, row, strict=True):
                columns[column].append(cell)
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue().to_pybytes()
