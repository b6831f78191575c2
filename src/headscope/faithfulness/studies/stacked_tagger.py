"""The tagger of the chunking report, many at a time: one pre-norm layer of four heads between two linear maps.

Frozen word vectors [300] → projection to 128, without bias → sines of the position → attention with residual → two
linears, each followed by ReLU, with residual → layer norm → 25 tags. 140,953 trained parameters.
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


class Tagged(NamedTuple):
    """Logits [model, sentence, word, class], and the pattern [model, sentence, head, query, key] with its logarithm.

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
    for name in ("query", "key", "value", "output"):
        draw_linear(parameters, name, (width, width), seed, bias=False)
    for name in ("first", "second"):
        draw_linear(parameters, name, (width, width), seed, bias=True)
    for name in ("attention_norm", "feed_forward_norm", "final_norm"):
        parameters[f"{name}.weight"], parameters[f"{name}.bias"] = torch.ones(width), torch.zeros(width)
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
    attend = attend or Attend()
    stream = _stream(parameters, inputs, mask, drop)
    log_pattern = None
    if not attend.is_absent:
        normalised = layer_norm(stream, parameters, "attention_norm")
        pattern = attend.pattern
        if pattern is None:
            log_pattern = _log_pattern(parameters, normalised, mask, n_heads)
            pattern = log_pattern.exp()
        mixed = drop(pattern) @ _heads(linear(normalised, parameters, "value"), mask, n_heads)
        written = linear(mixed.transpose(2, 3).reshape(stream.shape), parameters, "output")
        stream = stream + written if attend.has_residual else written
    stream = drop(stream)
    hidden = layer_norm(stream, parameters, "feed_forward_norm")
    for name in ("first", "second"):
        hidden = drop(linear(hidden, parameters, name).relu())
    stream = layer_norm(drop(stream + hidden), parameters, "final_norm")
    logits = linear(stream, parameters, "classifier").float().view(len(stream), *mask.shape, -1)
    return Tagged(logits, log_pattern)


def own_log_pattern(parameters: Parameters, inputs: Tensor, mask: Tensor, *, n_heads: int = 4) -> Tensor:
    """The logarithm of the patterns of taggers, without running what follows attention."""
    stream = _stream(parameters, inputs, mask, no_dropout)
    return _log_pattern(parameters, layer_norm(stream, parameters, "attention_norm"), mask, n_heads)


def _stream(parameters: Parameters, inputs: Tensor, mask: Tensor, drop: Drop) -> Tensor:
    """What the layer reads [model, word, width]: projected word vectors with the sines of their positions."""
    n_models, _, width = parameters["projection.weight"].shape
    rows = inputs.reshape(1, -1, inputs.shape[-1]).expand(n_models, -1, -1)
    projected = linear(drop(rows), parameters, "projection").view(n_models, *mask.shape, width)
    return (projected + timing_signal(mask.shape[1], width, inputs.device)).view(n_models, -1, width)


def _log_pattern(parameters: Parameters, normalised: Tensor, mask: Tensor, n_heads: int) -> Tensor:
    query, key = (_heads(linear(normalised, parameters, name), mask, n_heads) for name in ("query", "key"))
    scores = query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5
    return scores.float().masked_fill(~mask[:, None, None, :], _HIDDEN).log_softmax(-1)


def _heads(vectors: Tensor, mask: Tensor, n_heads: int) -> Tensor:
    """[model, word, width] as [model, sentence, head, word, width of a head]."""
    return vectors.view(len(vectors), *mask.shape, n_heads, -1).transpose(2, 3)
