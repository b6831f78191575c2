"""Attention in bands (Longformer, LED): a window and global tokens, each with projections of its own, as one attention.

A query sees its window and the global tokens through one set of projections; a global query sees every key through
another. Both sets stand side by side as the two halves of each vector. Half of each query is zero, so q · k is what the
module computes for that query, and half of what is mixed is the output that it gives.
"""

import inspect
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from headscope.attention import Formula, Mask

if TYPE_CHECKING:
    from headscope.models.capture.seam import AttentionCall

TWO_VALUES = "each key has two values here, one for the window and one for global queries"
_PROJECTIONS = ("query", "key", "value", "query_global", "key_global", "value_global")


def is_banded(module: nn.Module) -> bool:
    """Whether a module attends in bands: its forward takes the places of global tokens."""
    return _takes_globals(type(module)) and all(
        isinstance(getattr(module, name, None), nn.Module) for name in _PROJECTIONS
    )


@lru_cache(maxsize=4096)
def _takes_globals(kind: type[nn.Module]) -> bool:
    names = inspect.signature(kind.forward).parameters
    return "is_index_global_attn" in names and hasattr(kind, "_get_global_attn_indices")


def half_window(module: nn.Module) -> int:
    """How many keys a query sees to each side of it."""
    return int(module.one_sided_attn_window_size)  # type: ignore[arg-type]


def banded_call(
    module: nn.Module, hidden: Tensor, is_masked: Tensor, is_global: Tensor, mask: Mask | None
) -> "AttentionCall":
    """What a module computes of its input [batch, token, dim], as one attention call.

    `is_masked` and `is_global` are [batch, token]. The halves of queries, keys and values are those for the window and
    those for global queries; without a global token the second halves are zero, as nothing computes them.
    """
    from headscope.models.capture.seam import AttentionCall  # which loads Transformers: measures of a corpus do not

    n_heads = int(module.num_heads)  # type: ignore[arg-type]
    local, rest = _PROJECTIONS[:3], _PROJECTIONS[3:]
    queries, keys, values = (_heads(module, name, hidden, n_heads) for name in local)
    dim = queries.shape[-1]
    is_global = is_global & ~is_masked
    if bool(is_global.any()):
        far_queries, far_keys, far_values = (_heads(module, name, hidden, n_heads) for name in rest)
    else:
        far_queries = far_keys = far_values = torch.zeros_like(queries)
    return AttentionCall(
        module,
        own_query_half(torch.cat([queries, far_queries], -1), is_global),
        torch.cat([keys, far_keys], -1),
        torch.cat([values, far_values], -1),
        Formula(dim**-0.5, mask=mask),
        dropout=float(module.dropout),  # type: ignore[arg-type]
        way="banded",
        is_global=is_global,
    )


def own_query_half(query: Tensor, is_global: Tensor) -> Tensor:
    """Queries whose other half is zero again, whatever an edit put there: nothing reads it."""
    rows = is_global[:, None, :, None].to(query.device)
    first, second = query.chunk(2, -1)
    return torch.cat([first.masked_fill(rows, 0.0), second.masked_fill(~rows, 0.0)], -1)


def own_half(mixed: Tensor, is_global: Tensor) -> Tensor:
    """The output [batch, head, query, dim] among mixed values twice as wide: the second half of global queries."""
    first, second = mixed.chunk(2, -1)
    return torch.where(is_global[:, None, :, None].to(mixed.device), second, first)


def local_values(value: Tensor, dim: int) -> Tensor | None:
    """Values [..., dim] for the window among those of both kinds; None where global queries read the others."""
    if value.shape[-1] == dim:
        return value
    return None if bool(value[..., dim:].any()) else value[..., :dim]


def _heads(module: nn.Module, name: str, hidden: Tensor, n_heads: int) -> Tensor:
    return getattr(module, name)(hidden).unflatten(-1, (n_heads, -1)).transpose(1, 2)


def band_mask(is_global: Tensor, is_masked: Tensor, half: int) -> Mask:
    """The keys that each query sees: those up to `half` away and the global tokens; a global token sees all."""
    batch, length = is_global.shape
    query = torch.arange(length, device=is_global.device)
    real = None if not bool(is_masked.any()) else ~is_masked
    if not bool(is_global.any()):
        start, stop = (query - half).clamp_min(0), (query + half + 1).clamp_max(length)
        return Mask(length, length, start=start[None], stop=stop[None], keys=real, batch=batch)
    near = (query[:, None] - query).abs() <= half
    cells = near | is_global[:, None, :] | is_global[:, :, None]
    cells = cells if real is None else cells & real[:, None, :]
    return Mask(length, length, dense=cells[:, None], batch=batch)


def call_arguments(module: nn.Module, args: tuple, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call of a banded module by name."""
    names = [name for name in inspect.signature(type(module).forward).parameters if name != "self"]
    return dict(zip(names, args, strict=False)) | kwargs


def own_pattern(module: nn.Module, args: tuple, kwargs: dict[str, Any], output: Any) -> Tensor:
    """The pattern [batch, head, query, key] in what a call of a banded module returned, its weights among that."""
    arguments = call_arguments(module, args, kwargs)
    rows = output[2] if bool(arguments.get("is_global_attn")) else None
    return dense_patterns(output[1], rows, arguments["is_index_global_attn"])


def dense_patterns(band: Tensor, globals_: Tensor | None, is_global: Tensor) -> Tensor:
    """Patterns [batch, head, query, key] from what the module itself returns: the reference of its verification.

    band [batch, query, head, x + window + 1]: first the weights on the x global keys, then on the keys from half a
    window before the query to half a window after; zero for queries that are global. globals_ [batch, head, x, key]
    are the rows of those. is_global [batch, token].
    """
    batch, length, n_heads, width = band.shape
    n_global = int(is_global.sum(1).max()) if globals_ is not None else 0
    half = (width - n_global - 1) // 2
    patterns = band.new_zeros(batch, n_heads, length, length)
    query = torch.arange(length, device=band.device)[:, None]
    key = query + torch.arange(-half, half + 1, device=band.device)
    inside = (key >= 0) & (key < length)
    local = torch.where(inside[None, :, None], band[..., n_global:], 0.0).permute(0, 2, 1, 3)
    patterns.scatter_add_(-1, key.clamp(0, length - 1).expand(batch, n_heads, -1, -1), local)
    if globals_ is None:
        return patterns
    for example in range(batch):
        places = is_global[example].nonzero()[:, 0]
        patterns[example][:, :, places] += band[example, :, :, : len(places)].permute(1, 0, 2)
        patterns[example][:, places] = globals_[example, :, : len(places), :length].to(patterns.dtype)
    return patterns
