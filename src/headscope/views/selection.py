"""The selection that a view opens with. The page has its type, defaults and choices from here (`scripts/contract`)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from headscope.arguments import parsed_number
from headscope.choices import (
    Arcs,
    Axis,
    By,
    Compare,
    Direction,
    Filter,
    Fold,
    Form,
    Hide,
    Order,
    Pair,
    Scale,
    Side,
    Stream,
    Thumbnails,
    Vectors,
    What,
    Whose,
)
from headscope.errors import InputError, NotRecordedError, UnknownHeadError, UnknownTokenError
from headscope.sites import Head, Site
from headscope.traces import LayerRecord, Trace
from headscope.views.media import shown_in
from headscope.views.weights import no_contributions, no_scores

Places = str | Head | Site | Sequence["str | Head | Site"]

MOST_TOP = 64


@dataclass(frozen=True)
class Spot:
    """A token on one side, by its position among the tokens as read."""

    side: Side
    index: int


@dataclass(frozen=True)
class Selection:
    """What is looked at, and how. All views share one; it is in links and in saved pages."""

    scale: Scale = "model"
    site: str = ""
    """The attention layer in view, as Python prints it: `L3`, `encoder.L0`, `cross.L2`."""
    head: int = 0
    """The head in focus, by its index in that layer."""
    heads: list[int] = field(default_factory=list)
    """The heads of the layer that the head view draws; at least one."""
    average: bool = False
    """Draw the mean of these heads instead of each."""
    form: Form = "auto"
    """Lines between two columns of tokens, a matrix, over the picture, or along the sound. `auto` fits the input."""
    axis: Axis = "vertical"
    what: What = "pattern"
    by: By = "tokens"
    hide: list[Hide] = field(default_factory=list)
    """Groups of tokens that are hidden; rows are renormalised to sum to 1."""
    off: list[str] = field(default_factory=list)
    """Single tokens switched off, as `stack:position` in the model's own tokens."""
    filter: Filter = "all"
    """Which lines are drawn: all that are visible, those from `threshold` on, the strongest that make up a share `mass`
    of each query's weight, or the `top` strongest of each query."""
    threshold: float = 0.05
    mass: float = 0.7
    top: int = 3
    pair: Pair = "all"
    """Between which texts of a pair: AB is from a query in A to a key in B."""
    token: Spot | None = None
    """The token whose lines alone are drawn, as side and position among the tokens as read; null for all."""
    thumbnails: Thumbnails = "heat"
    """Model view: heads as heat maps or as lines."""
    sort: str = ""
    """Model view: the measure that heads are ordered by; empty for the order of layers."""
    colour: str = ""
    """Model view: the measure that heads are coloured by; empty for their weights."""
    find: str = ""
    """The last search for heads, as `app/find/findQuery.ts` writes it; empty for none."""
    least: float = 0.0
    """Model view: only heads whose colour measure is at least this share of its range; 0 for all."""
    order: Order = "index"
    """Neuron view: the order of neurons: by index, by |q × k| of what is attended to or of the key `against`, or (with
    `every`) those first that depend least on the token."""
    against: int | None = None
    every: Vectors | None = None
    """Neuron view: the vectors of all tokens instead of one query."""
    fold: list[Fold] = field(default_factory=list)
    """Neuron view: columns that are folded away."""
    compare: Compare = "off"
    """A second run: beside the first, or subtracted from it."""
    beside: str = ""
    """The head of the second run that stands beside, where that is another than the first's: `L3H2`, or empty."""
    stream: Stream = "lens"
    """Activations: what each layer would predict, norms of the residual stream and of what was written, cosines."""
    whose: Whose = "either"
    """Activations of two runs: whose prediction is followed. `either`: at each place, what changed most in A or B."""
    step: int | None = None
    """Of generated text: the step whose tokens alone are shown; null for all."""
    direction: Direction = "from"
    """Over a picture or a sound: what the token in focus attends to, or what attends to it."""
    arrows: bool = False
    """Over a picture: arrows from each patch to its strongest, as many as `mass` says."""
    rollout: bool = False
    """Over a picture: attention followed through all layers up to this one."""
    relevance: str = ""
    """The answer whose relevance colours the tokens, as `data/relevance.ts` writes it; empty for none."""
    arcs: Arcs = "A"
    """Where the input has a tree: none, the gold tree, or also that of the head's attention, by which weights."""


def choice(name: str, value: str, kind) -> None:
    """Refuse a value that is none of the few that there are."""
    if value not in get_args(kind):
        raise InputError(f"{name}={value!r} is not known: choose one of {', '.join(map(repr, get_args(kind)))}.")


def share(name: str, value: float) -> float:
    """A number between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InputError(f"{name}={value!r} is not between 0 and 1.")
    return float(value)


def position(name: str, place: Any, length: int, what: str) -> int:
    """A position from the start; a negative one counts from the end, as everywhere in Python."""
    if isinstance(place, bool) or not isinstance(place, int) or not -length <= place < length:
        raise InputError(f"{name}={place!r} is no position: there are {length} {what}, 0 to {length - 1}.")
    return place % length


def spot_of(token: Any) -> Spot | None:
    """A token as it may be given: the position of a query, or a side and a position; from the end if negative."""
    if token is None or isinstance(token, Spot):
        return token
    if isinstance(token, Mapping):
        token = (token.get("side"), token.get("index"))
    side, index = token if isinstance(token, tuple | list) and len(token) == 2 else ("query", token)
    if isinstance(index, bool) or not isinstance(index, int):
        raise InputError(f"token={token!r} is no position: write token=5 for a query, token=('key', 5) for a key.")
    choice("token", side, Side)
    return Spot(side, index)


def heads_of(trace: Trace, places: Places | None) -> tuple[Site, list[int]]:
    """The layer and the heads of it that places name; all heads of the first layer where none are named."""
    if places is None:
        layer = next(iter(trace.layers.values()))
        return layer.site, list(range(layer.n_heads))
    places_asked = [places] if isinstance(places, str | Head | Site) else list(places)
    if not places_asked:
        raise UnknownHeadError("no head was named: leave heads out for all of the first layer, or name some: 'L3H2'.")
    heads = list(dict.fromkeys(head for place in places_asked for head in trace.find(place)))
    sites = list(dict.fromkeys(head.site for head in heads))
    if len(sites) > 1:
        named = ", ".join(map(str, sites))
        raise InputError(f"a head view shows heads of one layer, these are of {named}: choose one, or use model_view.")
    return sites[0], sorted(head.index for head in heads)


def check_what(layer: LayerRecord, what: What, is_read: bool) -> None:
    """Refuse contributions or scores that the layer does not have."""
    choice("what", what, What)
    reason = {"pattern": "", "contribution": no_contributions(layer), "scores": no_scores(layer)}[what]
    if reason:
        raise NotRecordedError(f"there is no {what} of {layer.site} to show: {reason}.")
    if what == "scores" and is_read:
        raise InputError("scores belong to the model's own tokens: show them by tokens, with none hidden or off.")


def hidden_groups(hide: str | Iterable[str]) -> list[Hide]:
    """Groups of tokens to hide, each once."""
    groups: list[Hide] = []
    for group in [hide] if isinstance(hide, str) else hide:
        choice("hide", group, Hide)
        groups.append(group)  # type: ignore[arg-type]
    return list(dict.fromkeys(groups))


def off_tokens(trace: Trace, off: Iterable[int | str]) -> list[str]:
    """Single tokens that are switched off, as `stack:position`; a bare position where there is one stack."""
    switched_off = []
    for address in off:
        stack, _, place = str(address).rpartition(":")
        if not stack and len(trace.tokens) > 1:
            raise UnknownTokenError(f"off={address!r} could be of {', '.join(trace.tokens)}: write 'encoder:{place}'.")
        stack = stack or next(iter(trace.tokens))
        if stack not in trace.tokens:
            raise UnknownTokenError(
                f"off={address!r}: there is no stack {stack!r}, there are {', '.join(trace.tokens)}."
            )
        length, position = len(trace.tokens[stack]), parsed_number(place, signed=True)
        if position is None or not -length <= position < length:
            raise UnknownTokenError(f"off={address!r}: {stack} has {length} tokens, 0 to {length - 1}.")
        switched_off.append(f"{stack}:{position % length}")
    return list(dict.fromkeys(switched_off))


def hidden_positions(trace: Trace, selection: Selection) -> tuple[tuple[str | None, int], ...]:
    """All positions that are left out, by stack, as `PartKey.hide` has them."""
    hidden: list[tuple[str | None, int]] = []
    for stack, tokens in trace.tokens.items():
        positions = {place for place, token in enumerate(tokens) if "special" in selection.hide and token.special}
        positions |= {0} if "first" in selection.hide else set()
        # Hiding never leaves nothing: a stack of special tokens alone stays as it is.
        positions = positions if len(positions) < len(tokens) else set()
        positions |= {
            int(token_off.rpartition(":")[2]) for token_off in selection.off if token_off.rpartition(":")[0] == stack
        }
        hidden += [(stack, place) for place in sorted(positions)]
    return tuple(hidden)


def check_step(trace: Trace, step: int | None) -> int | None:
    """A step of the text that a model wrote, counted from 0; refused where there is none."""
    if step is None:
        return None
    steps_written = [place for place in trace.steps or () if place is not None]
    # What a decoder wrote last is read by nobody, so it is no token of the trace: its step is there all the same.
    count = len(steps_written) + (1 if steps_written and "decoder" in trace.tokens else 0)
    if not count:
        raise InputError(f"step={step!r} is of text that the model wrote: give model.generate(…).trace.")
    if isinstance(step, bool) or not isinstance(step, int) or not 0 <= step < count:
        raise InputError(f"step={step!r} is none: {count} were written, 0 to {count - 1}.")
    return step


def form_of(trace: Trace, selection: Selection) -> Literal["lines", "matrix", "image", "time"]:
    """How heads are drawn: as chosen, or else over the picture or along the sound where there is one, or as lines."""
    if selection.form != "auto":
        return selection.form
    kind = shown_in(trace, trace.layer(selection.site))
    return "image" if kind == "image" else "time" if kind == "sound" else "lines"


def check_form(trace: Trace, layer: LayerRecord, form: Form, rollout: bool) -> None:
    """Refuse a picture or a time axis where there is none, and a rollout that nothing draws."""
    choice("form", form, Form)
    kind = shown_in(trace, layer)
    needed = {"image": "image", "time": "sound"}.get(form, "")
    if needed and kind != needed:
        nouns = {"image": "patches of a picture", "sound": "frames of a sound"}
        has = nouns.get(kind) or trace.tokens[layer.key_stack].kind
        raise InputError(f"form={form!r} does not fit {layer.site}, whose keys are {has}: leave it out.")
    if rollout and (form not in ("auto", "image") or kind != "image" or layer.site.kind != "self"):
        raise InputError("rollout=True is drawn over a picture, of attention within one stack, with form='image'.")
