"""Attention in windows (Swin): which patch of the image each position of a layer is."""

import math
from typing import Any

import torch
from torch import nn


def patches_of_windows(module: nn.Module, name: str, n_windows: int, size: int) -> dict[str, Any]:
    """`grid` and `places` of a layer whose positions are windows of a shifted image, one after another.

    The block around the attention knows its grid and its shift. Where it says neither, or they do not fit what was
    seen, nothing is claimed.
    """
    block = _block(module, name)
    side = math.isqrt(size)
    grid = getattr(block, "input_resolution", None)
    if block is None or side * side != size or grid is None:
        return {}
    rows, columns = (int(count) for count in grid)
    down, across = -(-rows // side), -(-columns // side)
    if down * across != n_windows:
        return {}
    shift = int(block.shift_size)
    whole = torch.full((down * side, across * side), -1, dtype=torch.int32)
    whole[:rows, :columns] = torch.arange(rows * columns, dtype=torch.int32).view(rows, columns)
    shifted = whole.roll((-shift, -shift), (0, 1)) if shift else whole
    places = shifted.view(down, side, across, side).transpose(1, 2).reshape(-1)
    return {"grid": (rows, columns), "places": places.contiguous()}


def _block(module: nn.Module, name: str) -> Any:
    """The nearest module around the attention that shifts windows."""
    while name:
        name = name.rpartition(".")[0]
        block = module.get_submodule(name)
        if hasattr(block, "shift_size") and hasattr(block, "window_size"):
            return block
    return None
