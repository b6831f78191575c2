"""Jain & Wallace's classifier, many at a time: an encoder, attention over its states, one logistic output.

The encoder is a BiLSTM (`"bilstm"`), or a tanh of a linear map of each word by itself (`"average"`); both have additive
attention. A `"transformer"` has two layers with the four heads of `stacked_tagger`: the answer is read from the first
token, and the attention is that of its row in the last layer, over words.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from headscope.errors import InputError
from headscope.faithfulness.studies.stack_parts import Parameters, draw_linear, layer_norm, linear
from headscope.faithfulness.studies.stacked_tagger import (
    TaggerShape,
    draw_tagger,
    encode_below,
    read_answers,
    split_heads,
)

Encoder = Literal["bilstm", "average", "transformer"]
N_HEADS, N_LAYERS = 4, 2
_HIDDEN = -1e9


@dataclass(frozen=True)
class ClassifierShape:
    """The sizes of a classifier."""

    encoder: Encoder = "bilstm"
    n_inputs: int = 300
    width: int = 128


class Classified(NamedTuple):
    """The logit of class 1 [model, text], attention with its logarithm [model, text, row, word], and the encoder's
    states [model, text, word, width]. A Transformer has a row for each head, the others have one.
    """

    logits: Tensor
    log_attention: Tensor
    attention: Tensor
    states: Tensor


def draw_classifier(shape: ClassifierShape, seed: int) -> dict[str, Tensor]:
    """Fresh parameters of one classifier; its states are two widths wide, those of a Transformer one."""
    width, parameters = shape.width, {}
    if shape.encoder == "transformer":
        if width % N_HEADS:
            raise InputError(f"the width must be a multiple of {N_HEADS}, the Transformer's heads: got {width}.")
        return draw_tagger(TaggerShape(shape.n_inputs, width, N_HEADS, 1, N_LAYERS), seed)
    if shape.encoder == "bilstm":
        draw_linear(parameters, "input", (shape.n_inputs, 8 * width), seed, bias=True)
        directions = []
        for name in ("forward", "backward"):
            draw_linear(parameters, name, (width, 4 * width), seed, bias=False)
            directions.append(parameters.pop(f"{name}.weight"))
        parameters["recurrent.weight"] = torch.stack(directions)
    else:
        draw_linear(parameters, "input", (shape.n_inputs, 2 * width), seed, bias=True)
    draw_linear(parameters, "attention", (2 * width, width), seed, bias=True)
    draw_linear(parameters, "attention_vector", (width, 1), seed, bias=False)
    draw_linear(parameters, "output", (2 * width, 1), seed, bias=True)
    return parameters


def classify(
    parameters: Parameters, inputs: Tensor, mask: Tensor, attended: Tensor, attention: Tensor | None = None
) -> Classified:
    """Run a stack of classifiers on texts [text, word, input].

    `mask` is True for words with beginning and end, `attended` for those that may be attended. `attention` [model or 1,
    text, 1 or row, word] takes the place of the models' own.
    """
    states = encode(parameters, inputs, mask)
    own = own_log_attention(parameters, states, attended)
    weights = own.exp() if attention is None else attention.expand_as(own)
    return Classified(answer(parameters, states, weights), own, weights, states)


def encode(parameters: Parameters, inputs: Tensor, mask: Tensor) -> Tensor:
    """The states of the encoder [model, text, word, 2 widths]; of a Transformer, what its last layer reads."""
    if "query.weight" in parameters:
        stream = encode_below(parameters, inputs, mask, n_heads=N_HEADS)
        return stream.view(len(stream), *mask.shape, -1)
    n_models = len(parameters["input.weight"])
    rows = inputs.reshape(1, -1, inputs.shape[-1]).expand(n_models, -1, -1)
    projected = linear(rows, parameters, "input").view(n_models, *mask.shape, -1)
    if "recurrent.weight" not in parameters:
        return projected.tanh()
    ahead, back = projected.chunk(2, -1)
    places = _reversed_places(mask)
    index = places[None, :, :, None].expand_as(back)
    gates = torch.stack([ahead, back.gather(2, index)], 1)  # [model, direction, text, word, gates]
    states = _recur(gates, parameters["recurrent.weight"])
    index = places[None, :, :, None].expand_as(states[:, 1])
    return torch.cat([states[:, 0], states[:, 1].gather(2, index)], -1)


def own_log_attention(parameters: Parameters, states: Tensor, attended: Tensor) -> Tensor:
    """Attention over the words that may be attended [model, text, row, word]: the softmax of v · tanh(W h), or of the
    first token's query with each key.
    """
    if "query.weight" in parameters:
        normalised = layer_norm(states.flatten(1, 2), parameters, "attention_norm")
        first = normalised.view(states.shape)[:, :, 0]
        query = linear(first, parameters, "query").view(*first.shape[:2], N_HEADS, 1, -1)
        key = split_heads(linear(normalised, parameters, "key"), attended, N_HEADS)
        scores = (query * query.shape[-1] ** -0.5 @ key.transpose(-1, -2)).squeeze(-2)
        return scores.masked_fill(~attended[:, None], _HIDDEN).log_softmax(-1)
    hidden = linear(states.flatten(1, 2), parameters, "attention").tanh()
    scores = linear(hidden, parameters, "attention_vector").view(states.shape[:3])
    return scores.masked_fill(~attended, _HIDDEN).log_softmax(-1).unsqueeze(2)


def answer(parameters: Mapping[str, Tensor], states: Tensor, attention: Tensor) -> Tensor:
    """The logits [model, text] that follow from other weights [model, text, row, word] on the same states."""
    if "query.weight" in parameters:
        first = torch.zeros(states.shape[1], dtype=torch.int64, device=states.device)
        return read_answers(parameters, states, first, attention).squeeze(-1)
    context = (attention @ states).squeeze(-2)
    return linear(context, parameters, "output").squeeze(-1)


def _recur(gates: Tensor, weight: Tensor) -> Tensor:
    """An LSTM over the words of [model, direction, text, word, 4 widths]; padding comes last and is never read."""
    n_models, n_directions, n_texts, length, n_gates = gates.shape
    steps = gates.flatten(0, 1).unbind(2)
    recurrent = weight.flatten(0, 1)
    hidden = cell = gates.new_zeros(n_models * n_directions, n_texts, n_gates // 4)
    states = []
    for place in range(length):
        sums = torch.baddbmm(steps[place], hidden, recurrent)
        enter, forget, _, leave = sums.sigmoid().chunk(4, -1)
        cell = forget * cell + enter * sums.chunk(4, -1)[2].tanh()
        hidden = leave * cell.tanh()
        states.append(hidden)
    return torch.stack(states, 2).view(n_models, n_directions, n_texts, length, -1)


def _reversed_places(mask: Tensor) -> Tensor:
    """Where each word of a text lies when its words, without padding, are read from the end [text, word]."""
    places = torch.arange(mask.shape[1], device=mask.device).expand(mask.shape)
    lengths = mask.sum(1, keepdim=True)
    return torch.where(mask, lengths - 1 - places, places)
