"""Candidates for the strongest keys on Hopper GPUs: scores that reach the bound which the first pass left each query.

Four threads hold a row of scores; each keeps a list of its own, so that nobody waits for anybody.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    warpgroup_mma,
    warpgroup_mma_wait,
)

from headscope.attention.hopper_sums import BLOCK_KEYS, BLOCK_ROWS, by_thread
from headscope.attention.hopper_tiles import barriers, n_blocks, send, tile_of

N_GROUPS = gl.constexpr(3)
FORBIDDEN = gl.constexpr(-1.0e30)


def _append(capacity: int) -> str:
    """PTX that appends those of eight scores that reach a bound, with their keys; a branch skips it where none does.

    Operands: the number listed (result), the scores, the bound, the number before, the list, and the first key.
    """
    lines = ["{ .reg .pred p, q; .reg .b64 a; .reg .b32 k, t; mov.b32 $0, $10;", "setp.ge.f32 p, $1, $9;"]
    lines += [f"setp.ge.or.f32 p, ${i}, $9, p;" for i in range(2, 9)]
    lines += ["@!p bra DONE;"]
    for i, offset in enumerate((0, 1, 8, 9, 16, 17, 24, 25), 1):
        lines += [
            f"setp.ge.f32 q, ${i}, $9;",
            f"min.u32 t, $0, {capacity - 1};",
            "mad.wide.u32 a, t, 8, $11;",
            f"add.s32 k, $12, {offset};",
            f"@q st.global.v2.b32 [a], {{k, ${i}}};",
            "@q add.u32 $0, $0, 1;",
        ]
    return " ".join([*lines, "DONE: }"])


# Of a list. About ten scores of a row are above its bound.
CAPACITY = gl.constexpr(16)
_APPEND = gl.constexpr(_append(16))


@gluon.jit
def _halves(x, n: gl.constexpr):
    """The first and the last half of the last axis of [64, 4, n]."""
    return gl.split(gl.permute(gl.reshape(x, [BLOCK_ROWS, 4, 2, n // 2]), (0, 1, 3, 2)))


@gluon.jit
def _append_eight(x, bound, count, lists, first):
    left, right = _halves(x, 8)
    left_left, left_right = _halves(left, 4)
    right_left, right_right = _halves(right, 4)
    x0, x1 = gl.split(left_left)
    x2, x3 = gl.split(left_right)
    x4, x5 = gl.split(right_left)
    x6, x7 = gl.split(right_right)
    layout: gl.constexpr = count.type.layout
    return gl.inline_asm_elementwise(
        _APPEND,
        "=r,f,f,f,f,f,f,f,f,f,r,l,r",
        [
        gl.convert_layout(x0, layout, assert_trivial=True), gl.convert_layout(x1, layout, assert_trivial=True),
        gl.convert_layout(x2, layout, assert_trivial=True), gl.convert_layout(x3, layout, assert_trivial=True),
        gl.convert_layout(x4, layout, assert_trivial=True), gl.convert_layout(x5, layout, assert_trivial=True),
        gl.convert_layout(x6, layout, assert_trivial=True), gl.convert_layout(x7, layout, assert_trivial=True),
        bound, count, lists, first,
        ],
        dtype=gl.int32,
        is_pure=False,
        pack=1,
    )  # fmt: skip


@gluon.jit
def _producer(
    query, key, buffers, signals, length, sizes, dim: gl.constexpr, stages: gl.constexpr, causal: gl.constexpr
):
    n_heads, n_each, n_all, n_tiles, n_programs = sizes
    q_buffer, k_buffer = buffers
    q_full, q_empty, k_full, k_empty = signals
    step = 0
    n_done = 0
    for turn in range(gl.cdiv(n_tiles * n_all, n_programs)):
        tile, block, head = tile_of(turn, gl.program_id(0), n_programs, n_tiles, n_all, causal)
        if tile < n_tiles * n_all:
            b, h = head // n_heads, head % n_heads
            for w in gl.static_range(N_GROUPS):
                mbarrier.wait(q_empty.index(w), (n_done & 1) ^ 1)
                at = (block * N_GROUPS + w) * BLOCK_ROWS
                send(query, [b, h, at, 0], q_full.index(w), q_buffer.index(w), BLOCK_ROWS * dim * 2)
            n, _ = n_blocks(block, length, N_GROUPS, causal)
            for i in range(n):
                slot = step % stages
                mbarrier.wait(k_empty.index(slot), ((step // stages) & 1) ^ 1)
                at = (n - 1 - i) * BLOCK_KEYS
                send(key, [b, h // n_each, at, 0], k_full.index(slot), k_buffer.index(slot), BLOCK_KEYS * dim * 2)
                step += 1
            n_done += 1


@gluon.jit
def _list_block(
    q, k_buffer, k_full, k_empty, step, first, first_row, bound, count, lists, lane, length, dim: gl.constexpr,
    stages: gl.constexpr, causal: gl.constexpr, masked: gl.constexpr, s_layout: gl.constexpr, shared: gl.constexpr,
):  # fmt: skip
    """The scores of a block of keys that reach their bound to their lists; gives how many each list has."""
    slot = step % stages
    mbarrier.wait(k_full.index(slot), (step // stages) & 1)
    k = k_buffer.index(slot)._reinterpret(k_buffer.dtype, [BLOCK_KEYS, dim], shared).permute((1, 0))
    zeros = gl.zeros([BLOCK_ROWS, BLOCK_KEYS], gl.float32, s_layout)
    token = warpgroup_mma(q, k, zeros, use_acc=False, is_async=True)
    s = warpgroup_mma_wait(0, deps=(token,))
    mbarrier.arrive(k_empty.index(slot))
    if masked:
        columns = gl.expand_dims(first + gl.arange(0, BLOCK_KEYS, layout=gl.SliceLayout(0, s_layout)), 0)
        rows = gl.expand_dims(first_row + gl.arange(0, BLOCK_ROWS, layout=gl.SliceLayout(1, s_layout)), 1)
        seen = (rows > -1) & (columns < length)
        if causal:
            seen = rows >= columns
        s = gl.where(seen, s, FORBIDDEN)
    left, right = _halves(by_thread(s, BLOCK_KEYS), BLOCK_KEYS // 4)
    first_part, second_part = _halves(left, BLOCK_KEYS // 8)
    third_part, fourth_part = _halves(right, BLOCK_KEYS // 8)
    count = _append_eight(first_part, bound, count, lists, lane + first)
    count = _append_eight(second_part, bound, count, lists, lane + (first + 32))
    count = _append_eight(third_part, bound, count, lists, lane + (first + 64))
    return _append_eight(fourth_part, bound, count, lists, lane + (first + 96))


@gluon.jit
def _consumer(
    w, buffers, signals, bounds, counts, lists, length, sizes, dim: gl.constexpr, stages: gl.constexpr,
    causal: gl.constexpr, capacity: gl.constexpr,
):  # fmt: skip
    """Sixty-four queries of every tile."""
    _, _, n_all, n_tiles, n_programs = sizes
    q_buffer, k_buffer = buffers
    q_full, q_empty, k_full, k_empty = signals
    s_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_KEYS, 16])
    shared: gl.constexpr = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2)
    empty = gl.zeros([BLOCK_ROWS, BLOCK_KEYS], gl.float32, s_layout)
    quad: gl.constexpr = gl.SliceLayout(2, by_thread(empty, BLOCK_KEYS).type.layout)
    q = q_buffer.index(w)._reinterpret(q_buffer.dtype, [BLOCK_ROWS, dim], shared)
    thread = gl.expand_dims(gl.arange(0, 4, layout=gl.SliceLayout(0, quad)), 0)
    step = 0
    n_done = 0
    for turn in range(gl.cdiv(n_tiles * n_all, n_programs)):
        tile, block, head = tile_of(turn, gl.program_id(0), n_programs, n_tiles, n_all, causal)
        if tile < n_tiles * n_all:
            first_row = (block * N_GROUPS + w) * BLOCK_ROWS
            n, _ = n_blocks(block, length, N_GROUPS, causal)
            rows = gl.expand_dims(first_row + gl.arange(0, BLOCK_ROWS, layout=gl.SliceLayout(1, quad)), 1) + thread * 0
            bound = gl.load(bounds + head * length + rows, mask=rows < length, other=float("inf"))
            count = gl.full([BLOCK_ROWS, 4], 0, gl.int32, quad)
            slot = (head * length + rows).to(gl.int64) * 4 + thread
            own = (lists + slot * (2 * capacity)).to(gl.int64)
            lane = thread * 2 + rows * 0
            n_masked = 1
            if causal:
                n_masked = n - gl.minimum(first_row // BLOCK_KEYS, n - 1)
            mbarrier.wait(q_full.index(w), n_done & 1)
            for i in range(0, n_masked):
                count = _list_block(
                    q, k_buffer, k_full, k_empty, step, (n - 1 - i) * BLOCK_KEYS, first_row, bound, count, own, lane,
                    length, dim, stages, causal, True, s_layout, shared,
                )  # fmt: skip
                step += 1
            for i in range(n_masked, n):
                count = _list_block(
                    q, k_buffer, k_full, k_empty, step, (n - 1 - i) * BLOCK_KEYS, first_row, bound, count, own, lane,
                    length, dim, stages, causal, False, s_layout, shared,
                )  # fmt: skip
                step += 1
            mbarrier.arrive(q_empty.index(w))
            gl.store(counts + slot, count, mask=rows < length)
            n_done += 1


@gluon.jit(do_not_specialize=["length", "n_heads", "n_each", "n_all", "n_tiles", "n_programs"])
def list_candidates(
    query, key, bounds, counts, lists, length, n_heads, n_each, n_all, n_tiles, n_programs, dim: gl.constexpr,
    stages: gl.constexpr, causal: gl.constexpr, capacity: gl.constexpr,
):  # fmt: skip
    """Tiles of 192 queries of one head, several to each program.

    `lists` [batch · head, query, 4, capacity, 2] are keys and scores, `counts` [batch · head, query, 4] those found.
    """
    dtype: gl.constexpr = query.dtype
    q_buffer = gl.allocate_shared_memory(dtype, [N_GROUPS] + query.block_type.shape, query.layout)  # noqa: RUF005 (Gluon knows no star)
    k_buffer = gl.allocate_shared_memory(dtype, [stages] + key.block_type.shape, key.layout)  # noqa: RUF005
    signals = (barriers(N_GROUPS, 1), barriers(N_GROUPS, 1), barriers(stages, 1), barriers(stages, N_GROUPS))
    fence_async_shared()
    buffers = (q_buffer, k_buffer)
    sizes = (n_heads, n_each, n_all, n_tiles, n_programs)
    # fmt: off
    gl.warp_specialize(
        [
            (_consumer, (0, buffers, signals, bounds, counts, lists, length, sizes, dim, stages, causal, capacity)),
            (_consumer, (1, buffers, signals, bounds, counts, lists, length, sizes, dim, stages, causal, capacity)),
            (_consumer, (2, buffers, signals, bounds, counts, lists, length, sizes, dim, stages, causal, capacity)),
            (_producer, (query, key, buffers, signals, length, sizes, dim, stages, causal)),
        ],
        [4, 4, 1],
        [160, 160, 24],
    )
    # fmt: on
