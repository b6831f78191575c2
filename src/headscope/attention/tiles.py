"""Attention over long inputs: the same formula, a few rows of a few heads at a time."""

import math
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import Tensor

from headscope.attention.formula import Formula, expand_heads, log_denominator, scores, softmax
from headscope.attention.summaries import N_TOP, Summariser, cell
from headscope.attention.workers import run_all, shares

# A tile of scores of about this size stays in the processor's cache between its passes.
TILE_BYTES = 4 * 2**20
TILE_ROWS = 128

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
    # Statistics need fp32 (bf16 scores are 0.06 nats off in entropy), and bf16 products are no faster on a CPU. One
    # copy puts a head's rows side by side in memory; tiles would fetch them from all over it again and again. Scaling
    # the queries once saves a pass over every tile.
    scaled = formula.softcap is None
    query = torch.mul(
        query[None], formula.scaling if scaled else 1.0, out=torch.empty(1, *query.shape, device=query.device)
    )
    key, value = (expand_heads(one[None], n_heads).float().contiguous() for one in (key, value))
    formula = replace(formula, scaling=1.0) if scaled else formula
    # [query, head, dim] in memory, which is how models go on with it.
    mixed = torch.empty(n_queries, n_heads, value.shape[-1], dtype=kept_dtype, device=query.device).transpose(0, 1)
    mask = formula.mask
    offset = 0 if mask is None else mask.query_offset - mask.key_offset
    is_causal = mask is not None and mask.stop is not None and _never_ahead(mask.stop, offset) and not mask.has_blind()
    edges = cell(n_keys)

    def work(share: slice, stop: threading.Event) -> None:
        workspace = _Workspace(query.device)
        for rows in _bands(n_queries):
            if check is not None:
                check()
            if stop.is_set():
                return
            first, last = (0, n_keys) if mask is None or edit is not None else mask.extent(rows)
            first = first // edges * edges
            first = first if first >= N_TOP else 0
            last = min(n_keys, -(-max(last, first + 1) // edges) * edges)
            columns = slice(first, last)
            for heads in _blocks(share, (rows.stop - rows.start) * (last - first)):
                part = formula.heads(heads)
                shape = (1, heads.stop - heads.start, rows.stop - rows.start, last - first)
                out = workspace.take("scores", shape)
                found = scores(query[:, heads], key[:, heads], part, rows=rows, columns=columns, out=out)
                lse = None
                if edit is not None:
                    found = edit("scores", found, heads, rows)
                pattern = softmax(found, part.sinks, out=workspace.take("pattern", shape))
                if edit is not None or part.sinks is not None:
                    lse = log_denominator(found, part.sinks)[0]
                if edit is not None:
                    pattern = edit("pattern", pattern, heads, rows)
                mixed[heads, rows] = (pattern @ value[:, heads, columns])[0].to(kept_dtype)
                if summariser is not None:
                    place = {"heads": heads, "rows": rows, "columns": columns, "query_offset": offset}
                    summariser.add(pattern[0], found[0], is_causal=is_causal, lse=lse, **place)

    run_all(work, shares(n_heads, query.device))
    return mixed


class _Workspace:
    """Memory for the tensors of a tile, used again for the next: fresh pages cost more than the arithmetic."""

    def __init__(self, device: torch.device):
        self.device = device
        self.buffers: dict[str, Tensor] = {}

    def take(self, name: str, shape: tuple[int, ...]) -> Tensor:
        size = math.prod(shape)
        if name not in self.buffers or self.buffers[name].numel() < size:
            self.buffers[name] = torch.empty(size, device=self.device)
        return self.buffers[name][:size].view(shape)


def _bands(n_queries: int) -> Iterator[slice]:
    """Bands of about TILE_ROWS rows, each a whole number of map cells."""
    edges = cell(n_queries)
    size = edges * max(1, round(TILE_ROWS / edges))
    for first in range(0, n_queries, size):
        yield slice(first, min(first + size, n_queries))


def _blocks(share: slice, cells: int) -> Iterator[slice]:
    """Blocks of as many of these heads as keep a tile within TILE_BYTES."""
    size = max(1, TILE_BYTES // max(1, 4 * cells))
    for first in range(share.start, share.stop, size):
        yield slice(first, min(first + size, share.stop))


def _never_ahead(stop: Tensor, offset: int) -> bool:
    query = torch.arange(stop.shape[1], device=stop.device) + offset
    return bool((stop <= query + 1).all())
