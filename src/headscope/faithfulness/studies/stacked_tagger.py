"""The tagger of the chunking report, many at a time: one pre-norm layer of four heads between two linear maps.

Frozen word vectors [300] → projection to 128, without bias → sines of the position → attention with residual → two
linears, each followed by ReLU, with residual → layer norm → 25 tags. 140,953 trained parameters.

There may be more layers. Those below the last have names that begin with `layer0.` and so on; what replaces attention,
and the pattern that is read, are those of the last.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from headscope.faithfulness.studies.stack_parts import (
    Parameters,
    draw_linear,
    layer_norm,
    linear,
    no_dropout,
    timing_signal,
)

Drop = Callable[[Tensor], Tensor]
# The score of padding: finite, so that no gradient is NaN.
_HIDDEN = -1e9


@dataclass(frozen=True)
class TaggerShape:
    """The sizes of a tagger."""

    n_inputs: int = 300
    width: int = 128
    n_heads: int = 4
    n_classes: int = 25
    n_layers: int = 1


class Tagged(NamedTuple):
    """Logits [model, sentence, word, class], and the last layer's pattern [model, sentence, head, query, key] with its
    logarithm.

    A tagger that computes no attention of its own has no pattern.
    """

    logits: Tensor
    log_pattern: Tensor | None

    @property
    def pattern(self) -> Tensor:
        """The weights of attention."""
        assert self.log_pattern is not None
        return self.log_pattern.exp()


def draw_tagger(shape: TaggerShape, seed: int) -> dict[str, Tensor]:
    """Fresh parameters of one tagger."""
    width, parameters = shape.width, {}
    draw_linear(parameters, "projection", (shape.n_inputs, width), seed, bias=False)
    for prefix in (*(f"layer{layer}." for layer in range(shape.n_layers - 1)), ""):
        for name in ("query", "key", "value", "output"):
            draw_linear(parameters, f"{prefix}{name}", (width, width), seed, bias=False)
        for name in ("first", "second"):
            draw_linear(parameters, f"{prefix}{name}", (width, width), seed, bias=True)
        for name in ("attention_norm", "feed_forward_norm"):
            _draw_norm(parameters, f"{prefix}{name}", width)
    _draw_norm(parameters, "final_norm", width)
    draw_linear(parameters, "classifier", (width, shape.n_classes), seed, bias=True)
    return parameters


class Attend:
    """How the taggers of a stack attend.

    `pattern` None: by their own queries and keys. A tensor [model or 1, sentence, head or 1, query, key]: by that, and
    queries and keys take no part. `is_absent`: there is no attention block. `has_residual` says whether what the
    attention block reads is added to what it writes.
    """

    def __init__(self, pattern: Tensor | None = None, *, is_absent: bool = False, has_residual: bool = True):
        self.pattern, self.is_absent, self.has_residual = pattern, is_absent, has_residual


def tag(
    parameters: Parameters,
    inputs: Tensor,
    mask: Tensor,
    attend: Attend | None = None,
    *,
    n_heads: int = 4,
    drop: Drop = no_dropout,
) -> Tagged:
    """Run a stack of taggers on sentences [sentence, word, input]; `mask` is True for words, False for padding."""
    stream = encode_below(parameters, inputs, mask, n_heads=n_heads, drop=drop)
    stream, log_pattern = _layer(parameters, stream, mask, attend or Attend(), n_heads, drop)
    stream = layer_norm(stream, parameters, "final_norm")
    logits = linear(stream, parameters, "classifier").float().view(len(stream), *mask.shape, -1)
    return Tagged(logits, log_pattern)


def own_log_pattern(parameters: Parameters, inputs: Tensor, mask: Tensor, *, n_heads: int = 4) -> Tensor:
    """The logarithm of the patterns of the last layer, without running what follows attention."""
    stream = encode_below(parameters, inputs, mask, n_heads=n_heads)
    return _log_pattern(parameters, layer_norm(stream, parameters, "attention_norm"), mask, n_heads)


def encode_below(
    parameters: Parameters, inputs: Tensor, mask: Tensor, *, n_heads: int = 4, drop: Drop = no_dropout
) -> Tensor:
    """What the last layer reads [model, sentence × word, width]."""
    n_models, _, width = parameters["projection.weight"].shape
    rows = inputs.reshape(1, -1, inputs.shape[-1]).expand(n_models, -1, -1)
    projected = linear(drop(rows), parameters, "projection").view(n_models, *mask.shape, width)
    stream = (projected + timing_signal(mask.shape[1], width, inputs.device)).view(n_models, -1, width)
    layer = 0
    while f"layer{layer}.query.weight" in parameters:
        prefix = f"layer{layer}."
        own = {name.removeprefix(prefix): tensor for name, tensor in parameters.items() if name.startswith(prefix)}
        stream, _ = _layer(own, stream, mask, Attend(), n_heads, drop)
        layer += 1
    return stream


def read_answers(parameters: Parameters, stream: Tensor, queries: Tensor, weights: Tensor) -> Tensor:
    """The logits [model, text, class] of one token of each text when it attends by other weights in the last layer.

    `stream` is what that layer reads [model, text, word, width], `queries` where the tokens stand [text], and `weights`
    [model, text, head, word].
    """
    n_heads = weights.shape[2]
    normalised = layer_norm(stream.flatten(1, 2), parameters, "attention_norm")
    values = split_heads(linear(normalised, parameters, "value"), stream[0, :, :, 0], n_heads)
    mixed = (weights.unsqueeze(-2) @ values).flatten(2)
    own = stream[:, torch.arange(len(queries), device=queries.device), queries]
    answered = feed_forward(parameters, own + linear(mixed, parameters, "output"))
    return linear(layer_norm(answered, parameters, "final_norm"), parameters, "classifier").float()


def feed_forward(parameters: Parameters, stream: Tensor, drop: Drop = no_dropout) -> Tensor:
    """What follows attention in a layer [model, row, width]: two linears, with residual."""
    hidden = layer_norm(stream, parameters, "feed_forward_norm")
    for name in ("first", "second"):
        hidden = drop(linear(hidden, parameters, name).relu())
    return drop(stream + hidden)


def split_heads(vectors: Tensor, mask: Tensor, n_heads: int) -> Tensor:
    """[model, sentence × word, width] as [model, sentence, head, word, width of a head]."""
    return vectors.view(len(vectors), *mask.shape, n_heads, -1).transpose(2, 3)


def _layer(
    parameters: Parameters, stream: Tensor, mask: Tensor, attend: Attend, n_heads: int, drop: Drop
) -> tuple[Tensor, Tensor | None]:
    log_pattern = None
    if not attend.is_absent:
        normalised = layer_norm(stream, parameters, "attention_norm")
        pattern = attend.pattern
        if pattern is None:
            log_pattern = _log_pattern(parameters, normalised, mask, n_heads)
            pattern = log_pattern.exp()
        mixed = drop(pattern) @ split_heads(linear(normalised, parameters, "value"), mask, n_heads)
        written = linear(mixed.transpose(2, 3).reshape(stream.shape), parameters, "output")
        stream = stream + written if attend.has_residual else written
    return feed_forward(parameters, drop(stream), drop), log_pattern


def _log_pattern(parameters: Parameters, normalised: Tensor, mask: Tensor, n_heads: int) -> Tensor:
    query, key = (split_heads(linear(normalised, parameters, name), mask, n_heads) for name in ("query", "key"))
    scores = query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5
    return scores.float().masked_fill(~mask[:, None, None, :], _HIDDEN).log_softmax(-1)


def _draw_norm(parameters: dict[str, Tensor], name: str, width: int) -> None:
    parameters[f"{name}.weight"], parameters[f"{name}.bias"] = torch.ones(width), torch.zeros(width)
