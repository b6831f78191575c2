"""Interventions against the model: everything that can be wrong is said before the run starts."""

from collections.abc import Sequence
from dataclasses import replace

from torch import Tensor

from headscope.errors import InputError, InterventionError, UnknownHeadError
from headscope.interventions import Intervention
from headscope.interventions.edits import (
    Apply,
    Coordinate,
    Edit,
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


def listed(interventions: "Sequence[Intervention] | Intervention | None") -> list[Intervention]:
    """One intervention, several or none, as a list of what are indeed interventions."""
    given = [] if interventions is None else interventions
    given = [given] if isinstance(given, Intervention) else list(given)
    for one in given:
        if not isinstance(one, Intervention):
            raise InterventionError(f"{one!r} is not an intervention: make one with hs.silence, hs.scale, …")
    return given


def resolve(interventions: Sequence[Intervention], layout: Layout) -> Resolved:
    """Every intervention with the heads it touches, by site and stage, in the order given."""
    found: Resolved = {}
    for one in interventions:
        if one.stage == "tokens":
            continue
        if one.stage in ("residual", "neurons"):
            site = _stream(one, layout)
            found.setdefault((site, one.stage), []).append((one, slice(0, 1)))
            continue
        for layer, heads in _heads(one, layout):
            _check(one, layer, heads)
            for part, chosen in _parts(one, heads):
                found.setdefault((layer.site, one.stage), []).append((part, chosen))
    return found


def check_tokens(interventions: Sequence[Intervention], tokens: dict[str, Tokens]) -> None:
    """Every choice of tokens names some, in the stack that its site reads."""
    for one in interventions:
        stacks = _stacks(one, tokens)
        for axis, chosen in one.token_choices():
            problems = []
            for stack in stacks[axis]:
                try:
                    tokens[stack].positions(chosen)
                except LookupError as problem:
                    problems.append(problem)
            if stacks[axis] and len(problems) == len(stacks[axis]):
                raise InterventionError(f"{one!r}: {problems[0]}") from problems[0]
        for name, length in _lengths(one):
            stack = stacks["keys" if name == "keys" else "rows"][:1]
            if stack and length != (there := len(tokens[stack[0]])):
                told = f"{one!r} is made for {length} {name}, this input has {there}"
                raise InterventionError(f"{told}{_advice(one, length, there)}.")


def _stacks(one: Intervention, tokens: dict[str, Tokens]) -> dict[str, list[str]]:
    """Which stacks' tokens the rows and the keys of an intervention are."""
    if one.site is None:
        everywhere = list(tokens)
        return {"rows": everywhere, "keys": everywhere}
    own = [one.site.stack] if one.site.stack in tokens else []
    if one.site.kind != "cross":
        return {"rows": own, "keys": own}
    return {"rows": own, "keys": [stack for stack in tokens if stack != one.site.stack]}


def _lengths(one: Intervention) -> list[tuple[str, int]]:
    """The lengths that a payload was made for, where they must fit the input."""
    if isinstance(one.edit, ReplacePattern):
        return [("queries", one.edit.weights.shape[-2]), ("keys", one.edit.weights.shape[-1])]
    return [("keys", len(one.edit.weights))] if isinstance(one.edit, SetRow) else []


def _advice(one: Intervention, length: int, there: int) -> str:
    """What to do about a row that does not fit."""
    if not isinstance(one.edit, SetRow):
        return ""
    if length > there:
        return ": leave out the weights beyond its last token"
    return f": give a weight for every key, 0 where it is not to look, as in [*weights, *[0] * {there - length}]"


def _stream(one: Intervention, layout: Layout) -> Site:
    places = layout.blocks if one.stage == "residual" else layout.neurons
    if one.site is None:
        raise InterventionError(f"{one!r}: say which layer, as in 'L3'.")
    site = Site(one.site.stack, one.site.layer, one.stage)  # type: ignore[arg-type]
    known = [key for key in places if key.stack == site.stack]
    last = max((key.layer for key in known), default=-1) + (one.stage == "residual")
    if not known or site.layer > last:
        there = ", ".join(str(key) for key in places) or "none that Headscope can reach in this model"
        raise UnknownHeadError(f"{one!r}: there is no {one.stage} at {site}: there are {there}.")
    width = layout.widths.get(site)
    if isinstance(one.edit, Coordinate) and width is not None and one.edit.index >= width:
        raise InterventionError(f"{one!r}: {site} has {width} {one.stage} coordinates, 0 to {width - 1}.")
    return site


def _heads(one: Intervention, layout: Layout) -> list[tuple[AttentionLayer, slice]]:
    if one.site is None:
        return [(layer, slice(0, layer.n_heads)) for layer in layout.layers]
    found = find(one.site, layout.heads)
    layer = next(layer for layer in layout.layers if layer.site == found[0].site)
    if isinstance(one.site, Head):
        return [(layer, slice(found[0].index, found[0].index + 1))]
    return [(layer, slice(0, layer.n_heads))]


def _check(one: Intervention, layer: AttentionLayer, heads: slice) -> None:
    edit, n_chosen = one.edit, heads.stop - heads.start
    if layer.is_windowed and one.token_choices():
        raise InterventionError(
            f"{one!r}: {layer.site} attends within windows of the image, where single tokens cannot be chosen."
        )
    if isinstance(edit, ReplaceToken):
        raise InterventionError(f"{one!r} replaces tokens and has no place in a head.")
    if layer.way == "weights" and one.stage != "mixed":
        raise InterventionError(
            f"{one!r}: {layer.site} gives weights only; its output can be edited "
            f"(silence, scale, patch), its {one.stage} cannot."
        )
    dims = {"query": layer.head_dim, "key": layer.head_dim, "value": layer.value_dim, "mixed": layer.value_dim}
    dim = dims.get(one.stage)
    if isinstance(edit, Coordinate) and dim is not None and edit.index >= dim:
        raise InterventionError(f"{one!r}: the {one.stage} of {layer.site} has {dim} coordinates, 0 to {dim - 1}.")
    if isinstance(edit, Scale) and isinstance(edit.factor, Tensor) and edit.factor.numel() not in (1, n_chosen):
        raise InterventionError(
            f"{one!r}: a gate for {n_chosen} heads has 1 or {n_chosen} numbers, got {edit.factor.numel()}."
        )
    if isinstance(edit, Mean) and edit.mean is not None and edit.mean.numel() != n_chosen * layer.value_dim:
        raise InterventionError(
            f"{one!r}: the mean of {n_chosen} heads is [{n_chosen}, {layer.value_dim}], got {tuple(edit.mean.shape)}."
        )
    if isinstance(edit, Patch) and (edit.values.shape[0] not in (1, n_chosen) or edit.values.shape[-1] != dim):
        raise InterventionError(f"{one!r}: a patch here is [{n_chosen}, token, {dim}], got {tuple(edit.values.shape)}.")
    if isinstance(edit, ReplacePattern) and edit.weights.shape[0] not in (1, n_chosen):
        raise InterventionError(
            f"{one!r}: give one pattern, or one for each of {n_chosen} heads, got {edit.weights.shape[0]}."
        )


def _parts(one: Intervention, heads: slice) -> list[tuple[Intervention, slice]]:
    """Edits of scores and patterns head by head, because tiles hold some heads only; others for all heads at once."""
    if one.stage not in ("scores", "pattern") or heads.stop - heads.start == 1 or isinstance(one.edit, Apply):
        return [(one, heads)]
    edits: list[Edit] = []
    for place in range(heads.stop - heads.start):
        edit = one.edit
        if isinstance(edit, ReplacePattern) and edit.weights.shape[0] > 1:
            edit = replace(edit, weights=edit.weights[place : place + 1])
        edits.append(edit)  # type: ignore[arg-type]
    return [(replace(one, edit=edit), slice(heads.start + i, heads.start + i + 1)) for i, edit in enumerate(edits)]


def replaced_ids(ids: Tensor, interventions: Sequence[Intervention], tokens: Tokens, tokenizer) -> Tensor:
    """The token ids [token] after every `replace_token`."""
    for one in interventions:
        if one.stage != "tokens" or not isinstance(one.edit, ReplaceToken):
            continue
        assert one.tokens is not None  # replace_token always names its tokens
        ids = ids.clone()
        ids[tokens.positions(one.tokens)] = _id_of(one.edit.token, tokenizer)
    return ids


def _id_of(token: int | str | None, tokenizer) -> int:
    if isinstance(token, int):
        if tokenizer is not None and not 0 <= token < len(tokenizer):
            raise InterventionError(f"there is no token {token}: the vocabulary has {len(tokenizer)} tokens.")
        return token
    if tokenizer is None:
        raise InputError("the model has no tokenizer: name the new token by its id.")
    if token is None:
        for name in ("mask_token_id", "unk_token_id", "eos_token_id"):
            found = getattr(tokenizer, name, None)
            if found is not None:
                return int(found)
        raise InterventionError("the tokenizer has no mask or unknown token: say which token to put in place.")
    if (known := tokenizer.get_vocab().get(token)) is not None:
        return int(known)
    for text in (token, f" {token}"):
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        if len(ids) == 1:
            return int(ids[0])
    pieces = tokenizer.convert_ids_to_tokens(tokenizer(token, add_special_tokens=False)["input_ids"])
    raise InterventionError(f"{token!r} is not one token of this tokenizer but {len(pieces)}: {pieces}.")
