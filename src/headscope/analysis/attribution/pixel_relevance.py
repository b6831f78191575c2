"""Relevance of single pixels: what they brought to an answer by way of their patch.

Relevance is brought back to what enters the first layer (`relevance`), and from there by gradient × input through the
patch embedding, which is affine: a patch's relevance is the sum over its pixels and what it has without them (its
position and the embedding's bias).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headscope.analysis.attribution import logit_target
from headscope.analysis.attribution.logit_target import Target
from headscope.analysis.attribution.lrp_rules import Rule, Rules
from headscope.analysis.attribution.relevance import check_request, entries
from headscope.errors import CaptureError, InputError
from headscope.interventions import Intervention, edit
from headscope.models import Model
from headscope.progress import Cancel
from headscope.traces import Tokens

# How far twice the pixels may be from twice their effect, relative to that: beyond it the embedding is not affine.
_TOLERANCE = 1e-3


@dataclass(frozen=True, eq=False)
class PixelRelevance:
    """The relevance of each pixel to one logit [row, column], summed over colours; 0 for pixels of no patch.

    `without_pixels` [token] is what tokens bring by themselves: position and bias of a patch, all of [CLS]. A pixel's
    zero is that of the processor's normalisation, mostly the mean colour of its training images.
    """

    answer: str
    logit: float
    values: np.ndarray
    without_pixels: np.ndarray
    tokens: Tokens

    def __repr__(self) -> str:
        height, width = self.values.shape
        return f"PixelRelevance({self.answer!r} {self.logit:.2f}, {height} × {width} pixels)"

    def by_patch(self) -> np.ndarray:
        """Sums over the pixels of each patch and what it has without them [row, column]: the patches' relevance."""
        assert self.tokens.grid is not None  # asked when it was made
        rows, columns = self.tokens.grid
        height, width = self.values.shape[0] // rows, self.values.shape[1] // columns
        cells = self.values[: rows * height, : columns * width].reshape(rows, height, columns, width)
        return cells.sum((1, 3)) + self.without_pixels[-rows * columns :].reshape(rows, columns)


class _Entered(Exception):
    """Carries what enters the first layer, so that nothing behind it runs."""

    def __init__(self, stream: Tensor):
        super().__init__()
        self.stream = stream


def pixel_relevance(
    model: Model,
    source: Any,
    *,
    target: Target | None = None,
    rule: Rule = "cp",
    interventions: Sequence[Intervention] = (),
    cancel: Cancel | None = None,
) -> PixelRelevance:
    """Where in a picture a logit came from, pixel by pixel; options as for `relevance`.

    >>> import headscope as hs, numpy as np
    >>> pixels = hs.analysis.pixel_relevance(hs.load("builtin:vit"), np.full((32, 32, 3), 128, np.uint8))
    >>> pixels.values.shape, pixels.by_patch().shape
    ((32, 32), (8, 8))
    """
    edits = check_request(model, rule, interventions, ())
    questions = logit_target.ask(model, source, None, edits, cancel=cancel)
    if len(questions) != 1 or len(questions[0].positions) > 1:
        raise InputError("pixel relevance explains one answer to one picture.")
    question = questions[0]
    pixels = question.inputs.model_inputs.get("pixel_values")
    if pixels is None or pixels.ndim != 3:
        raise InputError(f"{model.name} was given no picture as rows and columns of pixels here.")
    rules = Rules(rule, model.module, entries(model))
    logits, _ = logit_target.answer(
        model,
        [question],
        [*edits, edit(None, "pattern", rules.pattern)],
        grad=True,
        cancel=cancel,
        inside=rules,
        only_spans=True,
    )
    ids = logit_target.target_ids(model, target, logits[0], question)
    chosen = logits[0].gather(1, ids)[0]
    total = chosen[0] - chosen[1] if len(chosen) > 1 else chosen[0]
    rules.check(total)
    stack = _picture_stack(question.tokens, rules)
    (slope,) = torch.autograd.grad(total, rules.streams[stack])
    values, rest = _through_embedding(model, entries(model)[stack], pixels, rules.streams[stack].detach(), slope)
    tokens = question.tokens[stack]
    name = logit_target.name_of(model, int(ids[0, 0]), logits[0].shape[-1], question.tokens[question.stack])
    return PixelRelevance(name, float(total.detach()), values, rest, tokens)


def _picture_stack(tokens: dict[str, Tokens], rules: Rules) -> str:
    """The stack whose tokens are the patches of the picture, row by row."""
    for stack, known in tokens.items():
        stream = rules.streams.get(stack)
        has_grid = known.kind == "patches" and known.grid is not None
        if has_grid and stream is not None and tuple(stream.shape[:-1]) == (1, len(known)):
            return stack
    raise InputError("no layer of this model reads the whole picture as patches, row by row.")


def _through_embedding(
    model: Model, block: str, pixels: Tensor, stream: Tensor, slope: Tensor
) -> tuple[np.ndarray, np.ndarray]:
    """Relevance of pixels [row, column] and of what tokens have without them [token]."""
    picture = model.to_device(pixels)[None]
    leaf = picture.detach().clone().requires_grad_()
    own = _entering(model, block, leaf)
    if not torch.allclose(own.detach(), stream, atol=1e-4, rtol=1e-4):
        raise CaptureError("edits change what enters the first layer: its pixels cannot be followed there.")
    with torch.no_grad():
        empty, doubled = (_entering(model, block, picture * factor) for factor in (0.0, 2.0))
        own_part = own - empty
        error = (doubled - empty - 2 * own_part).norm() / own_part.norm().clamp_min(1e-12)
    if float(error) > _TOLERANCE:
        raise CaptureError(
            f"the patch embedding of {model.name} is not affine (a norm or an activation before the first layer), so "
            "relevance of its patches does not come apart into pixels."
        )
    (gradient,) = torch.autograd.grad(own, leaf, slope.to(own))
    values = (leaf.detach() * gradient)[0].double().sum(0)
    rest = (empty * slope.to(empty))[0].double().sum(-1)
    return values.cpu().numpy(), rest.cpu().numpy()


def _entering(model: Model, block: str, pixels: Tensor) -> Tensor:
    """What enters a block when the module sees these pixels."""

    def stop(module: Any, args: tuple, kwargs: dict[str, Any]) -> None:
        tensors = [tensor for tensor in (*args, *kwargs.values()) if isinstance(tensor, Tensor)]
        raise _Entered(tensors[0])

    handle = model.module.get_submodule(block).register_forward_pre_hook(stop, with_kwargs=True)
    try:
        model.module(pixel_values=pixels)
    except _Entered as entered:
        return entered.stream
    finally:
        handle.remove()
    raise CaptureError(f"{model.name} does not run {block} on a picture alone.")
