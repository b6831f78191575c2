"""The first pass on a Hopper GPU: whether its own kernel applies, and its launch."""

import logging
import math
from collections.abc import Hashable
from functools import cache
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from headscope.attention.formula import Formula
from headscope.attention.launches import launch as launch_known
from headscope.attention.summaries import ROW_FIGURES

_DIMS = (64, 128)
BLOCK_ROWS, BLOCK_KEYS, _STAGES = 64, 128, 2
# Shorter inputs finish before a delayed peak gains what looking for jumps of it costs.
DELAYED_FROM = 16384


def applies(query: Tensor, key: Tensor, value: Tensor, formula: Formula) -> bool:
    """Whether the kernel computes this: half precision, heads of 64 or 128, causal or unmasked, nothing added."""
    if query.dtype not in (torch.float16, torch.bfloat16) or query.shape[-1] not in _DIMS:
        return False
    if value.shape[-1] != query.shape[-1] or query.shape[2] != key.shape[2] or query.shape[2] < BLOCK_KEYS:
        return False
    if formula.softcap is not None or formula.sinks is not None or formula.bias is not None:
        return False
    mask = formula.mask
    if mask is not None and (not mask.is_triangle or mask.keys is not None or mask.query_offset != mask.key_offset):
        return False
    return n_processors(query.device) > 0 and _kernels() is not None


@cache
def n_processors(device: torch.device) -> int:
    """How many multiprocessors a Hopper GPU has; 0 for any other."""
    is_hopper = torch.cuda.get_device_capability(device) == (9, 0)
    return torch.cuda.get_device_properties(device).multi_processor_count if is_hopper else 0


@cache
def _kernels() -> ModuleType | None:
    """The kernel, if this Triton has the language that it is written in."""
    try:
        from headscope.attention import hopper_kernels
    except (ImportError, AttributeError) as error:
        logging.getLogger("headscope").warning("This Triton has no Gluon for Hopper (%s): plain kernels run.", error)
        return None
    return hopper_kernels


def is_delayed(query: Tensor) -> bool:
    """Whether rows may come out as NaN, for the plain kernel to repair; fp16 would overflow too often."""
    return query.dtype == torch.bfloat16 and query.shape[2] >= DELAYED_FROM


def launch(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    formula: Formula,
    mixed: Tensor,
    figures: dict[str, Tensor],
    bounds: Tensor | None = None,
) -> Hashable:
    """Fill the mixed values [batch, query, head, dim] and the row figures.

    `bounds` [batch, head, query] is filled too: no more than each query's eighth largest raw score. Gives what stands
    for the code of these and of later kernels (see launches.py).
    """
    kernels = _kernels()
    assert kernels is not None
    batch, n_heads, length, dim = query.shape
    n_all, n_tiles = batch * n_heads, -(-length // (2 * BLOCK_ROWS))
    n_programs = min(n_processors(query.device), n_all * n_tiles)
    causal = formula.mask is not None
    arguments = {
        "query": tiles(query, BLOCK_ROWS),
        "key": tiles(key, BLOCK_KEYS),
        "value": tiles(value, BLOCK_KEYS),
        "out": mixed,
        "key_at": key,
        **{f"{name}_at": figures[name] for name in ROW_FIGURES},
        "bound_at": figures["lse"] if bounds is None else bounds,
        **dict(zip(("out_batch", "out_row", "out_head"), mixed.stride(), strict=False)),
        **dict(zip(("key_batch", "key_head", "key_step"), key.stride(), strict=False)),
        "scale": formula.scaling / math.log(2),
        "length": length,
        "n_heads": n_heads,
        "n_each": n_heads // key.shape[1],
        "n_all": n_all,
        "n_tiles": n_tiles,
        "n_programs": n_programs,
        "dim": dim,
        "stages": _STAGES,
        "causal": causal,
        "ragged": length % BLOCK_KEYS != 0,
        "delayed": is_delayed(query),
        "keep": bounds is not None,
    }
    offsets = tuple(tensor.data_ptr() % 16 for tensor in (mixed, query, key, value, *figures.values()))
    shapes = (query.shape, key.shape, query.stride(), key.stride(), value.stride(), mixed.stride())
    limits = None if formula.mask is None or formula.mask.stop is None else formula.mask.stop.shape
    known = (query.device, query.dtype, *shapes, offsets, causal, limits, bounds is not None)
    launch_known(kernels.attend_rows, (n_programs,), arguments, known, num_warps=4)
    return known


def tiles(tensor: Tensor, n_rows: int) -> Any:
    """A descriptor of blocks of rows of one head, laid out for the matrix units."""
    from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

    shape = [1, 1, n_rows, tensor.shape[-1]]
    layout = _layout(n_rows, tensor.shape[-1], tensor.dtype == torch.bfloat16)
    return TensorDescriptor(tensor, list(tensor.shape), list(tensor.stride()), shape, layout)


@cache
def _layout(n_rows: int, dim: int, is_bf16: bool) -> Any:
    from triton.experimental.gluon import language

    gl: Any = language
    return gl.NVMMASharedLayout.get_default_for([1, 1, n_rows, dim], gl.bfloat16 if is_bf16 else gl.float16)
