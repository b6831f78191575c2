"""`attention_patterns`, `attention_heads`, `attention_pattern` of CircuitsVis: weights [head, destination, source]."""

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

from headscope.compat.bertviz.tokens import tokens_of
from headscope.errors import HeadscopeWarning, InputError
from headscope.traces import Tokens, Trace
from headscope.views import View, head_view, model_view

_NAME = re.compile(r"L?(\d+)\s*[.H]\s*(\d+)", re.IGNORECASE)


@dataclass(frozen=True, eq=False, repr=False)
class Rendered(View):
    """A view that also answers to what CircuitsVis's `RenderedHTML` has: as a text, it is the page's code."""

    def __str__(self) -> str:
        return self.html()

    def __html__(self) -> str:
        return self.html()

    def show_code(self) -> str:
        """The page's code, which needs nothing else."""
        return self.html()

    @property
    def local_src(self) -> str:
        """The same; there is no other with code from elsewhere."""
        return self.html()

    cdn_src = local_src


def attention_patterns(
    tokens: Any, attention: Any = None, attention_head_names: Sequence[str] | None = None
) -> Rendered:
    """Lines between tokens, of all heads; one trace may stand for tokens and attention: its first layer is shown."""
    trace, first = _trace(attention, tokens, attention_head_names)
    return _render(head_view(trace, first, form="lines"))


def attention_heads(
    attention: Any,
    tokens: Any = None,
    attention_head_names: Sequence[str] | None = None,
    max_value: float | None = None,
    min_value: float | None = None,
    negative_color: str | None = None,
    positive_color: str | None = None,
    mask_upper_tri: bool | None = None,
) -> Rendered:
    """A small map of each head; choose one to see it between tokens, or as a matrix."""
    _warn_no_effect(max_value, min_value, negative_color, positive_color)
    trace, _ = _trace(attention, tokens, attention_head_names, mask_upper_tri)
    return _render(model_view(trace))


def attention_pattern(
    tokens: Any,
    attention: Any = None,
    max_value: float | None = None,
    min_value: float | None = None,
    negative_color: str | None = None,
    show_axis_labels: bool | None = None,
    positive_color: str | None = None,
    mask_upper_tri: bool | None = None,
) -> Rendered:
    """One head [destination, source] as a matrix; of a trace, the first."""
    _warn_no_effect(max_value, min_value, negative_color, positive_color)
    if not isinstance(tokens, Trace) and not isinstance(attention, Trace):
        weights = _tensor(attention)
        if weights.ndim != 2:
            raise InputError(
                f"attention_pattern shows one head, [destination, source], and was given {_shape(weights)}: give one "
                "head, attention[0], or use attention_patterns."
            )
        attention = weights[None]
    trace, first = _trace(attention, tokens, None, mask_upper_tri)
    return _render(head_view(trace, f"{first}H0", form="matrix"))


def _render(view: View) -> Rendered:
    return Rendered(**{field.name: getattr(view, field.name) for field in fields(view)})


# Arguments


def _trace(
    attention: Any, tokens: Any, names: Sequence[str] | None, mask_upper_tri: bool | None = None
) -> tuple[Trace, str]:
    """A trace of the weights, and its first layer."""
    trace = next((argument for argument in (attention, tokens) if isinstance(argument, Trace)), None)
    if trace is not None:
        return trace, str(next(iter(trace.layers)))
    if tokens is None:
        raise InputError(
            "tokens are needed: attention_heads(attention, tokens), attention_patterns(tokens, attention)."
        )
    weights = _tensor(attention)
    if weights.ndim == 4 and weights.shape[0] == 1:
        weights = weights[0]
    if weights.ndim != 3:
        raise InputError(f"attention is [head, destination, source], and was given as {_shape(weights)}.")
    if bool((weights < 0).any()):
        raise InputError(
            "some values are below 0, which attention weights are not. To see what two runs do differently, "
            "use hs.compare(one, other); for scores before the softmax, hs.head_view(trace, what='scores')."
        )
    if mask_upper_tri:
        weights = weights.tril()
    layers = _layers(weights, names)
    unnumbered = Trace.from_patterns(list(layers.values()), _tokens(tokens), model="attention")
    sites = [replace(site, layer=number) for site, number in zip(unnumbered.layers, layers, strict=True)]
    named = {site: replace(layer, site=site) for site, layer in zip(sites, unnumbered.layers.values(), strict=True)}
    return replace(unnumbered, layers=named), str(sites[0])


def _tensor(attention: Any) -> Tensor:
    if attention is None:
        raise InputError("attention is needed: weights [head, destination, source], or a trace.")
    try:
        return torch.as_tensor(attention).detach()
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"attention is no array of numbers [head, destination, source]: {error}.") from error


def _tokens(tokens: Any) -> Tokens:
    if (
        isinstance(tokens, str)
        or not isinstance(tokens, Sequence)
        or not all(isinstance(token, str) for token in tokens)
    ):
        raise InputError('tokens is a list of texts, one a token: ["A", " person"].')
    return tokens_of(tokens, prettify=True)


def _layers(weights: Tensor, names: Sequence[str] | None) -> dict[int, Tensor]:
    """By the number of the layer, where the names of heads say which they are of; else all in one, in their order."""
    if names is None:
        return {0: weights}
    if len(names) != len(weights):
        raise InputError(f"attention_head_names has {len(names)} names for {len(weights)} heads.")
    matches = [_NAME.fullmatch(str(name).strip()) for name in names]
    places = {(int(match[1]), int(match[2])): number for number, match in enumerate(matches) if match}
    layers = sorted({layer for layer, _ in places})
    n_heads = 1 + max((head for _, head in places), default=-1)
    if len(places) == len(names) == len(layers) * n_heads:
        return {layer: weights[[places[layer, head] for head in range(n_heads)]] for layer in layers}
    numbering = ", ".join(f"L0H{number} is {name}" for number, name in enumerate(names))
    warnings.warn(f"heads are shown as L0H0, L0H1, … in their order: {numbering}.", HeadscopeWarning, stacklevel=4)
    return {0: weights}


def _warn_no_effect(*options: Any) -> None:
    if any(option is not None for option in options):
        warnings.warn(
            "max_value, min_value, negative_color and positive_color have no effect: weights are from 0 to 1, on the "
            "root scale, in colours that colour-blind readers can tell apart.",
            HeadscopeWarning,
            stacklevel=3,
        )


def _shape(weights: Tensor) -> str:
    return str(list(weights.shape))
