"""What a group of warps makes of a block of scores on Hopper: peaks, and sums over the columns of each thread."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

BLOCK_KEYS = gl.constexpr(128)
BLOCK_ROWS = gl.constexpr(64)  # of one group of warps


@gluon.jit
def by_thread(x, n: gl.constexpr, rows: gl.constexpr = BLOCK_ROWS):
    """[rows, n] as [rows, 4, n / 4]: the last axis lies within one thread, the middle one over the four of a row."""
    y = gl.permute(gl.reshape(x, [rows, n // 8, 4, 2]), (0, 2, 1, 3))
    return gl.reshape(y, [rows, 4, n // 4])


@gluon.jit
def peak_of(s):
    """Row maxima whose last five bits say, counted down, in which of 32 groups of four columns they stand; and those
    of the groups."""
    groups = gl.permute(gl.reshape(s, [BLOCK_ROWS, BLOCK_KEYS // 16, 2, 4, 2]), (0, 3, 1, 2, 4))
    largest = gl.max(gl.reshape(groups, [BLOCK_ROWS, 4, BLOCK_KEYS // 16, 4]), 3)
    k = gl.arange(0, BLOCK_KEYS // 16, layout=gl.SliceLayout(0, gl.SliceLayout(1, largest.type.layout)))
    bits = (largest.to(gl.int32, bitcast=True) & -32) | gl.expand_dims(gl.expand_dims(28 - 4 * k, 0), 1)
    of_thread = gl.max(bits.to(gl.float32, bitcast=True), 2)
    lane = gl.arange(0, 4, layout=gl.SliceLayout(0, of_thread.type.layout))
    bits = of_thread.to(gl.int32, bitcast=True) | gl.expand_dims(3 - lane, 0)
    row = gl.max(bits.to(gl.float32, bitcast=True), 1)
    return gl.convert_layout(row, gl.SliceLayout(1, s.type.layout), assert_trivial=True), largest


@gluon.jit
def eighth(classes):
    """A little less than the eighth largest of each row's 32: no more than its eighth largest score."""
    value = gl.max(gl.max(classes, 2), 1)
    for _ in gl.static_range(7):
        classes = gl.where(classes == gl.expand_dims(gl.expand_dims(value, 1), 2), -1.0e38, classes)
        value = gl.max(gl.max(classes, 2), 1)
    return gl.where(value < -1.0e29, -1.0e29, value - gl.abs(value) * 1.0e-5)


@gluon.jit
def sums(p, x, first, rows, sign, n: gl.constexpr, diagonal: gl.constexpr):
    """Sums of p, of p · x and of p · |query − key| over the columns that a thread holds: [64, 4] each."""
    of_thread = by_thread(p, n)
    total = gl.sum(of_thread, 2)
    mean = gl.sum(of_thread * by_thread(x, n), 2)
    k = gl.arange(0, n // 4, layout=gl.SliceLayout(0, gl.SliceLayout(1, of_thread.type.layout)))
    column = gl.expand_dims(gl.expand_dims((k // 2) * 8 + k % 2, 0), 1).to(gl.float32)
    if diagonal:
        row = gl.convert_layout(rows, gl.SliceLayout(2, of_thread.type.layout), assert_trivial=True)
        far = gl.sum(of_thread * gl.abs(gl.expand_dims(row, 2) - first - column), 2)
    else:  # all keys on one side of the queries: one product a column
        far = gl.sum(of_thread * column, 2)
        far = ((gl.convert_layout(rows, far.type.layout, assert_trivial=True) - first) * total - far) * sign
    return total, mean, far


@gluon.jit
def pinned(total):
    """The same, past a branch that is never taken: else the wait for the last product moves before the softmax."""
    return gl.inline_asm_elementwise(
        "{ .reg .pred q; setp.lt.f32 q, $1, 0fBF800000; @q exit; mov.b32 $0, $1; }",
        "=f,f", [total], dtype=gl.float32, is_pure=False, pack=1,
    )  # fmt: skip


@gluon.jit
def halves(x):
    """The first and the last 64 columns."""
    return gl.split(gl.permute(gl.reshape(x, [BLOCK_ROWS, 2, BLOCK_KEYS // 2]), (0, 2, 1)))


@gluon.jit
def of_rows(values, layout: gl.constexpr):
    """One value of each row as a column [64, 1] of this layout."""
    return gl.expand_dims(gl.convert_layout(values, gl.SliceLayout(1, layout), assert_trivial=True), 1)


@gluon.jit
def strongest(q, key_at, peak, block, scale, first_row, length, step, dim: gl.constexpr, causal: gl.constexpr):
    """Of the four columns that a peak names, the one with the largest score, and that score in base 2."""
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [32 * 8 // dim, dim // 8], [4, 1], [1, 0])
    row: gl.constexpr = gl.SliceLayout(1, layout)
    code = 31 - (peak.to(gl.int32, bitcast=True) & 31)
    first = gl.convert_layout(block + (code // 4) * 16 + 2 * (code % 4), row)
    vectors = q.load(layout).to(gl.float32)
    rows = first_row + gl.arange(0, BLOCK_ROWS, layout=row)
    dims = gl.expand_dims(gl.arange(0, dim, layout=gl.SliceLayout(0, layout)), 0)
    best = gl.full([BLOCK_ROWS], -1.0e38, gl.float32, row)
    place = first
    for u in gl.static_range(4):
        column = first + (u % 2) + 8 * (u // 2)
        seen = column < length
        if causal:
            seen = seen & (column <= rows)
        at = gl.expand_dims(gl.minimum(column, length - 1).to(gl.int64) * step, 1)
        score = gl.where(seen, gl.sum(vectors * gl.load(key_at + at + dims).to(gl.float32), 1), -1.0e38)
        place = gl.where(score > best, column, place)
        best = gl.maximum(score, best)
    return place, best * scale, rows
