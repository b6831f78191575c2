"""Measures of every head for the page: figures that any summary gives, and those that need whole patterns."""

import math
from collections.abc import Sequence

import numpy as np
import torch

from headscope.glossary import MEASURE_TERMS
from headscope.scores import Scores
from headscope.sites import Head
from headscope.traces import LayerRecord, Trace
from headscope.views.contract import MethodProps, ScoresProps
from headscope.views.weights import no_weights
from headscope.views.wire import Part

# Measures go through every weight of every head: up to so many tokens, and weights, it is a matter of seconds.
MEASURED_TOKENS = 1024
MEASURED_CELLS = 64 * 2**20
SHARE_OF_FIRST = "first_token"


def scores_part(trace: Trace, more: Sequence[Scores] = ()) -> Part:
    """`scores`: one number a head and method, NaN where a method says nothing of a head; `more` come from elsewhere."""
    heads = trace.heads
    methods, arrays = [], {}
    for scores in [*more, *all_scores(trace)]:
        values = np.array([scores.values_by_head.get(head, math.nan) for head in heads], np.float32)
        if scores.method in arrays or np.isnan(values).all():
            continue
        arrays[scores.method] = values
        methods.append(_method(scores, values, trace))
    return Part("scores", ScoresProps([str(head) for head in heads], methods), arrays)


def all_scores(trace: Trace) -> list[Scores]:
    """Every measure that applies to this trace: all of them, or beyond some length those that a summary gives."""
    from headscope.analysis.measures.measure import (  # brings models along, which take seconds to import
        MEASURES,
        measure_all,
    )

    is_whole = _is_measurable(trace)
    names = [measure.name for measure in MEASURES.values() if is_whole or measure.figure is not None]
    scores_by_name = measure_all(names, trace, skip=True)
    if SHARE_OF_FIRST not in scores_by_name and (scores := _first_token(trace)) is not None:
        scores_by_name[SHARE_OF_FIRST] = scores
    return list(scores_by_name.values())


def _is_measurable(trace: Trace) -> bool:
    layers = trace.layers.values()
    cells = sum(layer.n_heads * layer.n_queries * layer.n_keys for layer in layers)
    longest = max(max(layer.n_queries, layer.n_keys) for layer in layers)
    has_weights = not any(no_weights(layer) for layer in layers)
    return has_weights and cells <= MEASURED_CELLS and longest <= MEASURED_TOKENS


def _first_token(trace: Trace) -> Scores | None:
    """The mean weight that the first token receives from queries that are not special, as the measure has it.

    A summary holds the mean over all queries; what the few special ones give is taken out again.
    """
    values: dict[Head, float] = {}
    for layer in trace.layers.values():
        if layer.summary.received is None:
            continue
        special = [place for place, token in enumerate(trace.query_tokens(layer.site)) if token.special]
        n_plain = layer.n_queries - len(special)
        from_special = _to_first(layer, special)
        if from_special is None or not n_plain:
            continue
        sums = layer.summary.received[:, 0].double() * layer.n_queries - from_special
        values |= dict(zip(layer.heads(), (sums / n_plain).clamp(0.0, 1.0).tolist(), strict=True))
    return Scores(SHARE_OF_FIRST, values) if values else None


def _to_first(layer: LayerRecord, queries: list[int]) -> torch.Tensor | None:
    """What some queries together give the first key [head]; None where neither weights nor strongest keys tell."""
    sums = torch.zeros(layer.n_heads, dtype=torch.float64)
    if not queries:
        return sums
    if not no_weights(layer):
        for query in queries:
            rows = layer.patterns(slice(None), slice(query, query + 1), slice(0, 1))
            sums += rows.flatten().double().cpu()
        return sums
    if layer.summary.top_keys is None or layer.summary.top_weights is None:
        return None
    is_first = layer.summary.top_keys[:, queries] == 0
    return (layer.summary.top_weights[:, queries].double() * is_first).sum((1, 2))


def _method(scores: Scores, values: np.ndarray, trace: Trace) -> MethodProps:
    term = MEASURE_TERMS.get(scores.method)
    low, high = 0.0, 1.0
    if term is not None and term.unit == "nats":
        high = math.log(max(2, max(layer.n_keys for layer in trace.layers.values())))
    elif term is None or term.unit:
        low, high = min(0.0, float(np.nanmin(values))), float(np.nanmax(values))
    return MethodProps(
        name=scores.method,
        about=term.meaning if term is not None else scores.method,
        baseline=scores.baseline,
        low=low,
        high=high if high > low else low + 1.0,
    )
