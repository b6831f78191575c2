"""The strongest keys on a Hopper GPU, from lists of scores that reach a bound (see hopper_lists.py)."""

import triton
import triton.language as tl

from headscope.attention.row_kernels import LOG2E
from headscope.attention.summary_kernels import EMPTY, NOWHERE, packed, put_top


@triton.jit(do_not_specialize=["n_rows", "n_keys"])
def choose_top(
    counts, lists, lse, top_keys, top_weights, factor, n_rows, n_keys,
    rows_each: tl.constexpr, n_lists: tl.constexpr, capacity: tl.constexpr, n_top: tl.constexpr,
):  # fmt: skip
    """The strongest keys of each query and their weights, of lists of scores (high word) and keys (low word)."""
    rows = tl.program_id(0) * rows_each + tl.arange(0, rows_each)
    real, place = rows < n_rows, tl.arange(0, n_lists * capacity)
    of_list = rows[:, None] * n_lists + (place // capacity)[None, :]
    count = tl.load(counts + of_list, mask=real[:, None], other=0)
    is_listed = (place % capacity)[None, :] < count
    pair = tl.load(lists + rows.to(tl.int64)[:, None] * (n_lists * capacity) + place[None, :], mask=is_listed, other=0)
    number, score = pair.to(tl.int32), (pair >> 32).to(tl.int32).to(tl.float32, bitcast=True)
    slots = packed(tl.where(is_listed, score, EMPTY), tl.where(is_listed, number, place[None, :] + NOWHERE))
    level = tl.load(lse + rows, mask=real, other=0.0) * LOG2E
    put_top(slots, level, rows < 0, 0.0, factor, top_keys, top_weights, rows.to(tl.int64), real, n_keys, n_top)
