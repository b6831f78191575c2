"""Two runs for the page: maps and measures of their difference, which tokens correspond, one relation in both."""

import math
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from headscope.errors import NotRecordedError
from headscope.traces import Comparison, Difference, DifferenceLayer, Trace
from headscope.traces.relations import Ranking, Relation
from headscope.views.contract import (
    AlignmentProps,
    MapsProps,
    MethodProps,
    PairedStackProps,
    RankingProps,
    RelationProps,
    ScoresProps,
)
from headscope.views.measures import scores_part
from headscope.views.wire import Coded, Part

# Weights that a map may be made from, a second or two; beyond, the runs' own maps are subtracted.
MOST_CELLS = 2**28
_BAND = 256
_scores_of_runs: "WeakKeyDictionary[Trace, Part]" = WeakKeyDictionary()
CHANGES = {
    "total_variation": "how far its pattern moved: half the L1 distance of a query's weights (0 to 1), on average",
    "jensen_shannon": "how far its pattern moved: Jensen-Shannon divergence of a query's weights in nats, 0 to "
    "ln 2 = 0.693, on average",
}


def signed_pool(values: Tensor, cell: tuple[int, int]) -> Tensor:
    """[…, row, column] pooled by `cell`: of each cell the value that is furthest from 0."""
    if cell == (1, 1):
        return values
    lead = values.shape[:-2]
    flat = values.reshape(1, -1, *values.shape[-2:])
    highest = torch.nn.functional.max_pool2d(flat, cell, ceil_mode=True)
    lowest = -torch.nn.functional.max_pool2d(-flat, cell, ceil_mode=True)
    strongest = torch.where(highest >= -lowest, highest, lowest)
    return strongest.reshape(*lead, *strongest.shape[-2:])


def difference_maps(trace: Difference, size: int) -> Part:
    """`maps` of a difference: the largest of either sign in every cell."""
    layers = {site: layer for site, layer in trace.layers.items() if isinstance(layer, DifferenceLayer)}
    cells = sum(layer.n_heads * layer.n_queries * layer.n_keys for layer in layers.values())
    sizes, arrays = {}, {}
    for site, layer in layers.items():
        cell = math.ceil(layer.n_queries / size), math.ceil(layer.n_keys / size)
        if cells <= MOST_CELLS:
            pooled = _pool_layer(layer, cell)
        else:
            pooled, cell = _of_maps(trace, layer, size)
        sizes[str(site)] = cell
        arrays[str(site)] = Coded.signed(pooled.cpu().numpy())
    note = "" if cells <= MOST_CELLS else "so long that each dot is the difference of the strongest weights there"
    return Part("maps", MapsProps(size, sizes, note), arrays)


def _pool_layer(layer: DifferenceLayer, cell: tuple[int, int]) -> Tensor:
    band = cell[0] * max(1, _BAND // cell[0])
    bands = [
        signed_pool(layer.patterns(rows=slice(first, min(first + band, layer.n_queries))), cell)
        for first in range(0, layer.n_queries, band)
    ]
    return torch.cat(bands, 1)


def _of_maps(trace: Difference, layer: DifferenceLayer, size: int) -> tuple[Tensor, tuple[int, int]]:
    """The first run's map minus the second's, where their cells are the same."""
    assert layer.halves is not None and trace.comparison is not None
    maps = [half.layer.summary.map for half in layer.halves]
    summarised = [pattern_map for pattern_map in maps if pattern_map is not None]
    if len(summarised) < 2 or not trace.comparison.is_identical:
        raise NotRecordedError(
            f"the difference has more than {MOST_CELLS:,} weights, and where tokens are inserted its maps do not "
            "follow from those of the two runs: look at one layer, or compare shorter texts."
        )
    pooled = [
        torch.nn.functional.max_pool2d(pattern_map.nan_to_num(nan=0.0), _by(pattern_map, size), ceil_mode=True)
        for pattern_map in summarised
    ]
    cell = math.ceil(layer.n_queries / pooled[0].shape[1]), math.ceil(layer.n_keys / pooled[0].shape[2])
    return pooled[0] - pooled[1].to(pooled[0].device), cell


def _by(pattern_map: Tensor, size: int) -> tuple[int, int]:
    return -(-pattern_map.shape[1] // size), -(-pattern_map.shape[2] // size)


def cached_scores(trace: Trace) -> Part:
    """`scores` of a run, worked out once: each may be asked for alone, and again for every run it is compared with."""
    if trace not in _scores_of_runs:
        _scores_of_runs[trace] = scores_part(trace)
    return _scores_of_runs[trace]


def difference_scores(trace: Difference) -> Part:
    """`scores` of a difference: how far each head moved, then every measure of the first run minus the second's."""
    comparison = trace.comparison
    assert comparison is not None
    heads = [str(head) for head in trace.heads]
    methods, arrays = [], {}
    for name, scores in comparison.changes().items():
        values = np.array([scores[head] for head in trace.heads], np.float32)
        arrays[name] = values
        methods.append(MethodProps(name, CHANGES[name], None, 0.0, max(1e-6, float(np.nanmax(values)))))
    first, second = cached_scores(comparison.a), cached_scores(comparison.b)
    for method in first.props.methods:
        if method.name not in second.arrays:
            continue
        values = np.asarray(first.arrays[method.name]) - np.asarray(second.arrays[method.name])
        if np.isnan(values).all():
            continue
        most = max(1e-6, float(np.nanmax(np.abs(values))))
        arrays[method.name] = values
        methods.append(MethodProps(method.name, f"{method.about}: the first run minus the second", 0.0, -most, most))
    return Part("scores", ScoresProps(heads, methods), arrays)


def alignment_part(comparison: Comparison) -> Part:
    """`alignment`: the number of the pair that each token of both runs belongs to, −1 for none."""
    stacks, arrays = [], {}
    for alignment in comparison.alignment.values():
        texts = [text.encode("utf-8", "replace").decode() for text in alignment.tokens.texts]
        stacks.append(
            PairedStackProps(alignment.stack, alignment.other_stack, texts, list(alignment.is_same), alignment.is_whole)
        )
        arrays[f"a:{alignment.stack}"] = _pairs(alignment.ones, len(comparison.a.tokens[alignment.stack]))
        arrays[f"b:{alignment.other_stack}"] = _pairs(alignment.others, len(comparison.b.tokens[alignment.other_stack]))
    props = AlignmentProps(comparison.by, comparison.line, comparison.no_difference, stacks)
    return Part("alignment", props, arrays)


def _pairs(groups: tuple[tuple[int, ...], ...], length: int) -> np.ndarray:
    pair_numbers = np.full(length, -1, np.int32)
    for number, group in enumerate(groups):
        pair_numbers[list(group)] = number
    return pair_numbers


def relation_part(relation: Relation) -> Part:
    """`relation`: the heads of both models, the best first."""

    def ranking_props(side: Ranking) -> RankingProps:
        return RankingProps(side.model, [str(row.head) for row in side.heads], side.n_layers, side.note)

    def numbers(side: Ranking) -> np.ndarray:
        return np.array([(row.weight, row.baseline, row.depth) for row in side.heads], np.float32).reshape(-1, 3)

    props = RelationProps(relation.source, relation.target, ranking_props(relation.a), ranking_props(relation.b))
    return Part("relation", props, {"a": numbers(relation.a), "b": numbers(relation.b)})
