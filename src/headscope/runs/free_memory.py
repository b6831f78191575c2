"""Giving freed memory back to the system, where the allocator keeps it."""

import ctypes
import functools
import sys
from collections.abc import Callable


def return_free_memory() -> None:
    """Return what was freed: glibc keeps the room between blocks in use, which grows with the lengths of batches."""
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


@functools.cache
def _malloc_trim() -> Callable[[int], int] | None:
    """glibc's function; None where the C library is another."""
    return getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
