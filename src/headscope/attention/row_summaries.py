"""The figures of single rows of a pattern, finished many rows at a time.

A small operation takes as long for one row as for a hundred, and threads wait for each other between operations. So a
tile leaves here only what is lost with it; the rest is done when enough rows have come together.
"""

import math

import torch
from torch import Tensor

from headscope.attention.buffers import Workspace

# Rows that wait together: their candidates, about 1 KiB each, stay in the processor's cache.
N_ROWS = 1024
_LOW = 0xFFFFFFFF


class RowSummaries:
    """Rows of tiles, on their way to the figures [head · query] of a layer. Each thread has its own.

    Weights are handled as integers: they are not negative, so their bits order as they do, and integers, which cannot
    be NaN, compare faster.
    """

    def __init__(self, figures: dict[str, Tensor], *, n_top: int, n_keys: int, size: int):
        """`size` is the number of keys in a cell of the map."""
        self.figures = {name: figure.flatten(0, 1) for name, figure in figures.items()}
        self.n_top, self.n_keys, self.size = n_top, n_keys, size
        # The n strongest keys lie in the n cells with the largest maxima.
        self.n_cells = min(n_top, -(-n_keys // size))
        self.workspace = Workspace(figures["max"].device)
        self._held: dict[str, list[Tensor]] = {}
        self._candidates = torch.empty(0, self.n_cells, size, dtype=torch.int32, device=self.workspace.device)
        self._n_rows = 0
        self._kind = (True, False)

    def add(self, bits: Tensor, cell_bits: Tensor, first_key: int, raw: dict[str, Tensor]) -> None:
        """Take in rows of a tile: the bits of their weights [row, column] and of their cells' maxima [row, cell].

        `raw` holds the rows' places among the figures as `index`; and for rows that are a softmax, the largest score as
        `lse`, the mean score as `entropy`, and `distance`.
        """
        n_rows, n_columns = bits.shape
        kind = ("lse" in raw, first_key > 0)
        if self._n_rows and (kind != self._kind or self._n_rows + n_rows > len(self._candidates)):
            self.finish()
        self._kind = kind
        if n_rows > len(self._candidates):
            self._candidates = self._candidates.new_empty(max(n_rows, N_ROWS), self.n_cells, self.size)
        candidates = self._candidates[self._n_rows : self._n_rows + n_rows]
        self._n_rows += n_rows
        n_cells, first = cell_bits.shape[1], first_key // self.size
        if n_cells <= self.n_cells:
            cells = self.workspace.countdown(first + self.n_cells - 1, self.n_cells, torch.int64).flip(0)
            cells = cells.expand(n_rows, -1)
            _pad(bits, out=candidates.flatten(1))
        else:
            places = self.workspace.countdown(n_cells - 1, n_cells, torch.int64).flip(0)
            cells = _split(_largest(_join(cell_bits, places), self.n_cells))[1]
            if n_columns % self.size:
                bits = _pad(bits, out=self.workspace.take("padded", (n_rows, n_cells * self.size), torch.int32))
            # A cell's weights are side by side in memory, which is fast to fetch.
            chosen = torch.arange(0, n_rows * n_cells, n_cells, device=bits.device)[:, None] + cells
            torch.index_select(bits.view(-1, self.size), 0, chosen.view(-1), out=candidates.view(-1, self.size))
            cells = cells + first if first else cells
        for name, values in {"cells": cells, **raw}.items():
            self._held.setdefault(name, []).append(values)

    def finish(self) -> None:
        """Write the figures of the rows that wait."""
        if not self._n_rows:
            return
        waiting = {name: torch.cat(pieces) for name, pieces in self._held.items()}
        index = waiting["index"]
        weights, keys = self._top(self._candidates[: self._n_rows], waiting["cells"])
        self._n_rows, self._held = 0, {}
        is_softmax, is_cut = self._kind
        self._put("max", index, weights[:, 0])
        self._put("argmax", index, keys[:, 0])
        if is_softmax:
            surprisal = weights[:, 0].log().neg_()
            lse = waiting["lse"] + surprisal
            # Entropy lies between these two. Both are exact for a query that may see nothing: it gives all keys the
            # same, and its scores are too low to reckon with.
            entropy = torch.maximum((lse - waiting["entropy"]).clamp_max_(math.log(self.n_keys)), surprisal)
            self._put("lse", index, lse)
            self._put("entropy", index, entropy)
            self._put("distance", index, waiting["distance"].clamp_min(0.0))
        if "top_keys" not in self.figures:
            return
        if is_cut:
            # Keys that weigh nothing tie: those before the tile count too, the lowest first.
            is_nothing = weights == 0
            keys = torch.where(is_nothing, is_nothing.cumsum(-1) - 1, keys)
        self._put("top_weights", index, weights)
        self._put("top_keys", index, keys)

    def _put(self, name: str, index: Tensor, values: Tensor) -> None:
        figure = self.figures[name]
        figure = figure if values.ndim == 1 else figure[:, : values.shape[1]]
        figure.index_copy_(0, index, values.to(figure.dtype))

    def _top(self, candidates: Tensor, cells: Tensor) -> tuple[Tensor, Tensor]:
        """The largest weights of each row [row, n_top] and their keys, ties to the lower key.

        Narrowed down once more: as many columns of the cells as we want weights, those with the largest maxima, and
        the weights where they cross. The largest that is left out could belong to the top only if it ties with the last
        one in, and such rows are looked at whole.
        """
        n_rows, n_top = len(candidates), self.n_top
        columns = torch.arange(self.size, device=cells.device)[None]
        if self.size <= 2 * n_top:
            best, keys = self._top_of(candidates, cells, columns)
        else:
            maxima, places = _split(_largest(_join(candidates.amax(1), columns), n_top + 1))
            some, left_out = places[:, :n_top], maxima[:, n_top]
            crossing = candidates.gather(-1, some[:, None].expand(n_rows, self.n_cells, n_top))
            best, keys = self._top_of(crossing, cells, some)
            is_tied = left_out >= best[:, -1]
            if bool(is_tied.any()):
                best[is_tied], keys[is_tied] = self._top_of(candidates[is_tied], cells[is_tied], columns)
        return best.clamp_min_(0).view(torch.float32), keys

    def _top_of(self, bits: Tensor, cells: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
        """The largest of the weights in these columns of the cells [row, cell, column], as bits, and their keys."""
        keys = (cells * self.size)[:, :, None] + columns[:, None]
        return _split(_largest(_join(bits, keys).flatten(1), self.n_top))


def _join(bits: Tensor, numbers: Tensor) -> Tensor:
    """Weights and their numbers in one integer each: no two are alike, and of equal weights the lower number wins."""
    return torch.add(_LOW - numbers, bits, alpha=1 << 32)


def _split(joined: Tensor) -> tuple[Tensor, Tensor]:
    return (joined >> 32).int(), _LOW - (joined & _LOW)


def _largest(joined: Tensor, number: int) -> Tensor:
    """The largest of each row, in order. What is given is used up."""
    if joined.device.type != "cpu":
        return joined.topk(number, dim=-1).values
    # NumPy sorts short rows of integers with vector instructions, in a quarter of the time that topk takes.
    joined.numpy().sort(axis=-1)
    return joined[:, -number:].flip(-1)


def _pad(bits: Tensor, *, out: Tensor) -> Tensor:
    """Rows in a wider place, with less than any weight after them."""
    out[:, : bits.shape[1]] = bits
    out[:, bits.shape[1] :] = -1
    return out
