"""TypeScript interfaces from dataclasses, so that the page and Python cannot drift apart unseen."""

import inspect
import types
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

_HEADER = "// Written by scripts/contract from the dataclasses on the Python side. Change those, not this.\n"
_PLAIN = {str: "string", int: "number", float: "number", bool: "boolean", type(None): "null", object: "unknown"}


def typescript(classes: Iterable[type]) -> str:
    """One interface for each dataclass and for every dataclass that its fields mention, in order of first use."""
    known: dict[str, str] = {}
    for one in classes:
        _declare(one, known)
    return "\n".join([_HEADER, *known.values()])


def _declare(one: type, known: dict[str, str]) -> None:
    if one.__name__ in known:
        return
    known[one.__name__] = ""  # holds its place while its fields are looked at
    hints = get_type_hints(one)
    lines = [f"  {item.name}: {_type(hints[item.name], known)};" for item in fields(one)]  # type: ignore[arg-type]
    about = " ".join((inspect.getdoc(one) or "").split())
    known[one.__name__] = f"/** {about} */\nexport interface {one.__name__} {{\n" + "\n".join(lines) + "\n}\n"


def _type(hint: Any, known: dict[str, str]) -> str:
    origin, inner = get_origin(hint), get_args(hint)
    if hint in _PLAIN:
        return _PLAIN[hint]
    if origin is Literal:
        return " | ".join(f'"{one}"' for one in inner)
    if origin in (Union, types.UnionType):
        return " | ".join(_type(one, known) for one in inner)
    if origin is list:
        member = _type(inner[0], known)
        return f"({member})[]" if "|" in member else f"{member}[]"
    if origin is tuple:
        return "[" + ", ".join(_type(one, known) for one in inner) + "]"
    if origin is dict:
        return f"Record<{_type(inner[0], known)}, {_type(inner[1], known)}>"
    if is_dataclass(hint) and isinstance(hint, type):
        _declare(hint, known)
        return hint.__name__
    raise TypeError(f"the page has no type for {hint!r}")
