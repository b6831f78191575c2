"""A mask as GPU kernels read it: two limits for every query, what is forbidden inside them, and ranges of blocks.

Made on the mask's device without waiting for it, once for all layers that share the mask.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from headscope.attention.masks import Mask, n_real_before


@dataclass(frozen=True, eq=False)
class MaskLimits:
    """start, stop int32 [batch or 1, head or 1, query]: equal where a query sees nothing.

    keys [batch or 1, key] and dense [batch or 1, head or 1, query, key] are bytes, 0 where forbidden; None: allowed.
    `number` is how many of the two limits there are: 0 none, 1 stop alone, 2 both.
    """

    start: Tensor
    stop: Tensor
    n_keys: int
    number: int
    keys: Tensor | None = None
    dense: Tensor | None = None
    _spans: dict[tuple[int, int, int], Tensor] = field(default_factory=dict)

    def spans(self, cell: int, n_rows: int, n_columns: int) -> Tensor:
        """For each block of keys, the blocks of queries that see it [batch or 1, head or 1, key block, 4], int32.

        First, first and last of those that all see all of it, last. Queries are cut into cells, and each cell into
        blocks of `n_rows`.
        """
        sizes = (cell, n_rows, n_columns)
        if sizes not in self._spans:
            self._spans[sizes] = self._find_spans(*sizes)
        return self._spans[sizes]

    def _find_spans(self, cell: int, n_rows: int, n_columns: int) -> Tensor:
        device, n_queries, n_keys = self.start.device, self.start.shape[-1], self.n_keys
        per_cell = -(-cell // n_rows)
        n_blocks = -(-n_queries // cell) * per_cell
        row = torch.arange(n_queries, device=device)
        block = (row // cell * per_cell + row % cell // n_rows).expand(self.start.shape)

        def reduced(values: Tensor, how: str, empty: int) -> Tensor:
            blocks = values.new_full((*values.shape[:-1], n_blocks), empty)
            return blocks.scatter_reduce(-1, block, values, how)[..., None, :]

        is_blind = self.stop <= self.start
        first_seen = reduced(self.start.masked_fill(is_blind, 0), "amin", n_keys)
        last_seen = reduced(self.stop.masked_fill(is_blind, n_keys), "amax", 0)
        first_full = reduced(self.start, "amax", 0)
        last_full = reduced(self.stop, "amin", n_keys)
        key = torch.arange(0, n_keys, n_columns, device=device)[:, None]
        past = (key + n_columns).clamp_max(n_keys)
        some = (first_seen < past) & (last_seen > key)
        whole = (first_full <= key) & (last_full >= past)
        if self.keys is not None or self.dense is not None:
            whole = torch.zeros_like(some)
        index = torch.arange(n_blocks, device=device)
        last = torch.where(some, index + 1, 0).amax(-1)
        first = torch.minimum(torch.where(some, index, n_blocks).amin(-1), last)
        begin = torch.where(whole, index, n_blocks).amin(-1).clamp(first, last)
        end = torch.where(~whole & (index >= begin[..., None]), index, n_blocks).amin(-1).clamp(begin, last)
        return torch.stack([first, begin, end, last], -1).int()


_known: WeakKeyDictionary[Mask, MaskLimits] = WeakKeyDictionary()


def limits_of(mask: Mask | None, n_queries: int, n_keys: int, device: torch.device) -> MaskLimits:
    """The limits of a mask: the same object for the same mask."""
    if mask is None:
        return _no_limits(n_queries, n_keys, device)
    known = _known.get(mask)
    if known is None or known.start.device != device:
        known = _known[mask] = _read(mask.to(device), device)
    return known


@lru_cache(maxsize=16)
def _no_limits(n_queries: int, n_keys: int, device: torch.device) -> MaskLimits:
    start = torch.zeros(1, 1, n_queries, dtype=torch.int32, device=device)
    return MaskLimits(start, torch.full_like(start, n_keys), n_keys, 0)


def _read(mask: Mask, device: torch.device) -> MaskLimits:
    n_keys = mask.n_keys
    if mask.dense is not None:
        stop = mask.dense.any(-1).int() * n_keys
        return MaskLimits(torch.zeros_like(stop), stop, n_keys, 1, dense=mask.dense.to(torch.uint8))
    shape = (1, mask.n_queries)
    start = torch.zeros(shape, dtype=torch.int32, device=device) if mask.start is None else mask.start
    stop = torch.full(shape, n_keys, dtype=torch.int32, device=device) if mask.stop is None else mask.stop
    start, stop = start.clamp(0, n_keys), stop.clamp(0, n_keys)
    seen = stop - start
    if mask.keys is not None:
        seen = n_real_before(mask.keys, stop) - n_real_before(mask.keys, start)
    is_blind = (seen <= 0)[:, None]
    start, stop = (limit[:, None].expand(is_blind.shape).masked_fill(is_blind, 0).int() for limit in (start, stop))
    has_limits = mask.stop is not None or mask.keys is not None
    number = 2 if mask.start is not None else int(has_limits)
    keys = None if mask.keys is None else mask.keys.to(torch.uint8)
    return MaskLimits(start, stop, n_keys, number, keys=keys)
