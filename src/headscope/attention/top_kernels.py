"""The strongest keys on an NVIDIA GPU, where the first pass left each query a bound: what reaches it goes to a list."""

import triton
import triton.language as tl

from headscope.attention.row_kernels import LOG2E, hide, key_range, limits_of, scores
from headscope.attention.summary_kernels import EMPTY, NOWHERE, packed, put_top

# Of a list; about ten scores are above a query's bound.
CAPACITY = tl.constexpr(32)


def _append(number: int, capacity: int) -> str:
    """PTX that appends those of so many scores that reach their bound; a branch skips it where none does.

    Operands: `number` each of a result, scores, bounds, rows, keys, and the addresses of counters and lists.
    """
    at = [range(kind * number, (kind + 1) * number) for kind in range(7)]
    lines = ["{ .reg .pred p, q; .reg .b64 a; .reg .b32 n, t;", f"setp.ge.f32 p, ${at[1][0]}, ${at[2][0]};"]
    lines += [f"setp.ge.or.f32 p, ${at[1][i]}, ${at[2][i]}, p;" for i in range(1, number)]
    lines += ["@!p bra DONE;"]
    for i in range(number):
        score, bound, row, key, counts, lists = (f"${part[i]}" for part in at[1:])
        lines += [
            f"setp.ge.f32 q, {score}, {bound};",
            f"mad.wide.s32 a, {row}, 4, {counts};",
            "mov.b32 n, 0;",
            "@q atom.global.add.u32 n, [a], 1;",
            f"setp.lt.and.u32 q, n, {capacity}, q;",
            f"mad.lo.s32 t, {row}, {capacity}, n;",
            f"mad.wide.u32 a, t, 8, {lists};",
            f"@q st.global.v2.b32 [a], {{{key}, {score}}};",
        ]
    return " ".join([*lines, "DONE:", *(f"mov.b32 ${i}, 0;" for i in at[0]), "}"])


_NUMBER = tl.constexpr(4)
_APPEND = tl.constexpr(_append(4, 32))
_OPERANDS = tl.constexpr(",".join(["=r"] * 4 + ["f"] * 8 + ["r"] * 8 + ["l"] * 8))


@triton.jit(do_not_specialize=["n_queries", "n_keys", "n_heads", "n_each", "n_blocks"])
def list_candidates(
    query, key, bounds, counts, lists, start_at, stop_at, keys, dense, bias,
    limit_batch, limit_head, keys_batch, dense_batch, dense_head, dense_row, bias_batch, bias_head, bias_row,
    scale, cap, n_queries, n_keys, n_heads, n_each, n_blocks,
    rows_each: tl.constexpr, keys_each: tl.constexpr, width: tl.constexpr, limits: tl.constexpr,
    has_keys: tl.constexpr, has_dense: tl.constexpr, biased: tl.constexpr, capped: tl.constexpr,
    has_sinks: tl.constexpr, precision: tl.constexpr,
):  # fmt: skip
    """The scores of one block of queries of one head that reach their bound, with their keys, in no order."""
    whole_head = tl.program_id(0)
    first_row = (n_blocks - 1 - tl.program_id(1)) * rows_each
    b, h = whole_head // n_heads, whole_head % n_heads
    rows = first_row + tl.arange(0, rows_each)
    near = b * limit_batch + h * limit_head
    start, stop, blind = limits_of(start_at + near, stop_at + near, rows, n_queries, n_keys, limits)
    q = query.load([b, h, first_row, 0]).reshape([rows_each, width])
    at = whole_head * n_queries + rows
    bound = tl.load(bounds + at, mask=rows < n_queries, other=float("inf"))
    to_counts, to_lists = counts.to(tl.int64), lists.to(tl.int64)
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
            operands = [s, bound[:, None], at[:, None], cols[None, :], to_counts, to_lists]
            tl.inline_asm_elementwise(_APPEND, _OPERANDS, operands, dtype=tl.int32, is_pure=False, pack=_NUMBER)


@triton.jit(do_not_specialize=["n_rows", "n_keys"])
def choose_top(
    counts, lists, lse, top_keys, top_weights, factor, n_rows, n_keys, rows_each: tl.constexpr, n_top: tl.constexpr
):
    """The strongest of the listed keys of each query, and their weights."""
    rows = tl.program_id(0) * rows_each + tl.arange(0, rows_each)
    real, place = rows < n_rows, tl.arange(0, CAPACITY)
    count = tl.load(counts + rows, mask=real, other=0)
    is_listed = place[None, :] < count[:, None]
    at = (rows.to(tl.int64)[:, None] * CAPACITY + place[None, :]) * 2
    number = tl.load(lists + at, mask=is_listed, other=0)
    score = tl.load(lists + at + 1, mask=is_listed, other=0).to(tl.float32, bitcast=True)
    slots = packed(tl.where(is_listed, score, EMPTY), tl.where(is_listed, number, place[None, :] + NOWHERE))
    level = tl.load(lse + rows, mask=real, other=0.0) * LOG2E
    put_top(slots, level, rows < 0, 0.0, factor, top_keys, top_weights, rows.to(tl.int64), real, n_keys, n_top)
