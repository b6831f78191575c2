"""`replace_token`: an input with other tokens in their places, in its ids and in how it reads."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from torch import Tensor

from headscope.errors import InputError, InterventionError
from headscope.interventions import Intervention
from headscope.interventions.edits import ReplaceToken
from headscope.traces import Inputs, Tokens

if TYPE_CHECKING:
    from headscope.models.model import Model


def replace_tokens(model: "Model", inputs: Inputs, interventions: Sequence[Intervention]) -> Inputs:
    """The input after every `replace_token`."""
    if not any(intervention.stage == "tokens" for intervention in interventions):
        return inputs
    stack = "encoder" if "encoder" in inputs.tokens else "text" if "text" in inputs.tokens else "main"
    if "input_ids" not in inputs.model_inputs or stack not in inputs.tokens:
        raise InputError("replace_token needs an input of text tokens.")
    old = inputs.model_inputs["input_ids"]
    ids = _replace_ids(old, interventions, inputs.tokens[stack], model.tokenizer)
    display_tokens = [
        token if int(now) == int(was) else replace(token, id=int(now), text=model.token_text(int(now)).strip())
        for token, was, now in zip(inputs.tokens[stack], old, ids, strict=True)
    ]
    tokens = inputs.tokens | {stack: replace(inputs.tokens[stack], items=tuple(display_tokens))}
    return replace(inputs, model_inputs=inputs.model_inputs | {"input_ids": ids}, tokens=tokens)


def _replace_ids(ids: Tensor, interventions: Sequence[Intervention], tokens: Tokens, tokenizer) -> Tensor:
    """The token ids [token] after every `replace_token`."""
    for intervention in interventions:
        if intervention.stage != "tokens" or not isinstance(intervention.edit, ReplaceToken):
            continue
        assert intervention.tokens is not None  # replace_token always names its tokens
        ids = ids.clone()
        ids[tokens.positions(intervention.tokens)] = _id_of(intervention.edit.token, tokenizer)
    return ids


def _id_of(token: int | str | None, tokenizer) -> int:
    if isinstance(token, int):
        if tokenizer is not None and not 0 <= token < len(tokenizer):
            raise InterventionError(f"there is no token {token}: the vocabulary has {len(tokenizer)} tokens.")
        return token
    if tokenizer is None:
        raise InputError("the model has no tokenizer: name the new token by its id.")
    if token is None:
        for name in ("mask_token_id", "unk_token_id", "eos_token_id"):
            token_id = getattr(tokenizer, name, None)
            if token_id is not None:
                return int(token_id)
        raise InterventionError("the tokenizer has no mask or unknown token: say which token to put in place.")
    if (known := tokenizer.get_vocab().get(token)) is not None:
        return int(known)
    for text in (token, f" {token}"):
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        if len(ids) == 1:
            return int(ids[0])
    pieces = tokenizer.convert_ids_to_tokens(tokenizer(token, add_special_tokens=False)["input_ids"])
    raise InterventionError(f"{token!r} is not one token of this tokenizer but {len(pieces)}: {pieces}.")
