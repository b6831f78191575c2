"""Edits of single coordinates, of MLP neurons, and of input tokens."""

from headscope.errors import InterventionError
from headscope.interventions.edits import Coordinate, ReplaceToken, finite
from headscope.interventions.intervention import Intervention, Stage, call_text, intervene
from headscope.sites import Head, Site
from headscope.traces.tokens import TokenChoice, check_choice

_PARTS: dict[str, Stage] = {
    "query": "query",
    "key": "key",
    "value": "value",
    "mixed": "mixed",
    "mlp": "neurons",
    "residual": "residual",
}


def set_neuron(
    site: str | Head | Site, part: str, index: int, value: float, *, tokens: TokenChoice | None = None
) -> Intervention:
    """Fix one coordinate of a head's query, key, value or mixed vector, or one MLP neuron of a layer.

    >>> import headscope as hs
    >>> hs.set_neuron("L2H0", "key", 12, 0.0), hs.set_neuron("L2", "mlp", 7, 1.5)
    (hs.set_neuron('L2H0', 'key', 12, 0.0), hs.set_neuron('L2', 'mlp', 7, 1.5))
    """
    value = finite(value, "value")
    return _coordinate("set_neuron", site, part, Coordinate(index, 0.0, value), tokens, value)


def scale_neuron(
    site: str | Head | Site, part: str, index: int, factor: float, *, tokens: TokenChoice | None = None
) -> Intervention:
    """Multiply one coordinate or MLP neuron by a number."""
    factor = finite(factor, "factor")
    return _coordinate("scale_neuron", site, part, Coordinate(index, factor, 0.0), tokens, factor)


def add_neuron(
    site: str | Head | Site, part: str, index: int, amount: float, *, tokens: TokenChoice | None = None
) -> Intervention:
    """Add a number to one coordinate or MLP neuron."""
    amount = finite(amount, "amount")
    return _coordinate("add_neuron", site, part, Coordinate(index, 1.0, amount), tokens, amount)


def replace_token(position: TokenChoice, token: int | str | None = None) -> Intervention:
    """Put another token in place before the run; without one, the tokenizer's mask (or unknown) token."""
    call = call_text("replace_token", position) if token is None else call_text("replace_token", position, token)
    check_choice(position)
    return intervene(None, "tokens", ReplaceToken(token), position, call, everywhere=True)


def _coordinate(
    name: str, site: str | Head | Site, part: str, edit: Coordinate, tokens: TokenChoice | None, value: float
) -> Intervention:
    if part not in _PARTS:
        raise InterventionError(f"there is no part {part!r}: choose one of {', '.join(_PARTS)}.")
    call = call_text(name, site, part, edit.index, value, tokens=tokens)
    return intervene(site, _PARTS[part], edit, tokens, call)
