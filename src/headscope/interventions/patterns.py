"""Edits of scores and patterns: temperature, distance, blocking, and weights set by hand."""

from torch import Tensor

from headscope.interventions.edits import (
    Block,
    DistanceBias,
    ReplacePattern,
    SetRow,
    SetWeight,
    Temperature,
    Uniform,
    finite,
)
from headscope.interventions.heads import own_tensor
from headscope.interventions.intervention import Intervention, call_text, intervene
from headscope.sites import Head, Site
from headscope.traces.tokens import TokenChoice


def temperature(head: str | Head | Site | None, value: float, *, tokens: TokenChoice | None = None) -> Intervention:
    """Divide a head's scores by a number: below 1 sharpens its pattern, above 1 flattens it."""
    value = finite(value, "temperature")
    call = call_text("temperature", head, value, tokens=tokens)
    return intervene(head, "scores", Temperature(value), tokens, call, everywhere=True)


def uniform(head: str | Head | Site | None, *, tokens: TokenChoice | None = None) -> Intervention:
    """Have a head look at everything it may see alike: all its queries, or those of some tokens.

    >>> import headscope as hs
    >>> hs.uniform("L3H2", tokens=[-1])
    hs.uniform('L3H2', tokens=[-1])
    """
    return intervene(head, "scores", Uniform(), tokens, call_text("uniform", head, tokens=tokens), everywhere=True)


def distance_bias(head: str | Head | Site | None, slope: float, *, tokens: TokenChoice | None = None) -> Intervention:
    """Add slope · |query − key| to a head's scores: a negative slope makes it look nearby."""
    slope = finite(slope, "slope")
    call = call_text("distance_bias", head, slope, tokens=tokens)
    return intervene(head, "scores", DistanceBias(slope), tokens, call, everywhere=True)


def block(head: str | Head | Site | None, queries: TokenChoice, keys: TokenChoice) -> Intervention:
    """Forbid queries to see keys; the rest of the row shares the weight. A row with nothing left to see is zero.

    >>> import headscope as hs
    >>> hs.block(None, "segment:A", "segment:B")
    hs.block(None, 'segment:A', 'segment:B')
    """
    return intervene(
        head, "scores", Block(queries, keys), None, call_text("block", head, queries, keys), everywhere=True
    )


def replace_pattern(
    head: str | Head | Site, pattern: Tensor, *, renormalise: bool = True, tokens: TokenChoice | None = None
) -> Intervention:
    """Put a pattern of your own in place [query, key] ([head, query, key] for a whole layer)."""
    weights = own_tensor(pattern, "pattern")
    weights = weights[None] if weights.ndim == 2 else weights
    options = {"renormalise": None if renormalise else False, "tokens": tokens}
    call = call_text("replace_pattern", head, weights, **options)
    return intervene(head, "pattern", ReplacePattern(weights, renormalise), tokens, call)


def set_weight(
    head: str | Head | Site, query: TokenChoice, key: TokenChoice, weight: float, *, renormalise: bool = True
) -> Intervention:
    """Give one cell of a pattern a new weight; the other keys share what is left, unless `renormalise` is off."""
    weight = finite(weight, "weight")
    options = {"renormalise": None if renormalise else False}
    call = call_text("set_weight", head, query, key, weight, **options)
    return intervene(head, "pattern", SetWeight(query, key, weight, renormalise), None, call)


def set_row(head: str | Head | Site, query: TokenChoice, weights: Tensor, *, renormalise: bool = True) -> Intervention:
    """Give one query of a head a new row of weights [key]: one for every token of the input, 0 where it does not look.

    The row is brought to a sum of 1, unless `renormalise` is off.
    """
    row = own_tensor(weights, "weights")
    options = {"renormalise": None if renormalise else False}
    call = call_text("set_row", head, query, row, **options)
    return intervene(head, "pattern", SetRow(query, row, renormalise), None, call)
