"""What is added to the scores besides query·key: position biases, kept in the smallest form that is exact."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Bias:
    """A bias per key (ALiBi) [batch or 1, head, key], per offset key − query (T5) [batch or 1, head, offset], or dense.

    `values` of a per-offset bias begin at offset −(n_queries − 1); dense ones are [batch or 1, head or 1, query, key].
    In the form "windows" (Swin) they are [window or 1, head, query, key] of equal windows that stand one after another.
    """

    form: Literal["key", "offset", "dense", "windows"]
    values: Tensor
    n_queries: int
    n_keys: int

    @classmethod
    def describe(cls, dense: Tensor, *, tolerance: float = 0.0, ignore: Tensor | None = None) -> "Bias | None":
        """The smallest exact form of a bias [batch or 1, head or 1, query, key]; None if it is zero everywhere.

        `ignore` is True where the bias does not matter (masked cells).
        """
        n_queries, n_keys = dense.shape[-2:]
        free = None if ignore is None else ignore.expand(dense.shape)

        def near(candidate: Tensor) -> bool:
            close = (dense - candidate).abs() <= tolerance
            return bool((close if free is None else close | free).all())

        if near(torch.zeros((), dtype=dense.dtype, device=dense.device)):
            return None
        if dense.shape[0] > 1 and near(dense[:1]):
            return cls.describe(
                dense[:1], tolerance=tolerance, ignore=None if free is None else free.all(0, keepdim=True)
            )
        offset = cls("offset", _per_offset(dense, free), n_queries, n_keys)
        if near(offset.tile()):
            return offset
        per_key = cls("key", _per_key(dense, free), n_queries, n_keys)
        if near(per_key.tile()):
            return per_key
        return cls("dense", dense.clone(), n_queries, n_keys)

    def tile(self, rows: slice = slice(None), columns: slice = slice(None)) -> Tensor:
        """The bias of those queries and keys [batch or 1, head or 1, row, column]."""
        if self.form == "dense":
            return self.values[..., rows, columns]
        if self.form == "key":
            return self.values[..., None, columns]
        device = self.values.device
        query = torch.arange(self.n_queries, device=device)[rows]
        key = torch.arange(self.n_keys, device=device)[columns]
        if self.form == "windows":
            size = self.values.shape[-1]
            window = (query // size) % self.values.shape[0]
            return self.values[window[:, None], :, (query % size)[:, None], key % size].permute(2, 0, 1)[None]
        return self.values[..., key - query[:, None] + self.n_queries - 1]

    def example(self, index: int, queries: Tensor | None = None, keys: Tensor | None = None) -> "Bias":
        """The bias of one example; `queries` and `keys` are the positions that are kept."""
        # The windows of a "windows" bias are all of one example.
        values = self.values if self.form == "windows" else self.values[index % self.values.shape[0]][None]
        if queries is None and keys is None:
            return Bias(self.form, values, self.n_queries, self.n_keys)
        device = values.device
        queries = torch.arange(self.n_queries) if queries is None else queries
        keys = torch.arange(self.n_keys) if keys is None else keys
        n_queries, n_keys = len(queries), len(keys)
        if self.form == "key":
            return Bias("key", values[..., keys.to(device)], n_queries, n_keys)
        if self.form == "offset" and _is_run(queries) and _is_run(keys):
            # Offsets between the kept positions: a window of the vector.
            lowest = int(keys[0]) - int(queries[-1]) + self.n_queries - 1
            return Bias("offset", values[..., lowest : lowest + n_queries + n_keys - 1], n_queries, n_keys)
        whole = Bias(self.form, values, self.n_queries, self.n_keys).tile()
        return Bias("dense", whole[:, :, queries.to(device)][..., keys.to(device)], n_queries, n_keys)

    def to(self, device) -> "Bias":
        """The bias on another device."""
        return Bias(self.form, self.values.to(device), self.n_queries, self.n_keys)

    def nbytes(self) -> int:
        """Bytes held."""
        return self.values.numel() * self.values.element_size()


def _per_offset(dense: Tensor, free: Tensor | None) -> Tensor:
    """One value for each offset key − query, read from a cell that counts."""
    n_queries, n_keys = dense.shape[-2:]
    if free is None:
        # The first column from the bottom up, then the first row: every offset once.
        return torch.cat([dense[..., :, 0].flip(-1), dense[..., 0, 1:]], -1)
    query = torch.arange(n_queries, device=dense.device)[:, None]
    offset = (torch.arange(n_keys, device=dense.device) - query + n_queries - 1).expand(dense.shape)
    lowest = torch.finfo(dense.dtype).min
    values = torch.full((*dense.shape[:2], n_queries + n_keys - 1), lowest, dtype=dense.dtype, device=dense.device)
    values.scatter_reduce_(-1, offset.flatten(2), dense.masked_fill(free, lowest).flatten(2), "amax")
    return values.masked_fill(values == lowest, 0.0)


def _per_key(dense: Tensor, free: Tensor | None) -> Tensor:
    """One value for each key, read from a query that sees it."""
    if free is None:
        return dense[..., 0, :].clone()
    lowest = torch.finfo(dense.dtype).min
    values = dense.masked_fill(free, lowest).amax(-2)
    return values.masked_fill(values == lowest, 0.0)


def _is_run(positions: Tensor) -> bool:
    return len(positions) > 0 and int(positions[-1]) - int(positions[0]) + 1 == len(positions)
