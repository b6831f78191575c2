"""The second pass over a pattern on a GPU, once its rows are known: received attention, the map, the strongest keys."""

import triton
import triton.language as tl

from headscope.attention.row_kernels import FORBIDDEN, LOG2E, NOWHERE, hide, key_range, limits_of, scores

_LOW_WORD = tl.constexpr(0xFFFFFFFF)
_LOWEST = tl.constexpr(-(2**63))
# The score of an empty slot: above what is forbidden, and of no weight.
EMPTY = tl.constexpr(-5.0e29)


@triton.jit(do_not_specialize=["n_queries", "n_keys", "n_heads", "n_each", "cell", "n_cells", "n_columns"])
def receive(
    query, key, lse, received, column_max, start_at, stop_at, spans, keys, dense, bias,
    limit_batch, limit_head, span_batch, span_head, keys_batch, dense_batch, dense_head, dense_row,
    bias_batch, bias_head, bias_row,
    scale, cap, n_queries, n_keys, n_heads, n_each, cell, n_cells, n_columns,
    rows_each: tl.constexpr, keys_each: tl.constexpr, width: tl.constexpr, limits: tl.constexpr,
    has_keys: tl.constexpr, has_dense: tl.constexpr, biased: tl.constexpr, capped: tl.constexpr,
    has_sinks: tl.constexpr, precision: tl.constexpr,
):  # fmt: skip
    """One block of keys of one head: the mean weight of each, and its largest in every cell of queries.

    `spans` [key block, 4] are the blocks of queries that see it: first, first and last that see all of it, last.
    A block of queries never crosses the border of a cell of the map.
    """
    whole_head, block = tl.program_id(0), tl.program_id(1)
    b, h = whole_head // n_heads, whole_head % n_heads
    cols = block * keys_each + tl.arange(0, keys_each)
    keys += b * keys_batch
    dense += b.to(tl.int64) * dense_batch + h.to(tl.int64) * dense_head
    bias += b.to(tl.int64) * bias_batch + h.to(tl.int64) * bias_head
    factor = 1.0 if capped or biased else scale * LOG2E
    k = key.load([b, h // n_each, block * keys_each, 0]).reshape([keys_each, width])
    total = tl.zeros([keys_each], tl.float32)
    largest = tl.full([keys_each], float("-inf"), tl.float32)
    per_cell = tl.cdiv(cell, rows_each)
    blind_level = float("-inf") if has_sinks else -tl.math.log2(n_keys * 1.0)
    span = spans + b * span_batch + h * span_head + 4 * block
    near = b * limit_batch + h * limit_head
    for part in tl.static_range(3):
        for step in tl.range(tl.load(span + part), tl.load(span + part + 1)):
            c = step // per_cell
            first_row = c * cell + (step % per_cell) * rows_each
            rows = first_row + tl.arange(0, rows_each)
            real = (rows < n_queries) & (rows < (c + 1) * cell)
            q = query.load([b, h, first_row, 0]).reshape([rows_each, width])
            # Keys × queries, so that the sums over queries stay within a few threads.
            s = scores(q, k, rows, cols, bias, bias_row, n_queries, n_keys, scale, cap, capped, biased, precision, True)
            level = tl.load(lse + whole_head * n_queries + rows, mask=real, other=float("inf")) * LOG2E
            x = s * factor - level[:, None]
            if part != 1:
                start, stop, blind = limits_of(start_at + near, stop_at + near, rows, n_queries, n_keys, limits)
                x = hide(
                    x, rows, cols, start, stop, blind, keys, dense, dense_row, n_queries, n_keys, has_keys, has_dense
                )
                x = tl.where((blind & real)[:, None] & (cols < n_keys)[None, :], blind_level, x)
                x = tl.where(real[:, None], x, float("-inf"))
            total += tl.sum(tl.math.exp2(x), 0)
            largest = tl.maximum(largest, tl.max(x, 0))
            is_last = step % per_cell == per_cell - 1
            at = column_max + (whole_head * n_cells + c).to(tl.int64) * n_columns + cols
            tl.store(at, tl.math.exp2(largest), mask=cols < tl.where(is_last, n_keys, 0))
            largest = tl.where(is_last, float("-inf"), largest)
    tl.store(received + whole_head * n_keys + cols, total / n_queries, mask=cols < n_keys)


@triton.jit(do_not_specialize=["length", "cell", "n_cells", "width", "n_levels"])
def spread_levels(lse, levels, length, cell, n_cells, width, n_levels, number: tl.constexpr):
    """The lse in base 2 [batch · head, cell, place], infinite at places that are past the last query of a cell."""
    at = tl.program_id(0) * number + tl.arange(0, number)
    place, of_cell = at % width, at // width % n_cells
    row = of_cell * cell + place
    real = (place < cell) & (row < length) & (at < n_levels)
    level = tl.load(lse + at // (width * n_cells) * length + row, mask=real, other=float("inf"))
    tl.store(levels + at, level * LOG2E, mask=at < n_levels)


@triton.jit(do_not_specialize=["length", "cell", "n_cells"])
def pool_columns(column_max, pooled, length, cell, n_cells, causal: tl.constexpr, number: tl.constexpr):
    """One row of cells of the map, from the largest weight (its log, base 2) that each key has in it.

    `causal`: what lies above the diagonal was not written.
    """
    row = tl.program_id(0)
    query_cell = row % n_cells
    last, n_seen = length, n_cells
    if causal:
        last, n_seen = tl.minimum(length, (query_cell + 1) * cell), query_cell + 1
    some = tl.arange(0, 16)
    for first in range(0, n_cells, 16):
        best = tl.full([16], float("-inf"), tl.float32)
        if first < n_seen:
            for start in range(0, cell, number):
                place = start + tl.arange(0, number)
                keys = (first + some)[:, None] * cell + place[None, :]
                real = (place < cell)[None, :] & (keys < last)
                at = column_max + row.to(tl.int64) * length + keys
                best = tl.maximum(best, tl.max(tl.load(at, mask=real, other=float("-inf")), 1))
        tl.store(pooled + row * n_cells + first + some, tl.math.exp2(best), mask=first + some < n_cells)


@triton.jit
def packed(value, key):
    """A score and its key in one integer: no two are alike, and of equal scores the lower key wins."""
    bits = (value + 0.0).to(tl.int32, bitcast=True)  # −0 equals 0
    ordered = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    return (ordered.to(tl.int64) << 32) | (-key.to(tl.int64) + _LOW_WORD)


@triton.jit
def _score_of(packed):
    ordered = (packed >> 32).to(tl.int32)
    return (ordered ^ ((ordered >> 31) & 0x7FFFFFFF)).to(tl.float32, bitcast=True)


@triton.jit
def _insert(s, slots, weakest, first):
    """Put the scores of a block that belong to the largest so far among them, the largest of each row at a time.

    `weakest` is the lowest score among the slots. Keys come in order, so that an equal score comes too late.
    """
    place = tl.arange(0, s.shape[1])
    largest = tl.max(s, 1)
    while tl.max((largest > weakest).to(tl.int32), 0) > 0:
        enters = largest > weakest
        column = tl.min(tl.where(s == largest[:, None], place[None, :], NOWHERE), 1)
        candidate = packed(largest, first + column)
        leaves = tl.min(slots, 1)
        slots = tl.where((slots == leaves[:, None]) & enters[:, None], candidate[:, None], slots)
        weakest = _score_of(tl.min(slots, 1))
        s = tl.where(place[None, :] == column[:, None], FORBIDDEN, s)
        largest = tl.max(s, 1)
    return slots, weakest


@triton.jit
def put_top(slots, level, blind, blind_weight, factor, top_keys, top_weights, at, real, n_keys, n_top: tl.constexpr):
    """Write the strongest keys in order. Keys that weigh nothing tie: the lowest come first."""
    used = tl.zeros_like(at).to(tl.int32)
    for rank in tl.static_range(n_top):
        chosen = tl.max(slots, 1)
        slots = tl.where(slots == chosen[:, None], _LOWEST, slots)
        weight = tl.where(blind, blind_weight, tl.math.exp2(_score_of(chosen) * factor - level))
        number = (-(chosen & _LOW_WORD) + _LOW_WORD).to(tl.int32)
        # Fewer than `n_top` keys weigh something if this one does not, so that the lowest free one is among the first.
        free = (~used) & (used + 1)
        lowest = (free.to(tl.float32).to(tl.int32, bitcast=True) >> 23) - 127
        number = tl.where(weight > 0.0, number, lowest)
        used = used | tl.where(number < 2 * n_top, 1 << tl.minimum(number, 2 * n_top), 0)
        exists = rank < n_keys
        tl.store(top_keys + at * n_top + rank, tl.where(exists, number, -1), mask=real)
        tl.store(top_weights + at * n_top + rank, tl.where(exists, weight, 0.0), mask=real)


@triton.jit(do_not_specialize=["n_queries", "n_keys", "n_heads", "n_each", "n_blocks"])
def find_top(
    query, key, lse, top_keys, top_weights, counts, start_at, stop_at, keys, dense, bias,
    limit_batch, limit_head, keys_batch, dense_batch, dense_head, dense_row, bias_batch, bias_head, bias_row,
    scale, cap, n_queries, n_keys, n_heads, n_each, n_blocks,
    rows_each: tl.constexpr, keys_each: tl.constexpr, width: tl.constexpr, limits: tl.constexpr,
    has_keys: tl.constexpr, has_dense: tl.constexpr, biased: tl.constexpr, capped: tl.constexpr,
    has_sinks: tl.constexpr, precision: tl.constexpr, n_top: tl.constexpr, capacity: tl.constexpr,
):  # fmt: skip
    """The strongest keys of one block of queries of one head, and their weights.

    `capacity` computes only blocks in which one of the four lists of some query would have to hold more.
    """
    whole_head = tl.program_id(0)
    first_row = (n_blocks - 1 - tl.program_id(1)) * rows_each
    b, h = whole_head // n_heads, whole_head % n_heads
    rows = first_row + tl.arange(0, rows_each)
    at, real = whole_head.to(tl.int64) * n_queries + rows, rows < n_queries
    if capacity > 0:  # noqa: SIM102 (a constant: without it the rest is not compiled)
        if (
            tl.max(
                tl.max(tl.load(counts + 4 * at[:, None] + tl.arange(0, 4)[None, :], mask=real[:, None], other=0), 1), 0
            )
            <= capacity
        ):
            return
    near = b * limit_batch + h * limit_head
    start, stop, blind = limits_of(start_at + near, stop_at + near, rows, n_queries, n_keys, limits)
    q = query.load([b, h, first_row, 0]).reshape([rows_each, width])
    keys += b * keys_batch
    dense += b.to(tl.int64) * dense_batch + h.to(tl.int64) * dense_head
    bias += b.to(tl.int64) * bias_batch + h.to(tl.int64) * bias_head
    weakest = tl.full([rows_each], EMPTY, tl.float32)
    slots = packed(weakest[:, None], tl.arange(0, n_top)[None, :] + NOWHERE + tl.zeros([rows_each, 1], tl.int32))
    lo, full, past, hi = key_range(start, stop, blind, rows, n_queries, n_keys, keys_each, has_keys or has_dense)
    for part in tl.static_range(0 if limits == 2 else 1, 3):
        begin = lo if part == 0 else (full if part == 1 else past)
        end = full if part == 0 else (past if part == 1 else hi)
        for n in tl.range(begin, end, keys_each):
            cols = n + tl.arange(0, keys_each)
            k = key.load([b, h // n_each, n, 0]).reshape([keys_each, width])
            s = scores(
                q, k, rows, cols, bias, bias_row, n_queries, n_keys, scale, cap, capped, biased, precision, False
            )
            if part != 1:
                s = hide(
                    s, rows, cols, start, stop, blind, keys, dense, dense_row, n_queries, n_keys, has_keys, has_dense
                )
            slots, weakest = _insert(s, slots, weakest, n)
    factor = 1.0 if capped or biased else scale * LOG2E
    level = tl.load(lse + at, mask=real, other=0.0) * LOG2E
    blind_weight = 0.0 if has_sinks else 1.0 / n_keys
    put_top(slots, level, blind, blind_weight, factor, top_keys, top_weights, at, real, n_keys, n_top)
