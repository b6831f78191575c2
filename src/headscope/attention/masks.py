"""Which keys each query may see, described rather than materialised.

A T×T mask is 256 MiB at 16k tokens. Nearly every mask in use lets a query see one contiguous run of keys (causal,
sliding window, chunks, packed documents, image blocks in a causal text) less the padded keys: two integers a query and
one bit a key. What does not fit that form is kept dense.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

# Rows evaluated at once while a mask function is read: bounds the temporary to a few MiB.
_ROWS = 256


@dataclass(frozen=True, eq=False)
class Mask:
    """The keys `start <= key < stop` of each query, less padding; or any pattern, dense.

    start, stop [batch or 1, query] (None: no limit); keys [batch or 1, key] True for real keys (None: all);
    dense [batch or 1, head or 1, query, key] True where allowed, used alone. Positions of queries and keys begin at the
    offsets, which differ from 0 when a cache holds earlier tokens. `is_triangle`: each query is known to see itself and
    all that came before, padding apart; nobody has to read the limits, which on a GPU means waiting for it.
    """

    n_queries: int
    n_keys: int
    start: Tensor | None = None
    stop: Tensor | None = None
    keys: Tensor | None = None
    dense: Tensor | None = None
    query_offset: int = 0
    key_offset: int = 0
    batch: int = 1
    is_triangle: bool = False

    @classmethod
    def causal(cls, n_queries: int, n_keys: int, *, query_offset: int = 0, device=None) -> "Mask":
        """Each query sees itself and what came before it."""
        stop = torch.arange(1, n_queries + 1, device=device) + query_offset
        stop = stop.clamp(max=n_keys)[None]
        return cls(n_queries, n_keys, stop=stop, query_offset=query_offset, is_triangle=True)

    @classmethod
    def from_dense(cls, allowed: Tensor, *, query_offset: int = 0, key_offset: int = 0) -> "Mask":
        """The compact form of a boolean mask [batch, head or 1, query, key], if it has one."""
        batch, n_heads, n_queries, n_keys = allowed.shape
        rows: dict[str, Any] = {"query_offset": query_offset, "key_offset": key_offset, "batch": batch}
        if bool(allowed.all()):
            return cls(n_queries, n_keys, **rows)
        if n_heads > 1 and bool((allowed == allowed[:, :1]).all()):
            allowed, n_heads = allowed[:, :1], 1
        if n_heads > 1:
            return cls(n_queries, n_keys, dense=allowed.clone(), **rows)
        plane = allowed[:, 0]
        keys = plane.any(dim=1)  # a key that no query sees is padding, or as good as
        start, stop, exact = _runs(plane, keys)
        if not exact:
            return cls(n_queries, n_keys, dense=allowed.clone(), **rows)
        return cls(n_queries, n_keys, start, stop, None if bool(keys.all()) else keys, **rows)

    @classmethod
    def from_function(
        cls,
        function: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor],
        *,
        batch: int,
        n_queries: int,
        n_keys: int,
        query_offset: int = 0,
        key_offset: int = 0,
        padding: Tensor | None = None,
        device=None,
    ) -> "Mask":
        """Read a mask function of (batch, head, query, key) indices, a few rows at a time.

        `padding` [batch, key] is True for real keys and stays apart from the function's own pattern.
        """
        examples = torch.arange(batch, device=device)[:, None, None, None]
        head = torch.zeros(1, 1, 1, 1, dtype=torch.long, device=device)
        key = (torch.arange(n_keys, device=device) + key_offset)[None, None, None, :]
        starts, stops, exact = [], [], True
        for first in range(0, n_queries, _ROWS):
            query = torch.arange(first, min(first + _ROWS, n_queries), device=device) + query_offset
            block = function(examples, head, query[None, None, :, None], key)
            block = block.expand(batch, 1, len(query), n_keys)[:, 0]
            start, stop, is_run = _runs(block, None)
            exact = exact and is_run
            starts.append(start)
            stops.append(stop)
            if not exact:
                break
        place: dict[str, Any] = {"query_offset": query_offset, "key_offset": key_offset, "batch": batch}
        if exact:
            start, stop = torch.cat(starts, 1), torch.cat(stops, 1)
            same = bool((start == start[:1]).all() and (stop == stop[:1]).all())
            start, stop = (start[:1], stop[:1]) if same else (start, stop)
            return cls(n_queries, n_keys, start, stop, padding, **place)
        query = (torch.arange(n_queries, device=device) + query_offset)[None, None, :, None]
        dense = function(examples, head, query, key).expand(batch, 1, n_queries, n_keys)
        dense = dense if padding is None else dense & padding[:, None, None, :]
        return cls(n_queries, n_keys, dense=dense.clone(), **place)

    def allowed_cells(self, rows: slice = slice(None), columns: slice = slice(None)) -> Tensor | None:
        """True where a query of `rows` may see a key of `columns` [batch or 1, head or 1, row, column] (None: all)."""
        if self.dense is not None:
            return self.dense[..., rows, columns]
        cells = None
        if self.start is not None or self.stop is not None:
            some = self.start if self.start is not None else self.stop
            assert some is not None  # one of the two limits there is
            key = torch.arange(self.n_keys, device=some.device)[columns]
            if self.stop is not None:
                cells = key < self.stop[:, rows, None]
            if self.start is not None:
                after = key >= self.start[:, rows, None]
                cells = after if cells is None else cells & after
        if self.keys is not None:
            real = self.keys[:, None, columns]
            cells = real.expand(-1, len(range(self.n_queries)[rows]), -1) if cells is None else cells & real
        return None if cells is None else cells[:, None]

    def extent(self, rows: slice) -> tuple[int, int]:
        """The first and one past the last key that any query of `rows` gives weight to, padding apart.

        A query that may see nothing gives all keys the same.
        """
        if self.dense is not None or self.has_blind(rows):
            return 0, self.n_keys
        first = 0 if self.start is None else int(self.start[:, rows].min())
        last = self.n_keys if self.stop is None else int(self.stop[:, rows].max())
        return first, max(last, first)

    def has_blind(self, rows: slice = slice(None)) -> bool:
        """Whether some query of `rows` may see no key at all."""
        if self.dense is not None:
            return not bool(self.dense[..., rows, :].any(-1).all())
        limits = [limit for limit in (self.start, self.stop) if limit is not None]
        if not limits:
            return self.keys is not None and not bool(self.keys.any(-1).all())
        start = torch.zeros_like(limits[0][:, rows]) if self.start is None else self.start[:, rows]
        stop = torch.full_like(start, self.n_keys) if self.stop is None else self.stop[:, rows]
        if self.keys is not None:
            start, stop = (n_real_before(self.keys, limit) for limit in (start, stop))
        return bool((stop <= start).any())

    @property
    def is_causal(self) -> bool:
        """Whether no query sees a key that comes after it."""
        if self.is_triangle:
            return True
        offset = self.query_offset - self.key_offset
        if self.dense is not None:
            return not bool(self.dense.triu(offset + 1).any())
        if self.stop is None:
            return False
        query = torch.arange(self.n_queries, device=self.stop.device) + offset
        return bool((self.stop <= query + 1).all())

    def hide(self, scores: Tensor, rows: slice = slice(None), columns: slice = slice(None)) -> Tensor:
        """Put the lowest finite number into the forbidden cells of a tile of scores, in place."""
        for part, where in self.hidden_cells(rows, columns) if scores.numel() else ():
            scores[..., part].masked_fill_(where.to(scores.device), torch.finfo(scores.dtype).min)
        return scores

    def hidden_cells(self, rows: slice = slice(None), columns: slice = slice(None)) -> list[tuple[slice, Tensor]]:
        """Where a tile is forbidden: some of its columns, and True in them [batch or 1, head or 1, row, column].

        Only columns that some query of the tile may not see are named: in a causal tile, those by the diagonal.
        """
        first, last, step = columns.indices(self.n_keys)
        if self.dense is not None or step != 1:
            allowed = self.allowed_cells(rows, columns)
            return [] if allowed is None else [(slice(None), ~allowed)]
        hidden = []
        if self.stop is not None:
            stop = self.stop[:, rows]
            begin = min(max(int(stop.min()), first), last)
            key = torch.arange(begin, last, device=stop.device)
            hidden.append((slice(begin - first, None), (key >= stop[..., None])[:, None]))
        if self.start is not None:
            start = self.start[:, rows]
            end = max(min(int(start.max()), last), first)
            key = torch.arange(first, end, device=start.device)
            hidden.append((slice(0, end - first), (key < start[..., None])[:, None]))
        if self.keys is not None:
            hidden.append((slice(None), ~self.keys[:, None, None, columns]))
        return [(part, where) for part, where in hidden if where.numel()]

    def example(self, index: int, queries: Tensor | None = None, keys: Tensor | None = None) -> "Mask":
        """The mask of one example; `queries` and `keys` are the positions that are kept (padding left out)."""

        def of(tensor: Tensor | None) -> Tensor | None:
            return None if tensor is None else tensor[index % tensor.shape[0]][None]

        own = replace(self, start=of(self.start), stop=of(self.stop), keys=of(self.keys), dense=of(self.dense), batch=1)
        if queries is None and keys is None:
            return own
        queries = torch.arange(self.n_queries) if queries is None else queries
        keys = torch.arange(self.n_keys) if keys is None else keys
        # The first query stands where it stood among the keys, now counted without those that were left out.
        ahead = self.query_offset - self.key_offset
        offset = self.key_offset + int((keys < ahead).sum()) if ahead > 0 else self.query_offset
        place: dict[str, Any] = {
            "query_offset": offset,
            "key_offset": self.key_offset,
            "is_triangle": self.is_triangle and queries is keys,
        }
        if own.dense is not None:
            device = own.dense.device
            cells = own.dense[:, :, queries.to(device)][..., keys.to(device)]
            return Mask(len(queries), len(keys), dense=cells, **place)

        def renumber(limit: Tensor | None) -> Tensor | None:
            if limit is None:
                return None
            kept_before = torch.zeros(self.n_keys + 1, dtype=limit.dtype, device=limit.device)
            kept_before[keys.to(limit.device) + 1] = 1
            return kept_before.cumsum(0)[limit[:, queries.to(limit.device)]].to(limit.dtype)

        real = None if own.keys is None else own.keys[:, keys.to(own.keys.device)]
        real = None if real is None or bool(real.all()) else real
        return Mask(len(queries), len(keys), renumber(own.start), renumber(own.stop), real, **place).simplify()

    def simplify(self) -> "Mask":
        """The same mask without limits that limit nothing."""
        start = None if self.start is None or not bool((self.start > 0).any()) else self.start
        stop = None if self.stop is None or not bool((self.stop < self.n_keys).any()) else self.stop
        return replace(self, start=start, stop=stop)

    def to(self, device: str | torch.device | int) -> "Mask":
        """The mask on another device."""

        def move(tensor: Tensor | None) -> Tensor | None:
            return None if tensor is None else tensor.to(device)

        return replace(self, start=move(self.start), stop=move(self.stop), keys=move(self.keys), dense=move(self.dense))

    def nbytes(self) -> int:
        """Bytes held."""
        return sum(t.numel() * t.element_size() for t in self.tensors().values())

    def tensors(self) -> dict[str, Tensor]:
        """The tensors of this description, for saving."""
        named = {"start": self.start, "stop": self.stop, "keys": self.keys, "dense": self.dense}
        return {name: tensor for name, tensor in named.items() if tensor is not None}

    @property
    def shape(self) -> torch.Size:
        """The shape of the dense mask."""
        return torch.Size((self.batch, 1 if self.dense is None else self.dense.shape[1], self.n_queries, self.n_keys))

    def materialise(self) -> Tensor:
        """The dense boolean mask [batch, head or 1, query, key]."""
        allowed = self.allowed_cells()
        if allowed is None:
            return torch.ones(self.shape, dtype=torch.bool)
        return allowed.expand(self.batch, -1, -1, -1)


def _runs(plane: Tensor, keys: Tensor | None) -> tuple[Tensor, Tensor, bool]:
    """The run of allowed keys in every row of [batch, query, key], and whether each row is one run.

    Keys that are padding (False in `keys` [batch, key]) may lie inside a run: they are left out anyway.
    """
    n_keys = plane.shape[-1]
    counted = plane.to(torch.uint8)
    some = plane.any(-1)
    start = torch.where(some, counted.argmax(-1), 0)
    stop = torch.where(some, n_keys - counted.flip(-1).argmax(-1), 0)
    lengths = stop - start if keys is None else n_real_before(keys, stop) - n_real_before(keys, start)
    return start, stop, bool((plane.sum(-1) == lengths).all())


def n_real_before(keys: Tensor, limit: Tensor) -> Tensor:
    """How many real keys [batch or 1, key] stand before each limit [batch or 1, query]."""
    batch = max(keys.shape[0], limit.shape[0])
    before = torch.nn.functional.pad(keys.long().cumsum(-1), (1, 0))
    return before.expand(batch, -1).gather(1, limit.long().expand(batch, -1))
