"""Checks of arguments that several packages take: numbers, paths, objects of a kind. What is wrong is said by name."""

import operator
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

from headscope.errors import InputError

Value = TypeVar("Value")


def whole_number(value: Any, name: str, low: int = 1, high: int | None = None) -> int:
    """A whole number in a range, of Python's type.

    >>> whole_number(3, "k")
    3
    """
    bounds = f"of {low} or more" if high is None else f"from {low} to {high:,}"
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or number < low or (high is not None and number > high):
        raise InputError(f"{name} must be a whole number {bounds}, got {_short(value)}.")
    return number


def as_path(value: Any, name: str) -> Path:
    """A path, from text or a path that is not empty; `~` is the home folder."""
    if not isinstance(value, str | os.PathLike) or not os.fspath(value):
        raise InputError(f"{name} must be the path of a file or folder, got {_short(value)}.")
    return Path(value).expanduser()


def instance(value: Any, kind: type[Value], name: str, remedy: str) -> Value:
    """An object of a kind; `remedy` says how one comes by it."""
    if not isinstance(value, kind):
        raise InputError(f"{name} must be of type {kind.__name__}, got {_short(value)}: {remedy}.")
    return value


def instances(values: Any, kind: type[Value], name: str, remedy: str) -> list[Value]:
    """Objects of a kind, or one of them, as a list."""
    if isinstance(values, kind):
        return [values]
    if not isinstance(values, Iterable) or isinstance(values, str | bytes):
        raise InputError(f"{name} must be a list of {kind.__name__}s, got {_short(values)}: {remedy}.")
    return [instance(value, kind, f"each of {name}", remedy) for value in values]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"
