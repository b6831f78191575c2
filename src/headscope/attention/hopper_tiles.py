"""What the kernels for Hopper share: which tile a program takes when, blocks sent to shared memory, barriers."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma

from headscope.attention.hopper_sums import BLOCK_KEYS, BLOCK_ROWS


@gluon.jit
def tile_of(turn, program, n_programs, n_tiles, n_heads_all, upwards: gl.constexpr):
    """The tile of a turn, its block and its head: turns in alternating direction.

    `upwards` begins with the last block: under a causal mask, it has the most keys.
    """
    tile = turn * n_programs + gl.where(turn % 2 == 0, program, n_programs - 1 - program)
    block = tile // n_heads_all
    if upwards:
        block = n_tiles - 1 - block
    return tile, block, tile % n_heads_all


@gluon.jit
def n_blocks(block, length, n_groups: gl.constexpr, causal: gl.constexpr):
    """How many blocks of keys a tile of so many groups of queries sees, and the one with the diagonal of its last."""
    n = gl.cdiv(length, BLOCK_KEYS)
    diagonal = gl.minimum((block * n_groups * BLOCK_ROWS + (n_groups - 1) * BLOCK_ROWS) // BLOCK_KEYS, n - 1)
    if causal:
        n = gl.minimum(n, (block * n_groups * BLOCK_ROWS + n_groups * BLOCK_ROWS - 1) // BLOCK_KEYS + 1)
    return n, diagonal


@gluon.jit
def send(source, at, full, target, n_bytes: gl.constexpr):
    """Start to copy a block to shared memory; `full` counts its bytes."""
    mbarrier.expect(full, n_bytes)
    tma.async_copy_global_to_shared(source, at, full, target)


@gluon.jit
def barriers(n: gl.constexpr, count: gl.constexpr):
    """So many barriers that wait for so many arrivals."""
    allocated = gl.allocate_shared_memory(gl.int64, [n, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(n):
        mbarrier.init(allocated.index(i), count=count)
    return allocated
