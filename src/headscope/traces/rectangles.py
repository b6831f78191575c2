"""Any rectangle of a head's weights, scores or contributions, over the tokens as a trace reads them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from headscope.attention.summaries import cell
from headscope.choices import What
from headscope.errors import InputError, NotRecordedError, UnknownHeadError
from headscope.sites import Head, Site, describe, place_of
from headscope.traces.tokens import TokenChoice

if TYPE_CHECKING:
    from headscope.traces.trace import Trace

Where = str | Head | Site | Sequence["str | Head | Site"]
Rows = int | slice | range | None


def mean_rectangle(trace: "Trace", what: What, place: Where, rows: Rows, columns: Rows) -> Tensor:
    """A rectangle of a head's weights, scores or contributions; of several heads, the mean."""
    places: Sequence[str | Head | Site] = [place] if isinstance(place, str | Head | Site) else _several(place)
    if not places:
        raise UnknownHeadError(f"no head was named: {describe(trace.heads)}.")
    heads = list(dict.fromkeys(head for place in places for head in trace.find(place)))
    shapes = {(trace.layers[head.site].n_queries, trace.layers[head.site].n_keys) for head in heads}
    if len(shapes) > 1:
        raise InputError(f"patterns of different shapes have no mean: {', '.join(map(str, sorted(shapes)))}.")
    total = None
    for head in heads:
        cells = rectangle(trace, what, head, rows, columns)
        total = cells if total is None else total + cells
    assert total is not None
    return total / len(heads) if len(heads) > 1 else total


def span_weights(trace: "Trace", place: Where, spans: Sequence[TokenChoice]) -> Tensor:
    """What each query gives to chosen keys, summed [query, span]: of a head, or the mean over several."""
    if trace.readings:
        raise InputError("spans are of the model's own tokens: ask the trace before words(), sentences() or without().")
    if isinstance(spans, str) or not isinstance(spans, Sequence) or not spans:
        raise InputError(f"give a list of spans, such as [0, 'nurse', range(2, 5)], not {spans!r:.60}.")
    places: Sequence[str | Head | Site] = [place] if isinstance(place, str | Head | Site) else _several(place)
    heads = list(dict.fromkeys(head for place in places for head in trace.find(place)))
    if not heads:
        raise UnknownHeadError(f"no head was named: {describe(trace.heads)}.")
    if len({(trace.layers[head.site].n_queries, trace.layers[head.site].key_stack) for head in heads}) > 1:
        raise InputError("heads of different stacks have no mean: name those of one.")
    total = None
    for head in heads:
        layer, tokens = trace.layers[head.site], trace.key_tokens(head)
        positions = [tokens.positions(span) for span in spans]
        weights = layer.span_weights(positions, slice(head.index, head.index + 1))[0]
        total = weights if total is None else total + weights
    assert total is not None
    return total / len(heads)


def _several(places: Sequence[str | Head | Site]) -> Sequence[str | Head | Site]:
    """Several places; what is no list of them is refused as a place that is none."""
    return places if isinstance(places, list | tuple) else [place_of(places)]  # type: ignore[list-item]


def rectangle(trace: "Trace", what: What, head: Head, rows: Rows, columns: Rows) -> Tensor:
    """A rectangle of one head [query, key], its tokens as the trace reads them."""
    layer = trace.layers[head.site]
    n_rows, n_columns = layer.n_queries, layer.n_keys
    by_row, by_column = trace.readings.get(layer.site.stack), trace.readings.get(layer.key_stack)
    if by_row is None and by_column is None:
        return _raw(trace, what, head, _slice(rows, n_rows, "rows"), _slice(columns, n_columns, "columns"))
    for stack, length in ((layer.site.stack, n_rows), (layer.key_stack, n_columns)):
        if len(trace.tokens[stack]) != length:
            raise InputError(
                f"{head} sees {length} places, not the {len(trace.tokens[stack])} tokens of {stack}: "
                "read it without words(), sentences() or without()."
            )
    cells = _raw(trace, what, head, slice(None), slice(None))
    if by_column is not None:
        # Rows are divided by the weight that is left, so that they sum to 1; contributions by the same number.
        weights = _raw(trace, "pattern", head, slice(None), slice(None)) if what == "contribution" else cells
        cells = by_column.columns(cells)
        if by_column.renormalise:
            cells = cells / by_column.columns(weights).sum(-1, keepdim=True).clamp_min(1e-30)
    if by_row is not None:
        cells = by_row.rows(cells)
    return cells[_slice(rows, cells.shape[0], "rows"), _slice(columns, cells.shape[1], "columns")]


def _raw(trace: "Trace", what: What, head: Head, rows: slice, columns: slice) -> Tensor:
    """A rectangle of one head over the model's own tokens."""
    layer = trace.layers[head.site]
    if what == "scores":
        return layer.scores(head.index, rows, columns)
    weights = layer.pattern(head.index, rows, columns)
    if what == "pattern":
        return weights
    if layer.value_norms is None:
        reason = layer.no_norms or "the trace holds no values; run with record='heads'"
        raise NotRecordedError(f"no contributions for {head}: {reason}.")
    return weights * layer.value_norms[head.index, columns].float()


def thumbnail(trace: "Trace", head: Head, size: int) -> Tensor:
    """The pattern of one head, max-pooled to at most `size` cells a side."""
    layer = trace.layers[head.site]
    if trace.readings:
        return _pool(rectangle(trace, "pattern", head, None, None), size)
    summary_map = layer.summary.map
    step = max(1, -(-layer.n_queries // size))
    if summary_map is not None and step == cell(layer.n_queries) and -(-layer.n_keys // size) == cell(layer.n_keys):
        return summary_map[head.index]
    if head.index in layer.stored or layer.query is not None:
        spans = ((0, layer.n_queries), (0, layer.n_keys))
        return layer.pooled(head.index, *spans, (step, -(-layer.n_keys // size))).cpu()
    if summary_map is None:
        raise NotRecordedError(f"this trace holds only row figures of {head}. Run with record='summary' for its map.")
    return _pool(summary_map[head.index], size)


def _slice(places: Rows, length: int, name: str) -> slice:
    if places is None:
        return slice(None)
    if isinstance(places, int | np.integer) and not isinstance(places, bool):
        if not -length <= places < length:
            raise InputError(f"{name}={places} is outside 0 to {length - 1}.")
        return slice(int(places) % length, int(places) % length + 1)
    if isinstance(places, range) and places.step > 0:
        if len(places) and not 0 <= places[0] <= places[-1] < length:
            raise InputError(f"{name}={places!r} is outside 0 to {length - 1}.")
        places = slice(places.start, places.stop, places.step)
    if not isinstance(places, slice) or (places.step or 1) < 1:
        raise InputError(f"{name} must be an index, a slice or a range that counts upwards, got {places!r}.")
    return places


def _pool(pattern: Tensor, size: int) -> Tensor:
    return _pool_by(pattern, -(-pattern.shape[0] // size), -(-pattern.shape[1] // size))


def _pool_by(pattern: Tensor, step: int, key_step: int) -> Tensor:
    return torch.nn.functional.max_pool2d(pattern[None, None], (step, key_step), ceil_mode=True)[0, 0]
