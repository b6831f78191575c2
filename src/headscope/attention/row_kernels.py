"""The first pass over a pattern on a GPU: the mixed values and the figures of single rows, block by block, in Triton.

Keys stream past a block of queries as in flash attention; entropy, distance and the strongest key are kept beside the
running softmax. Scores are in base 2. A query that sees nothing is "blind": it gives all keys the same weight.
"""

import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)
LN2 = tl.constexpr(0.6931471805599453)
# A forbidden cell, and where the running maximum begins: far apart, so that what is forbidden weighs exactly nothing.
# The second is a power of two: its products are exact, and differences of them exactly zero.
FORBIDDEN = tl.constexpr(-1.0e30)
BOTTOM = tl.constexpr(-(2.0**50))
LOWEST = tl.constexpr(-3.4028234663852886e38)
NOWHERE = tl.constexpr(2**30)


@triton.jit
def limits_of(start_at, stop_at, rows, n_queries, n_keys, limits: tl.constexpr):
    """The first and one past the last key of each query, and which are blind; `limits` is how many limits there are."""
    start = rows * 0
    stop = start + n_keys
    if limits == 2:
        start = tl.load(start_at + rows, mask=rows < n_queries, other=0)
    if limits > 0:
        stop = tl.load(stop_at + rows, mask=rows < n_queries, other=n_keys)
    return start, stop, stop <= start


@triton.jit
def key_range(start, stop, blind, rows, n_queries, n_keys, size: tl.constexpr, sparse: tl.constexpr):
    """Keys that a block of queries sees: first, first and last that all see (whole blocks), last."""
    real = rows < n_queries
    first = tl.min(tl.where(real, tl.where(blind, 0, start), NOWHERE), 0)
    last = tl.max(tl.where(real, tl.where(blind, n_keys, stop), 0), 0)
    first_full = tl.cdiv(tl.max(tl.where(real, start, 0), 0), size) * size
    last_full = tl.min(tl.where(real, stop, NOWHERE), 0) // size * size
    first = first // size * size
    if sparse:
        last_full = first_full
    first_full = tl.minimum(first_full, tl.cdiv(last, size) * size)
    return first, first_full, tl.maximum(last_full, first_full), last


@triton.jit
def scores(
    q, k, rows, cols, bias, bias_row, n_queries, n_keys, scale, cap,
    capped: tl.constexpr, biased: tl.constexpr, precision: tl.constexpr, by_key: tl.constexpr,
):  # fmt: skip
    """Scores [row, column] of a block: raw products, or in base 2 where something is added to them.

    `by_key` lays them out over the threads by key, for sums over queries.
    """
    if by_key:
        s = tl.trans(tl.dot(k, tl.trans(q), input_precision=precision))
    else:
        s = tl.dot(q, tl.trans(k), input_precision=precision)
    if capped or biased:
        s = s * scale
        if capped:
            s = (2.0 * tl.sigmoid(s * (2.0 / cap)) - 1.0) * cap
        inside = (rows < n_queries)[:, None] & (cols < n_keys)[None, :]
        if biased == 1:  # one for each key
            s += tl.load(bias + cols, mask=cols < n_keys, other=0.0).to(tl.float32)[None, :]
        if biased == 2:  # one for each offset key - query
            at = cols[None, :] - rows[:, None] + (n_queries - 1)
            s += tl.load(bias + at, mask=inside, other=0.0).to(tl.float32)
        if biased == 3:  # one for each cell
            at = rows.to(tl.int64)[:, None] * bias_row + cols[None, :]
            s += tl.load(bias + at, mask=inside, other=0.0).to(tl.float32)
        s *= LOG2E
    return s


@triton.jit
def hide(
    s, rows, cols, start, stop, blind, keys, dense, dense_row, n_queries, n_keys,
    has_keys: tl.constexpr, has_dense: tl.constexpr,
):  # fmt: skip
    """Put a low number into forbidden cells; blind queries have a score of 0 everywhere."""
    real = (cols < n_keys)[None, :]
    seen = (cols[None, :] >= start[:, None]) & (cols[None, :] < stop[:, None])
    if has_keys:
        seen = seen & (tl.load(keys + cols, mask=cols < n_keys, other=0) != 0)[None, :]
    if has_dense:
        at = rows.to(tl.int64)[:, None] * dense_row + cols[None, :]
        seen = seen & (tl.load(dense + at, mask=(rows < n_queries)[:, None] & real, other=0) != 0)
    s = tl.where(blind[:, None], 0.0, tl.where(seen, s, FORBIDDEN))
    return tl.where(real, s, FORBIDDEN)


@triton.jit
def _take_in(s, v, ahead, first, acc, peak, total, mean, far, best, factor, precision: tl.constexpr):
    """A block of scores into the running figures of its rows.

    `peak` is the largest score; `total`, `mean` and `far` are the sums of the weights, of weight × score and of
    weight × distance, relative to it.
    """
    place = tl.arange(0, s.shape[1])
    largest = tl.max(s, 1)
    column = tl.min(tl.where(s == largest[:, None], place[None, :], NOWHERE), 1)
    best = tl.where(largest > peak, first + column, best)
    new_peak = tl.maximum(peak, largest)
    shift = (peak - new_peak) * factor  # exactly 0 where the peak stays, whatever the rounding
    shrink = tl.math.exp2(shift)
    x = s * factor - (new_peak * factor)[:, None]
    p = tl.math.exp2(x)
    mean = (mean + shift * total) * shrink + tl.sum(p * x, 1)
    far = far * shrink + tl.sum(p * tl.abs(ahead[:, None] - place.to(tl.float32)[None, :]), 1)
    total = total * shrink + tl.sum(p, 1)
    acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None], input_precision=precision)
    return acc, new_peak, total, mean, far, best


@triton.jit
def _finish(acc, level, total, mean, far, blind, sink, n_keys, has_sinks: tl.constexpr):
    """What the running sums mean: mixed values, lse, entropy, largest weight and distance, in natural units."""
    whole = total
    if has_sinks:
        top = tl.maximum(level, sink * LOG2E)
        shrink = tl.where(blind, 0.0, tl.math.exp2(level - top))
        mean = (mean + tl.where(blind, 0.0, level - top) * total) * shrink
        total *= shrink
        far *= shrink
        acc *= shrink[:, None]
        whole = total + tl.math.exp2(sink * LOG2E - top)
        level = top
        largest = shrink / whole
        lse = tl.where(blind, sink, (level + tl.math.log2(whole)) * LN2)
        entropy = tl.maximum((tl.math.log2(whole) * total - mean) / whole * LN2, 0.0)
    else:
        largest = 1.0 / whole
        lse = tl.where(blind, LOWEST, (level + tl.math.log2(whole)) * LN2)
        # Entropy lies between these two.
        entropy = tl.minimum((tl.math.log2(whole) - mean / whole) * LN2, tl.math.log2(n_keys * 1.0) * LN2)
        entropy = tl.maximum(entropy, tl.math.log2(whole) * LN2)
    return acc / whole[:, None], lse, entropy, largest, far / tl.maximum(total, 1.0e-37)


@triton.jit(do_not_specialize=["n_queries", "n_keys", "offset", "n_heads", "n_each", "n_blocks"])
def attend_rows(
    query, key, value, out, lse_at, entropy_at, max_at, distance_at, argmax_at,
    start_at, stop_at, keys, dense, bias, sinks,
    out_batch, out_row, out_head, limit_batch, limit_head, keys_batch, dense_batch, dense_head, dense_row,
    bias_batch, bias_head, bias_row,
    scale, cap, n_queries, n_keys, offset, n_heads, n_each, n_blocks,
    rows_each: tl.constexpr, keys_each: tl.constexpr, width: tl.constexpr, value_width: tl.constexpr,
    value_dim: tl.constexpr, limits: tl.constexpr, has_keys: tl.constexpr, has_dense: tl.constexpr,
    biased: tl.constexpr, capped: tl.constexpr, has_sinks: tl.constexpr, precision: tl.constexpr,
    repair: tl.constexpr,
):  # fmt: skip
    """One block of queries of one head. Figures are [batch · head, query].

    `repair` computes only blocks in which the lse of some query is NaN.
    """
    whole_head = tl.program_id(0)
    first_row = (n_blocks - 1 - tl.program_id(1)) * rows_each  # causal blocks: those with the most keys first
    b, h = whole_head // n_heads, whole_head % n_heads
    rows = first_row + tl.arange(0, rows_each)
    at, real = whole_head.to(tl.int64) * n_queries + rows, rows < n_queries
    if repair:
        known = tl.load(lse_at + at, mask=real, other=0.0)
        if tl.max((known != known).to(tl.int32), 0) == 0:
            return
    near = b * limit_batch + h * limit_head
    start, stop, blind = limits_of(start_at + near, stop_at + near, rows, n_queries, n_keys, limits)
    q = query.load([b, h, first_row, 0]).reshape([rows_each, width])
    keys += b * keys_batch
    dense += b.to(tl.int64) * dense_batch + h.to(tl.int64) * dense_head
    bias += b.to(tl.int64) * bias_batch + h.to(tl.int64) * bias_head
    factor = 1.0 if capped or biased else scale * LOG2E
    peak = tl.full([rows_each], BOTTOM, tl.float32)
    total = tl.zeros([rows_each], tl.float32)
    mean, far, best = total, total, tl.zeros([rows_each], tl.int32)
    acc = tl.zeros([rows_each, value_width], tl.float32)
    sparse: tl.constexpr = has_keys or has_dense
    lo, full, past, hi = key_range(start, stop, blind, rows, n_queries, n_keys, keys_each, sparse)
    # Before the whole blocks, the whole blocks, and after them.
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
            v = value.load([b, h // n_each, n, 0]).reshape([keys_each, value_width])
            ahead = (rows + (offset - n)).to(tl.float32)
            acc, peak, total, mean, far, best = _take_in(
                s, v, ahead, n, acc, peak, total, mean, far, best, factor, precision
            )
    sink = tl.load(sinks + h).to(tl.float32) + total * 0.0 if has_sinks else total
    acc, lse, entropy, largest, distance = _finish(acc, peak * factor, total, mean, far, blind, sink, n_keys, has_sinks)
    tl.store(lse_at + at, lse, mask=real)
    tl.store(entropy_at + at, entropy, mask=real)
    tl.store(max_at + at, largest, mask=real)
    tl.store(distance_at + at, distance, mask=real)
    tl.store(argmax_at + at, best, mask=real)
    dims = tl.arange(0, value_width)
    at_out = out + b.to(tl.int64) * out_batch + h * out_head + rows.to(tl.int64)[:, None] * out_row + dims[None, :]
    tl.store(at_out, acc.to(out.dtype.element_ty), mask=real[:, None] & (dims < value_dim)[None, :])
