"""Warnings about one input, raised as usual and collected while it is read: its traces carry them."""

import contextlib
import warnings
from collections.abc import Iterator
from contextvars import ContextVar

from headscope.errors import HeadscopeWarning

_collected: ContextVar[list[str] | None] = ContextVar("collected", default=None)


def warn_reader(message: str) -> None:
    """Warn about the input that is being read."""
    warnings.warn(message, HeadscopeWarning, stacklevel=3)
    messages = _collected.get()
    if messages is not None:
        messages.append(message)


@contextlib.contextmanager
def collected_warnings() -> Iterator[list[str]]:
    """What `warn_reader` says inside, in this thread."""
    messages: list[str] = []
    token = _collected.set(messages)
    try:
        yield messages
    finally:
        _collected.reset(token)
