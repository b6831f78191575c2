"""Received attention and the maxima of the map on Hopper GPUs: blocks of queries stream past blocks of keys.

Each of three groups of four warps holds 128 keys. Cells of the map begin with a block of queries of their own; what is
left of a cell's last block weighs nothing, by its lse.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    warpgroup_mma,
    warpgroup_mma_wait,
)

from headscope.attention.hopper_sums import BLOCK_KEYS, by_thread
from headscope.attention.hopper_tiles import barriers, send, tile_of

N_GROUPS = gl.constexpr(3)


@gluon.jit
def _producer(
    key, query, buffers, signals, sizes, n_rows: gl.constexpr, dim: gl.constexpr, stages: gl.constexpr,
    causal: gl.constexpr,
):  # fmt: skip
    n_heads, n_each, n_all, n_tiles, n_programs, cell, n_cells, per_cell = sizes
    k_buffer, q_buffer = buffers
    k_full, k_empty, q_full, q_empty = signals
    step = 0
    n_done = 0
    for turn in range(gl.cdiv(n_tiles * n_all, n_programs)):
        tile, block, head = tile_of(turn, gl.program_id(0), n_programs, n_tiles, n_all, False)
        if tile < n_tiles * n_all:
            b, h = head // n_heads, head % n_heads
            for w in gl.static_range(N_GROUPS):
                mbarrier.wait(k_empty.index(w), (n_done & 1) ^ 1)
                at = (block * N_GROUPS + w) * BLOCK_KEYS
                send(key, [b, h // n_each, at, 0], k_full.index(w), k_buffer.index(w), BLOCK_KEYS * dim * 2)
            first = 0
            if causal:
                first = (block * N_GROUPS * BLOCK_KEYS) // cell
            for i in range(first * per_cell, n_cells * per_cell):
                slot = step % stages
                mbarrier.wait(q_empty.index(slot), ((step // stages) & 1) ^ 1)
                at = (i // per_cell) * cell + (i % per_cell) * n_rows
                send(query, [b, h, at, 0], q_full.index(slot), q_buffer.index(slot), n_rows * dim * 2)
                step += 1
            n_done += 1


@gluon.jit
def _add_block(
    k, q_buffer, q_full, q_empty, level_at, level, step, i, last, scale, keys, places, cell, per_cell, total, largest,
    column_max, first_key, length, n_rows: gl.constexpr, dim: gl.constexpr, stages: gl.constexpr, masked: gl.constexpr,
    s_layout: gl.constexpr, shared: gl.constexpr,
):  # fmt: skip
    """A block of queries into the sums and maxima of the keys; where it ends a cell, its maxima go to memory."""
    slot = step % stages
    mbarrier.wait(q_full.index(slot), (step // stages) & 1)
    q = q_buffer.index(slot)._reinterpret(q_buffer.dtype, [n_rows, dim], shared).permute((1, 0))
    zeros = gl.zeros([BLOCK_KEYS, n_rows], gl.float32, s_layout)
    token = warpgroup_mma(k, q, zeros, use_acc=False, is_async=True)
    next_level = gl.load(level_at + gl.minimum(i + 1, last) * n_rows + places)
    s = warpgroup_mma_wait(0, deps=(token,))
    mbarrier.arrive(q_empty.index(slot))
    x = s * scale - gl.expand_dims(level, 0)
    if masked:
        rows = (i // per_cell) * cell + (i % per_cell) * n_rows + places
        x = gl.where(gl.expand_dims(rows, 0) >= gl.expand_dims(keys, 1), x, float("-inf"))
    quad: gl.constexpr = total.type.layout
    total += gl.convert_layout(gl.sum(by_thread(gl.exp2(x), n_rows, BLOCK_KEYS), 2), quad, assert_trivial=True)
    peak = gl.max(by_thread(x, n_rows, BLOCK_KEYS), 2)
    largest = gl.maximum(largest, gl.convert_layout(peak, quad, assert_trivial=True))
    if i % per_cell == per_cell - 1:
        of_cell = gl.max(largest, 1)
        columns = first_key + gl.arange(0, BLOCK_KEYS, layout=of_cell.type.layout)
        gl.store(column_max + (i // per_cell).to(gl.int64) * length + columns, of_cell, mask=columns < length)
        largest = gl.full([BLOCK_KEYS, 4], float("-inf"), gl.float32, quad)
    return next_level, total, largest


@gluon.jit
def _consumer(
    w, buffers, signals, levels, received, column_max, scale, share, length, sizes, n_rows: gl.constexpr,
    dim: gl.constexpr, stages: gl.constexpr, causal: gl.constexpr,
):  # fmt: skip
    """A third of the keys of every tile."""
    _, _, n_all, n_tiles, n_programs, cell, n_cells, per_cell = sizes
    k_buffer, q_buffer = buffers
    k_full, k_empty, q_full, q_empty = signals
    s_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, n_rows, 16])
    shared: gl.constexpr = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2)
    empty = gl.zeros([BLOCK_KEYS, n_rows], gl.float32, s_layout)
    quad: gl.constexpr = gl.SliceLayout(2, by_thread(empty, n_rows, BLOCK_KEYS).type.layout)
    k = k_buffer.index(w)._reinterpret(k_buffer.dtype, [BLOCK_KEYS, dim], shared)
    places = gl.arange(0, n_rows, layout=gl.SliceLayout(0, s_layout))
    step = 0
    n_done = 0
    last = n_cells * per_cell - 1
    for turn in range(gl.cdiv(n_tiles * n_all, n_programs)):
        tile, block, head = tile_of(turn, gl.program_id(0), n_programs, n_tiles, n_all, False)
        if tile < n_tiles * n_all:
            first_key = (block * N_GROUPS + w) * BLOCK_KEYS
            first = 0
            past = 0  # cells in which some query comes before some key
            if causal:
                first = (block * N_GROUPS * BLOCK_KEYS) // cell
                past = gl.maximum(gl.minimum((first_key + BLOCK_KEYS - 1) // cell + 1, n_cells), first)
            keys = first_key + gl.arange(0, BLOCK_KEYS, layout=gl.SliceLayout(1, s_layout))
            level_at = levels + head * (n_cells * per_cell * n_rows)
            maxima = column_max + (head * n_cells).to(gl.int64) * length
            level = gl.load(level_at + first * per_cell * n_rows + places)
            total = gl.zeros([BLOCK_KEYS, 4], gl.float32, quad)
            largest = gl.full([BLOCK_KEYS, 4], float("-inf"), gl.float32, quad)
            mbarrier.wait(k_full.index(w), n_done & 1)
            for i in range(first * per_cell, past * per_cell):
                level, total, largest = _add_block(
                    k, q_buffer, q_full, q_empty, level_at, level, step, i, last, scale, keys, places, cell, per_cell,
                    total, largest, maxima, first_key, length, n_rows, dim, stages, True, s_layout, shared,
                )  # fmt: skip
                step += 1
            for i in range(past * per_cell, n_cells * per_cell):
                level, total, largest = _add_block(
                    k, q_buffer, q_full, q_empty, level_at, level, step, i, last, scale, keys, places, cell, per_cell,
                    total, largest, maxima, first_key, length, n_rows, dim, stages, False, s_layout, shared,
                )  # fmt: skip
                step += 1
            mbarrier.arrive(k_empty.index(w))
            whole = gl.sum(total, 1)
            columns = first_key + gl.arange(0, BLOCK_KEYS, layout=whole.type.layout)
            gl.store(received + head * length + columns, whole * share, mask=columns < length)
            n_done += 1


@gluon.jit(
    do_not_specialize=["length", "n_heads", "n_each", "n_all", "n_tiles", "n_programs", "cell", "n_cells", "per_cell"]
)
def receive(
    key, query, levels, received, column_max, scale, share, length, n_heads, n_each, n_all, n_tiles, n_programs,
    cell, n_cells, per_cell, n_rows: gl.constexpr, dim: gl.constexpr, stages: gl.constexpr, causal: gl.constexpr,
):  # fmt: skip
    """Tiles of 384 keys of one head, several to each program.

    `levels` [batch · head, cell, place in the cell] is the lse in base 2, infinite past the cell's end. Of each key:
    `received` [batch · head, key], and `column_max` [batch · head, cell, key], in base 2: under a causal mask, that of
    cells before the key is not written.
    """
    dtype: gl.constexpr = query.dtype
    k_buffer = gl.allocate_shared_memory(dtype, [N_GROUPS] + key.block_type.shape, key.layout)  # noqa: RUF005 (Gluon knows no star)
    q_buffer = gl.allocate_shared_memory(dtype, [stages] + query.block_type.shape, query.layout)  # noqa: RUF005
    signals = (barriers(N_GROUPS, 1), barriers(N_GROUPS, 1), barriers(stages, 1), barriers(stages, N_GROUPS))
    fence_async_shared()
    buffers = (k_buffer, q_buffer)
    sizes = (n_heads, n_each, n_all, n_tiles, n_programs, cell, n_cells, per_cell)
    # fmt: off
    gl.warp_specialize(
        [
            (_consumer, (0, buffers, signals, levels, received, column_max, scale, share, length, sizes,
                         n_rows, dim, stages, causal)),
            (_consumer, (1, buffers, signals, levels, received, column_max, scale, share, length, sizes,
                         n_rows, dim, stages, causal)),
            (_consumer, (2, buffers, signals, levels, received, column_max, scale, share, length, sizes,
                         n_rows, dim, stages, causal)),
            (_producer, (key, query, buffers, signals, sizes, n_rows, dim, stages, causal)),
        ],
        [4, 4, 1],
        [160, 160, 24],
    )
    # fmt: on
