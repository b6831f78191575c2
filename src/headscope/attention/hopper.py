"""The first pass on a Hopper GPU: whether its own kernel applies, and its launch."""

import logging
import math
from functools import cache
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from headscope.attention.formula import Formula
from headscope.attention.summaries import ROW_FIGURES

_DIMS = (64, 128)
_BLOCK_ROWS, _BLOCK_KEYS, _STAGES = 64, 128, 2
# Shorter inputs finish before a delayed peak gains what looking for jumps of it costs.
DELAYED_FROM = 16384
# Kernels for inputs of one shape, ready to launch: Triton looks one up in a tenth of a millisecond.
_MAX_COMPILED = 256
_compiled: dict[tuple, Any] = {}


def applies(query: Tensor, key: Tensor, value: Tensor, formula: Formula) -> bool:
    """Whether the kernel computes this: half precision, heads of 64 or 128, causal or unmasked, nothing added."""
    if query.dtype not in (torch.float16, torch.bfloat16) or query.shape[-1] not in _DIMS:
        return False
    if value.shape[-1] != query.shape[-1] or query.shape[2] != key.shape[2] or query.shape[2] < _BLOCK_KEYS:
        return False
    if formula.softcap is not None or formula.sinks is not None or formula.bias is not None:
        return False
    mask = formula.mask
    if mask is not None and (not mask.is_triangle or mask.keys is not None or mask.query_offset != mask.key_offset):
        return False
    return _n_processors(query.device) > 0 and _kernels() is not None


@cache
def _n_processors(device: torch.device) -> int:
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
) -> None:
    """Fill the mixed values [batch, query, head, dim] and the row figures.

    `bounds` [batch, head, query] is filled too: no more than each query's eighth largest raw score.
    """
    kernels = _kernels()
    assert kernels is not None
    batch, n_heads, length, dim = query.shape
    n_all, n_tiles = batch * n_heads, -(-length // (2 * _BLOCK_ROWS))
    n_programs = min(_n_processors(query.device), n_all * n_tiles)
    pointers = [mixed, key, *(figures[name] for name in ROW_FIGURES)]
    pointers.append(figures["lse"] if bounds is None else bounds)
    arguments = (
        _tiles(query, _BLOCK_ROWS),
        _tiles(key, _BLOCK_KEYS),
        _tiles(value, _BLOCK_KEYS),
        *pointers,
        *mixed.stride()[:3],
        *key.stride()[:3],
        formula.scaling / math.log(2),
        length,
        n_heads,
        n_heads // key.shape[1],
        n_all,
        n_tiles,
        n_programs,
        dim,
        _STAGES,
        formula.mask is not None,
        length % _BLOCK_KEYS != 0,
        is_delayed(query),
        bounds is not None,
    )
    aligned = tuple(pointer.data_ptr() % 16 == 0 for pointer in pointers)
    shape = (query.device, query.dtype, query.shape, key.shape, query.stride(), key.stride(), value.stride())
    known = (*shape, aligned, formula.mask is not None, bounds is not None)
    compiled = _compiled.get(known)
    if compiled is not None:
        compiled[(n_programs, 1, 1)](*arguments)
        return
    if len(_compiled) >= _MAX_COMPILED:
        _compiled.clear()
    _compiled[known] = kernels.attend_rows[(n_programs,)](*arguments, num_warps=4)


def _tiles(tensor: Tensor, n_rows: int) -> Any:
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
