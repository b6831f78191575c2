"""The memory that `--max-memory` allows: what is cached, and what requests under way work with.

Both count against one limit. Work that needs much memory reserves it first. To make room, the entries that were used
least recently are evicted, whichever cache they are in. What does not fit beside the work under way waits for it.
"""

import threading
from collections import Counter, OrderedDict
from collections.abc import Collection, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from headscope.server.errors import Refused

Value = TypeVar("Value")
Address = tuple[str, Hashable]
"""Where an entry lies: the name of its cache, and its key there."""

WAIT_SECONDS = 30.0
RETRY_SECONDS = 5


@dataclass(eq=False)
class Reservation:
    """Bytes that somebody works with, and the cached entries that they read, which are not evicted meanwhile."""

    size: int
    reads: Collection[Address] = ()


class Memory:
    """The limit, the entries of all caches from the least to the most recently used, and who reserved how much."""

    def __init__(self, limit: int):
        self.limit = limit
        self._entries: OrderedDict[Address, tuple[Any, int]] = OrderedDict()
        self._cached: Counter[str] = Counter()
        self._reservations: list[Reservation] = []
        self._changed = threading.Condition()

    @property
    def used_bytes(self) -> int:
        """Bytes that are cached or reserved."""
        return self._cached.total() + self._reserved_bytes()

    @contextmanager
    def reserve(
        self, size: int, what: str, *, reads: Collection[Address] = (), wait: float = WAIT_SECONDS
    ) -> Iterator[Reservation]:
        """Reserve memory for a `with` block. Refused if it can never fit, or if it does not within `wait` seconds."""
        room = Reservation(size, reads)
        if not size and not reads:
            yield room
            return
        with self._changed:
            needed = size + self._size_of(reads)
            if needed > self.limit:
                raise _too_large(what, needed, self.limit)
            if not self._changed.wait_for(lambda: self._fits(room), wait):
                raise _busy(what, needed)
            self._reservations.append(room)
            evicted = self._evict()
        del evicted  # outside the lock: to free many entries takes a while
        try:
            yield room
        finally:
            with self._changed:
                self._reservations.remove(room)
                self._changed.notify_all()

    def get(self, address: Address) -> Any:
        """A cached value, from now on the most recently used; None if there is none."""
        with self._changed:
            if address not in self._entries:
                return None
            self._entries.move_to_end(address)
            return self._entries[address][0]

    def put(self, address: Address, value: Any, size: int, most: int, room: Reservation | None) -> None:
        """Cache a value; `most` is the limit of its own cache. The last value stays, however large."""
        evicted = []
        with self._changed:
            if address in self._entries:
                evicted.append(self._remove(address))
            self._entries[address] = value, size
            self._cached[address[0]] += size
            if room is not None:
                room.size = max(0, room.size - size)
            evicted += self._evict(most, address)

    def newest_first(self, cache: str) -> list[Any]:
        """All values of one cache."""
        with self._changed:
            return [value for address, (value, _) in reversed(self._entries.items()) if address[0] == cache]

    def _reserved_bytes(self) -> int:
        return sum(room.size for room in self._reservations)

    def _size_of(self, addresses: Collection[Address]) -> int:
        return sum(self._entries[address][1] for address in set(addresses) if address in self._entries)

    def _fits(self, room: Reservation) -> bool:
        """Whether there is room once everything is evicted that nobody reads."""
        reads = [address for other in (*self._reservations, room) for address in other.reads]
        return self._reserved_bytes() + room.size + self._size_of(reads) <= self.limit

    def _evict(self, most: int = 0, newest: Address | None = None) -> list[Any]:
        """Take out the oldest entries until the limit holds, and that of the newest entry's own cache."""
        evicted, stay = [], {address for room in self._reservations for address in room.reads} | {newest}
        for address in list(self._entries):
            is_full = self.used_bytes > self.limit
            is_cache_full = newest is not None and address[0] == newest[0] and self._cached[newest[0]] > most
            if (is_full or is_cache_full) and address not in stay:
                evicted.append(self._remove(address))
        return evicted

    def _remove(self, address: Address) -> Any:
        value, size = self._entries.pop(address)
        self._cached[address[0]] -= size
        return value


class Cache(Generic[Value]):
    """Values of one kind in a `Memory`: at most a share of it, and fewer where others need the room."""

    def __init__(self, memory: Memory, name: str, share: float = 1.0):
        self.memory, self.name, self.limit = memory, name, int(memory.limit * share)

    def __len__(self) -> int:
        return len(self.newest_first())

    @property
    def size(self) -> int:
        """Bytes of all values."""
        return self.memory._cached[self.name]

    def address(self, key: Hashable) -> Address:
        """Where a reservation that reads a value says it lies."""
        return self.name, key

    def get(self, key: Hashable) -> Value | None:
        """The value of a key; asking for it makes it the most recently used."""
        return self.memory.get((self.name, key))

    def put(self, key: Hashable, value: Value, size: int, room: Reservation | None = None) -> None:
        """Cache a value of so many bytes. `room` is what was reserved to make it: it takes that place."""
        self.memory.put((self.name, key), value, size, self.limit, room)

    def newest_first(self) -> list[Value]:
        """All values, the most recently used first."""
        return self.memory.newest_first(self.name)


def _too_large(what: str, size: int, limit: int) -> Refused:
    return Refused(
        413,
        "TooLarge",
        f"{what} takes up to {_megabytes(size)} of memory; this server may use {_megabytes(limit)} in all.",
        f"Make the input smaller, or start the server with --max-memory {-(-2 * size // 10**9)}GB.",
    )


def _busy(what: str, size: int) -> Refused:
    return Refused(
        503,
        "MemoryInUse",
        f"{what} takes up to {_megabytes(size)} of memory, and other requests are using what this server may use.",
        f"Try again in {RETRY_SECONDS} s, or start the server with a larger --max-memory.",
        {"Retry-After": str(RETRY_SECONDS)},
    )


def _megabytes(size: int) -> str:
    return f"{max(1, -(-size // 10**6)):,} MB"
