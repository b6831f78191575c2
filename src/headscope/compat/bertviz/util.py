"""BertViz's helpers, for code that imports them."""

from collections.abc import Sequence

import torch
from torch import Tensor

from headscope.compat.bertviz.attention import NOT_FOUR, NOTHING
from headscope.errors import InputError


def format_attention(
    attention: Sequence[Tensor], layers: Sequence[int] | None = None, heads: Sequence[int] | None = None
) -> Tensor:
    """Attention in one tensor [layer, head, query, key], of some layers and heads where said."""
    chosen = []
    for layer in attention if layers is None else [attention[index] for index in layers]:
        if layer is None:
            raise InputError(NOTHING)
        if layer.ndim != 4:
            raise InputError(NOT_FOUR)
        chosen.append(layer.squeeze(0) if heads is None else layer.squeeze(0)[list(heads)])
    return torch.stack(chosen)


def num_layers(attention: Sequence[Tensor]) -> int:
    """How many layers there are."""
    return len(attention)


def num_heads(attention: Sequence[Tensor]) -> int:
    """How many heads a layer has."""
    return attention[0][0].size(0)


def format_special_chars(tokens: Sequence[str]) -> list[str]:
    """Tokens without the marks that tokenizers put before words. The views do more: they decode bytes, too."""
    return [token.replace("Ġ", " ").replace("▁", " ").replace("</w>", "") for token in tokens]
