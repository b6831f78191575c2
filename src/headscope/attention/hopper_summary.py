"""The second pass on a Hopper GPU: received attention and the map, and the strongest keys from lists."""

import math
from collections.abc import Hashable

import torch
from torch import Tensor

from headscope.attention.formula import Formula
from headscope.attention.hopper import BLOCK_KEYS, BLOCK_ROWS, n_processors, tiles
from headscope.attention.launches import launch
from headscope.attention.summaries import N_TOP, cell

_GROUPS, _STAGES = 3, 2


def receive(query: Tensor, key: Tensor, formula: Formula, figures: dict[str, Tensor], known: Hashable) -> None:
    """Fill `received` and the map."""
    from headscope.attention import hopper_received
    from headscope.attention.summary_kernels import pool_columns, spread_levels

    n_all, length = query.shape[0] * query.shape[1], query.shape[2]
    size, n_cells = cell(length), figures["map"].shape[-1]
    n_rows = block_rows(size)
    per_cell = -(-size // n_rows)
    levels = torch.empty(n_all, n_cells, per_cell * n_rows, device=query.device)
    spread = {"lse": figures["lse"], "levels": levels, "length": length, "cell": size, "n_cells": n_cells}
    spread |= {"width": per_cell * n_rows, "n_levels": levels.numel(), "number": 1024}
    launch(spread_levels, (-(-levels.numel() // 1024),), spread, known)
    column_max = torch.empty(n_all, n_cells, length, device=query.device)
    causal = formula.mask is not None
    sizes = _sizes(query, key, _GROUPS * BLOCK_KEYS)
    arguments = {
        "key": tiles(key, BLOCK_KEYS),
        "query": tiles(query, n_rows),
        "levels": levels,
        "received": figures["received"],
        "column_max": column_max,
        "scale": formula.scaling / math.log(2),
        "share": 1.0 / length,
        **sizes,
        "cell": size,
        "n_cells": n_cells,
        "per_cell": per_cell,
        "n_rows": n_rows,
        "dim": query.shape[-1],
        "stages": _STAGES,
        "causal": causal,
    }
    launch(hopper_received.receive, (sizes["n_programs"],), arguments, known, num_warps=4)
    pool = {"column_max": column_max, "pooled": figures["map"], "length": length, "cell": size, "n_cells": n_cells}
    pool |= {"causal": causal, "number": min(512, 1 << (size - 1).bit_length())}
    launch(pool_columns, (n_all * n_cells,), pool, known, num_warps=4)


def choose_top(
    query: Tensor, key: Tensor, formula: Formula, figures: dict[str, Tensor], bounds: Tensor, known: Hashable
) -> tuple[Tensor, int]:
    """Fill the strongest keys from lists of scores that reach their bound; gives how many there were for each list, and
    how many each has room for.
    """
    from headscope.attention import hopper_lists
    from headscope.attention.top_kernels import choose_top as choose

    capacity = hopper_lists.CAPACITY.value
    n_rows = figures["lse"].numel()
    counts = torch.empty(n_rows, 4, dtype=torch.int32, device=query.device)
    lists = torch.empty(n_rows, 4, capacity, 2, dtype=torch.int32, device=query.device)
    sizes = _sizes(query, key, _GROUPS * BLOCK_ROWS)
    arguments = {
        "query": tiles(query, BLOCK_ROWS),
        "key": tiles(key, BLOCK_KEYS),
        "bounds": bounds,
        "counts": counts,
        "lists": lists,
        **sizes,
        "dim": query.shape[-1],
        "stages": _STAGES,
        "causal": formula.mask is not None,
        "capacity": capacity,
    }
    launch(hopper_lists.list_candidates, (sizes["n_programs"],), arguments, known, num_warps=4)
    chosen = {name: figures[name] for name in ("lse", "top_keys", "top_weights")}
    chosen |= {
        "counts": counts,
        "lists": lists.view(torch.int64),
        "factor": formula.scaling / math.log(2),
        "n_rows": n_rows,
    }
    chosen |= {"n_keys": query.shape[2], "rows_each": 32, "n_lists": 4, "capacity": capacity, "n_top": N_TOP}
    launch(choose, (-(-n_rows // 32),), chosen, known)
    return counts, capacity


def block_rows(size: int) -> int:
    """How many queries a block has, for cells of so many: few are wasted at its end, but small blocks cost more."""
    return min((64, 32), key=lambda rows: -(-size // rows) * rows * (1 + 14 / rows))


def _sizes(query: Tensor, key: Tensor, n_each: int) -> dict[str, int]:
    """Sizes of a launch whose tiles have so many queries, or keys, each."""
    batch, n_heads, length = query.shape[:3]
    n_all, n_tiles = batch * n_heads, -(-length // n_each)
    return {
        "length": length,
        "n_heads": n_heads,
        "n_each": n_heads // key.shape[1],
        "n_all": n_all,
        "n_tiles": n_tiles,
        "n_programs": min(n_processors(query.device), n_all * n_tiles),
    }
