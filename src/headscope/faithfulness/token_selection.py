"""An input with some of its tokens only, or with some of them masked."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, get_args

import torch

from headscope.choices import Removal
from headscope.errors import InputError
from headscope.interventions import replace_token
from headscope.models.inputs.token_replacement import replace_tokens
from headscope.traces import Inputs, Tokens

if TYPE_CHECKING:
    from headscope.models import Model

REMOVALS: tuple[Removal, ...] = get_args(Removal)


def keep_tokens(inputs: Inputs, stack: str, places: Sequence[int]) -> Inputs:
    """The input with these tokens only, in their order; the others are deleted, so later tokens move up."""
    tokens = inputs.tokens[stack]
    chosen = torch.tensor(list(places))
    model_inputs = {
        name: value[chosen] if value.ndim and value.shape[0] == len(tokens) else value
        for name, value in inputs.model_inputs.items()
    }
    remaining = Tokens(tuple(tokens[place] for place in places), tokens.kind)
    return replace(inputs, model_inputs=model_inputs, tokens=inputs.tokens | {stack: remaining})


def remove_tokens(model: "Model", inputs: Inputs, stack: str, places: Sequence[int], removal: Removal) -> Inputs:
    """The input without these tokens: deleted, or replaced by the mask or unknown token."""
    if removal == "delete":
        return keep_tokens(inputs, stack, [place for place in range(len(inputs.tokens[stack])) if place not in places])
    token = stand_in(model, removal)
    return replace_tokens(model, inputs, [replace_token(place, token) for place in places])


def stand_in(model: "Model", removal: Removal) -> int:
    """The token that stands for a removed one."""
    name = {"mask": "mask_token_id", "unknown": "unk_token_id"}.get(removal)
    if name is None:
        raise InputError(f"there is no removal {removal!r}: choose one of {', '.join(REMOVALS)}.")
    token = getattr(model.tokenizer, name, None)
    if token is None:
        raise InputError(f"{model.name} has no {removal} token: choose removal='delete'.")
    return int(token)
