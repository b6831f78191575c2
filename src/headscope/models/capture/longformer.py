"""Attention in bands (Longformer): weights over a window and global tokens, mapped to the positions they mean."""

import inspect
from functools import lru_cache

import torch
from torch import Tensor, nn


def is_banded(module: nn.Module) -> bool:
    """Whether a module attends in bands: its forward takes the places of global tokens."""
    return _takes_globals(type(module))


@lru_cache(maxsize=4096)
def _takes_globals(kind: type[nn.Module]) -> bool:
    names = inspect.signature(kind.forward).parameters
    return "is_index_global_attn" in names and hasattr(kind, "_get_global_attn_indices")


def dense_patterns(band: Tensor, globals_: Tensor | None, is_global: Tensor) -> Tensor:
    """Patterns [batch, head, query, key] from what the module returns.

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
