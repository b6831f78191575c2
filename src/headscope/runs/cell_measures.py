"""Measures that are a weight on some cells of a pattern: all of them in one product a layer."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from torch import Tensor

from headscope.runs.measure import Measure, Tallies, Tally
from headscope.traces import Tokens

if TYPE_CHECKING:
    from headscope.runs.batch import CorpusBatch, Layer


class Cells(Protocol):
    """Cells looked for, `wanted` [query, key], out of `among`: other cells, or None for all that the query can see."""

    @property
    def wanted(self) -> np.ndarray:
        """True for the cells that count."""
        ...

    @property
    def among(self) -> np.ndarray | None:
        """True for the cells of which they are a share."""
        ...


CellsOf = Callable[..., Cells | None]


@dataclass
class OfCells(Measure):
    """A measure from a function that marks cells by tokens alone: `cells(queries, keys, is_cross=…, **settings)`.

    It gives something with `wanted` and `among`, or None where it says nothing about such tokens. A query counts when
    it has a wanted cell; chance is the share of wanted cells among those that it can see. A causal layer whose wanted
    cells all lie ahead is left out: it cannot look there.
    """

    name: str
    cells: CellsOf
    settings: dict[str, Any] = field(default_factory=dict)

    def watch(self, layer: "Layer") -> Tallies:
        """The weight on its cells."""
        return [tally for _, tally in watch_cells(layer, [self])]


@dataclass(frozen=True, eq=False)
class _Marked:
    """The cells of one measure over a batch: weights [example, query, key] to sum the pattern with.

    Queries and chance [example] are known beforehand unless the weight is a share of other cells. `has` says which
    examples it is about.
    """

    name: str
    has: list[bool]
    weights: list[Tensor]
    n_queries: Tensor | None = None
    chance: Tensor | None = None


def watch_cells(layer: "Layer", measures: Sequence[OfCells]) -> Iterator[tuple[str, Tally]]:
    """What every head puts on the cells of every measure: sums over the pattern, so one product gives them all."""
    shape = (layer.pattern.shape[0], layer.pattern.shape[2], layer.pattern.shape[3])
    names = tuple(measure.name for measure in measures)
    key = (
        "cells",
        names,
        layer.site.stack,
        layer.site.kind,
        layer.key_stack,
        layer.is_causal,
        layer.rows.start,
        shape,
        layer.pattern.device,
    )
    marked, stacked = layer.batch.once(key, lambda: _mark_all(layer, measures, shape))
    if stacked is None:
        return
    sums = iter((layer.pattern.flatten(2) @ stacked).unbind(-1))  # [example, head] each
    for marked_cells in marked:
        total = next(sums)
        if marked_cells.n_queries is None:
            tally = layer.tally(total, next(sums), next(sums))
        else:
            tally = layer.tally(total, marked_cells.n_queries, marked_cells.chance)
        yield marked_cells.name, _only(tally, marked_cells.has)


def _mark_all(
    layer: "Layer", measures: Sequence[OfCells], shape: tuple[int, int, int]
) -> tuple[list[_Marked], Tensor | None]:
    """The cells of all measures, worked out once for all layers between the same tokens; [example, cell, weight]."""
    marked_or_none = [_mark(layer.batch, layer, measure, shape) for measure in measures]
    marked = [marked_cells for marked_cells in marked_or_none if marked_cells is not None]
    weights = [weight for each in marked for weight in each.weights]
    for each in marked:
        each.weights.clear()  # held once, in the product
    return marked, torch.stack(weights, -1).flatten(1, 2) if weights else None


def _mark(batch: "CorpusBatch", layer: "Layer", measure: OfCells, shape: tuple[int, int, int]) -> _Marked | None:
    wanted = np.zeros(shape, dtype=np.float32)
    among: np.ndarray | None = None
    has = []
    pairs = zip(
        _tokens(batch, layer.site.stack, layer.rows, shape[1]),
        _tokens(batch, layer.key_stack, layer.rows, shape[2]),
        strict=True,
    )
    for row, (queries, keys) in enumerate(pairs):
        selected = measure.cells(queries, keys, is_cross=layer.site.kind == "cross", **measure.settings)
        has.append(selected is not None)
        if selected is None:
            continue
        cells = np.asarray(selected.wanted, dtype=bool)
        if layer.is_causal and cells.any() and not np.tril(cells).any():
            has[-1] = False  # all of it lies ahead, where nothing can be seen
            continue
        wanted[row, : cells.shape[0], : cells.shape[1]] = cells
        if selected.among is not None:
            among = np.zeros(shape, dtype=np.float32) if among is None else among
            among[row, : cells.shape[0], : cells.shape[1]] = selected.among & cells.any(1, keepdims=True)
    if not any(has):
        return None
    cells, device = torch.from_numpy(wanted), layer.pattern.device
    if among is None:
        seen = cells.tril() if layer.is_causal else cells
        chance = (seen.sum(-1).to(device) / layer.visible).sum(-1)
        return _Marked(measure.name, has, [cells.to(device)], cells.any(-1).sum(-1).to(device), chance)
    # Of what goes to `among`, the share that chance would give to the wanted cells of each query.
    others = torch.from_numpy(among)
    share = cells.sum(-1, keepdim=True) / others.sum(-1, keepdim=True).clamp_min(1.0)
    return _Marked(measure.name, has, [weight.to(device) for weight in (cells, others, others * share)])


def _tokens(batch: "CorpusBatch", stack: str, rows: slice, length: int) -> list[Tokens]:
    """The tokens of a stack; numbers for a layer that sees a coarser grid of the image."""
    tokens = batch.tokens(stack)[rows]
    is_coarser = max(len(example_tokens) for example_tokens in tokens) > length
    return [Tokens.numbered(length, example_tokens.kind) for example_tokens in tokens] if is_coarser else tokens


def _only(tally: Tally, has: list[bool]) -> Tally:
    if all(has):
        return tally
    chosen = torch.tensor(has, device=tally.total.device)
    places = [place for place, is_there in zip(tally.places, has, strict=True) if is_there]
    return Tally(tally.heads, places, tally.total[chosen], tally.n_queries[chosen], tally.chance[chosen], tally.key)
