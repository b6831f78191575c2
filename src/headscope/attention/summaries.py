"""What is kept of a pattern when the pattern itself is too large to keep.

Computed tile by tile: nothing as large as query × key is ever held.
"""

import math
from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor

from headscope.attention.row_summaries import RowSummaries

N_TOP = 8
# The map of a head has at most this many cells a side.
MAP_SIZE = 96
# From so many weights on, on a processor, the figures come from compiled code (see fused.py).
FUSED_FROM = 2**22
ROW_FIGURES = ("lse", "entropy", "max", "distance", "argmax")


@dataclass(frozen=True, eq=False)
class Summary:
    """One attention layer over one input; row figures are [head, query].

    lse is the log of the softmax denominator; entropy is in nats; distance is the mean |query − key| under the pattern.
    top_keys and top_weights [head, query, 8] are the strongest keys, ties to the lower index; received [head, key] is
    the mean over queries; map [head, cell, cell] is max-pooled, so that thin diagonals survive.
    """

    lse: Tensor
    entropy: Tensor
    max: Tensor
    distance: Tensor
    argmax: Tensor
    top_keys: Tensor | None = None
    top_weights: Tensor | None = None
    received: Tensor | None = None
    map: Tensor | None = None

    def tensors(self) -> dict[str, Tensor]:
        """The figures that were kept, by name."""
        named = ((name, getattr(self, name)) for name in _FIGURES)
        return {name: tensor for name, tensor in named if tensor is not None}

    def to(self, device) -> "Summary":
        """The summary on another device."""
        return Summary(**{name: tensor.to(device) for name, tensor in self.tensors().items()})


_FIGURES = tuple(field.name for field in fields(Summary))


def cell(length: int) -> int:
    """How many tokens one cell of the map stands for."""
    return max(1, math.ceil(length / MAP_SIZE))


class Summariser:
    """Gathers the summary of one input's pattern from its tiles, which may come in any order."""

    def __init__(self, n_heads: int, n_queries: int, n_keys: int, *, rows_only: bool = False, device=None):
        """`rows_only` keeps the row figures and leaves out top, received and map."""
        self.n_queries, self.n_keys, self.rows_only = n_queries, n_keys, rows_only
        self.row_cell, self.key_cell = cell(n_queries), cell(n_keys)

        def empty(*shape: int, dtype: torch.dtype = torch.float32, value: float = 0.0) -> Tensor:
            return torch.full(shape, value, dtype=dtype, device=device)

        rows = (n_heads, n_queries)
        self.figures = {name: empty(*rows) for name in ("lse", "entropy", "max", "distance")}
        self.figures["argmax"] = empty(*rows, dtype=torch.int32)
        self.n_top = min(N_TOP, n_keys)
        # Short patterns are done before compiled code is loaded.
        self.is_fused = self.figures["max"].device.type == "cpu" and n_heads * n_queries * n_keys >= FUSED_FROM
        self._index = torch.arange(n_heads * n_queries, device=device).view(rows)
        if not rows_only:
            self.figures["top_keys"] = empty(*rows, N_TOP, dtype=torch.int32, value=-1)
            self.figures["top_weights"] = empty(*rows, N_TOP)
            self.figures["received"] = empty(n_heads, n_keys)
            cells = (math.ceil(n_queries / self.row_cell), math.ceil(n_keys / self.key_cell))
            self.figures["map"] = empty(n_heads, *cells)

    def rows(self) -> RowSummaries:
        """Where a thread gathers rows while it adds tiles; `finish` it at the end."""
        top = {} if self.rows_only else {name: self.figures[name] for name in ("top_keys", "top_weights")}
        figures = {name: self.figures[name] for name in ROW_FIGURES} | top
        return RowSummaries(figures, n_top=1 if self.rows_only else self.n_top, n_keys=self.n_keys, size=self.key_cell)

    def add(
        self,
        pattern: Tensor,
        scores: Tensor,
        *,
        heads: slice = slice(None),
        rows: slice = slice(None),
        columns: slice = slice(None),
        query_offset: int = 0,
        is_causal: bool = False,
        lse: Tensor | None = None,
        gathered: RowSummaries | None = None,
    ) -> None:
        """Take in a tile of the pattern and its scores [head, row, column].

        The scores may be used up. Keys outside `columns` must have no weight. `columns` begins and ends on a cell of
        the map, and so does `rows`, unless the figures are compiled; `columns` begins at the first key or past the
        eighth. `lse` is given when the pattern is no longer the softmax of the scores (it was edited, or has sinks).
        `gathered` is where rows wait to be finished together.
        """
        pattern = pattern.float().contiguous()
        if self.is_fused and lse is None:
            starts = (heads.start or 0, rows.indices(self.n_queries)[0], columns.indices(self.n_keys)[0])
            self._add_fused(pattern, scores.float().contiguous(), starts, query_offset)
            return
        if lse is not None:
            pattern = pattern + 0.0  # an edit may leave −0, whose bits order below all others
        waiting = self.rows() if gathered is None else gathered
        first_row, last_row, _ = rows.indices(self.n_queries)
        first_key = columns.indices(self.n_keys)[0]
        n_heads, n_rows, n_columns = pattern.shape
        flat = pattern.view(n_heads * n_rows, n_columns)
        bits = flat.view(torch.int32)  # in order as weights are (see Rows), and faster to compare
        cell_bits = _cell_max(bits, self.key_cell)
        raw = {"index": self._index[heads, rows].reshape(-1)}
        last_query = last_row - 1 + query_offset
        if lse is not None:
            self._put_edited(pattern, lse, heads, rows, self._away(rows, columns, query_offset))
        else:
            scores = scores.reshape(n_heads * n_rows, n_columns)
            raw["lse"] = scores.amax(-1).float()
            raw["entropy"] = scores.mul_(flat).sum(-1)
            if is_causal:
                # No key is ahead of its query, so |query − key| needs no absolute value; counted from the last query
                # of the tile, because small numbers keep their digits.
                behind = waiting.workspace.countdown(last_query - first_key, n_columns)
                ahead = waiting.workspace.countdown(n_rows - 1, n_rows)
                raw["distance"] = torch.mv(flat, behind).view(n_heads, n_rows).sub_(ahead).view(-1)
            else:
                away = self._away(rows, columns, query_offset)
                raw["distance"] = torch.linalg.vecdot(pattern, away.expand_as(pattern)).view(-1)
        waiting.add(bits, cell_bits, first_key, raw)
        if gathered is None:
            waiting.finish()
        if self.rows_only:
            return
        self.figures["received"][heads, columns].add_(pattern.sum(-2), alpha=1 / self.n_queries)
        pooled = _cell_max(cell_bits.view(n_heads, n_rows, -1), self.row_cell, dim=1)
        row_cells = slice(first_row // self.row_cell, first_row // self.row_cell + pooled.shape[1])
        key_cells = slice(first_key // self.key_cell, first_key // self.key_cell + pooled.shape[2])
        self.figures["map"][heads, row_cells, key_cells] = pooled.view(torch.float32)

    def _add_fused(self, pattern: Tensor, scores: Tensor, starts: tuple[int, int, int], query_offset: int) -> None:
        from headscope.attention.kernels_cpu import add_tile  # loads a compiler

        cells = (self.row_cell, self.key_cell)
        add_tile(pattern.numpy(), scores.numpy(), *starts, query_offset, *cells, *self._arrays())

    def _arrays(self) -> list[np.ndarray]:
        """The figures as compiled code wants them, in the order of its arguments."""
        arrays = [self.figures[name].numpy() for name in ROW_FIGURES]
        if self.rows_only:
            top = [np.empty((0, 0, 0), dtype) for dtype in (np.int32, np.float32)]
            return [*arrays, *top, np.empty((0, self.n_keys), np.float32), np.empty((0, 0, 0), np.int32)]
        arrays += [self.figures[name].numpy() for name in ("top_keys", "top_weights", "received")]
        return [*arrays, self.figures["map"].numpy().view(np.int32)]

    def _away(self, rows: slice, columns: slice, query_offset: int) -> Tensor:
        """|query − key| [row, column]."""
        device = self._index.device
        query = torch.arange(self.n_queries, device=device, dtype=torch.float32)[rows] + query_offset
        return (query[:, None] - torch.arange(self.n_keys, device=device)[columns]).abs()

    def _put_edited(self, pattern: Tensor, lse: Tensor, heads: slice, rows: slice, away: Tensor) -> None:
        """Row figures of weights that need not add up to one: entropy of those there are, distance of their share."""
        total = pattern.sum(-1).clamp_min(torch.finfo(pattern.dtype).tiny)
        self.figures["lse"][heads, rows] = lse.float()
        self.figures["entropy"][heads, rows] = -torch.special.xlogy(pattern, pattern).sum(-1).clamp_max(0.0)
        self.figures["distance"][heads, rows] = torch.linalg.vecdot(pattern, away.expand_as(pattern)) / total

    def summary(self) -> Summary:
        """What was gathered."""
        return Summary(**self.figures)


def summarise(pattern: Tensor, scores: Tensor, *, rows_only: bool = False, lse: Tensor | None = None) -> Summary:
    """The summary of a whole pattern [head, query, key] that is at hand, with its scores."""
    whole = Summariser(*pattern.shape, rows_only=rows_only, device=pattern.device)
    whole.add(pattern, scores.clone(), lse=lse)
    return whole.summary()


def _cell_max(values: Tensor, size: int, *, dim: int = -1) -> Tensor:
    """The largest of every `size` values along an axis; the last cell may be short."""
    if size == 1:
        return values
    n_whole, n_rest = divmod(values.shape[dim], size)
    if not n_rest:
        return values.unflatten(dim, (n_whole, size)).amax(dim if dim < 0 else dim + 1)
    whole, rest = values.split([n_whole * size, n_rest], dim)
    return torch.cat([_cell_max(whole, size, dim=dim), rest.amax(dim, keepdim=True)], dim)
