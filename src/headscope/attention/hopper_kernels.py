"""The first pass over a pattern on Hopper GPUs (H100, H200), in Gluon: what `row_kernels` computes, faster.

One warp copies blocks of keys and values to shared memory; two groups of four warps each take 64 queries. They take
turns, so that one multiplies while the other works out its softmax. Every thread sums over the columns that it holds,
and threads add up once, at the end. The place of the largest score stands in its last five bits while scores are
compared: which of 32 groups of four columns. At the end, the four are compared exactly.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    warpgroup_mma,
    warpgroup_mma_init,
    warpgroup_mma_wait,
)

from headscope.attention.hopper_sums import (
    BLOCK_KEYS,
    BLOCK_ROWS,
    by_thread,
    eighth,
    halves,
    of_rows,
    peak_of,
    pinned,
    strongest,
    sums,
)  # fmt: skip
from headscope.attention.hopper_tiles import barriers, n_blocks, send, tile_of

FORBIDDEN = gl.constexpr(-1.0e30)
LN2 = gl.constexpr(0.6931471805599453)


@gluon.jit
def _block_of(i, n, diagonal, causal: gl.constexpr):
    """The i-th block to visit: downwards; where queries see what follows, the block of the diagonal comes first."""
    block = n - 1 - i
    if not causal:
        block = n - i
        block = gl.where(block <= diagonal, block - 1, block)
        block = gl.where(i == 0, diagonal, block)
    return block


@gluon.jit
def _producer(
    query, key, value, buffers, signals, sizes, dim: gl.constexpr, stages: gl.constexpr, causal: gl.constexpr
):
    """Copies blocks to shared memory as room becomes free; keys one block ahead of values."""
    length, n_heads, n_each, n_all, n_tiles, n_programs = sizes
    q_buffer, k_buffer, v_buffer = buffers
    q_full, q_empty, k_full, k_empty, v_full, v_empty, _ = signals
    size: gl.constexpr = BLOCK_KEYS * dim * 2
    step = 0
    n_done = 0
    for turn in range(gl.cdiv(n_tiles * n_all, n_programs)):
        tile, block, head = tile_of(turn, gl.program_id(0), n_programs, n_tiles, n_all, causal)
        if tile < n_tiles * n_all:
            b, h = head // n_heads, head % n_heads
            n, diagonal = n_blocks(block, length, 2, causal)
            slot = step % stages
            mbarrier.wait(k_empty.index(slot), ((step // stages) & 1) ^ 1)
            at = _block_of(0, n, diagonal, causal) * BLOCK_KEYS
            send(key, [b, h // n_each, at, 0], k_full.index(slot), k_buffer.index(slot), size)
            for w in gl.static_range(2):
                mbarrier.wait(q_empty.index(w), (n_done & 1) ^ 1)
                at = block * 2 * BLOCK_ROWS + BLOCK_ROWS * w
                send(query, [b, h, at, 0], q_full.index(w), q_buffer.index(w), BLOCK_ROWS * dim * 2)
            for i in range(n):
                if i + 1 < n:
                    slot = (step + 1) % stages
                    mbarrier.wait(k_empty.index(slot), (((step + 1) // stages) & 1) ^ 1)
                    at = _block_of(i + 1, n, diagonal, causal) * BLOCK_KEYS
                    send(key, [b, h // n_each, at, 0], k_full.index(slot), k_buffer.index(slot), size)
                slot = step % stages
                mbarrier.wait(v_empty.index(slot), ((step // stages) & 1) ^ 1)
                at = _block_of(i, n, diagonal, causal) * BLOCK_KEYS
                send(value, [b, h // n_each, at, 0], v_full.index(slot), v_buffer.index(slot), size)
                step += 1
            n_done += 1


@gluon.jit
def _consumer(
    w, buffers, signals, out, key_at, figures, strides, scale, sizes,
    dim: gl.constexpr, stages: gl.constexpr, causal: gl.constexpr, ragged: gl.constexpr, delayed: gl.constexpr,
    keep: gl.constexpr,
):  # fmt: skip
    """Sixty-four queries of every tile.

    `delayed`: weights are relative to the peak before their block, so that they need not wait for its own; where that
    rose too far, lse is NaN. `keep`: each query's bound for its eighth largest score too.
    """
    q_buffer, k_buffer, v_buffer = buffers
    q_full, q_empty, k_full, k_empty, v_full, v_empty, turns = signals
    length, n_heads, n_each, n_all, n_tiles, n_programs = sizes
    out_batch, out_row, out_head, key_batch, key_head, key_step = strides
    lse_at, entropy_at, max_at, distance_at, argmax_at, bound_at = figures
    dtype: gl.constexpr = q_buffer.dtype
    s_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_KEYS, 16])
    o_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, dim, 16])
    p_layout: gl.constexpr = gl.DotOperandLayout(operand_index=0, parent=o_layout, k_width=2)
    shared: gl.constexpr = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2)
    row_layout: gl.constexpr = gl.SliceLayout(1, s_layout)
    step = 0
    n_done = 0
    n_turns = 0
    q = q_buffer.index(w)._reinterpret(dtype, [BLOCK_ROWS, dim], shared)
    for turn in range(gl.cdiv(n_tiles * n_all, n_programs)):
        tile, block, head = tile_of(turn, gl.program_id(0), n_programs, n_tiles, n_all, causal)
        if tile < n_tiles * n_all:
            b, h = head // n_heads, head % n_heads
            first_row = block * 2 * BLOCK_ROWS + BLOCK_ROWS * w
            n, diagonal = n_blocks(block, length, 2, causal)
            mbarrier.wait(q_full.index(w), n_done & 1)
            rows = first_row + gl.arange(0, BLOCK_ROWS, layout=row_layout)
            columns = gl.expand_dims(gl.arange(0, BLOCK_KEYS, layout=gl.SliceLayout(0, s_layout)), 0)

            # The first block, and in the other order a ragged last one: masked, and not overlapped.
            n_masked = 1
            if ragged and not causal:
                n_masked = gl.where(diagonal != n - 1, 2, 1)
            first = _block_of(0, n, diagonal, causal) * BLOCK_KEYS
            slot = step % stages
            mbarrier.wait(k_full.index(slot), (step // stages) & 1)
            k = k_buffer.index(slot)._reinterpret(dtype, [BLOCK_KEYS, dim], shared).permute((1, 0))
            zeros = gl.zeros([BLOCK_ROWS, BLOCK_KEYS], gl.float32, s_layout)
            s_token = warpgroup_mma(q, k, zeros, use_acc=False, is_async=True)
            s = warpgroup_mma_wait(0, deps=(s_token,))
            mbarrier.arrive(k_empty.index(slot))
            seen = (gl.expand_dims(rows, 1) > -1) & (first + columns < length)
            if causal:
                seen = gl.expand_dims(rows, 1) >= first + columns
            s = gl.where(seen, s, FORBIDDEN)
            peak, classes = peak_of(s)
            x = s * scale - gl.expand_dims(peak * scale, 1)
            p = gl.exp2(x)
            quad: gl.constexpr = gl.sum(by_thread(p, BLOCK_KEYS), 2).type.layout
            lane = gl.expand_dims(gl.arange(0, 4, layout=gl.SliceLayout(0, quad)), 0)
            row_of = gl.expand_dims(first_row + gl.arange(0, BLOCK_ROWS, layout=gl.SliceLayout(1, quad)), 1)
            row_of = (row_of - 2 * lane).to(gl.float32)
            total, mean, far = sums(p, x, first.to(gl.float32), row_of, 1.0, BLOCK_KEYS, True)
            best = gl.full([BLOCK_ROWS], 0, gl.int32, row_layout) + first
            weights = gl.convert_layout(p.to(dtype), p_layout, assert_trivial=True)
            acc = warpgroup_mma_init(gl.zeros([BLOCK_ROWS, dim], gl.float32, o_layout))
            step += 1
            for i in range(1, n_masked):
                first = _block_of(i, n, diagonal, causal) * BLOCK_KEYS
                slot = step % stages
                mbarrier.wait(k_full.index(slot), (step // stages) & 1)
                k = k_buffer.index(slot)._reinterpret(dtype, [BLOCK_KEYS, dim], shared).permute((1, 0))
                s_token = warpgroup_mma(q, k, zeros, use_acc=False, is_async=True)
                s = warpgroup_mma_wait(0, deps=(s_token,))
                mbarrier.arrive(k_empty.index(slot))
                last = (step - 1) % stages
                mbarrier.wait(v_full.index(last), ((step - 1) // stages) & 1)
                v = v_buffer.index(last)._reinterpret(dtype, [BLOCK_KEYS, dim], shared)
                done = warpgroup_mma_wait(0, deps=(warpgroup_mma(weights, v, acc, is_async=True),))
                mbarrier.arrive(v_empty.index(last))
                s = gl.where((gl.expand_dims(rows, 1) > -1) & (first + columns < length), s, FORBIDDEN)
                largest, groups = peak_of(s)
                if keep:
                    classes = gl.maximum(classes, groups)
                new_peak = gl.maximum(peak, largest)
                best = gl.where(largest >= peak, first, best)
                shift = (peak - new_peak) * scale
                x = s * scale - gl.expand_dims(new_peak * scale, 1)
                p = gl.exp2(x)
                more, more_mean, more_far = sums(p, x, first.to(gl.float32), row_of, -1.0, BLOCK_KEYS, False)
                shrink = of_rows(gl.exp2(shift), quad)
                mean = (mean + of_rows(shift, quad) * total) * shrink + more_mean
                far = far * shrink + more_far
                total = total * shrink + more
                peak = new_peak
                acc = warpgroup_mma_init(done * of_rows(gl.exp2(shift), o_layout))
                weights = gl.convert_layout(p.to(dtype), p_layout, assert_trivial=True)
                step += 1

            # Whole blocks: the product with the values of one block runs beside the softmax of the next.
            relative = peak * 1.0  # what weights are relative to; a value of its own
            jump = peak * 0.0
            for i in range(n_masked, n):
                slot = step % stages
                last = (step - 1) % stages
                mbarrier.wait(k_full.index(slot), (step // stages) & 1)
                mbarrier.wait(turns.index(w), (n_turns & 1) ^ (1 - w))
                k = k_buffer.index(slot)._reinterpret(dtype, [BLOCK_KEYS, dim], shared).permute((1, 0))
                s_token = warpgroup_mma(q, k, zeros, use_acc=False, is_async=True)
                mbarrier.wait(v_full.index(last), ((step - 1) // stages) & 1)
                v = v_buffer.index(last)._reinterpret(dtype, [BLOCK_KEYS, dim], shared)
                o_token = warpgroup_mma(weights, v, acc, is_async=True)
                mbarrier.arrive(turns.index(1 - w))
                n_turns += 1
                first = _block_of(i, n, diagonal, causal) * BLOCK_KEYS
                sign = 1.0
                if not causal:
                    sign = gl.where(first < first_row, 1.0, -1.0)
                s = warpgroup_mma_wait(1, deps=(s_token,))
                mbarrier.arrive(k_empty.index(slot))
                largest, groups = peak_of(s)
                if keep:
                    classes = gl.maximum(classes, groups)
                new_peak = gl.maximum(peak, largest)
                best = gl.where(largest >= peak, first, best)
                used = new_peak
                if delayed:
                    used = peak
                    jump = gl.maximum(jump, largest - peak)
                shift = (relative - used) * scale
                shrink = of_rows(gl.exp2(shift), quad)
                mean = (mean + of_rows(shift, quad) * total) * shrink
                far = far * shrink
                total = total * shrink
                s_left, s_right = halves(s)
                half: gl.constexpr = s_left.type.layout
                level = of_rows(used * scale, half)
                x_left = s_left * scale - level
                left = gl.exp2(x_left)
                part, part_mean, part_far = sums(
                    left, x_left, first.to(gl.float32), row_of, sign, BLOCK_KEYS // 2, False
                )
                total = pinned(total + gl.convert_layout(part, quad, assert_trivial=True))
                mean += gl.convert_layout(part_mean, quad, assert_trivial=True)
                far += gl.convert_layout(part_far, quad, assert_trivial=True)
                done = warpgroup_mma_wait(0, deps=(o_token,))
                mbarrier.arrive(v_empty.index(last))
                acc = warpgroup_mma_init(done * of_rows(gl.exp2(shift), o_layout))
                x_right = s_right * scale - level
                right = gl.exp2(x_right)
                middle = (first + BLOCK_KEYS // 2).to(gl.float32)
                part, part_mean, part_far = sums(right, x_right, middle, row_of, sign, BLOCK_KEYS // 2, False)
                total += gl.convert_layout(part, quad, assert_trivial=True)
                mean += gl.convert_layout(part_mean, quad, assert_trivial=True)
                far += gl.convert_layout(part_far, quad, assert_trivial=True)
                both = gl.permute(gl.join(left.to(dtype), right.to(dtype)), (0, 2, 1))
                weights = gl.convert_layout(gl.reshape(both, [BLOCK_ROWS, BLOCK_KEYS]), p_layout, assert_trivial=True)
                relative = used
                peak = new_peak
                step += 1

            # The product with the last values runs beside the figures of the rows.
            last = (step - 1) % stages
            mbarrier.wait(v_full.index(last), ((step - 1) // stages) & 1)
            v = v_buffer.index(last)._reinterpret(dtype, [BLOCK_KEYS, dim], shared)
            o_token = warpgroup_mma(weights, v, acc, is_async=True)
            whole = gl.sum(total, 1)
            rows_e: gl.constexpr = whole.type.layout
            row = first_row + gl.arange(0, BLOCK_ROWS, layout=rows_e)
            level = gl.convert_layout(relative, rows_e, assert_trivial=True) * scale + gl.log2(whole)
            # A score far above the peak before its block: weights may have overflowed. The row is computed once more.
            jumped = gl.convert_layout(jump, rows_e, assert_trivial=True) * scale > 60.0
            level = gl.where(jumped, float("nan"), level)
            at, real = head * length + row, row < length
            gl.store(lse_at + at, level * LN2, mask=real)
            keys = key_at + b * key_batch + (h // n_each) * key_head
            place, score, row_p = strongest(q, keys, peak, best, scale, first_row, length, key_step, dim, causal)
            fence_async_shared()
            mbarrier.arrive(q_empty.index(w))
            surprisal = gl.maximum(gl.convert_layout(level, place.type.layout) - score, 0.0)
            gl.store(argmax_at + head * length + row_p, place, mask=row_p < length)
            gl.store(max_at + head * length + row_p, gl.exp2(-surprisal), mask=row_p < length)
            entropy = gl.log2(whole) - gl.sum(mean, 1) / whole
            entropy = gl.maximum(entropy, gl.convert_layout(surprisal, rows_e)) * LN2
            gl.store(entropy_at + at, entropy, mask=real)
            gl.store(distance_at + at, gl.maximum(gl.sum(far, 1) / whole, 0.0), mask=real)
            if keep:
                bound = eighth(classes)
                row = first_row + gl.arange(0, BLOCK_ROWS, layout=bound.type.layout)
                gl.store(bound_at + head * length + row, bound, mask=row < length)
            done = warpgroup_mma_wait(0, deps=(o_token,))
            mbarrier.arrive(v_empty.index(last))
            done = done * of_rows(1.0 / whole, o_layout)
            row_o = first_row + gl.arange(0, BLOCK_ROWS, layout=gl.SliceLayout(1, o_layout))
            dims = gl.expand_dims(gl.arange(0, dim, layout=gl.SliceLayout(0, o_layout)), 0)
            at_o = out + b * out_batch + h * out_head + gl.expand_dims(row_o.to(gl.int64) * out_row, 1) + dims
            gl.store(at_o, done.to(dtype), mask=gl.expand_dims(row_o, 1) < length)
            n_done += 1


@gluon.jit(do_not_specialize=["length", "n_heads", "n_each", "n_all", "n_tiles", "n_programs"])
def attend_rows(
    query, key, value, out, key_at, lse_at, entropy_at, max_at, distance_at, argmax_at, bound_at,
    out_batch, out_row, out_head, key_batch, key_head, key_step, scale,
    length, n_heads, n_each, n_all, n_tiles, n_programs,
    dim: gl.constexpr, stages: gl.constexpr, causal: gl.constexpr, ragged: gl.constexpr, delayed: gl.constexpr,
    keep: gl.constexpr,
):  # fmt: skip
    """Tiles of 128 queries of one head, several to each program. Figures are [batch · head, query]."""
    dtype: gl.constexpr = query.dtype
    q_buffer = gl.allocate_shared_memory(dtype, [2] + query.block_type.shape, query.layout)  # noqa: RUF005 (Gluon knows no star)
    k_buffer = gl.allocate_shared_memory(dtype, [stages] + key.block_type.shape, key.layout)  # noqa: RUF005
    v_buffer = gl.allocate_shared_memory(dtype, [stages] + value.block_type.shape, value.layout)  # noqa: RUF005
    signals = (
        barriers(2, 1), barriers(2, 1), barriers(stages, 1), barriers(stages, 2),
        barriers(stages, 1), barriers(stages, 2), barriers(2, 1),
    )  # fmt: skip
    fence_async_shared()
    buffers = (q_buffer, k_buffer, v_buffer)
    figures = (lse_at, entropy_at, max_at, distance_at, argmax_at, bound_at)
    sizes = (length, n_heads, n_each, n_all, n_tiles, n_programs)
    strides = (out_batch, out_row, out_head, key_batch, key_head, key_step)
    # fmt: off
    gl.warp_specialize(
        [
            (_consumer, (0, buffers, signals, out, key_at, figures, strides, scale, sizes,
                         dim, stages, causal, ragged, delayed, keep)),
            (_consumer, (1, buffers, signals, out, key_at, figures, strides, scale, sizes,
                         dim, stages, causal, ragged, delayed, keep)),
            (_producer, (query, key, value, buffers, signals, sizes, dim, stages, causal)),
        ],
        [4, 1],
        [240, 24],
    )
    # fmt: on
