"""The weights of all heads of one layer, as its tokens are read, exactly and a tile at a time."""

import threading
from collections.abc import Callable
from dataclasses import replace
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from headscope.attention import log_denominator, scores, softmax
from headscope.attention.buffers import Workspace
from headscope.attention.threads import run_all, shares
from headscope.choices import What
from headscope.errors import InputError, NotRecordedError
from headscope.traces import DifferenceLayer, LayerRecord, Trace
from headscope.traces.pattern_reading import Reading

# A tile of about so many cells stays in the processor's cache between its passes.
TILE_CELLS = 2**20
TILE_ROWS = 256
# What one part may cost: 32,768² cells, some seconds.
MOST_CELLS = 2**30

Use = Callable[[slice, slice, slice, Tensor], None]

# For layers read without some tokens: the weight that is left of each row, which brings it back to one. Whoever hovers
# asks for one column after another, and each needs it of all rows; it is found once, when the layer is drawn.
_remaining: "WeakKeyDictionary[LayerRecord, dict[tuple, Tensor]]" = WeakKeyDictionary()
_N_REMAINING = 4
# For models in half precision: the log of each row's softmax denominator.
_lse: "WeakKeyDictionary[LayerRecord, Tensor]" = WeakKeyDictionary()


class Weights:
    """Weights, contributions or scores [head, query, key] of one layer; queries and keys are counted as read."""

    def __init__(self, trace: Trace, layer: LayerRecord, what: What = "pattern"):
        self.trace, self.layer = trace, layer
        self.what: What = what
        self.queries, self.keys = trace.query_tokens(layer.site), trace.key_tokens(layer.site)
        self.by_row: Reading | None = trace.readings.get(layer.site.stack)
        self.by_column: Reading | None = trace.readings.get(layer.key_stack)
        self._check()
        self.n_heads = layer.n_heads
        self.n_queries = layer.n_queries if self.by_row is None else len(self.by_row.groups)
        self.n_keys = layer.n_keys if self.by_column is None else len(self.by_column.groups)

    def tiles(self, use: Use, *, heads: slice = slice(None), rows: slice = slice(None)) -> None:
        """Call `use(heads, rows, columns, tile)` for tiles [head, row, column] that make up the rows.

        What lies outside `columns` weighs nothing. The tile is memory to use; calls come from several threads, each
        with heads of its own.
        """
        first, last, _ = heads.indices(self.n_heads)
        start, stop, _ = rows.indices(self.n_queries)
        self.refuse_too_many((last - first) * (stop - start))

        def work(share: slice, interrupted: threading.Event) -> None:
            size = max(1, TILE_CELLS // (TILE_ROWS * self.layer.n_keys))
            for begin in range(first + share.start, first + share.stop, size):
                block_heads = slice(begin, min(begin + size, first + share.stop))
                block = _Block(self.layer, self.what, block_heads)
                for band in self._bands(start, stop):
                    if interrupted.is_set():
                        return
                    tile, columns = self._read(block, band)
                    use(block_heads, band, columns, tile)

        run_all(work, shares(last - first, self.layer.summary.max.device))

    def whole(self, *, heads: slice = slice(None), rows: slice = slice(None)) -> Tensor:
        """The rows in one tensor [head, row, key]."""
        first, last, _ = heads.indices(self.n_heads)
        start, stop, _ = rows.indices(self.n_queries)
        rectangle = self._empty(last - first, stop - start, self.n_keys)

        def use(block_heads: slice, band: slice, columns: slice, tile: Tensor) -> None:
            rectangle[
                block_heads.start - first : block_heads.stop - first, band.start - start : band.stop - start, columns
            ] = tile

        self.tiles(use, heads=heads, rows=rows)
        return rectangle

    def column(self, index: int) -> Tensor:
        """What all queries give to one key [head, query]: from the column alone and each row's denominator."""
        if isinstance(self.layer, DifferenceLayer):
            return _column_of_difference(self.layer, index)
        places = (index,) if self.by_column is None else self.by_column.groups[index]
        column = sum(self._raw_column(place) for place in places)
        assert isinstance(column, Tensor)
        if self.by_column is not None and self.by_column.renormalise:
            column = column / self._left_of_rows()
        return column if self.by_row is None else self.by_row.rows(column[..., None])[..., 0]

    def refuse_too_many(self, n_rows: int) -> None:
        """Refuse to go through so many rows of one head, or heads × rows."""
        share = n_rows / max(1, self.n_queries)
        cells = share * self.layer.n_queries * self.layer.n_keys
        if cells > MOST_CELLS:
            raise InputError(
                f"{self.layer.site} has {cells:,.0f} weights to go through for this, more than {MOST_CELLS:,}: "
                "ask for fewer rows or one head, or read the input by tokens with none left out."
            )

    # Inside

    def _check(self) -> None:
        layer = self.layer
        reason = {
            "pattern": no_weights(layer),
            "contribution": no_weights(layer) or no_contributions(layer),
            "scores": no_scores(layer),
        }[self.what]
        if reason:
            raise NotRecordedError(f"{layer.site} has no {_NOUNS[self.what]} to show: {reason}.")
        if self.by_row is None and self.by_column is None:
            return
        if self.what == "scores":
            raise InputError("scores belong to the model's own tokens: read them by tokens, with none left out.")
        for stack, length in ((layer.site.stack, layer.n_queries), (layer.key_stack, layer.n_keys)):
            if len(self.trace.tokens[stack]) != length:
                raise InputError(
                    f"{layer.site} sees {length} places, not the {len(self.trace.tokens[stack])} tokens of {stack}: "
                    "read it by tokens, with none left out."
                )

    def _bands(self, start: int, stop: int):
        """Bands of rows as read, each of at most TILE_ROWS of the model's own, unless one alone has more."""
        begin = start
        while begin < stop:
            end, n_rows = begin, 0
            while end < stop and (end == begin or n_rows < TILE_ROWS):
                n_rows += 1 if self.by_row is None else len(self.by_row.groups[end])
                end += 1
            yield slice(begin, end)
            begin = end

    def _read(self, block: "_Block", band: slice) -> tuple[Tensor, slice]:
        if self.by_row is None and self.by_column is None:
            return block.tile(band)
        groups = [(place,) for place in range(band.start, band.stop)]
        groups = groups if self.by_row is None else self.by_row.groups[band]
        read_rows = self._empty(block.n_heads, len(groups), self.n_keys).zero_()
        member = {place: number for number, group in enumerate(groups) for place in group}
        sizes = torch.tensor([len(group) for group in groups], device=read_rows.device)
        first, last = min(member), max(member) + 1
        for begin in range(first, last, TILE_ROWS):
            rows = slice(begin, min(begin + TILE_ROWS, last))
            places = [place for place in range(rows.start, rows.stop) if place in member]
            if places:
                into = torch.tensor([member[place] for place in places], device=read_rows.device)
                read_rows.index_add_(1, into, self._read_keys(block, rows, places))
        return read_rows.div_(sizes[:, None]), slice(0, self.n_keys)

    def _read_keys(self, block: "_Block", rows: slice, places: list[int]) -> Tensor:
        """Some rows of the model's own, their keys as read [head, place, key]."""
        tile = _pad(*block.tile(rows), self.layer.n_keys)
        if self.by_column is None:
            return tile[:, [place - rows.start for place in places]]
        read_keys = self.by_column.columns(tile)
        if self.by_column.renormalise:
            if self.what == "contribution":
                tile = _pad(*block.tile(rows, "pattern"), self.layer.n_keys)
                remaining = self.by_column.columns(tile).sum(-1, keepdim=True)
            else:
                remaining = read_keys.sum(-1, keepdim=True)
            remaining = remaining.clamp_min_(1e-30)
            self._left_so_far()[block.heads, rows] = remaining[..., 0]
            read_keys /= remaining
        return read_keys if len(places) == tile.shape[1] else read_keys[:, [place - rows.start for place in places]]

    def _left_so_far(self) -> Tensor:
        """The weight that is left of each of the model's own rows [head, query], NaN where nobody has asked yet."""
        assert self.by_column is not None
        remaining_by_groups, groups = _remaining.setdefault(self.layer, {}), self.by_column.groups
        if groups not in remaining_by_groups:
            while len(remaining_by_groups) >= _N_REMAINING:
                remaining_by_groups.pop(next(iter(remaining_by_groups)))
            remaining_by_groups[groups] = self._empty(self.n_heads, self.layer.n_queries).fill_(float("nan"))
        return remaining_by_groups[groups]

    def _left_of_rows(self) -> Tensor:
        remaining = self._left_so_far()
        rows = torch.arange(self.layer.n_queries) if self.by_row is None else self.by_row.members[0]
        if bool(remaining[:, rows.to(remaining.device)].isnan().any()):
            Weights(self.trace, self.layer).tiles(lambda *_: None)
        return remaining.nan_to_num(nan=1.0)  # rows that are left out

    def _raw_column(self, place: int) -> Tensor:
        """One of the model's own keys [head, query]."""
        layer, column = self.layer, slice(place, place + 1)
        block = _Block(layer, "scores" if self.what == "scores" else "pattern", slice(0, layer.n_heads))
        values = block.scores(slice(None), column)[..., 0]
        if self.what == "scores":
            return values
        if len(layer.stored) < layer.n_heads:
            lse = self._denominators()
            is_blind = lse < torch.finfo(lse.dtype).min / 2  # it may see nothing, and gives all keys the same
            values = torch.where(is_blind, 1 / layer.n_keys, (values - lse).exp_())
        for index, pattern in layer.stored.items():
            values[index] = pattern[:, place]
        if self.what == "contribution":
            assert layer.value_norms is not None
            values *= layer.value_norms[:, place, None].float()
        return values

    def _denominators(self) -> Tensor:
        """The log of each row's softmax denominator [head, query]."""
        layer = self.layer
        assert layer.query is not None
        if layer.query.dtype in (torch.float32, torch.float64):
            return layer.summary.lse.to(layer.query.device)
        # A model in half precision rounded its scores before it summed them; patterns here are not rounded.
        if layer not in _lse:
            block = _Block(layer, "pattern", slice(0, layer.n_heads))
            bands = [slice(first, first + TILE_ROWS) for first in range(0, layer.n_queries, TILE_ROWS)]
            _lse[layer] = torch.cat([block.log_denominator(rows) for rows in bands], 1)
        return _lse[layer]

    def _empty(self, *shape: int) -> Tensor:
        value = float("-inf") if self.what == "scores" else 0.0
        return torch.full(shape, value, device=self.layer.summary.max.device)


class _Block:
    """Some heads of a layer, with what their tiles need at hand."""

    def __init__(self, layer: LayerRecord, what: What, heads: slice):
        self.layer, self.heads, self.n_heads = layer, heads, heads.stop - heads.start
        self.what: What = what
        self.stored = {index: pattern for index, pattern in layer.stored.items() if heads.start <= index < heads.stop}
        self.is_computed = len(self.stored) < self.n_heads or what == "scores"
        self.workspace = Workspace(layer.summary.max.device)
        if self.is_computed:
            assert layer.query is not None and layer.key is not None and layer.formula is not None
            n_groups = layer.key.shape[0]
            key_heads = [index * n_groups // layer.n_heads for index in range(heads.start, heads.stop)]
            self.query = layer.query[None, heads].float()
            self.key = layer.key[None, key_heads if n_groups < layer.n_heads else heads].float()
            self.formula = layer.formula.heads(heads)

    def tile(self, rows: slice, what: What | None = None) -> tuple[Tensor, slice]:
        """The rows [head, row, column], and the columns outside which nothing has weight."""
        what = what or self.what
        if what == "scores":
            values = self.scores(rows, slice(0, self.layer.n_keys))
            return values.masked_fill_(values == torch.finfo(values.dtype).min, float("-inf")), slice(
                0, values.shape[-1]
            )
        columns = slice(0, self.layer.n_keys)
        if self.is_computed:
            if self.formula.mask is not None and not self.stored:
                columns = slice(*self.formula.mask.extent(rows))
            columns = columns if columns.start < columns.stop else slice(0, 1)
            values = scores(
                self.query, self.key, self.formula, rows=rows, columns=columns, out=self._out(rows, columns)
            )
            pattern = softmax(values, self.formula.sinks, out=self._out(rows, columns, "pattern"))[0]
        else:
            device = self.layer.summary.max.device
            pattern = torch.empty(self.n_heads, rows.stop - rows.start, self.layer.n_keys, device=device)
        for index, stored in self.stored.items():
            pattern[index - self.heads.start] = stored[rows]
        if what == "contribution":
            assert self.layer.value_norms is not None
            pattern = pattern * self.layer.value_norms[self.heads, None, columns].float()
        return pattern, columns

    def scores(self, rows: slice, columns: slice) -> Tensor:
        """Scores [head, row, column], the lowest finite number where masked; NaN for heads that have none."""
        if not self.is_computed:
            return torch.full((self.n_heads, self.layer.n_queries, 1), float("nan"))
        out = None if rows == slice(None) else self._out(rows, columns)
        values = scores(self.query, self.key, self.formula, rows=rows, columns=columns, out=out)[0]
        for index in self.stored:
            values[index - self.heads.start] = float("nan")
        return values

    def log_denominator(self, rows: slice) -> Tensor:
        """The log of the softmax denominator [head, row]."""
        return log_denominator(scores(self.query, self.key, self.formula, rows=rows), self.formula.sinks)[0]

    def _out(self, rows: slice, columns: slice, name: str = "scores") -> Tensor:
        return self.workspace.take(name, (1, self.n_heads, rows.stop - rows.start, columns.stop - columns.start))


_NOUNS = {"pattern": "weights", "contribution": "contributions", "scores": "scores"}


def no_weights(layer: LayerRecord) -> str:
    """Why exact weights of a layer cannot be had; empty if they can."""
    if len(layer.stored) == layer.n_heads or (layer.query is not None and layer.formula is not None):
        return ""
    if layer.summary.top_keys is None:
        return (
            "only row figures were recorded; run again with record='heads' for weights, or 'summary' for the top keys"
        )
    return "a summary was recorded; run again with record='heads' for exact weights"


def no_scores(layer: LayerRecord) -> str:
    """Why the scores of a layer cannot be had; empty if those of some head can."""
    if layer.no_scores:
        return layer.no_scores
    if layer.query is None:
        return "a summary was recorded; run again with record='heads' for scores"
    if layer.formula is None:
        return "its scores have terms that were not recorded"
    return "every head of it was edited" if len(layer.stored) == layer.n_heads else ""


def no_contributions(layer: LayerRecord) -> str:
    """Why the contributions of a layer cannot be had; empty if they can."""
    if layer.value_norms is not None:
        return ""
    return layer.no_norms or "no values were recorded; run again with record='heads'"


def _column_of_difference(layer: DifferenceLayer, index: int) -> Tensor:
    assert layer.halves is not None
    columns = []
    for half in layer.halves:
        stacks = {half.layer.site.stack: half.by_row, half.layer.key_stack: half.by_column}
        readings = {stack: reading for stack, reading in stacks.items() if reading is not None}
        columns.append(Weights(replace(half.trace, readings=readings), half.layer).column(index))
    return columns[0] - columns[1].to(columns[0].device)


def _pad(tile: Tensor, columns: slice, n_keys: int) -> Tensor:
    missing = (columns.start, n_keys - columns.stop)
    return torch.nn.functional.pad(tile, missing) if any(missing) else tile
