"""Attention as models return it: one tensor a layer, or one tuple of layers for each step of generation."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from headscope.errors import InputError

NOT_FOUR = (
    "The attention tensor does not have the correct number of dimensions. Make sure you set "
    "output_attentions=True when initializing your model."
)
EMPTY = (
    "it is empty. Newer versions of transformers put cross-attention last, which this model has none of: "
    "give `outputs.attentions` instead of `outputs[-1]`, and load the model with output_attentions=True."
)
NOTHING = (
    "the model returned no attention weights (None): its attention is fused (SDPA, flash), which has none to return. "
    "Load it with attn_implementation='eager' and output_attentions=True, or let Headscope compute them: "
    "hs.head_view(hs.Model(model, tokenizer).run(text))."
)


def layers_of(attention: Any, name: str) -> list[Tensor]:
    """One tensor [head, query, key] a layer; steps of `generate()` are joined into the whole that they are parts of."""
    if isinstance(attention, Tensor):
        raise InputError(f"{name} is a tensor of shape {tuple(attention.shape)}: give a list of them, one a layer.")
    if isinstance(attention, Sequence) and not len(attention):
        raise InputError(f"{name} holds nothing to show: {EMPTY}")
    if not isinstance(attention, Sequence) or any(layer is None for layer in attention):
        raise InputError(f"{name} holds nothing to show: {NOTHING}")
    if isinstance(attention[0], Sequence):
        return _join_steps(attention, name)
    return [_layer_tensor(layer, name, index) for index, layer in enumerate(attention)]


def _layer_tensor(layer: Any, name: str, index: int) -> Tensor:
    if not isinstance(layer, Tensor):
        layer = torch.as_tensor(layer)
    if layer.ndim != 4:
        raise InputError(NOT_FOUR)
    if layer.shape[0] != 1:
        raise InputError(
            f"layer {index} of {name} holds a batch of {layer.shape[0]}: a view shows one example. "
            f"Give the first alone with [layer[:1] for layer in {name}]."
        )
    return layer[0].detach()


def _join_steps(steps: Sequence[Any], name: str) -> list[Tensor]:
    """What `generate()` returns: for each step the layers, whose queries are the tokens that were new then."""
    layers = []
    for index in range(len(steps[0])):
        rows = [_layer_tensor(step[index], name, index) for step in steps]
        n_keys = max(row.shape[-1] for row in rows)
        # A step sees the tokens up to its own; those that came later have no weight.
        padded = [torch.nn.functional.pad(row, (0, n_keys - row.shape[-1])) for row in rows]
        layers.append(torch.cat(padded, dim=1))
    return layers
