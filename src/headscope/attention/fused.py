"""Attention on a GPU with its figures, in fused kernels: the pattern of a layer is never in memory.

Everything is queued: nothing here waits for the GPU. What the kernels do not cover, or where there is no Triton, tiles
of tensor operations compute (see tiles.py).
"""

import logging
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch
from torch import Tensor

from headscope.attention import hopper, hopper_summary
from headscope.attention.formula import Formula
from headscope.attention.launches import launch
from headscope.attention.mask_limits import MaskLimits, limits_of
from headscope.attention.summaries import N_TOP, ROW_FIGURES, Summary, cell

_BIAS_FORMS = {"key": 1, "offset": 2, "dense": 3}
_DTYPES = (torch.float16, torch.bfloat16, torch.float32)
MAX_HEAD_DIM = 256


@dataclass(frozen=True)
class BlockSizes:
    """Sizes of a kernel's blocks, its warps and the depth of its pipeline."""

    rows: int
    keys: int
    warps: int = 4
    stages: int = 2


def row_blocks(width: int, dtype: torch.dtype) -> BlockSizes:
    """Of the first pass: measured on an H200 for head sizes 64 and 128."""
    if dtype == torch.float32:
        return BlockSizes(64, 32 if width <= 128 else 16)
    return BlockSizes(64, 32) if width > 128 else BlockSizes(64, 64, stages=3)


def received_blocks(width: int, dtype: torch.dtype) -> BlockSizes:
    """Of the pass over keys; its blocks of queries are cut to the cells of the map."""
    return BlockSizes(32, 64) if dtype == torch.float32 or width > 128 else BlockSizes(64, 128, stages=3)


def top_blocks(width: int, dtype: torch.dtype) -> BlockSizes:
    """Of the pass for the strongest keys."""
    return BlockSizes(64, 32) if dtype == torch.float32 or width > 128 else BlockSizes(64, 64)


def fitted(blocks: BlockSizes, bytes_each: int, n_streams: int, device: torch.device) -> BlockSizes:
    """The blocks with as deep a pipeline as the GPU has shared memory for.

    `bytes_each` is one row of a block; `n_streams` such rows arrive for every key.
    """
    if device.type != "cuda":
        return blocks
    room = torch.cuda.get_device_properties(device).shared_memory_per_block_optin
    while blocks.stages > 1 and bytes_each * (blocks.rows + n_streams * blocks.stages * blocks.keys) > room:
        blocks = replace(blocks, stages=blocks.stages - 1)
    return blocks


def is_covered(query: Tensor, value: Tensor, formula: Formula) -> bool:
    """Whether the kernels compute this, here."""
    if query.device.type != "cuda" or query.dtype not in _DTYPES or not query.shape[-2]:
        return False
    if max(query.shape[-1], value.shape[-1]) > MAX_HEAD_DIM or not has_triton():
        return False
    return formula.bias is None or formula.bias.form in _BIAS_FORMS


@cache
def has_triton() -> bool:
    """Whether Triton is installed; logs once if it is not."""
    try:
        import triton as _  # noqa: F401
    except ImportError:
        logging.getLogger("headscope").warning(
            "Triton is not installed, so long inputs are summarised in tiles of tensor operations, far slower than in "
            "fused kernels: pip install 'headscope[gpu]'"
        )
        return False
    return True


@torch.no_grad()
def attend_fused(
    query: Tensor, key: Tensor, value: Tensor, formula: Formula, *, rows_only: bool
) -> tuple[Tensor, list[Summary]]:
    """The mixed values [batch, head, query, dim] and a summary for each example.

    query [batch, head, query, dim], key and value [batch, group, key, dim]: heads that share keys are not copied.
    """
    batch, n_heads, n_queries = query.shape[:3]
    figures = _empty_figures((batch, n_heads, n_queries, key.shape[2]), query.device, rows_only=rows_only)
    # [query, head, dim] in memory, which is how models go on with it.
    mixed = torch.empty(batch, n_queries, n_heads, value.shape[-1], dtype=value.dtype, device=value.device)
    query, key, value = aligned(query), aligned(key), aligned(value)
    is_on_hopper = query.device.type == "cuda" and hopper.applies(query, key, value, formula)
    bounds = known = None
    if is_on_hopper:
        bounds = None if rows_only else torch.empty_like(figures["lse"])
        known = hopper.launch(query, key, value, formula, mixed, figures, bounds)
    is_delayed = is_on_hopper and hopper.is_delayed(query)
    if not is_on_hopper or is_delayed or not rows_only:
        operands = _Operands(query, key, mixed, formula)
        if not is_on_hopper or is_delayed:
            _attend_rows(operands, value, figures, known, repair=is_delayed)
        if bounds is not None:
            hopper_summary.receive(query, key, formula, figures, known)
            counts, capacity = hopper_summary.choose_top(query, key, formula, figures, bounds, known)
            _find_top(operands, figures, counts, capacity, known)
        elif not rows_only:
            _receive(operands, figures)
            _find_top(operands, figures)
    return mixed.transpose(1, 2), [
        Summary(**{name: figure[i] for name, figure in figures.items()}) for i in range(batch)
    ]


def _empty_figures(shape: tuple[int, int, int, int], device: torch.device, *, rows_only: bool) -> dict[str, Tensor]:
    """Memory for the figures [batch, head, …], side by side."""
    *heads, n_queries, n_keys = shape
    shapes = {name: [*heads, n_queries] for name in ROW_FIGURES}
    if not rows_only:
        cells = [math.ceil(length / cell(length)) for length in (n_queries, n_keys)]
        shapes |= {name: [*heads, n_queries, N_TOP] for name in ("top_keys", "top_weights")}
        shapes |= {"received": [*heads, n_keys], "map": [*heads, *cells]}
    sizes = [math.prod(shape) for shape in shapes.values()]
    parts = torch.empty(sum(sizes), device=device).split(sizes)
    figures = {name: part.view(shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)}
    return {name: part.view(torch.int32) if name in _INTEGERS else part for name, part in figures.items()}


_INTEGERS = ("argmax", "top_keys")


class _Operands:
    """One layer's queries and keys, and what every kernel reads of the formula."""

    def __init__(self, query: Tensor, key: Tensor, mixed: Tensor, formula: Formula):
        self.batch, self.n_heads, self.n_queries, dim = query.shape
        self.n_keys = key.shape[2]
        self.query, self.key, self.mixed, self.sinks = query, key, mixed, formula.sinks
        self.width = power_of_two(dim)
        self.dtype = query.dtype
        self.limits = limits_of(formula.mask, self.n_queries, self.n_keys, query.device)
        mask = formula.mask
        self.offset = 0 if mask is None else mask.query_offset - mask.key_offset
        self.common = self._sizes(formula, self.n_heads // key.shape[1]) | self._terms(self.limits, formula)

    def top_blocks(self) -> BlockSizes:
        """Sizes for the strongest keys."""
        return fitted(top_blocks(self.width, self.dtype), self.width * self.query.element_size(), 1, self.query.device)

    def tiles(self, blocks: BlockSizes) -> tuple[Any, Any]:
        """Descriptors of blocks of queries and of keys."""
        return _tiles(self.query, blocks.rows, self.width), _tiles(self.key, blocks.keys, self.width)

    def arguments(self, blocks: BlockSizes, **own: int) -> dict[str, Any]:
        """What every kernel takes, for blocks of this size, and what is a kernel's own."""
        return self.common | {"rows_each": blocks.rows, "keys_each": blocks.keys} | own

    def _sizes(self, formula: Formula, n_each: int) -> dict[str, Any]:
        # Three products of tf32 are as exact as fp32, and run on the matrix units.
        is_wide = self.dtype == torch.float32
        return {
            "scale": formula.scaling,
            "cap": formula.softcap or 1.0,
            "n_queries": self.n_queries,
            "n_keys": self.n_keys,
            "n_heads": self.n_heads,
            "n_each": n_each,
            "width": self.width,
            "capped": formula.softcap is not None,
            "has_sinks": formula.sinks is not None,
            "precision": "tf32x3" if is_wide and not torch.version.hip else "ieee",
        }

    def _terms(self, limits: MaskLimits, formula: Formula) -> dict[str, Any]:
        """The mask and the bias with their strides; a tensor that is not there is never read."""
        keys, dense, bias = limits.keys, limits.dense, None if formula.bias is None else formula.bias.values
        nothing = limits.stop
        return {
            "start_at": limits.start,
            "stop_at": limits.stop,
            "limit_batch": _step(limits.stop, 0),
            "limit_head": _step(limits.stop, 1),
            "limits": limits.number,
            "keys": nothing if keys is None else keys,
            "keys_batch": 0 if keys is None else _step(keys, 0),
            "has_keys": keys is not None,
            "dense": nothing if dense is None else dense,
            "dense_batch": 0 if dense is None else _step(dense, 0),
            "dense_head": 0 if dense is None else _step(dense, 1),
            "dense_row": 0 if dense is None else dense.stride(2),
            "has_dense": dense is not None,
            "bias": nothing if bias is None else bias,
            "bias_batch": 0 if bias is None else _step(bias, 0),
            "bias_head": 0 if bias is None else _step(bias, 1),
            "bias_row": bias.stride(2) if bias is not None and bias.ndim == 4 else 0,
            "biased": 0 if formula.bias is None else _BIAS_FORMS[formula.bias.form],
        }


def _attend_rows(
    operands: _Operands, value: Tensor, figures: dict[str, Tensor], known: Hashable, *, repair: bool
) -> None:
    """The first pass: fills the row figures and the mixed values; or those of blocks that have a NaN."""
    from headscope.attention.row_kernels import attend_rows

    mixed, value_width = operands.mixed, power_of_two(operands.mixed.shape[-1])
    width = max(operands.width, value_width)
    blocks = fitted(row_blocks(width, operands.dtype), width * value.element_size(), 2, value.device)
    n_blocks = -(-operands.n_queries // blocks.rows)
    query, key = operands.tiles(blocks)
    arguments = {"query": query, "key": key, "value": _tiles(value, blocks.keys, value_width), "out": mixed}
    arguments |= {f"{name}_at": figures[name] for name in ROW_FIGURES}
    arguments |= {"out_batch": mixed.stride(0), "out_row": mixed.stride(1), "out_head": mixed.stride(2)}
    arguments |= {"sinks": mixed if operands.sinks is None else operands.sinks, "offset": operands.offset}
    own = {"n_blocks": n_blocks, "value_width": value_width, "value_dim": mixed.shape[-1], "repair": repair}
    arguments |= operands.arguments(blocks, **own)
    grid = (operands.batch * operands.n_heads, n_blocks)
    launch(attend_rows, grid, arguments, known, num_warps=blocks.warps, num_stages=blocks.stages)


def _receive(operands: _Operands, figures: dict[str, Tensor]) -> None:
    """The second pass, over keys: fills `received` and the map."""
    from headscope.attention.summary_kernels import receive

    blocks = received_blocks(operands.width, operands.dtype)
    blocks = fitted(blocks, operands.width * operands.query.element_size(), 1, operands.query.device)
    n_blocks = -(-operands.n_keys // blocks.keys)
    row_cell, key_cell = cell(operands.n_queries), cell(operands.n_keys)
    n_cells, n_key_cells = figures["map"].shape[-2:]
    spans = operands.limits.spans(row_cell, blocks.rows, blocks.keys)
    shape = (operands.batch, operands.n_heads, n_cells, n_key_cells * key_cell)
    column_max = torch.zeros(shape, device=operands.query.device)
    query, key = operands.tiles(blocks)
    arguments = {"query": query, "key": key, "column_max": column_max, "n_columns": shape[-1]}
    arguments |= {name: figures[name] for name in ("lse", "received")}
    arguments |= {"spans": spans, "span_batch": _step(spans, 0), "span_head": _step(spans, 1)}
    arguments |= operands.arguments(blocks, cell=row_cell, n_cells=n_cells)
    grid = (operands.batch * operands.n_heads, n_blocks)
    launch(receive, grid, arguments, num_warps=blocks.warps, num_stages=blocks.stages)
    torch.amax(column_max.unflatten(-1, (n_key_cells, key_cell)), -1, out=figures["map"])


def _find_top(
    operands: _Operands,
    figures: dict[str, Tensor],
    counts: Tensor | None = None,
    capacity: int = 0,
    known: Hashable = None,
) -> None:
    """The second pass, over queries: fills the strongest keys; or those of blocks where lists had too little room."""
    from headscope.attention.summary_kernels import find_top

    blocks = operands.top_blocks()
    n_blocks = -(-operands.n_queries // blocks.rows)
    query, key = operands.tiles(blocks)
    arguments = {"query": query, "key": key, "counts": figures["lse"] if counts is None else counts}
    arguments |= {name: figures[name] for name in ("lse", "top_keys", "top_weights")}
    arguments |= operands.arguments(blocks, n_blocks=n_blocks, n_top=N_TOP, capacity=capacity)
    grid = (operands.batch * operands.n_heads, n_blocks)
    launch(find_top, grid, arguments, known, num_warps=blocks.warps, num_stages=blocks.stages)


@torch.no_grad()
def weigh_runs(
    query: Tensor, key: Tensor, formula: Formula, lse: Tensor, spans: Sequence[Sequence[tuple[int, int]]]
) -> Tensor:
    """What each query gives to the keys of each span, of which there are runs [batch, head, query, span]."""
    from headscope.attention.span_kernels import weigh_runs as weigh

    query, key = aligned(query), aligned(key)
    operands = _Operands(query, key, query, formula)
    weights = torch.zeros(*query.shape[:3], len(spans), device=query.device)
    table = [
        (*run, index, place == len(runs) - 1) for index, runs in enumerate(spans) for place, run in enumerate(runs)
    ]
    blocks = operands.top_blocks()
    query_tiles, key_tiles = operands.tiles(blocks)
    arguments = {"query": query_tiles, "key": key_tiles, "lse": lse.contiguous(), "weights": weights}
    arguments |= {"runs": torch.tensor(table or [(0, 0, 0, 0)], dtype=torch.int32, device=query.device)}
    arguments |= operands.arguments(blocks, n_runs=len(table), n_spans=len(spans))
    grid = (operands.batch * operands.n_heads, -(-operands.n_queries // blocks.rows))
    launch(weigh, grid, arguments, num_warps=blocks.warps, num_stages=blocks.stages)
    return weights


@torch.no_grad()
def pool_cells(
    query: Tensor,
    key: Tensor,
    formula: Formula,
    lse: Tensor,
    rectangle: tuple[tuple[int, int], tuple[int, int]],
    cell: tuple[int, int],
    shape: tuple[int, ...],
) -> Tensor:
    """The largest weight of every cell of a rectangle (rows, columns) of one head [row cell, key cell]."""
    from headscope.attention.span_kernels import pool_cells as pool

    query, key = aligned(query[None, None]), aligned(key[None, None])
    operands = _Operands(query, key, query, formula)
    pooled = torch.empty(shape, device=query.device)
    blocks = operands.top_blocks()
    (first_row, past_row), (first_key, past_key) = rectangle
    query_tiles, key_tiles = operands.tiles(blocks)
    arguments = {"query": query_tiles, "key": key_tiles, "lse": lse.contiguous(), "pooled": pooled}
    arguments |= {"first_row": first_row, "past_row": past_row, "first_key": first_key, "past_key": past_key}
    arguments |= operands.arguments(blocks, row_cell=cell[0], key_cell=cell[1], n_cells=shape[1])
    launch(pool, (pooled.numel(),), arguments, num_warps=blocks.warps, num_stages=blocks.stages)
    return pooled


def power_of_two(dim: int) -> int:
    """The width of a block for heads of this size: a power of two that the matrix units take."""
    return max(16, 1 << (dim - 1).bit_length())


def aligned(tensor: Tensor) -> Tensor:
    """The tensor as the copy engine reads it, copied if needed: rows without gaps, from multiples of 16 bytes."""
    n_each = 16 // tensor.element_size()
    if (
        tensor.stride(-1) == 1
        and tensor.data_ptr() % 16 == 0
        and all(tensor.stride(axis) % n_each == 0 and tensor.stride(axis) > 0 for axis in range(3))
    ):
        return tensor
    return torch.nn.functional.pad(tensor, (0, -tensor.shape[-1] % n_each)).contiguous()


def _tiles(tensor: Tensor, n_rows: int, width: int) -> Any:
    """A descriptor of blocks of rows of one head; what lies outside reads as zero."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    return TensorDescriptor(tensor, list(tensor.shape), list(tensor.stride()), [1, 1, n_rows, width])


def _step(tensor: Tensor, axis: int) -> int:
    """The stride along an axis, 0 where all share one."""
    return tensor.stride(axis) if tensor.shape[axis] > 1 else 0
