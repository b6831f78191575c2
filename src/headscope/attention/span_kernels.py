"""Parts of a pattern on a GPU, once the rows are known: weights on chosen keys, and rectangles that are max-pooled."""

import triton
import triton.language as tl

from headscope.attention.row_kernels import LOG2E, hide, limits_of, scores


@triton.jit(do_not_specialize=["n_queries", "n_keys", "n_heads", "n_each", "n_runs", "n_spans"])
def weigh_runs(
    query, key, lse, runs, weights, start_at, stop_at, keys, dense, bias,
    limit_batch, limit_head, keys_batch, dense_batch, dense_head, dense_row, bias_batch, bias_head, bias_row,
    scale, cap, n_queries, n_keys, n_heads, n_each, n_runs, n_spans,
    rows_each: tl.constexpr, keys_each: tl.constexpr, width: tl.constexpr, limits: tl.constexpr,
    has_keys: tl.constexpr, has_dense: tl.constexpr, biased: tl.constexpr, capped: tl.constexpr,
    has_sinks: tl.constexpr, precision: tl.constexpr,
):  # fmt: skip
    """What one block of queries of one head gives to the keys of each span.

    `runs` [run, 4] are the first and one past the last key of a run, its span, and whether it is the last of the span.
    """
    whole_head, first_row = tl.program_id(0), tl.program_id(1) * rows_each
    b, h = whole_head // n_heads, whole_head % n_heads
    rows = first_row + tl.arange(0, rows_each)
    at, real = whole_head.to(tl.int64) * n_queries + rows, rows < n_queries
    near = b * limit_batch + h * limit_head
    start, stop, blind = limits_of(start_at + near, stop_at + near, rows, n_queries, n_keys, limits)
    q = query.load([b, h, first_row, 0]).reshape([rows_each, width])
    keys += b * keys_batch
    dense += b.to(tl.int64) * dense_batch + h.to(tl.int64) * dense_head
    bias += b.to(tl.int64) * bias_batch + h.to(tl.int64) * bias_head
    factor = 1.0 if capped or biased else scale * LOG2E
    level = tl.load(lse + at, mask=real, other=float("inf")) * LOG2E
    blind_weight = 0.0 if has_sinks else 1.0 / n_keys
    total = tl.zeros([rows_each], tl.float32)
    for run in range(0, n_runs):
        first, last = tl.load(runs + 4 * run), tl.load(runs + 4 * run + 1)
        for n in range(first, last, keys_each):
            cols = n + tl.arange(0, keys_each)
            k = key.load([b, h // n_each, n, 0]).reshape([keys_each, width])
            s = scores(
                q, k, rows, cols, bias, bias_row, n_queries, n_keys, scale, cap, capped, biased, precision, False
            )
            x = hide(
                s * factor - level[:, None], rows, cols, start, stop, blind, keys, dense, dense_row, n_queries, n_keys,
                has_keys, has_dense,
            )  # fmt: skip
            weight = tl.where(blind[:, None], blind_weight, tl.math.exp2(x))
            total += tl.sum(tl.where((cols < last)[None, :], weight, 0.0), 1)
        is_last = tl.load(runs + 4 * run + 3) > 0
        to = weights + at * n_spans + tl.load(runs + 4 * run + 2)
        tl.store(to, total, mask=rows < tl.where(is_last, n_queries, 0))
        total = tl.where(is_last, 0.0, total)


@triton.jit(
    do_not_specialize=[
        "n_queries", "n_keys", "n_heads", "n_each", "first_row", "past_row", "first_key", "past_key", "row_cell",
        "key_cell", "n_cells",
    ]
)  # fmt: skip
def pool_cells(
    query, key, lse, pooled, start_at, stop_at, keys, dense, bias,
    limit_batch, limit_head, keys_batch, dense_batch, dense_head, dense_row, bias_batch, bias_head, bias_row,
    scale, cap, n_queries, n_keys, n_heads, n_each, first_row, past_row, first_key, past_key, row_cell, key_cell,
    n_cells,
    rows_each: tl.constexpr, keys_each: tl.constexpr, width: tl.constexpr, limits: tl.constexpr,
    has_keys: tl.constexpr, has_dense: tl.constexpr, biased: tl.constexpr, capped: tl.constexpr,
    has_sinks: tl.constexpr, precision: tl.constexpr,
):  # fmt: skip
    """The largest weight of one cell of a rectangle of a head's pattern; there are `n_cells` of them side by side."""
    cell = tl.program_id(0)
    top, left = first_row + cell // n_cells * row_cell, first_key + cell % n_cells * key_cell
    bottom, right = tl.minimum(top + row_cell, past_row), tl.minimum(left + key_cell, past_key)
    factor = 1.0 if capped or biased else scale * LOG2E
    blind_level = float("-inf") if has_sinks else -tl.math.log2(n_keys * 1.0)
    best = tl.full([rows_each], float("-inf"), tl.float32)
    for row in range(top, bottom, rows_each):
        rows = row + tl.arange(0, rows_each)
        real = rows < bottom
        start, stop, blind = limits_of(start_at, stop_at, rows, n_queries, n_keys, limits)
        level = tl.load(lse + rows, mask=real, other=float("inf")) * LOG2E
        level = tl.where(level == level, level, float("inf"))  # a row without weights
        last = tl.minimum(right, tl.max(tl.where(real, tl.where(blind, n_keys, stop), 0), 0))
        q = query.load([0, 0, row, 0]).reshape([rows_each, width])
        for n in range(left, last, keys_each):
            cols = n + tl.arange(0, keys_each)
            k = key.load([0, 0, n, 0]).reshape([keys_each, width])
            s = scores(
                q, k, rows, cols, bias, bias_row, n_queries, n_keys, scale, cap, capped, biased, precision, False
            )
            x = hide(
                s * factor - level[:, None], rows, cols, start, stop, blind, keys, dense, dense_row, n_queries, n_keys,
                has_keys, has_dense,
            )  # fmt: skip
            x = tl.where(blind[:, None], blind_level, x)
            x = tl.where(real[:, None] & (cols < right)[None, :], x, float("-inf"))
            best = tl.maximum(best, tl.max(x, 1))
    tl.store(pooled + cell, tl.math.exp2(tl.max(best, 0)))
