"""The options of a head view: fields of the selection in the words that people type, checked against a trace."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypedDict

from headscope.choices import Axis, By, Direction, Filter, Form, Hide, Pair, Side, What
from headscope.errors import InputError
from headscope.sites import Site
from headscope.traces import Trace
from headscope.views.media import can_roll
from headscope.views.selection import (
    MOST_TOP,
    Places,
    Selection,
    Spot,
    check_form,
    check_step,
    check_what,
    choice,
    heads_of,
    hidden_groups,
    off_tokens,
    share,
    spot_of,
)
from headscope.views.table import from_start


class HeadOptions(TypedDict, total=False):
    """What a head view draws, and how: `hs.head_view(trace, "L3", by="words", hide="special", top=3)`."""

    form: Form
    """"lines", "matrix", "image" (over the picture) or "time" (along the sound). Default: "auto", by the input."""
    axis: Axis
    """Lines between two columns ("vertical") or two rows ("horizontal") of tokens. Default: "vertical"."""
    average: bool
    """Draw the mean of the heads instead of each. Default: False."""
    what: What
    """Attention weights ("pattern"), "contribution" or "scores" before the softmax. Default: "pattern"."""
    by: By
    """Read the input by "tokens", "words" or "sentences". Default: "tokens"."""
    hide: Hide | Iterable[Hide]
    """Groups to leave out, "special" and "first" tokens; rows are renormalised to sum to 1. Default: none."""
    off: Iterable[int | str]
    """Positions to leave out; where there are several stacks, as "encoder:3". Default: none."""
    filter: Filter | None
    """Which lines are drawn: "all", "threshold", "mass" or "top". Default: the one whose number is given."""
    threshold: float | None
    """Draw weights from this one on (0 to 1)."""
    mass: float | None
    """Draw the strongest weights that make up this share of each query's (0 to 1)."""
    top: int | None
    """Draw the strongest few of each query (1 to 64)."""
    pair: Pair
    """Between which texts of a pair: "AB" is from a query in A to a key in B. Default: "all"."""
    token: int | tuple[Side, int] | Spot | None
    """One query alone, or one key as ("key", 5); a negative position counts from the end. Default: None, for all."""
    direction: Direction
    """Over a picture: what the token attends to ("from"), or what attends to it ("to"). Default: "from"."""
    arrows: bool
    """Over a picture: an arrow from each patch to its strongest. Default: False."""
    rollout: bool
    """Over a picture: attention followed through all layers up to this one (without heads, up to the last)."""
    step: int | None
    """Of generated text: the step, from 0, that the page opens with. Default: None, for all."""


_CHOICES = {"axis": Axis, "by": By, "pair": Pair, "direction": Direction}
_NUMBERS = ("threshold", "mass", "top")
_NAMES = tuple(HeadOptions.__annotations__)


def head_selection(
    trace: Trace, heads: Places | None, start: Selection | None, options: "HeadOptions | dict[str, Any]"
) -> Selection:
    """The selection of a head view: what it starts from, changed by the options; refused where it does not fit."""
    if unknown := [name for name in options if name not in _NAMES]:
        raise InputError(f"a head view has no option {unknown[0]!r}: choose from {', '.join(_NAMES)}.")
    base = start or Selection()
    values: dict[str, Any] = {name: getattr(base, name) for name in _NAMES} | dict(options)
    for name, kind in _CHOICES.items():
        choice(name, values[name], kind)
    site, indices = _heads(trace, heads, base, values["rollout"])
    layer, hide, off = trace.layers[site], hidden_groups(values["hide"]), off_tokens(trace, values["off"])
    check_form(trace, layer, values["form"], values["rollout"])
    check_what(layer, values["what"], bool(hide or off or values["by"] != "tokens"))
    _check_pair(trace, site, values["pair"])
    selection = replace(
        base,
        scale="head",
        site=str(site),
        head=base.head if base.head in indices else indices[0],
        heads=indices,
        hide=hide,
        off=off,
        token=spot_of(values["token"]),
        step=check_step(trace, options["step"]) if "step" in options else base.step,
        **{name: values[name] for name in ("form", "what", *_CHOICES)},
        **{name: bool(values[name]) for name in ("average", "arrows", "rollout")},
        **_filter(base, dict(options)),
    )
    return from_start(trace, selection)


def _heads(trace: Trace, heads: Places | None, base: Selection, rollout: bool) -> tuple[Site, list[int]]:
    """The layer and its heads: those named, else those of the selection, else all of one layer."""
    if heads is None and base.site:
        if not base.heads:
            raise InputError("no head is selected: the selection's `heads` is empty.")
        heads = [f"{base.site}H{index}" for index in base.heads]
    if heads is None and rollout:
        heads = next((site for site in reversed(trace.layers) if can_roll(trace, site)), None)
    return heads_of(trace, heads)


def _check_pair(trace: Trace, site: Site, pair: Pair) -> None:
    segments = {token.segment for token in trace.tokens[site.stack] if not token.special}
    if pair != "all" and (site.kind == "cross" or segments != {"A", "B"}):
        raise InputError(f"pair={pair!r} needs a pair of texts, and {site} has none: leave it out.")


def _filter(base: Selection, options: dict[str, Any]) -> dict[str, Any]:
    """The filter that was named, or that the one number given belongs to; and the numbers of all three."""
    numbers = {name: options[name] for name in _NUMBERS if options.get(name) is not None}
    name = options.get("filter")
    if name is None:
        if len(numbers) > 1:
            raise InputError(f"{' and '.join(numbers)} are two filters: give one, or say which with filter=.")
        name = next(iter(numbers), base.filter)
    choice("filter", name, Filter)
    threshold, mass, top = (numbers.get(number, getattr(base, number)) for number in _NUMBERS)
    if isinstance(top, bool) or not isinstance(top, int) or not 1 <= top <= MOST_TOP:
        raise InputError(f"top={top!r} is not a whole number from 1 to {MOST_TOP}.")
    return {"filter": name, "threshold": share("threshold", threshold), "mass": share("mass", mass), "top": top}
