"""`head_view` and `model_view` of BertViz 1.4.1: attention as a model returns it, tokens as a tokenizer spells them."""

import atexit
import functools
import itertools
import logging
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from headscope.compat.bertviz.attention import layers_of
from headscope.compat.bertviz.tokens import tokens_of
from headscope.errors import InputError, UnknownHeadError
from headscope.scores import Scores
from headscope.sites import Site
from headscope.traces import Tokens, Trace
from headscope.views import View
from headscope.views import head_view as our_head_view
from headscope.views import model_view as our_model_view
from headscope.views.saved_page import frame

_log = logging.getLogger("headscope")
_count = itertools.count(1)


@dataclass(frozen=True)
class Html:
    """What `html_action='return'` gives: `.data` is the whole page; a notebook shows it in a frame."""

    data: str
    title: str

    def _repr_html_(self) -> str:
        return frame(self.data, self.title)


def head_view(
    attention: Any = None,
    tokens: Sequence[str] | None = None,
    sentence_b_start: int | None = None,
    prettify_tokens: bool = True,
    layer: int | None = None,
    heads: Sequence[int] | None = None,
    encoder_attention: Any = None,
    decoder_attention: Any = None,
    cross_attention: Any = None,
    encoder_tokens: Sequence[str] | None = None,
    decoder_tokens: Sequence[str] | None = None,
    include_layers: Sequence[int] | None = None,
    html_action: str = "view",
) -> View | Html | None:
    """BertViz's head view. `attention` is one tensor [1, head, query, key] a layer, or what `generate()` returns."""
    _check_action(html_action)
    attention_by_stack = {"encoder": encoder_attention, "decoder": decoder_attention, "cross": cross_attention}
    named = {"encoder": encoder_tokens, "decoder": decoder_tokens}
    trace = _trace(attention, tokens, sentence_b_start, prettify_tokens, attention_by_stack, named)
    trace = _with_layers(trace, include_layers)
    numbers = sorted({site.layer for site in trace.layers})
    if layer is not None and layer not in numbers:
        raise InputError(f"Layer {layer} is not in include_layers: {numbers}")
    site = next(site for site in trace.layers if layer is None or site.layer == layer)
    chosen = None if heads is None else _indices("heads", heads, trace.layers[site].n_heads)
    view = our_head_view(trace, site if chosen is None else [site.head(index) for index in chosen])
    return finish(view, html_action)


def model_view(
    attention: Any = None,
    tokens: Sequence[str] | None = None,
    sentence_b_start: int | None = None,
    prettify_tokens: bool = True,
    display_mode: str = "dark",
    encoder_attention: Any = None,
    decoder_attention: Any = None,
    cross_attention: Any = None,
    encoder_tokens: Sequence[str] | None = None,
    decoder_tokens: Sequence[str] | None = None,
    include_layers: Sequence[int] | None = None,
    include_heads: Sequence[int] | None = None,
    html_action: str = "view",
) -> View | Html | None:
    """BertViz's model view. Heads that are not in `include_heads` are not drawn, and the others keep their numbers."""
    _check_action(html_action)
    if display_mode not in ("dark", "light"):
        raise InputError(f"display_mode={display_mode!r} is not known: choose 'dark' or 'light'.")
    attention_by_stack = {"encoder": encoder_attention, "decoder": decoder_attention, "cross": cross_attention}
    named = {"encoder": encoder_tokens, "decoder": decoder_tokens}
    trace = _trace(attention, tokens, sentence_b_start, prettify_tokens, attention_by_stack, named)
    trace = _with_layers(trace, include_layers)
    if include_heads is None:
        return finish(our_model_view(trace, theme=display_mode), html_action)  # type: ignore[arg-type]
    wanted = set(_indices("include_heads", include_heads, max(layer.n_heads for layer in trace.layers.values())))
    included = Scores("included", {head: float(head.index in wanted) for head in trace.heads})
    focus = next(head for head in trace.heads if head.index in wanted)
    view = our_model_view(trace, focus, colour=included, least=0.5, theme=display_mode)  # type: ignore[arg-type]
    return finish(view, html_action)


# Arguments


def _trace(
    attention: Any,
    tokens: Sequence[str] | None,
    second: int | None,
    prettify: bool,
    attention_by_stack: dict[str, Any],
    named: dict[str, Sequence[str] | None],
) -> Trace:
    attention_by_stack = {stack: weights for stack, weights in attention_by_stack.items() if weights is not None}
    known = {stack: tokens for stack, tokens in named.items() if tokens is not None}
    if attention is not None:
        if tokens is None:
            raise InputError("'tokens' is required")
        if attention_by_stack or known:
            raise InputError(
                "If you specify 'attention' you may not specify any encoder-decoder arguments. This argument is only "
                "for self-attention models."
            )
        attention_by_stack, known = {"main": attention}, {"main": tokens}
    elif not attention_by_stack:
        raise InputError("You must specify at least one attention argument.")
    elif second is not None:
        raise InputError("sentence_b_start is for 'attention' and 'tokens': leave it out for an encoder-decoder.")
    needed = {"main": ("main",), "encoder": ("encoder",), "decoder": ("decoder",), "cross": ("encoder", "decoder")}
    for stack in attention_by_stack:
        for side in needed[stack]:
            if side not in known:
                raise InputError(f"'{side}_tokens' required if '{stack}_attention' is not None")
    layers = {
        stack: layers_of(weights, "attention" if stack == "main" else f"{stack}_attention")
        for stack, weights in attention_by_stack.items()
    }
    texts = {
        side: _tokens(side, known[side], attention_by_stack, layers, prettify, second)
        for side in dict.fromkeys(side for stack in attention_by_stack for side in needed[stack])
    }
    return Trace.from_patterns(layers, texts, model="attention")


def _tokens(
    side: str,
    named: Sequence[str],
    attention_by_stack: dict[str, Any],
    layers: dict[str, Any],
    prettify: bool,
    second: int | None,
) -> Tokens:
    """The tokens of one side, as many as its attention has positions."""
    own = list(named)
    for stack, axis in ((side, -2), (side, -1), ("cross", -1 if side == "encoder" else -2)):
        if stack not in layers or (stack == "cross" and side == "main"):
            continue
        length = layers[stack][0].shape[axis]
        is_generated = not hasattr(attention_by_stack[stack][0], "shape")
        if is_generated and len(own) == length + 1 and side != "encoder":
            own = own[:-1]  # written last, and never read
        if len(own) != length:
            raise InputError(
                f"Attention has {length} positions, while number of tokens is {len(own)} for tokens: "
                f"{' '.join(map(str, own[:200]))}"
            )
    return tokens_of(own, prettify=prettify, second=second)


def _with_layers(trace: Trace, include: Sequence[int] | None) -> Trace:
    """Some of the layers, of every stack that has them; they keep their numbers."""
    if include is None:
        return trace
    count = 1 + max(site.layer for site in trace.layers)
    chosen = set(_indices("include_layers", include, count))
    layers: dict[Site, Any] = {site: layer for site, layer in trace.layers.items() if site.layer in chosen}
    return replace(trace, layers=layers)


def _indices(name: str, chosen: Sequence[int], count: int) -> list[int]:
    indices = [int(index) for index in chosen]
    what = "layers" if "layers" in name else "heads"
    if not indices:
        raise InputError(f"{name} is empty, so there would be nothing to see: leave it out for all {count} {what}.")
    if wrong := [index for index in indices if not 0 <= index < count]:
        raise UnknownHeadError(
            f"{name}={indices} goes beyond the {count} {what}, 0 to {count - 1}: there is no {wrong[0]}."
        )
    return indices


# What to do with it


def _check_action(action: str) -> None:
    if action not in ("view", "return"):
        raise InputError("'html_action' parameter must be 'view' or 'return'")


def finish(view: View, action: str) -> View | Html | None:
    """What BertViz does with a view: show it in a notebook, or return its page."""
    _check_action(action)
    if action == "return":
        return Html(view.html(), view.title)
    if _in_notebook():
        from IPython.display import display  # pyright: ignore[reportMissingImports]

        display(view)
        return None
    path = _folder() / f"{view.kind}_view_{next(_count)}.html"
    view.save(path)
    _log.warning(
        "the %s view is in %s: open it in a browser. It is removed when Python ends; .save('view.html') of what is "
        "returned keeps it.",
        view.kind,
        path,
    )
    return view


@functools.cache
def _folder() -> Path:
    """Where pages lie for as long as this process runs."""
    folder = Path(tempfile.mkdtemp(prefix="headscope-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _in_notebook() -> bool:
    """Whether output goes to a notebook; IPython in a terminal has no place for a page."""
    running = sys.modules.get("IPython")
    shell = running.get_ipython() if running is not None else None
    return shell is not None and hasattr(shell, "kernel")
