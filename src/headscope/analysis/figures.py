"""Measures that the summary of a layer holds already, at any length: no pattern is computed for them."""

import torch
from torch import Tensor

from headscope.analysis.samples import Sample
from headscope.traces import LayerRecord

NO_CHANCE = float("nan")


def confidence(layer: LayerRecord) -> list[Sample]:
    """The largest weight of each query (Voita et al., 2019, section 4), special tokens included."""
    return _means(layer.summary.max)


def entropy(layer: LayerRecord) -> list[Sample]:
    """How spread out each query's attention is, in nats."""
    return _means(layer.summary.entropy)


def distance(layer: LayerRecord) -> list[Sample]:
    """How far away each query looks, in tokens: mean |i − j|."""
    return _means(layer.summary.distance)


def _means(values: Tensor) -> list[Sample]:
    """Sums over queries of a figure [head, query]; rows of padding are NaN and count for nothing."""
    known = ~torch.isnan(values)
    totals, counts = values.double().nan_to_num().mul(known).sum(1), known.sum(1)
    return [Sample(float(total), float(count), NO_CHANCE) for total, count in zip(totals, counts, strict=True)]
