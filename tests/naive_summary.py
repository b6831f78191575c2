"""The figures of a pattern, each as its definition says: what the fast code is compared with."""

import math

import torch
from torch import Tensor

from headscope.attention import Summary
from headscope.attention.summaries import N_TOP


def naive(pattern: Tensor, lse: Tensor, *, query_offset: int = 0) -> dict[str, Tensor]:
    """Every figure as its definition says, from the whole pattern [head, query, key]."""
    n_heads, n_queries, n_keys = pattern.shape
    pattern = pattern.double()
    total = pattern.sum(-1)
    query = torch.arange(n_queries)[:, None] + query_offset
    away = (query - torch.arange(n_keys)).abs()
    weights, keys = pattern.sort(dim=-1, descending=True, stable=True)
    n_top = min(N_TOP, n_keys)
    top_keys, top_weights = torch.full((n_heads, n_queries, N_TOP), -1), torch.zeros(n_heads, n_queries, N_TOP).double()
    top_keys[..., :n_top], top_weights[..., :n_top] = keys[..., :n_top], weights[..., :n_top]
    steps = [math.ceil(length / 96) for length in (n_queries, n_keys)]
    extra = [-length % step for length, step in zip((n_queries, n_keys), steps, strict=True)]
    padded = torch.nn.functional.pad(pattern, (0, extra[1], 0, extra[0]))
    pooled = padded.unflatten(2, (-1, steps[1])).unflatten(1, (-1, steps[0])).amax((2, 4))
    return {
        "lse": lse,
        "entropy": -torch.special.xlogy(pattern, pattern).sum(-1),
        "max": weights[..., 0],
        "distance": (pattern * away).sum(-1) / total.clamp_min(1e-30),
        "argmax": keys[..., 0],
        "top_keys": top_keys,
        "top_weights": top_weights,
        "received": pattern.mean(1),
        "map": pooled,
    }


def assert_same(summary: Summary, expected: dict[str, Tensor], atol: float = 2e-5) -> None:
    for name, figure in summary.tensors().items():
        torch.testing.assert_close(
            figure.double(), expected[name].double(), rtol=1e-4, atol=atol, msg=lambda m, n=name: f"{n}: {m}"
        )
