"""Edits of scores and patterns: temperature, distance, blocking, and weights set by hand."""

import torch
from torch import Tensor

from headscope.errors import InterventionError
from headscope.interventions.edits import Block, DistanceBias, ReplacePattern, SetRow, SetWeight, Temperature
from headscope.interventions.heads import finite, finite_tensor
from headscope.interventions.intervention import Intervention, called, intervene
from headscope.sites import Head, Site
from headscope.traces.tokens import TokenChoice


def temperature(head: str | Head | Site | None, value: float, *, tokens: TokenChoice | None = None) -> Intervention:
    """Divide a head's scores by a number: below 1 sharpens its pattern, above 1 flattens it."""
    value = finite(value, "temperature")
    if value <= 0:
        raise InterventionError(f"a temperature must be above 0, got {value}.")
    return intervene(head, "scores", Temperature(value), tokens, called("temperature", head, value, tokens=tokens))


def distance_bias(head: str | Head | Site | None, slope: float, *, tokens: TokenChoice | None = None) -> Intervention:
    """Add slope · |query − key| to a head's scores: a negative slope makes it look nearby."""
    slope = finite(slope, "slope")
    return intervene(head, "scores", DistanceBias(slope), tokens, called("distance_bias", head, slope, tokens=tokens))


def block(head: str | Head | Site | None, queries: TokenChoice, keys: TokenChoice) -> Intervention:
    """Forbid queries to see keys; the rest of the row shares the weight. A row with nothing left to see is zero.

    >>> import headscope as hs
    >>> hs.block(None, "segment:A", "segment:B")
    hs.block(None, 'segment:A', 'segment:B')
    """
    return intervene(head, "scores", Block(queries, keys), None, called("block", head, queries, keys))


def replace_pattern(
    head: str | Head | Site, pattern: Tensor, *, renormalise: bool = True, tokens: TokenChoice | None = None
) -> Intervention:
    """Put a pattern of your own in place [query, key] ([head, query, key] for a whole layer)."""
    weights = _weights(pattern, "pattern")
    weights = weights[None] if weights.ndim == 2 else weights
    if weights.ndim != 3:
        raise InterventionError(f"a pattern is [query, key] or [head, query, key], got shape {tuple(weights.shape)}.")
    options = {"renormalise": None if renormalise else False, "tokens": tokens}
    call = called("replace_pattern", head, weights, **options)
    return intervene(head, "pattern", ReplacePattern(weights, renormalise), tokens, call)


def set_weight(
    head: str | Head | Site, query: TokenChoice, key: TokenChoice, weight: float, *, renormalise: bool = True
) -> Intervention:
    """Give one cell of a pattern a new weight; the other keys share what is left, unless `renormalise` is off."""
    weight = finite(weight, "weight")
    if weight < 0 or (renormalise and weight > 1):
        raise InterventionError(f"an attention weight lies between 0 and 1, got {weight}.")
    options = {"renormalise": None if renormalise else False}
    call = called("set_weight", head, query, key, weight, **options)
    return intervene(head, "pattern", SetWeight(query, key, weight, renormalise), None, call)


def set_row(
    head: str | Head | Site, query: TokenChoice, weights: Tensor, *, renormalise: bool = True
) -> Intervention:
    """Give one query of a head a new row of weights [key]."""
    row = _weights(weights, "row")
    if row.ndim != 1:
        raise InterventionError(f"a row of weights has one axis [key], got shape {tuple(row.shape)}.")
    options = {"renormalise": None if renormalise else False}
    call = called("set_row", head, query, row, **options)
    return intervene(head, "pattern", SetRow(query, row, renormalise), None, call)


def _weights(values: Tensor, name: str) -> Tensor:
    weights = finite_tensor(torch.as_tensor(values), name)
    if bool((weights < 0).any()):
        raise InterventionError(f"{name} holds negative weights, the lowest {float(weights.min()):.4g}.")
    return weights
