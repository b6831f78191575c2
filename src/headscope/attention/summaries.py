"""What is kept of a pattern when the pattern itself is too large to keep.

Computed tile by tile: nothing as large as query × key is ever held.
"""

import math
from dataclasses import dataclass, fields

import torch
from torch import Tensor

N_TOP = 8
# The map of a head has at most this many cells a side.
MAP_SIZE = 96


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
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: tensor for name, tensor in named.items() if tensor is not None}

    def to(self, device) -> "Summary":
        """The summary on another device."""
        return Summary(**{name: tensor.to(device) for name, tensor in self.tensors().items()})


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
        if not rows_only:
            self.figures["top_keys"] = empty(*rows, N_TOP, dtype=torch.int32, value=-1)
            self.figures["top_weights"] = empty(*rows, N_TOP)
            self.figures["received"] = empty(n_heads, n_keys)
            cells = (math.ceil(n_queries / self.row_cell), math.ceil(n_keys / self.key_cell))
            self.figures["map"] = empty(n_heads, *cells)

    def add(
        self,
        pattern: Tensor,
        found: Tensor,
        *,
        heads: slice = slice(None),
        rows: slice = slice(None),
        columns: slice = slice(None),
        query_offset: int = 0,
        is_causal: bool = False,
        lse: Tensor | None = None,
    ) -> None:
        """Take in a tile of the pattern and its scores [head, row, column].

        The scores are used up. Keys outside `columns` must have no weight. `rows` begins, and `columns` begins and
        ends, on a cell of the map; `columns` begin at the first key or past the eighth. `lse` is given when the pattern
        is no longer the softmax of the scores (it was edited, or has sinks).
        """
        pattern = pattern.float()
        first_row, last_row, _ = rows.indices(self.n_queries)
        first_key, last_key, _ = columns.indices(self.n_keys)
        chunk_max = _chunk_max(pattern, self.key_cell)
        n_top = 1 if self.rows_only else min(self.n_top, last_key - first_key)
        weights, keys = _top(pattern, chunk_max, self.key_cell, n_top)
        largest, where = weights[..., 0], keys[..., :1]
        total = None
        if lse is None:
            lse = found.gather(-1, where)[..., 0].float() - largest.log()
            entropy = lse - found.mul_(pattern).sum(-1)
            # A query that may see nothing gives all keys the same; its scores are too low to reckon with.
            entropy = torch.where(lse > torch.finfo(lse.dtype).min / 2, entropy, -largest.log())
        else:
            entropy = -torch.special.xlogy(pattern, pattern).sum(-1)
            total = pattern.sum(-1).clamp_min(torch.finfo(pattern.dtype).tiny)
        query = torch.arange(first_row, last_row, device=pattern.device, dtype=pattern.dtype) + query_offset
        key = torch.arange(first_key, last_key, device=pattern.device, dtype=pattern.dtype)
        if is_causal and total is None:
            # No key is ahead of its query, so |query − key| needs no absolute value; counted from the last query of
            # the tile, because small numbers keep their digits.
            distance = pattern @ (query[-1] - key) - (query[-1] - query)
        else:
            distance = torch.linalg.vecdot(pattern, (query[:, None] - key).abs().expand_as(pattern))
            distance = distance if total is None else distance / total
        self._put("lse", lse, heads, rows)
        self._put("entropy", entropy.clamp_min(0.0), heads, rows)
        self._put("max", largest, heads, rows)
        self._put("distance", distance.clamp_min(0.0), heads, rows)
        self._put("argmax", where[..., 0] + first_key, heads, rows)
        if self.rows_only:
            return
        # Keys that weigh nothing tie: those outside the tile count too, the lowest first.
        if n_top < self.n_top:
            more = torch.arange(n_top, self.n_top, device=pattern.device).expand(*keys.shape[:-1], -1)
            weights, keys = torch.nn.functional.pad(weights, (0, self.n_top - n_top)), torch.cat([keys, more], -1)
        if first_key:
            is_nothing = weights == 0
            keys = torch.where(is_nothing, is_nothing.cumsum(-1) - 1, keys + first_key)
        self.figures["top_weights"][heads, rows, : self.n_top] = weights
        self.figures["top_keys"][heads, rows, : self.n_top] = keys.int()
        self.figures["received"][heads, columns] += pattern.sum(-2) / self.n_queries
        pooled = _chunk_max(chunk_max.transpose(-1, -2), self.row_cell).transpose(-1, -2)
        row_cells = slice(first_row // self.row_cell, first_row // self.row_cell + pooled.shape[-2])
        key_cells = slice(first_key // self.key_cell, first_key // self.key_cell + pooled.shape[-1])
        self.figures["map"][heads, row_cells, key_cells] = pooled

    def summary(self) -> Summary:
        """What was gathered."""
        return Summary(**self.figures)

    def _put(self, name: str, values: Tensor, heads: slice, rows: slice) -> None:
        self.figures[name][heads, rows] = values.to(self.figures[name].dtype)


def summarise(pattern: Tensor, found: Tensor, *, rows_only: bool = False, lse: Tensor | None = None) -> Summary:
    """The summary of a whole pattern [head, query, key] that is at hand, with its scores."""
    whole = Summariser(*pattern.shape, rows_only=rows_only, device=pattern.device)
    whole.add(pattern, found.clone(), lse=lse)
    return whole.summary()


def _chunk_max(values: Tensor, size: int) -> Tensor:
    """The largest of every `size` values along the last axis; the last chunk may be short."""
    return values if size == 1 else torch.nn.functional.max_pool1d(values, size, ceil_mode=True)


def _top(pattern: Tensor, chunk_max: Tensor, size: int, n_top: int) -> tuple[Tensor, Tensor]:
    """The `n_top` largest weights of each row and their keys, ties to the lower key.

    Narrowed down in steps, each over far fewer numbers than a row has: one chunk more than we want weights, those with
    the largest maxima; as many of their columns; the weights where they cross. What a step left out could belong to the
    top only if it is as large as the last one in: a tie, and rows with ties are looked at whole.
    """
    n_best = n_top + 1
    candidates, keys, left_out = pattern, None, []
    if size > 1 and chunk_max.shape[-1] > n_best:
        largest, chunks = chunk_max.topk(n_best, dim=-1, sorted=False)
        left_out.append(largest.amin(-1))
        candidates, keys = _chunks_of(pattern, chunks, size), chunks[..., None] * size
        if size > 2 * n_best:
            largest, columns = candidates.amax(-2).topk(n_best, dim=-1, sorted=False)
            left_out.append(largest.amin(-1))
            columns = columns[..., None, :].expand(*columns.shape[:-1], n_best, n_best)
            candidates, keys = candidates.gather(-1, columns), keys + columns
        else:
            keys = keys + torch.arange(size, device=pattern.device)
        candidates, keys = candidates.flatten(-2), keys.flatten(-2)
    # One more than we want, in order: equal neighbours, the last one included, are ties.
    weights, places = candidates.topk(min(n_best, candidates.shape[-1]), dim=-1)
    is_tied = (weights[..., 1:] == weights[..., :-1]).any(-1)
    for bound in left_out:
        is_tied |= bound >= weights[..., n_top - 1]
    weights, places = weights[..., :n_top].contiguous(), places[..., :n_top]
    keys = places.contiguous() if keys is None else keys.gather(-1, places)
    if bool(is_tied.any()):
        weights[is_tied], keys[is_tied] = _top_of_ties(pattern[is_tied], n_top)
    return weights, keys


def _top_of_ties(rows: Tensor, n_top: int) -> tuple[Tensor, Tensor]:
    """The same for whole rows [row, key] that hold equal weights.

    Weights are not negative, so their bits order as they do: with the key in the low half of an integer, no two are
    alike and the lower key is the larger number.
    """
    last = rows.shape[-1] - 1
    place = last - torch.arange(last + 1, device=rows.device)
    joined = ((rows.contiguous().view(torch.int32).long() << 32) + place).topk(n_top, dim=-1).values
    return (joined >> 32).int().view(torch.float32), last - (joined & 0xFFFFFFFF)


def _chunks_of(pattern: Tensor, chunks: Tensor, size: int) -> Tensor:
    """Some chunks of each row [head, row, chunk, size]; whole rows of memory at a time, which is fast to fetch."""
    missing = -pattern.shape[-1] % size
    padded = torch.nn.functional.pad(pattern, (0, missing), value=-1.0) if missing else pattern
    n_heads, n_rows, n_keys = padded.shape
    first = torch.arange(n_heads * n_rows, device=pattern.device).view(n_heads, n_rows, 1) * (n_keys // size)
    found = padded.reshape(-1, size).index_select(0, (first + chunks).flatten())
    return found.view(n_heads, n_rows, chunks.shape[-1], size)
