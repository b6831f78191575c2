"""Interventions against the model: everything that can be wrong is said before the run starts."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor

from headscope.arguments import instances
from headscope.errors import InputError, InterventionError, UnknownHeadError
from headscope.interventions import Intervention
from headscope.interventions.edits import (
    Apply,
    Coordinate,
    Mean,
    Patch,
    ReplacePattern,
    ReplaceToken,
    Scale,
    SetRow,
)
from headscope.models.layout import AttentionLayer, Layout
from headscope.sites import Head, Site, find
from headscope.traces import Tokens

Resolved = dict[tuple[Site, str], list[tuple[Intervention, slice]]]


def intervention_list(interventions: "Sequence[Intervention] | Intervention | None") -> list[Intervention]:
    """One intervention, several or none, as a list of what are indeed interventions."""
    if interventions is None:
        return []
    try:
        return instances(interventions, Intervention, "interventions", "make them with hs.silence, hs.scale, …")
    except InputError as error:
        raise InterventionError(str(error)) from None


def resolve(interventions: Sequence[Intervention], layout: Layout) -> Resolved:
    """Every intervention with the heads it touches, by site and stage, in the order given."""
    resolved: Resolved = {}
    for intervention in interventions:
        if intervention.stage == "tokens":
            continue
        if intervention.stage in ("residual", "neurons"):
            site = _stream(intervention, layout)
            resolved.setdefault((site, intervention.stage), []).append((intervention, slice(0, 1)))
            continue
        for layer, heads in _heads(intervention, layout):
            _check(intervention, layer, heads)
            for part, chosen in _parts(intervention, layer, heads):
                resolved.setdefault((layer.site, intervention.stage), []).append((part, chosen))
    return resolved


def check_tokens(interventions: Sequence[Intervention], tokens: dict[str, Tokens]) -> None:
    """Every choice of tokens names some, in the stack that its site reads."""
    for intervention in interventions:
        stacks = _stacks(intervention, tokens)
        for axis, chosen in intervention.token_choices():
            problems = []
            for stack in stacks[axis]:
                try:
                    tokens[stack].positions(chosen)
                except LookupError as problem:
                    problems.append(problem)
            if stacks[axis] and len(problems) == len(stacks[axis]):
                raise InterventionError(f"{intervention!r}: {problems[0]}") from problems[0]
        for name, length in _lengths(intervention):
            stack = stacks["keys" if name == "keys" else "rows"][:1]
            if stack and length != (there := len(tokens[stack[0]])):
                mismatch = f"{intervention!r} is made for {length} {name}, this input has {there}"
                raise InterventionError(f"{mismatch}{_advice(intervention, length, there)}.")


def _stacks(intervention: Intervention, tokens: dict[str, Tokens]) -> dict[str, list[str]]:
    """Which stacks' tokens the rows and the keys of an intervention are."""
    if intervention.site is None:
        everywhere = list(tokens)
        return {"rows": everywhere, "keys": everywhere}
    own = [intervention.site.stack] if intervention.site.stack in tokens else []
    if intervention.site.kind != "cross":
        return {"rows": own, "keys": own}
    return {"rows": own, "keys": [stack for stack in tokens if stack != intervention.site.stack]}


def _lengths(intervention: Intervention) -> list[tuple[str, int]]:
    """The lengths that a payload was made for, where they must fit the input."""
    if isinstance(intervention.edit, ReplacePattern):
        return [("queries", intervention.edit.weights.shape[-2]), ("keys", intervention.edit.weights.shape[-1])]
    return [("keys", len(intervention.edit.weights))] if isinstance(intervention.edit, SetRow) else []


def _advice(intervention: Intervention, length: int, there: int) -> str:
    """What to do about a row that does not fit."""
    if not isinstance(intervention.edit, SetRow):
        return ""
    if length > there:
        return ": leave out the weights beyond its last token"
    return f": give a weight for every key, 0 where it is not to look, as in [*weights, *[0] * {there - length}]"


def _stream(intervention: Intervention, layout: Layout) -> Site:
    places = layout.blocks if intervention.stage == "residual" else layout.neurons
    if intervention.site is None:
        raise InterventionError(f"{intervention!r}: say which layer, as in 'L3'.")
    site = Site(intervention.site.stack, intervention.site.layer, intervention.stage)  # type: ignore[arg-type]
    known = [key for key in places if key.stack == site.stack]
    last = max((key.layer for key in known), default=-1)
    is_end = intervention.stage == "residual" and known and site.layer == last + 1
    if site not in known and not is_end:
        there = ", ".join(str(key) for key in places) or "none that Headscope can reach in this model"
        raise UnknownHeadError(f"{intervention!r}: there is no {intervention.stage} at {site}: there are {there}.")
    width = layout.widths.get(site)
    if isinstance(intervention.edit, Coordinate) and width is not None and intervention.edit.index >= width:
        raise InterventionError(
            f"{intervention!r}: {site} has {width} {intervention.stage} coordinates, 0 to {width - 1}."
        )
    return site


def _heads(intervention: Intervention, layout: Layout) -> list[tuple[AttentionLayer, slice]]:
    if intervention.site is None:
        return [(layer, slice(0, layer.n_heads)) for layer in layout.layers]
    whole = next((layer for layer in layout.layers if layer.site == intervention.site), None)
    if whole is not None:  # as gates name it at every step of training
        return [(whole, slice(0, whole.n_heads))]
    heads = find(intervention.site, layout.heads)
    layer = next(layer for layer in layout.layers if layer.site == heads[0].site)
    if isinstance(intervention.site, Head):
        return [(layer, slice(heads[0].index, heads[0].index + 1))]
    return [(layer, slice(0, layer.n_heads))]


def _check(intervention: Intervention, layer: AttentionLayer, heads: slice) -> None:
    edit, n_chosen = intervention.edit, heads.stop - heads.start
    if layer.is_windowed and intervention.token_choices():
        raise InterventionError(
            f"{intervention!r}: {layer.site} attends within windows of the image, where single tokens cannot be chosen."
        )
    if isinstance(edit, ReplaceToken):
        raise InterventionError(f"{intervention!r} replaces tokens and has no place in a head.")
    dims = {"query": layer.head_dim, "key": layer.head_dim, "value": layer.value_width, "mixed": layer.value_dim}
    dim = dims.get(intervention.stage)
    if isinstance(edit, Coordinate) and dim is not None and edit.index >= dim:
        raise InterventionError(
            f"{intervention!r}: the {intervention.stage} of {layer.site} has {dim} coordinates, 0 to {dim - 1}."
        )
    if isinstance(edit, Scale) and isinstance(edit.factor, Tensor) and edit.factor.numel() not in (1, n_chosen):
        raise InterventionError(
            f"{intervention!r}: a gate for {n_chosen} heads has 1 or {n_chosen} numbers, got {edit.factor.numel()}."
        )
    if isinstance(edit, Mean) and edit.mean is not None and edit.mean.numel() != n_chosen * layer.value_dim:
        raise InterventionError(
            f"{intervention!r}: the mean of {n_chosen} heads is [{n_chosen}, {layer.value_dim}], "
            f"got {tuple(edit.mean.shape)}."
        )
    if isinstance(edit, Patch) and (edit.values.shape[0] not in (1, n_chosen) or edit.values.shape[-1] != dim):
        raise InterventionError(
            f"{intervention!r}: a patch here is [{n_chosen}, token, {dim}], got {tuple(edit.values.shape)}."
        )
    if isinstance(edit, ReplacePattern) and edit.weights.shape[0] not in (1, n_chosen):
        raise InterventionError(
            f"{intervention!r}: give one pattern, or one for each of {n_chosen} heads, got {edit.weights.shape[0]}."
        )


def _parts(intervention: Intervention, layer: AttentionLayer, heads: slice) -> list[tuple[Intervention, slice]]:
    """Edits head by head where a tensor may hold some heads only: scores and patterns in tiles, modules of one head."""
    n_heads = heads.stop - heads.start
    is_whole = intervention.stage not in ("scores", "pattern") and not layer.head_modules
    if is_whole or n_heads == 1 or isinstance(intervention.edit, Apply):
        return [(intervention, heads)]
    return [
        (
            replace(intervention, edit=_of_head(intervention.edit, place, n_heads)),
            slice(heads.start + place, heads.start + place + 1),
        )
        for place in range(n_heads)
    ]


def _of_head(edit: Any, place: int, n_heads: int) -> Any:
    """The part of an edit that is for one of its heads."""
    if isinstance(edit, ReplacePattern) and edit.weights.shape[0] > 1:
        return replace(edit, weights=edit.weights[place : place + 1])
    if isinstance(edit, Scale) and isinstance(edit.factor, Tensor) and edit.factor.numel() > 1:
        return replace(edit, factor=edit.factor.reshape(-1)[place])
    if isinstance(edit, Mean) and edit.mean is not None:
        return replace(edit, mean=edit.mean.reshape(n_heads, -1)[place])
    if isinstance(edit, Patch) and edit.values.shape[0] > 1:
        return replace(edit, values=edit.values[place : place + 1])
    return edit
