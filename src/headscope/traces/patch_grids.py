"""Which patches of an image the positions of one layer stand for.

Most models attend over the same grid of patches in every layer, row by row. Hierarchical ones (Swin) have fewer in
later stages, and within a layer take them window by window, shifted: their records say which position is which patch.
"""

import math
from typing import TYPE_CHECKING

from headscope.traces.tokens import Token, Tokens

if TYPE_CHECKING:
    from headscope.traces.layer import LayerRecord

Grid = tuple[int, int]


def grid_of(tokens: Tokens, layer: "LayerRecord") -> Grid | None:
    """Rows and columns of the patches that a layer's keys are, or None where they are no grid."""
    if layer.grid is not None:
        return layer.grid
    if tokens.kind != "patches" or tokens.grid is None:
        return None
    return tokens.grid if layer.n_keys == len(tokens) else coarser(tokens.grid, layer.n_keys)


def coarser(grid: Grid, length: int) -> Grid | None:
    """The grid of a later stage, which has half the rows and columns of the one before."""
    rows, columns = grid
    while rows * columns > length and max(rows, columns) > 1:
        rows, columns = math.ceil(rows / 2), math.ceil(columns / 2)
    return (rows, columns) if rows * columns == length else None


def layer_tokens(tokens: Tokens, layer: "LayerRecord", length: int) -> Tokens:
    """The tokens of a layer by their own names: another order, or a coarser grid, than the input's."""
    if layer.places is None and len(tokens) == length:
        return tokens
    grid = grid_of(tokens, layer)
    if grid is None:
        return Tokens.numbered(length, tokens.kind)
    is_ordered = layer.places is None
    places = range(length) if layer.places is None else layer.places.tolist()
    return Tokens(tuple(_patch(place, grid[1]) for place in places), "patches", grid if is_ordered else None)


def _patch(place: int, columns: int) -> Token:
    if place < 0:
        return Token("[PAD]", special=True)
    return Token(f"{place // columns},{place % columns}", word=place)
