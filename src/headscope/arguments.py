"""Checks of arguments that several packages take: numbers, paths, objects of a kind. What is wrong is said by name."""

import operator
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

from headscope.errors import InputError

Value = TypeVar("Value")

# Python refuses to read a number of thousands of digits, and Parquet one of more than 18.
_MOST_DIGITS = 18


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


def parsed_number(text: str, *, signed: bool = False) -> int | None:
    """The whole number that a text is, None where it is none or too large to count anything.

    >>> parsed_number("12"), parsed_number("-1"), parsed_number("-1", signed=True), parsed_number("9" * 5000)
    (12, None, -1, None)
    """
    digits = text.removeprefix("-") if signed else text
    return int(text) if digits.isdecimal() and len(digits) <= _MOST_DIGITS else None


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
