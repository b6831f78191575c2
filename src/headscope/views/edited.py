"""What the edits of a run act on, as positions and heads: views mark it."""

import re
from collections.abc import Iterable
from typing import Any, Literal

from headscope.errors import InterventionError, UnknownHeadError, UnknownTokenError
from headscope.glossary import EDITED_PARTS
from headscope.interventions.calls import Call, read
from headscope.sites import Head, Site, parse
from headscope.traces import Difference, Trace
from headscope.traces.tokens import Tokens
from headscope.views.contract import EditedLayerProps, EditedWeightsProps

# The arguments that choose rows and keys, by position in the call.
_QUERIES = {"block": 1, "set_weight": 1, "set_row": 1}
_KEYS = {"block": 2, "set_weight": 2}
# The first argument of an edit as text: None, or a site in quotes.
_SITE = re.compile(r"[\w.]+\(\s*(?:head=|site=)?(?:(None)|['\"]([^'\"]*)['\"])")
_OF_LAYERS = ("set_neuron", "scale_neuron", "add_neuron", "patch")
# What an edit of a layer rather than of heads changes: an argument of `set_neuron`, `patch` or a function of one's own.
_PART = re.compile(r"[(,]\s*(?:part=|stage=)?['\"](mlp|neurons|residual)['\"]\s*[,)]")


def edited_heads(trace: Trace) -> list[str]:
    """The heads that an edit acts on, by name, in the model's order; none where it changes a layer's MLP or stream."""
    edited = {str(head) for text in _edits(trace) for head in _heads(trace, text)}
    return [str(head) for head in trace.heads if str(head) in edited]


def edited_layers(trace: Trace) -> list[EditedLayerProps]:
    """The layers whose MLP neurons or residual stream an edit changes, in order."""
    layers = {
        EditedLayerProps(site.stack, site.layer, part)
        for text in _edits(trace)
        if (part := _part(text)) is not None and (site := _site(text)) is not None
    }
    return sorted(layers, key=lambda layer: (layer.stack, layer.layer, layer.part))


def edited_layer_notes(trace: Trace) -> list[str]:
    """The same in words, part by part: `edited: MLP of L2, L4`."""
    names: dict[str, list[str]] = {}
    for layer in edited_layers(trace):
        names.setdefault(EDITED_PARTS[layer.part], []).append(str(Site(layer.stack, layer.layer)))
    return [f"edited: {part} of {', '.join(layers)}" for part, layers in names.items()]


def edited_weights(trace: Trace) -> list[EditedWeightsProps]:
    """The weights that edits of single tokens set: rows and keys of each head. No keys: the whole rows."""
    weights = []
    for text in _edits(trace):
        call = _call(text)
        if call is None or call.name == "replace_token":
            continue
        queries = call.options.get("tokens", _argument(call, _QUERIES, "queries", "query"))
        keys = _argument(call, _KEYS, "keys", "key")
        if queries is None:
            continue
        for head in _heads(trace, text):
            layer = trace.layers[head.site]
            rows = _positions(trace.tokens.get(layer.site.stack), queries)
            columns = [] if keys is None else _positions(trace.tokens.get(layer.key_stack), keys)
            weights.append(EditedWeightsProps(str(head), rows, columns))
    return weights


def replaced_tokens(trace: Trace, stack: str) -> list[int]:
    """The positions of a stack whose token an edit replaced: those of the input, which the first stack reads."""
    if stack != next(iter(trace.tokens)):
        return []
    chosen = [
        call.options.get("position", call.arguments[0] if call.arguments else None)
        for call in map(_call, _edits(trace))
        if call is not None and call.name == "replace_token"
    ]
    return sorted({position for choice in chosen for position in _positions(trace.tokens[stack], choice)})


def _edits(trace: Trace) -> Iterable[str]:
    """The edits of one run; a difference names those of both runs itself."""
    return () if isinstance(trace, Difference) else trace.edits


def _call(text: str) -> Call | None:
    """The edit taken apart; None for a function of the user's own, which has no text that could be read."""
    try:
        return read(text)
    except InterventionError:
        return None


def _heads(trace: Trace, text: str) -> list[Head]:
    """The heads at the site of an edit: one, those of a layer, or (None) all."""
    call = _call(text)
    if (call is not None and call.name == "replace_token") or _part(text) is not None:
        return []
    site = _SITE.match(text)
    if site is None:
        return []
    try:
        return list(trace.heads) if site[1] else trace.find(site[2])
    except UnknownHeadError:  # a layer without attention
        return []


def _part(text: str) -> Literal["mlp", "residual"] | None:
    """What an edit changes of a layer; None for an edit of heads."""
    call = _call(text)
    if call is not None:
        named = [call.options.get("part", call.options.get("stage")), *call.arguments[1:2]]
        part = next((name for name in named if isinstance(name, str)), "") if call.name in _OF_LAYERS else ""
    else:
        match = _PART.search(text)
        part = "" if match is None else match[1]
    return "residual" if part == "residual" else "mlp" if part in ("mlp", "neurons") else None


def _site(text: str) -> Site | None:
    """The layer that an edit names."""
    match = _SITE.match(text)
    if match is None or match[2] is None:
        return None
    place = parse(match[2])
    return place.site if isinstance(place, Head) else place


def _argument(call: Call, places: dict[str, int], *names: str) -> Any:
    place = places.get(call.name)
    if place is None:
        return None
    by_name = next((call.options[name] for name in names if name in call.options), None)
    return call.arguments[place] if place < len(call.arguments) else by_name


def _positions(tokens: Tokens | None, choice: Any) -> list[int]:
    """The positions that a choice names; none where it names a text that an edit has since replaced."""
    if tokens is None or choice is None:
        return []
    try:
        return tokens.positions(choice)
    except UnknownTokenError:
        return []
