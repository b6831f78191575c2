"""A rectangle of one head's pattern, max-pooled to any resolution: exponentials are taken of what is left alone."""

import math

import torch
from torch import Tensor
from torch.nn.functional import pad

from headscope.attention.formula import Formula, scores
from headscope.attention.fused import is_covered, pool_cells

# Scores that are computed at a time.
_CELLS = 2**21
Span = tuple[int, int]


@torch.no_grad()
def pooled_weights(
    query: Tensor, key: Tensor, formula: Formula, lse: Tensor, rows: Span, columns: Span, cell: tuple[int, int]
) -> Tensor:
    """The largest weight of every `cell` queries and keys [row cell, key cell], the last ones of a rectangle shorter.

    query [query, dim], key [key, dim] and lse [query] are those of one head, and `formula` is of it alone. Rows whose
    lse is not a number have no weights.
    """
    shape = (-(-(rows[1] - rows[0]) // cell[0]), -(-(columns[1] - columns[0]) // cell[1]))
    if query.dtype != torch.float64 and min(cell) > 1 and is_covered(query[None, None], query[None, None], formula):
        return pool_cells(query, key, formula, lse, (rows, columns), cell, shape)
    wide = query.dtype if query.dtype == torch.float64 else torch.float32
    query, key, mask = query[None, None].to(wide), key[None, None].to(wide), formula.mask
    n_keys, is_blind = key.shape[2], lse < torch.finfo(lse.dtype).min / 2  # who sees nothing gives all keys the same
    lse = lse.nan_to_num(nan=float("inf"))  # a row without weights
    largest = torch.full(shape, float("-inf"), dtype=wide, device=query.device)
    n_rows = cell[0] * max(1, _CELLS // (cell[0] * (columns[1] - columns[0])))
    for first in range(rows[0], rows[1], n_rows):
        band = slice(first, min(first + n_rows, rows[1]))
        begin, end = (0, n_keys) if mask is None else mask.extent(band)
        skipped = max(0, begin - columns[0]) // cell[1]
        seen = slice(columns[0] + skipped * cell[1], min(end, columns[1]))
        if seen.start >= seen.stop:
            continue
        tile = scores(query, key, formula, rows=band, columns=seen)[0, 0].sub_(lse[band, None])
        tile.masked_fill_(is_blind[band, None], -math.log(n_keys))
        extra = (-tile.shape[1] % cell[1], -tile.shape[0] % cell[0])
        tile = pad(tile, (0, extra[0]), value=float("-inf")).unflatten(1, (-1, cell[1])).amax(-1)
        tile = pad(tile, (0, 0, 0, extra[1]), value=float("-inf")).unflatten(0, (-1, cell[0])).amax(1)
        top = (first - rows[0]) // cell[0]
        largest[top : top + len(tile), skipped : skipped + tile.shape[1]] = tile
    return largest.exp_()
