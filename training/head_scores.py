"""Head scores from plain `output_attentions`, each a [layer, head] tensor between 0 and 1.

Patterns are [layer, batch, head, query, key], as `patterns_of` stacks them.
"""

from __future__ import annotations

import torch
from torch import Tensor


def patterns_of(attentions: tuple[Tensor, ...]) -> Tensor:
    return torch.stack([layer.float() for layer in attentions])


def random_repeated(vocabulary: int, rows: int, length: int, seed: int, start: int | None, reserved: int = 1) -> Tensor:
    """[start] x1..xn x1..xn with random tokens: what comes next can be known from the first half alone."""
    draw = torch.Generator().manual_seed(seed)
    half = torch.randint(reserved, vocabulary, (rows, length), generator=draw)
    repeated = torch.cat([half, half], dim=1)
    if start is None:
        return repeated
    return torch.cat([torch.full((rows, 1), start), repeated], dim=1)


def previous_token(patterns: Tensor) -> Tensor:
    """Mean attention from each token to the one before it."""
    return patterns.diagonal(offset=-1, dim1=-2, dim2=-1).mean(dim=(1, 3))


def induction(patterns: Tensor, length: int) -> Tensor:
    """Mean attention, in the second half of a repeated text, to the token after the earlier copy of this one."""
    return patterns.diagonal(offset=1 - length, dim1=-2, dim2=-1)[..., -length + 1 :].mean(dim=(1, 3))


def duplicate(patterns: Tensor, length: int) -> Tensor:
    """Mean attention, in the second half of a repeated text, to the earlier copy of this token."""
    return patterns.diagonal(offset=-length, dim1=-2, dim2=-1)[..., -length:].mean(dim=(1, 3))


def mean_weight(patterns: Tensor, batch: Tensor, query: Tensor, key: Tensor) -> Tensor:
    """Mean attention over a list of (batch, query, key) places."""
    return (
        patterns[:, batch, :, query, key].mean(dim=0)
        if len(batch)
        else patterns.new_zeros(patterns.shape[0], patterns.shape[2])
    )


def patch_neighbour(patterns: Tensor, side: int) -> Tensor:
    """Share of a patch's attention to patches that goes to the eight around it."""
    places = torch.arange(side * side)
    rows, columns = places // side, places % side
    distance = torch.maximum((rows[:, None] - rows).abs(), (columns[:, None] - columns).abs())
    near = (distance == 1).to(patterns.device, patterns.dtype)
    among = patterns[..., 1:, 1:]
    return ((among * near).sum(-1) / among.sum(-1).clamp_min(1e-9)).mean(dim=(1, 3))
