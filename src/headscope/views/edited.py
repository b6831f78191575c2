"""What the edits of a run act on, as positions and heads: views mark it."""

import re
from collections.abc import Iterable
from typing import Any

from headscope.errors import InterventionError, UnknownHeadError, UnknownTokenError
from headscope.interventions.calls import Call, read
from headscope.sites import Head
from headscope.traces import Difference, Trace
from headscope.traces.tokens import Tokens
from headscope.views.contract import EditedWeightsProps

# The arguments that choose rows and keys, by position in the call.
_QUERIES = {"block": 1, "set_weight": 1, "set_row": 1}
_KEYS = {"block": 2, "set_weight": 2}
# The first argument of an edit as text: None, or a site in quotes.
_SITE = re.compile(r"[\w.]+\(\s*(?:head=|site=)?(?:(None)|['\"]([^'\"]*)['\"])")


def edited_heads(trace: Trace) -> list[str]:
    """The heads that an edit acts on, by name, in the model's order. Edits of MLP neurons are of no head."""
    edited = {str(head) for text in _edits(trace) for head in _heads(trace, text)}
    return [str(head) for head in trace.heads if str(head) in edited]


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
    if call is not None and (call.name == "replace_token" or "mlp" in [*call.arguments[1:], call.options.get("part")]):
        return []
    site = _SITE.match(text)
    if site is None:
        return []
    try:
        return list(trace.heads) if site[1] else trace.find(site[2])
    except UnknownHeadError:  # a layer without attention, whose residual stream was edited
        return []


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
