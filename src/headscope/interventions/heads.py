"""Edits of a head's output, the mixed values: silence, scale, mean-ablate, gate, patch."""

from typing import Any, Literal

import torch
from torch import Tensor

from headscope.errors import InterventionError
from headscope.interventions.edits import Mean, Patch, Scale, finite
from headscope.interventions.intervention import Intervention, call_text, intervene
from headscope.sites import Head, Site, place_of
from headscope.traces.tokens import TokenChoice
from headscope.traces.trace import Trace


def silence(head: str | Head | Site, *, tokens: TokenChoice | None = None) -> Intervention:
    """Take a head (or a whole layer's heads) out: its output becomes zero, as if it had been pruned.

    >>> import headscope as hs
    >>> hs.silence("L3H2")
    hs.silence('L3H2')
    """
    return intervene(head, "mixed", Scale(0.0), tokens, call_text("silence", head, tokens=tokens))


def scale(head: str | Head | Site, factor: float, *, tokens: TokenChoice | None = None) -> Intervention:
    """Multiply a head's output by a number."""
    factor = finite(factor, "factor")
    return intervene(head, "mixed", Scale(factor), tokens, call_text("scale", head, factor, tokens=tokens))


def gate(head: str | Head | Site, factor: Tensor, *, tokens: TokenChoice | None = None) -> Intervention:
    """Multiply a head's output by a tensor that carries a gradient: one number, or one per head of a layer."""
    if not isinstance(factor, Tensor):
        raise InterventionError(f"a gate is a tensor, got {type(factor).__name__}: use scale for a plain number.")
    return intervene(head, "mixed", Scale(factor), tokens, call_text("gate", head, factor.detach(), tokens=tokens))


def mean_ablate(
    head: str | Head | Site, mean: Tensor | Trace | None = None, *, tokens: TokenChoice | None = None
) -> Intervention:
    """Replace a head's output by its mean: of this run's tokens, another trace's, or a tensor [dim] or [head, dim]."""
    if isinstance(mean, Trace):
        mean = torch.stack([mean.tensor("mixed", mean_head).float().mean(0) for mean_head in mean.find(head)])
    mean = None if mean is None else own_tensor(mean, "mean")
    return intervene(head, "mixed", Mean(mean), tokens, call_text("mean_ablate", head, mean, tokens=tokens))


def patch(
    head: str | Head | Site,
    source: Trace | Tensor,
    *,
    stage: Literal["query", "key", "value", "mixed", "residual", "neurons"] = "mixed",
    tokens: TokenChoice | None = None,
) -> Intervention:
    """Put what a head did in another run in place of what it does in this; or a layer's residual stream or MLP neurons.

    `source` is that run's trace, or a tensor [token, dim] ([head, token, dim] for a whole layer).
    """
    if stage not in ("query", "key", "value", "mixed", "residual", "neurons"):
        raise InterventionError(f"cannot patch {stage!r}: choose query, key, value, mixed, residual or neurons.")
    place = place_of(head)
    if isinstance(source, Trace):
        if stage in ("residual", "neurons"):
            source = source.tensor(stage, place)
        else:
            source = torch.stack([source.tensor(stage, source_head) for source_head in source.find(place)])
    values = own_tensor(source, "source")
    values = values[None] if values.ndim == 2 else values
    options = {"stage": None if stage == "mixed" else stage, "tokens": tokens}
    return intervene(place, stage, Patch(values), tokens, call_text("patch", head, values, **options))


def own_tensor(values: Any, name: str) -> Tensor:
    """A floating-point copy that nobody else can change."""
    try:
        values = torch.as_tensor(values).detach()
    except (TypeError, ValueError, RuntimeError) as error:
        raise InterventionError(
            f"{name} must be a tensor, or an array or list of numbers, got {values!r:.80}."
        ) from error
    return values.clone() if values.is_floating_point() else values.float()
