"""Attention to chosen keys, at any length: with the lse of each row, the rest of the pattern is not needed."""

from collections.abc import Sequence

import torch
from torch import Tensor

from headscope.attention.formula import Formula, expand_heads, scores
from headscope.attention.fused import is_covered, weigh_runs

# Cells (head × row × column) that are computed at a time, and columns of them.
_CELLS, _COLUMNS = 2**22, 4096


@torch.no_grad()
def span_weights(query: Tensor, key: Tensor, formula: Formula, lse: Tensor, spans: Sequence[Sequence[int]]) -> Tensor:
    """The weight that each query gives to the keys of each span, summed [head, query, span].

    query [head, query, dim], key [group, key, dim], lse [head, query]. A span is a list of positions, in order.
    """
    if query.dtype != torch.float64 and is_covered(query[None], query[None], formula):
        return weigh_runs(query[None], key[None], formula, lse, [runs_of(span) for span in spans])[0]
    n_heads, n_queries = query.shape[:2]
    wide = query.dtype if query.dtype == torch.float64 else torch.float32
    query, key = query[None].to(wide), expand_heads(key[None], n_heads).to(wide)
    is_blind = lse < torch.finfo(lse.dtype).min / 2  # such a query sees nothing, and gives all keys the same
    totals = torch.zeros(n_heads, n_queries, len(spans), dtype=wide, device=query.device)
    for index, span in enumerate(spans):
        for first, last in runs_of(span):
            for start in range(first, last, _COLUMNS):
                columns = slice(start, min(start + _COLUMNS, last))
                n_rows = max(1, _CELLS // (n_heads * (columns.stop - columns.start)))
                for row in range(0, n_queries, n_rows):
                    rows = slice(row, row + n_rows)
                    tile = scores(query, key, formula, rows=rows, columns=columns)[0]
                    weights = tile.sub_(lse[:, rows, None]).exp_()
                    weights.masked_fill_(is_blind[:, rows, None], 1 / key.shape[2])
                    totals[:, rows, index] += weights.sum(-1)
    return totals


def runs_of(span: Sequence[int]) -> list[tuple[int, int]]:
    """Positions in order, as runs of neighbours: the first and one past the last of each."""
    runs: list[tuple[int, int]] = []
    for position in span:
        if runs and runs[-1][1] == position:
            runs[-1] = (runs[-1][0], position + 1)
        else:
            runs.append((position, position + 1))
    return runs
