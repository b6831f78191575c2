"""Exact numbers: one token of a layer with all others, or a rectangle of one head's pattern."""

import numpy as np
import torch
from torch import Tensor

from headscope.errors import InputError, UnknownHeadError, UnknownTokenError
from headscope.sites import Head, parse
from headscope.traces import DifferenceLayer, Trace
from headscope.views.contract import RowProps, WindowProps
from headscope.views.differences import signed_pool
from headscope.views.layers import layer_of, read_trace
from headscope.views.part_keys import PartKey
from headscope.views.weights import Weights, no_scores
from headscope.views.wire import Part


def row_part(trace: Trace, part_key: PartKey) -> Part:
    """`row/L3?query=5`: from one query to all keys; `row/L3?key=5`: to one key from all queries."""
    trace_as_read = read_trace(trace, part_key)
    layer = layer_of(trace_as_read, part_key.place)
    weights = Weights(trace_as_read, layer, part_key.what)
    length = weights.n_queries if part_key.side == "query" else weights.n_keys
    if part_key.index >= length:
        raise UnknownTokenError(
            f"there is no {part_key.side} {part_key.index} in {layer.site}: it has {length} of them."
        )
    arrays = {"weights": _line(weights, part_key)}
    if part_key.what == "pattern" and not trace_as_read.readings and not no_scores(layer):
        arrays["scores"] = _line(Weights(trace_as_read, layer, "scores"), part_key)
    return Part("row", RowProps(str(layer.site), part_key.side, part_key.index), arrays)


def window_part(trace: Trace, part_key: PartKey) -> Part:
    """`window/L3H2`: a rectangle of one head, max-pooled to at most `size` cells a side so that diagonals survive."""
    head = parse(part_key.place)
    if not isinstance(head, Head):
        raise UnknownHeadError(f"a window shows one head: say which, as in {part_key.place}H0.")
    trace_as_read = read_trace(trace, part_key)
    weights = Weights(trace_as_read, trace_as_read.layer(head), part_key.what)
    rows = _within("rows", part_key.rows, weights.n_queries)
    columns = _within("columns", part_key.columns, weights.n_keys)
    cell = (-(-(rows[1] - rows[0]) // part_key.size), -(-(columns[1] - columns[0]) // part_key.size))
    pooled_weights = pool(weights, head.index, rows, columns, cell)
    return Part("window", WindowProps(str(head), rows, columns, cell), {"weights": pooled_weights})


def _line(weights: Weights, part_key: PartKey) -> np.ndarray:
    if part_key.side == "query":
        values = weights.whole(rows=slice(part_key.index, part_key.index + 1))[:, 0]
    else:
        values = weights.column(part_key.index)
    if weights.what == "scores":
        values = values.masked_fill(values == torch.finfo(values.dtype).min, float("-inf"))
    else:
        values = values.nan_to_num(nan=0.0)
    return values.float().cpu().numpy()


def _within(name: str, span: tuple[int, int] | None, length: int) -> tuple[int, int]:
    if span is None:
        return 0, length
    if span[1] > length:
        raise InputError(f"{name}={span[0]}:{span[1]} is outside 0:{length}.")
    return span


def pool(
    weights: Weights, index: int, rows: tuple[int, int], columns: tuple[int, int], cell: tuple[int, int]
) -> np.ndarray:
    """A rectangle of one head, the largest of every `cell` queries and keys; of a difference, of either sign."""
    if isinstance(weights.layer, DifferenceLayer):
        rectangle = weights.layer.patterns(slice(index, index + 1), slice(*rows), slice(*columns))
        return signed_pool(rectangle, cell)[0].cpu().numpy()
    if weights.what == "pattern" and weights.by_row is None and weights.by_column is None:
        if weights.layer.summary.max.device.type == "cpu":
            weights.refuse_too_many(rows[1] - rows[0])
        return weights.layer.pooled(index, rows, columns, cell).float().cpu().numpy()
    lowest = float("-inf") if weights.what == "scores" else 0.0
    shape = (-(-(rows[1] - rows[0]) // cell[0]), -(-(columns[1] - columns[0]) // cell[1]))
    strongest = torch.full(shape, lowest)
    n_columns = columns[1] - columns[0]

    def pool_tile(_: slice, band: slice, spanned: slice, tile: Tensor) -> None:
        wide = tile.new_full((tile.shape[1], n_columns), lowest)
        first, last = max(spanned.start, columns[0]), min(spanned.stop, columns[1])
        if first < last:
            here = tile[0, :, first - spanned.start : last - spanned.start]
            wide[:, first - columns[0] : last - columns[0]] = here.nan_to_num(nan=lowest, neginf=lowest)
        across = torch.nn.functional.max_pool1d(wide, cell[1], ceil_mode=True) if cell[1] > 1 else wide
        into = (torch.arange(band.start, band.stop) - rows[0]) // cell[0]
        into = into[:, None].expand(-1, shape[1])
        strongest.scatter_reduce_(0, into, across.float().cpu(), "amax")

    weights.tiles(pool_tile, heads=slice(index, index + 1), rows=slice(*rows))
    return strongest.numpy()
