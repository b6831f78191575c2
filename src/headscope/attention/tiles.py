"""Attention over long inputs: the same formula, a few rows of a few heads at a time."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby

import torch
from torch import Tensor

from headscope.attention.buffers import Workspace
from headscope.attention.formula import Formula, log_denominator, scores, softmax
from headscope.attention.masks import Mask
from headscope.attention.summaries import N_TOP, Summariser, cell
from headscope.attention.threads import run_all, shares

# A tile of scores of about this size stays in the processor's cache between its passes. Compiled figures take one pass,
# so that tiles can be as small as the cache of one core.
TILE_BYTES, TILE_ROWS = 4 * 2**20, 256
FUSED_BYTES, FUSED_ROWS = 2**20, 64

Edit = Callable[[str, Tensor, slice, slice], Tensor]


@torch.no_grad()
def attend_in_tiles(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    formula: Formula,
    *,
    summariser: Summariser | None = None,
    edit: Edit | None = None,
    check: Callable[[], None] | None = None,
) -> Tensor:
    """The mixed values [head, query, dim] of one example (query [head, query, dim], key and value [group, key, dim]).

    `edit(stage, tile, heads, rows)` may change the scores and then the pattern of a tile that spans all keys; `check`
    is called for each band of rows and may raise to stop. Both may be called from several threads, each with heads of
    its own.
    """
    n_heads, n_queries = query.shape[:2]
    n_keys = key.shape[1]
    kept_dtype = query.dtype
    # Scaling the queries once saves a pass over every tile.
    scale = formula.scaling if formula.softcap is None else 1.0
    formula = replace(formula, scaling=1.0) if formula.softcap is None else formula
    # [query, head, dim] in memory, which is how models go on with it.
    mixed = torch.empty(n_queries, n_heads, value.shape[-1], dtype=kept_dtype, device=query.device).transpose(0, 1)
    mask = formula.mask
    offset = 0 if mask is None else mask.query_offset - mask.key_offset
    is_causal = mask is not None and mask.dense is None and mask.is_causal and not mask.has_blind()
    is_fused = summariser is not None and summariser.is_fused and edit is None and formula.sinks is None
    tile_bytes = FUSED_BYTES if is_fused else TILE_BYTES
    # Otherwise, rows of a tile are a whole number of map cells.
    n_rows = FUSED_ROWS if is_fused else cell(n_queries) * max(1, round(TILE_ROWS / cell(n_queries)))
    bands = list(_bands(n_queries, n_keys, mask, n_rows, is_whole=edit is not None))

    def work(share: slice, stop: threading.Event) -> None:
        workspace = Workspace(query.device)
        gathered = None if summariser is None else summariser.rows()
        for heads, some in _blocks(bands, share, tile_bytes):
            part = formula.heads(heads)
            bare = replace(part, mask=None)
            # Statistics need fp32 (bf16 scores are 0.06 nats off in entropy), and bf16 products are no faster on a CPU.
            # A copy puts a head's rows side by side in memory; tiles would fetch them from all over it again and again.
            n_rows, n_columns = some[-1].rows.stop, max(band.columns.stop for band in some)
            q = workspace.copy("query", query[None, heads, :n_rows]).mul_(scale)
            k, v = (
                workspace.copy(name, _of_heads(tensor, heads, n_heads)[None, :, :n_columns])
                for name, tensor in (("key", key), ("value", value))
            )
            for band in some:
                if stop.is_set():
                    return
                if check is not None:
                    check()
                rows, columns = band.rows, band.columns
                shape = (1, heads.stop - heads.start, rows.stop - rows.start, columns.stop - columns.start)
                terms = part if band.hidden is None else bare
                tile_scores = scores(q, k, terms, rows=rows, columns=columns, out=workspace.take("scores", shape))
                for place, where in band.hidden or ():
                    tile_scores[..., place].masked_fill_(where, torch.finfo(tile_scores.dtype).min)
                lse = None
                if edit is not None:
                    tile_scores = edit("scores", tile_scores, heads, rows)
                pattern = softmax(tile_scores, part.sinks, out=workspace.take("pattern", shape))
                if edit is not None or part.sinks is not None:
                    lse = log_denominator(tile_scores, part.sinks)[0]
                if edit is not None:
                    pattern = edit("pattern", pattern, heads, rows)
                out = workspace.take("mixed", (*shape[:3], v.shape[-1]))
                mixed[heads, rows] = torch.matmul(pattern, v[:, :, columns], out=out)[0]
                if summariser is not None:
                    where = {"heads": heads, "rows": rows, "columns": columns, "query_offset": offset}
                    summariser.add(pattern[0], tile_scores[0], is_causal=is_causal, lse=lse, gathered=gathered, **where)
        if gathered is not None:
            gathered.finish()

    run_all(work, shares(n_heads, query.device))
    return mixed


@dataclass(frozen=True, eq=False)
class _Band:
    """Some rows, the columns that they give weight to, and where those are hidden (None: the mask will tell)."""

    rows: slice
    columns: slice
    hidden: list[tuple[slice, Tensor]] | None

    def n_heads(self, tile_bytes: int) -> int:
        """How many heads of it make a tile of this size."""
        cells = (self.rows.stop - self.rows.start) * (self.columns.stop - self.columns.start)
        return max(1, tile_bytes // max(1, 4 * cells))


def _bands(n_queries: int, n_keys: int, mask: Mask | None, n_rows: int, *, is_whole: bool) -> Iterator[_Band]:
    """Bands of so many rows; their columns are a whole number of map cells."""
    edges = cell(n_keys)
    # Where limits alone hide, they do so in a few columns: found once for all heads. Other masks are as large as tiles.
    is_light = mask is None or (mask.dense is None and mask.keys is None)
    for first_row in range(0, n_queries, n_rows):
        rows = slice(first_row, min(first_row + n_rows, n_queries))
        first, last = (0, n_keys) if mask is None or is_whole else mask.extent(rows)
        first = first // edges * edges
        first = first if first >= N_TOP else 0
        columns = slice(first, min(n_keys, -(-max(last, first + 1) // edges) * edges))
        yield _Band(rows, columns, (mask.hidden_cells(rows, columns) if mask is not None else []) if is_light else None)


def _blocks(bands: list[_Band], share: slice, tile_bytes: int) -> Iterator[tuple[slice, list[_Band]]]:
    """Blocks of these heads with the bands to compute for them: one block after another, so that the keys and values of
    few heads stay in the cache from band to band.
    """
    n_heads = share.stop - share.start
    for n_blocks, group in groupby(bands, key=lambda band: -(-n_heads // band.n_heads(tile_bytes))):
        size, some = -(-n_heads // n_blocks), list(group)
        for first in range(share.start, share.stop, size):
            yield slice(first, min(first + size, share.stop)), some


def _of_heads(tensor: Tensor, heads: slice, n_heads: int) -> Tensor:
    """Each head's keys or values [head, key, dim], of which heads may share one (grouped-query attention)."""
    n_each = n_heads // tensor.shape[0]
    if n_each == 1:
        return tensor[heads]
    return tensor[torch.arange(heads.start, heads.stop, device=tensor.device) // n_each]
