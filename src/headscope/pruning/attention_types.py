"""The types of attention that are pruned and counted apart: encoder, decoder, cross, or self."""

from dataclasses import dataclass

from headscope.errors import InputError
from headscope.models import Model
from headscope.sites import Site


def attention_type(site: Site) -> str:
    """The type of a layer: "cross", or for self-attention "encoder", "decoder", "self" (one stack) or its stack's name.

    >>> attention_type(Site("main", 0)), attention_type(Site("decoder", 3, "cross"))
    ('self', 'cross')
    """
    if site.kind == "cross":
        return "cross"
    return "self" if site.stack == "main" else site.stack


@dataclass(frozen=True)
class PrunableLayer:
    """An attention layer with its type. `n_groups` is how many key-value heads its `n_heads` query heads share."""

    site: Site
    type: str
    n_heads: int
    n_groups: int


def layers_of(model: Model) -> list[PrunableLayer]:
    """The attention layers of a model in the order they run; an error where it has none."""
    layers = [
        PrunableLayer(layer.site, attention_type(layer.site), layer.n_heads, layer.n_groups)
        for layer in model.layout.layers
    ]
    if not layers:
        raise InputError(f"{model.name} has no attention heads that Headscope can switch off: {model.coverage}.")
    return layers
