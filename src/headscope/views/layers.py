"""One attention layer for the page: whole where it is small enough, otherwise the strongest keys of each query."""

import math
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from headscope.choices import What
from headscope.errors import InputError, NotRecordedError, UnknownHeadError, UnknownTokenError
from headscope.sites import Head, parse
from headscope.traces import Difference, DifferenceLayer, LayerRecord, Trace
from headscope.traces.pattern_reading import Reading
from headscope.views.contract import LayerProps
from headscope.views.part_keys import PartKey
from headscope.views.weights import Weights, no_scores, no_weights
from headscope.views.wire import Coded, Part

# Cells (heads × queries × keys) up to which a layer travels whole, and up to which it does so in half floats.
DENSE_CELLS = 16 * 2**20
HALF_CELLS = 4 * 2**20
# Entries (heads × queries × ranks) of a layer that does not: beyond, fewer keys of each query are sent.
SPARSE_CELLS = 4 * 2**20
_LARGEST_HALF = 65504.0


def layer_part(trace: Trace, part_key: PartKey, *, as_bytes: bool = False) -> Part:
    """`layer/L3`: dense or sparse, whichever fits; `as_bytes` codes even a small one as bytes, to save room."""
    trace_as_read = read_trace(trace, part_key)
    if isinstance(trace_as_read, Difference):
        trace = trace_as_read
    layer = layer_of(trace, part_key.place)
    if part_key.what == "pattern" and isinstance(layer, DifferenceLayer):
        return difference_layer_part(trace_as_read, layer, part_key, as_bytes=as_bytes)
    if layer.summary.top_keys is None and no_weights(layer):
        raise NotRecordedError(f"{layer.site} has no weights to show: {no_weights(layer)}.")
    if not trace_as_read.readings and _is_sparse(layer, part_key.what):
        return sparse_part(trace, part_key)
    weights = Weights(trace_as_read, layer, part_key.what)
    if weights.n_heads * weights.n_queries * weights.n_keys > DENSE_CELLS:
        return _sparse_as_read(weights, part_key)
    arrays: dict[str, np.ndarray | Coded] = {"weights": _dense(weights, as_bytes)}
    if part_key.what == "pattern" and not trace_as_read.readings:
        arrays |= _norms(layer)
    return Part("layer", _props(trace_as_read, layer, part_key, "dense", weights.n_keys), arrays)


def sparse_part(trace: Trace, part_key: PartKey) -> Part:
    """The strongest keys of each query, as the trace's summary holds them: at hand at any length."""
    layer = layer_of(trace, part_key.place)
    if isinstance(layer, DifferenceLayer):
        return _sparse_as_read(Weights(trace, layer), part_key)
    keys, weights = layer.summary.top_keys, layer.summary.top_weights
    if keys is None or weights is None:
        raise NotRecordedError(f"{layer.site} has no weights to show: {no_weights(layer)}.")
    n_kept = min(layer.n_keys, keys.shape[-1], max(1, SPARSE_CELLS // (layer.n_heads * layer.n_queries)))
    keys, weights = keys[..., :n_kept], weights[..., :n_kept].nan_to_num(nan=0.0)
    arrays: dict[str, np.ndarray | Coded] = {"keys": keys.int().cpu().numpy(), "weights": _half(weights)}
    if part_key.what == "pattern":
        arrays |= _norms(layer)
    elif part_key.what == "contribution":
        if layer.value_norms is None:
            Weights(trace, layer, part_key.what)  # says why
        assert layer.value_norms is not None
        norms = layer.value_norms.float()[:, None].expand(-1, layer.n_queries, -1)
        arrays["weights"] = _half(weights * norms.gather(-1, keys.long().clamp_min(0)))
    else:
        if reason := no_scores(layer):
            raise NotRecordedError(f"{layer.site} has no scores to show: {reason}.")
        scores = weights.log() + layer.summary.lse[..., None]
        scores[list(layer.stored)] = float("nan")  # edited: their weights no longer follow from scores
        arrays["weights"] = _half(scores)
    return Part("layer", _props(trace, layer, part_key, "sparse", n_kept), arrays)


def difference_layer_part(trace_as_read: Trace, layer: LayerRecord, part_key: PartKey, *, as_bytes: bool) -> Part:
    """A layer of a difference: whole, or of each query the keys with the largest differences."""
    weights = Weights(trace_as_read, layer)
    shape = (weights.n_heads, weights.n_queries, weights.n_keys)
    if math.prod(shape) > DENSE_CELLS:
        return _sparse_as_read(weights, part_key)
    if math.prod(shape) <= HALF_CELLS and not as_bytes:
        coded: np.ndarray | Coded = _halves(weights, shape)
    else:
        values = np.zeros(shape, np.uint8)

        def code(heads: slice, rows: slice, columns: slice, tile: Tensor) -> None:
            values[heads, rows, columns] = Coded.signed(tile.cpu().numpy()).bytes

        values.fill(128)
        weights.tiles(code)
        coded = Coded(values, is_signed=True)
    return Part("layer", _props(trace_as_read, layer, part_key, "dense", weights.n_keys), {"weights": coded})


def layer_of(trace: Trace, place: str) -> LayerRecord:
    """The layer that a key names."""
    address = parse(place)
    if isinstance(address, Head):
        raise UnknownHeadError(f"{place} is a head: ask for its layer, {address.site}.")
    return trace.layer(address)


def read_trace(trace: Trace, part_key: PartKey) -> Trace:
    """The trace with its tokens read as the key says: by words or sentences, some left out."""
    if isinstance(trace, Difference) and trace.comparison is not None:
        for stack in trace.tokens:
            _hidden(trace, part_key, stack)
        is_read = bool(part_key.hide or part_key.by != "tokens")
        return trace.comparison.difference(by=part_key.by, hide=part_key.hide) if is_read else trace
    if trace.readings:
        raise InputError("give the trace itself: views read it by words, or without some tokens, as they are asked to.")
    if not part_key.hide and part_key.by == "tokens":
        return trace
    readings = {}
    for stack, tokens in trace.tokens.items():
        hidden = _hidden(trace, part_key, stack)
        readings[stack] = Reading.plain(tokens).without(hidden, True) if hidden else Reading.plain(tokens)
    trace_as_read = replace(trace, readings=readings)
    return (
        trace_as_read.words()
        if part_key.by == "words"
        else trace_as_read.sentences()
        if part_key.by == "sentences"
        else trace_as_read
    )


def _hidden(trace: Trace, part_key: PartKey, stack: str) -> list[int]:
    for named, place in part_key.hide:
        if named is None and len(trace.tokens) > 1:
            stacks = ", ".join(trace.tokens)
            raise UnknownTokenError(f"hide={place} could be a token of {stacks}: say which, as in {stack}:{place}.")
        if named is not None and named not in trace.tokens:
            raise UnknownTokenError(f"there is no stack {named[:60]!r}: there are {', '.join(trace.tokens)}.")
        length = len(trace.tokens[named or stack])
        if place >= length:
            raise UnknownTokenError(f"there is no token {place} to hide: the input has {length}, 0 to {length - 1}.")
    return sorted({place for named, place in part_key.hide if named in (None, stack)})


def _is_sparse(layer: LayerRecord, what: What) -> bool:
    cells = layer.n_heads * layer.n_queries * layer.n_keys
    return cells > DENSE_CELLS or bool(no_weights(layer) and what != "scores")


def _dense(weights: Weights, as_bytes: bool) -> np.ndarray | Coded:
    shape = (weights.n_heads, weights.n_queries, weights.n_keys)
    if weights.what != "pattern" or (math.prod(shape) <= HALF_CELLS and not as_bytes):
        return _halves(weights, shape)
    bytes_ = np.zeros(shape, np.uint8)
    into = torch.from_numpy(bytes_)

    def code(heads: slice, rows: slice, columns: slice, tile: Tensor) -> None:
        into[heads, rows, columns] = tile.nan_to_num_(nan=0.0).sqrt_().mul_(255).round_().clamp_max_(255).cpu()

    weights.tiles(code)
    return Coded(bytes_)


def _halves(weights: Weights, shape: tuple[int, int, int]) -> np.ndarray:
    """Half floats; whole ones if some number is too large for those."""
    is_scores = weights.what == "scores"
    halves = torch.full(shape, float("-inf") if is_scores else 0.0, dtype=torch.float16)

    def copy_tile(heads: slice, rows: slice, columns: slice, tile: Tensor) -> None:
        halves[heads, rows, columns] = (tile if is_scores else tile.nan_to_num_(nan=0.0)).half().cpu()

    weights.tiles(copy_tile)
    if weights.what != "pattern" and bool((halves == float("inf")).any()):
        return weights.whole().cpu().numpy()
    return halves.numpy()


def _sparse_as_read(weights: Weights, part_key: PartKey) -> Part:
    """The strongest keys of each query where the summary does not have them, because tokens are read otherwise."""
    n_kept = min(weights.n_keys, 8, max(1, SPARSE_CELLS // (weights.n_heads * weights.n_queries)))
    keys = torch.zeros(weights.n_heads, weights.n_queries, n_kept, dtype=torch.int32)
    strongest = torch.zeros(keys.shape)

    def choose(heads: slice, rows: slice, columns: slice, tile: Tensor) -> None:
        tile = tile.nan_to_num_(nan=0.0)
        best = tile.abs().topk(min(n_kept, tile.shape[-1]), dim=-1).indices  # a difference may be negative
        strongest[heads, rows, : best.shape[-1]] = tile.gather(-1, best).cpu()
        keys[heads, rows, : best.shape[-1]] = (best + columns.start).int().cpu()

    weights.tiles(choose)
    arrays = {"keys": keys.numpy(), "weights": _half(strongest)}
    return Part("layer", _props(weights.trace, weights.layer, part_key, "sparse", n_kept), arrays)


def _props(trace_as_read: Trace, layer: LayerRecord, part_key: PartKey, form, n_kept: int) -> LayerProps:
    def names(tokens, stack: str) -> list[str]:
        is_own = not trace_as_read.readings and len(trace_as_read.tokens[stack]) == len(tokens)
        return [] if is_own else plain_texts(tokens)

    return LayerProps(
        site=str(layer.site),
        what=part_key.what,
        form=form,
        by=part_key.by,
        n_kept=n_kept,
        queries=names(trace_as_read.query_tokens(layer.site), layer.site.stack),
        keys=names(trace_as_read.key_tokens(layer.site), layer.key_stack),
    )


def plain_texts(tokens) -> list[str]:
    """The texts of tokens, with nothing that UTF-8 cannot hold."""
    return [text.encode("utf-8", "replace").decode() for text in tokens.texts]


def _norms(layer: LayerRecord) -> dict[str, np.ndarray]:
    return {} if layer.value_norms is None else {"norms": layer.value_norms.float().cpu().numpy()}


def _half(values: Tensor) -> np.ndarray:
    """As half floats, unless one is too large for that."""
    finite = values[values.isfinite()] if bool((~values.isfinite()).any()) else values
    fits = not finite.numel() or float(finite.abs().max()) <= _LARGEST_HALF
    return (values.half() if fits else values.float()).cpu().numpy()
