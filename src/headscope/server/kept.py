"""What is remembered, up to so many bytes: what nobody asked for the longest is forgotten first."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Kept(Generic[Value]):
    """A dictionary bounded by the size of what it holds; what was put in last always stays."""

    def __init__(self, limit: int):
        self.limit, self.size = limit, 0
        self._entries: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Hashable) -> Value | None:
        """What is kept under a key; asking for it makes it the newest."""
        if key not in self._entries:
            return None
        self._entries.move_to_end(key)
        return self._entries[key][0]

    def put(self, key: Hashable, value: Value, size: int) -> None:
        """Keep a value of so many bytes, and forget the oldest beyond the limit."""
        if key in self._entries:
            self.size -= self._entries.pop(key)[1]
        self._entries[key] = value, size
        self.size += size
        while self.size > self.limit and len(self._entries) > 1:
            self.size -= self._entries.popitem(last=False)[1][1]

    def newest_first(self) -> list[Value]:
        """Everything that is kept."""
        return [value for value, _ in reversed(self._entries.values())]
