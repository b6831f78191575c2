"""The figures of single rows of a pattern, finished many rows at a time.

A small operation takes as long for one row as for a hundred, and threads wait for each other between operations. So a
tile leaves here only what is lost with it; the rest is done when enough rows have come together.
"""

import math

import torch
from torch import Tensor

from headscope.attention.workspace import Workspace

# Rows that wait together: their candidates, about 1 KiB each, stay in the processor's cache.
N_ROWS = 1024
_LOW = 0xFFFFFFFF


class Rows:
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
            _padded(bits, out=candidates.flatten(1))
        else:
            # With a maximum and its cell in one integer, no two are alike and the lower cell is the larger number.
            place = self.workspace.countdown(n_cells - 1, n_cells, torch.int64)
            best = torch.add(place, cell_bits, alpha=1 << 32).topk(self.n_cells, dim=-1, sorted=False).values
            cells = (n_cells - 1) - best.bitwise_and_(_LOW)
            if n_columns % self.size:
                bits = _padded(bits, out=self.workspace.take("padded", (n_rows, n_cells * self.size), torch.int32))
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
        held = {name: torch.cat(pieces) for name, pieces in self._held.items()}
        index = held["index"]
        weights, keys = self._top(self._candidates[: self._n_rows], held["cells"])
        self._n_rows, self._held = 0, {}
        is_softmax, is_cut = self._kind
        self._put("max", index, weights[:, 0])
        self._put("argmax", index, keys[:, 0])
        if is_softmax:
            surprisal = weights[:, 0].log().neg_()
            lse = held["lse"] + surprisal
            # Entropy lies between these two. Both are exact for a query that may see nothing: it gives all keys the
            # same, and its scores are too low to reckon with.
            entropy = torch.maximum((lse - held["entropy"]).clamp_max_(math.log(self.n_keys)), surprisal)
            self._put("lse", index, lse)
            self._put("entropy", index, entropy)
            self._put("distance", index, held["distance"].clamp_min(0.0))
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
        one in, and rows with ties are looked at whole.
        """
        n_rows, n_top, width = len(candidates), self.n_top, self.size
        crossing, columns, left_out = candidates, None, None
        if self.size > 2 * n_top:
            best, columns = candidates.amax(1).topk(n_top + 1, dim=-1)
            columns, left_out, width = columns[:, :n_top], best[:, n_top], n_top
            crossing = candidates.gather(-1, columns[:, None].expand(n_rows, self.n_cells, n_top))
        crossing = crossing.flatten(1)
        # One more than we want, in order: equal neighbours, the last one included, are ties.
        best, places = crossing.topk(min(n_top + 1, crossing.shape[1]), dim=-1)
        is_tied = (best[:, 1:] == best[:, :-1]).any(-1)
        if left_out is not None:
            is_tied |= left_out >= best[:, n_top - 1]
        best, places = best[:, :n_top].contiguous(), places[:, :n_top]
        column = places % width
        column = column if columns is None else columns.gather(1, column)
        keys = cells.gather(1, places // width).mul_(self.size).add_(column)
        if bool(is_tied.any()):
            best[is_tied], keys[is_tied] = self._top_of_ties(candidates[is_tied], cells[is_tied])
        return best.clamp_min_(0).view(torch.float32), keys

    def _top_of_ties(self, candidates: Tensor, cells: Tensor) -> tuple[Tensor, Tensor]:
        """The same, as bits, with the key in the lower half of an integer: no two are alike."""
        key = cells[:, :, None] * self.size + torch.arange(self.size, device=cells.device)
        joined = (_LOW - key).add_(candidates, alpha=1 << 32).flatten(1).topk(self.n_top, dim=-1).values
        return (joined >> 32).int(), _LOW - (joined & _LOW)


def _padded(bits: Tensor, *, out: Tensor) -> Tensor:
    """Rows in a wider place, with less than any weight after them."""
    out[:, : bits.shape[1]] = bits
    out[:, bits.shape[1] :] = -1
    return out
