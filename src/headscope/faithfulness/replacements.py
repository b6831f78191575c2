"""What is put in the place of a row of attention: uniform, itself, the previous token, nothing, or its own weights
in another order. All take `AttentionRows` and give rows [batch, row, key]; padded rows stay as they are.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from headscope.errors import InputError
from headscope.faithfulness.attention_rows import AttentionRows


def uniform(rows: AttentionRows) -> Tensor:
    """The same weight on every visible key.

    >>> visible = torch.tensor([[[True, True, False]]])
    >>> uniform(AttentionRows(torch.tensor([[[0.9, 0.1, 0.0]]]), visible)).tolist()
    [[[0.5, 0.5, 0.0]]]
    """
    visible = rows.visible.to(rows.pattern)
    return _where_real(rows, visible / visible.sum(-1, keepdim=True).clamp_min(1.0))


def identity(rows: AttentionRows) -> Tensor:
    """All weight on the query's own token."""
    return _where_real(rows, _one_key(rows, _own(rows, "identity")))


def previous_token(rows: AttentionRows) -> Tensor:
    """All weight on the token before; the first token attends to itself."""
    return _where_real(rows, _one_key(rows, (_own(rows, "previous_token") - 1).clamp_min(0)))


def no_attention(rows: AttentionRows) -> Tensor:
    """No weight at all: in these rows the head adds nothing."""
    return _where_real(rows, torch.zeros_like(rows.pattern))


def permuted(rows: AttentionRows, generator: torch.Generator) -> Tensor:
    """The weights of each row in a random order, among the visible keys that are not special; the others stay.

    >>> rows = AttentionRows(torch.tensor([[[0.5, 0.5]]]), torch.ones(1, 1, 2, dtype=torch.bool))
    >>> permuted(rows, torch.Generator()).tolist()
    [[[0.5, 0.5]]]
    """
    permutable = rows.permutable
    noise = torch.rand(permutable.shape, generator=generator).to(rows.pattern.device)
    # Keys that stay sort behind the others in both orders, each at its own place.
    places = torch.arange(permutable.shape[-1], device=noise.device, dtype=noise.dtype)
    shuffled = torch.where(permutable, noise, 2.0 + places).argsort(-1)
    ordered = torch.where(permutable, places / len(places), 2.0 + places).argsort(-1)
    moved = torch.empty_like(rows.pattern).scatter_(-1, ordered, rows.pattern.gather(-1, shuffled))
    return _where_real(rows, moved)


REPLACEMENTS: dict[str, Callable[[AttentionRows], Tensor]] = {
    "uniform": uniform,
    "identity": identity,
    "previous_token": previous_token,
    "no_attention": no_attention,
}


def _own(rows: AttentionRows, name: str) -> Tensor:
    if rows.own is None:
        raise InputError(f"{name} needs to know where each query stands among the keys: own=… [batch, row].")
    return rows.own


def _one_key(rows: AttentionRows, keys: Tensor) -> Tensor:
    weights = torch.nn.functional.one_hot(keys.clamp_min(0), rows.pattern.shape[-1]).to(rows.pattern)
    if rows.real is not None:
        weights = weights * rows.real[..., None].to(weights)
    if bool((weights.bool() & ~rows.visible).any()):
        raise InputError("a row cannot attend there: the key that the replacement names is masked.")
    return weights


def _where_real(rows: AttentionRows, weights: Tensor) -> Tensor:
    return weights if rows.real is None else torch.where(rows.real[..., None], weights, rows.pattern)
