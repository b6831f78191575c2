"""What is selected in a live view, in Python's words; and Python's words for it, checked, as the page's selection."""

import types
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from headscope.choices import Scale, Side
from headscope.errors import InputError
from headscope.sites import Head, Site
from headscope.traces import Trace
from headscope.views.selection import Selection, heads_of, spot_of
from headscope.views.table import chosen_token, from_start

_NAMES = tuple(field.name for field in fields(Selection))
_KINDS = get_type_hints(Selection)


@dataclass(frozen=True)
class SelectedToken:
    """The token that was picked: on which side, where among the model's own tokens, and its text.

    Of a word or a sentence, `positions` has all its tokens.
    """

    side: Side
    stack: str
    positions: tuple[int, ...]
    text: str

    @property
    def position(self) -> int:
        """Where it begins."""
        return self.positions[0]


@dataclass(frozen=True)
class Selected:
    """What is on screen: scale, head in focus, heads drawn, token picked; `selection` has every option."""

    scale: Scale
    head: Head
    heads: tuple[Head, ...]
    token: SelectedToken | None
    selection: Selection

    def __repr__(self) -> str:
        heads = ", ".join(map(str, self.heads))
        token = f"{self.token.side} {self.token.position} {self.token.text!r}" if self.token else None
        return f"Selected(scale={self.scale!r}, head={self.head}, heads=[{heads}], token={token})"

    @property
    def site(self) -> Site:
        """The layer."""
        return self.head.site


def selected_of(trace: Trace, selection: Selection) -> Selected:
    """A selection in Python's words; refused where the trace has no such place."""
    layer, selection = trace.layer(selection.site), from_start(trace, selection)
    heads = [selection.head, *selection.heads]
    if outside := [index for index in heads if not 0 <= index < layer.n_heads]:
        raise InputError(f"{layer.site} has no head {outside[0]}: it has {layer.n_heads}, H0 to H{layer.n_heads - 1}.")
    token = None
    if selection.token is not None:
        token = SelectedToken(selection.token.side, *chosen_token(trace, selection))
    heads_drawn = tuple(layer.site.head(index) for index in selection.heads)
    return Selected(selection.scale, layer.site.head(selection.head), heads_drawn, token, selection)


def select(trace: Trace, now: Selection, choice: Any) -> Selected:
    """What Python asks for, as a change of what is there now.

    `wanted` is a head (`"L3H2"`), several of one layer, a layer, or a dictionary of options by name: those of
    `head_view` and `model_view`, `scale`, and `heads`.
    """
    if isinstance(choice, Selected):
        return selected_of(trace, change_selection(choice.selection.__dict__, now))
    if isinstance(choice, Selection):
        return selected_of(trace, change_selection(choice.__dict__, now))
    if not isinstance(choice, Mapping):
        choice = {"heads": choice}
    options = dict(choice)
    if "heads" in options or isinstance(options.get("head"), str | Head):
        focus = options.pop("head", None)
        site, heads_drawn = heads_of(trace, options.pop("heads", focus))
        head = heads_drawn[0] if focus is None else heads_of(trace, focus)[1][0]
        options = {"site": str(site), "head": head, "heads": heads_drawn} | options
    if "token" in options:
        options["token"] = spot_of(options["token"])
    if unknown := [name for name in options if name not in _NAMES]:
        raise InputError(f"there is nothing to select by {unknown[0]!r}: choose from {', '.join(_NAMES)}.")
    selection = change_selection(options, now)
    if "token" not in options and (selection.by, selection.hide) != (now.by, now.hide):
        selection = replace(selection, token=None)  # its position was among tokens read otherwise
    return selected_of(trace, selection)


def change_selection(options: Mapping[str, Any], now: Selection) -> Selection:
    """The selection with the options given, each of the type and from the choices that it has."""
    changes = {}
    for name in _NAMES:
        if name not in options:
            continue
        value = options[name]
        value = spot_of(value) if name == "token" else value
        if not _fits(value, _KINDS[name]):
            hint = f": choose one of {', '.join(map(repr, get_args(_KINDS[name])))}" if _is_choice(name) else ""
            raise InputError(f"{name}={value!r} cannot be selected{hint}.")
        changes[name] = list(value) if isinstance(value, list | tuple) else value
    return replace(now, **changes)


def _is_choice(name: str) -> bool:
    return get_origin(_KINDS[name]) is Literal


def _fits(value: Any, kind: Any) -> bool:
    """Whether a value is of a type, as far as selections have types."""
    origin = get_origin(kind)
    if origin is Literal:
        return isinstance(value, str | int) and value in get_args(kind)
    if origin in (Union, types.UnionType):
        return any(_fits(value, member) for member in get_args(kind))
    if origin in (list, tuple):
        members = [member for member in get_args(kind) if member is not ...]
        return isinstance(value, list | tuple) and all(any(_fits(x, member) for member in members) for x in value)
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return isinstance(value, kind)
