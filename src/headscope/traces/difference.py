"""One run minus another, as a trace: signed weights on the tokens they share, computed where they are looked at."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor

from headscope.attention import Summary
from headscope.errors import NotRecordedError
from headscope.traces.layer import LayerRecord
from headscope.traces.pattern_reading import Reading
from headscope.traces.trace import Trace

if TYPE_CHECKING:
    from headscope.traces.comparison import Comparison

_BAND = 256
_NO_SCORES = "scores are known up to a number of each row, so those of two runs cannot be subtracted"
_NO_NORMS = "a difference is of attention weights"

Sides = tuple[Reading | None, Reading | None]


@dataclass(frozen=True, eq=False)
class Difference(Trace):
    """The first run minus the second: a trace whose patterns have a sign, and whose tokens are the aligned ones.

    Patterns are computed when they are asked for, rectangle by rectangle, and never held.
    """

    comparison: "Comparison | None" = None

    def save(self, folder: Any) -> Any:
        """Refused: the two runs are what can be kept."""
        raise NotRecordedError("a difference is computed, not recorded: save the two traces, and compare them again.")


@dataclass(frozen=True, eq=False)
class Half:
    """One of the two runs in one layer: its record, and how its queries and keys are read (None: as they are)."""

    layer: LayerRecord
    trace: Trace
    by_row: Reading | None
    by_column: Reading | None

    @property
    def shape(self) -> tuple[int, int]:
        """Queries and keys, as read."""
        return (
            self.layer.n_queries if self.by_row is None else len(self.by_row.groups),
            self.layer.n_keys if self.by_column is None else len(self.by_column.groups),
        )

    def patterns(self, heads: slice, rows: slice) -> Tensor:
        """Some rows of some heads, as read [head, row, key]."""
        if self.by_row is None:
            return self._columns(self.layer.patterns(heads, rows).float())
        groups = self.by_row.groups[rows]
        if all(len(group) == 1 for group in groups):
            places = [group[0] for group in groups]
            tile = self.layer.patterns(heads, slice(places[0], places[-1] + 1)).float()
            is_all = len(places) == tile.shape[1]
            return self._columns(tile if is_all else tile[:, [place - places[0] for place in places]])
        first = min(place for group in groups for place in group)
        last = max(place for group in groups for place in group) + 1
        columns = self._columns(self.layer.patterns(heads, slice(first, last)).float())
        places = torch.tensor([place - first for group in groups for place in group], device=columns.device)
        into = torch.tensor([number for number, group in enumerate(groups) for _ in group], device=columns.device)
        sizes = torch.tensor([len(group) for group in groups], device=columns.device)
        sums = columns.new_zeros(columns.shape[0], len(groups), columns.shape[2])
        return sums.index_add_(1, into, columns[:, places]).div_(sizes[:, None])

    def places(self, of: Literal["query", "key", "value", "mixed"]) -> list[int]:
        """The aligned positions of queries or keys in this run."""
        reading = self.by_column if of in ("key", "value") else self.by_row
        length = self.layer.n_keys if of in ("key", "value") else self.layer.n_queries
        return list(range(length)) if reading is None else [group[0] for group in reading.groups]

    def vectors(self, name: Literal["query", "key", "value", "mixed"], index: int) -> Tensor:
        """The query, key, value or mixed vectors of one head, of the aligned tokens [token, dim]."""
        vectors = self.layer.tensor(name, index)
        return vectors[torch.tensor(self.places(name), device=vectors.device)]

    @property
    def has_groups(self) -> bool:
        """Whether several tokens are read as one."""
        readings = [reading for reading in (self.by_row, self.by_column) if reading is not None]
        return any(len(group) != 1 for reading in readings for group in reading.groups)

    def _columns(self, tile: Tensor) -> Tensor:
        if self.by_column is None:
            return tile
        if len(self.by_column.members[0]) == len(self.by_column.groups):  # each by itself: nothing to add up
            columns = tile.index_select(-1, self.by_column.members[0].to(tile.device))
        else:
            columns = self.by_column.columns(tile)
        return columns / columns.sum(-1, keepdim=True).clamp_min(1e-30) if self.by_column.renormalise else columns


@dataclass(frozen=True, eq=False)
class DifferenceLayer(LayerRecord):
    """One attention layer of a difference. Its `stored` patterns look like tensors, and are computed row by row."""

    halves: tuple[Half, Half] | None = None

    def patterns(self, heads: slice = slice(None), rows: slice = slice(None), columns: slice = slice(None)) -> Tensor:
        """A rectangle of several heads [head, row, column], in bands of rows."""
        assert self.halves is not None
        half_a, half_b = self.halves
        chosen = range(self.n_queries)[rows]
        if not len(chosen):
            return torch.zeros(len(range(self.n_heads)[heads]), 0, len(range(self.n_keys)[columns]))
        bands = []
        for first in range(chosen[0], chosen[-1] + 1, _BAND):
            band = slice(first, min(first + _BAND, chosen[-1] + 1))
            bands.append(
                (half_a.patterns(heads, band) - half_b.patterns(heads, band).to(half_a.layer.summary.max.device))[
                    ..., columns
                ]
            )
        whole = torch.cat(bands, 1) if len(bands) > 1 else bands[0]
        return whole[:, :: chosen.step] if chosen.step > 1 else whole

    @property
    def no_vectors(self) -> str:
        """Why queries, keys and values of the two runs, if recorded, cannot be subtracted; empty if they can."""
        assert self.halves is not None
        if any(half.has_groups for half in self.halves):
            return "queries and keys belong to single tokens: compare by tokens, not by words"
        for name in ("query", "value"):
            sizes = [vectors.shape[-1] for half in self.halves if (vectors := getattr(half.layer, name)) is not None]
            if len(set(sizes)) > 1:
                return f"a {name} has {sizes[0]} neurons in one run and {sizes[1]} in the other"
        return ""

    def tensor(self, name: str, index: int) -> Tensor:
        """The vectors of one head in the first run minus those in the second, on the aligned tokens [token, dim]."""
        assert self.halves is not None
        if reason := self.no_vectors:
            raise NotRecordedError(f"there is no difference of {self.site.head(index)} neuron by neuron: {reason}.")
        a, b = (half.vectors(name, index).float() for half in self.halves)  # type: ignore[arg-type]
        return a - b.to(a.device)

    def nbytes(self) -> int:
        """Nothing is held."""
        return 0


class _Computed:
    """The pattern of one head, which looks like a tensor [query, key] to whoever cuts a rectangle out of it."""

    def __init__(self, layer: DifferenceLayer, index: int):
        self.layer, self.index = layer, index

    def __getitem__(self, cut: Any) -> Tensor:
        rows, columns = cut if isinstance(cut, tuple) else (cut, slice(None))
        is_column = isinstance(columns, int)
        wide = slice(columns, columns + 1) if is_column else columns
        rectangle = self.layer.patterns(slice(self.index, self.index + 1), rows, wide)[0]
        return rectangle[:, 0] if is_column else rectangle


class _Stored(Mapping[int, Any]):
    """All heads of a layer, by their index."""

    def __init__(self, n_heads: int):
        self.n_heads = n_heads
        self.layer: DifferenceLayer | None = None

    def __getitem__(self, index: int) -> _Computed:
        if not 0 <= index < self.n_heads or self.layer is None:
            raise KeyError(index)
        return _Computed(self.layer, index)

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.n_heads))

    def __len__(self) -> int:
        return self.n_heads


def difference_layer(a: Half, b: Half, key_stack: str) -> DifferenceLayer:
    """A layer of the first run minus the same of the second."""
    layer = a.layer
    n_queries, n_keys = a.shape
    unknown = torch.full((layer.n_heads, n_queries), float("nan"), device=layer.summary.max.device)
    summary = Summary(unknown, unknown, unknown, unknown, torch.zeros_like(unknown, dtype=torch.int32))
    stored = _Stored(layer.n_heads)
    difference = DifferenceLayer(
        layer.site,
        layer.n_heads,
        n_queries,
        n_keys,
        key_stack,
        "difference",
        summary,
        stored=stored,  # type: ignore[arg-type]
        no_scores=_NO_SCORES,
        no_norms=_NO_NORMS,
        is_causal=a.layer.is_causal and b.layer.is_causal,
        halves=(a, b),
    )
    stored.layer = difference
    return difference
