"""TypeScript from dataclasses: interfaces and defaults, so that the page and Python cannot drift apart unseen."""

import ast
import inspect
import json
import textwrap
import types
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields, is_dataclass
from itertools import pairwise
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

_HEADER = "// Written by scripts/contract from the dataclasses on the Python side. Change those, not this.\n"
_PLAIN = {str: "string", int: "number", float: "number", bool: "boolean", type(None): "null", object: "unknown"}


def typescript(
    classes: Iterable[type], constants: Iterable[type] = (), tables: Mapping[str, Mapping[str, object]] | None = None
) -> str:
    """One interface for each dataclass and for every dataclass that its fields mention, in order of first use.

    Of `constants`, the page also has the default of every field and the choices of those that have only a few. Tables
    are constants of the page under their names: what they hold are texts or dataclasses, looked up by name.
    """
    known: dict[str, str] = {}
    for cls in classes:
        _declare(cls, known)
    lookups = [_lookup(name, table, known) for name, table in (tables or {}).items()]
    return "\n".join([_HEADER, *known.values(), *(_constants(cls) for cls in constants), *lookups])


def _declare(cls: type, known: dict[str, str]) -> None:
    if cls.__name__ in known:
        return
    known[cls.__name__] = ""  # holds its place while its fields are looked at
    hints, docs = get_type_hints(cls), _field_docs(cls)
    lines = []
    for field in fields(cls):  # type: ignore[arg-type]
        if doc := docs.get(field.name):
            lines.append(f"  /** {doc} */")
        lines.append(f"  {field.name}: {_type(hints[field.name], known)};")
    summary = " ".join((inspect.getdoc(cls) or "").split())
    known[cls.__name__] = f"/** {summary} */\nexport interface {cls.__name__} {{\n" + "\n".join(lines) + "\n}\n"


def _field_docs(cls: type) -> dict[str, str]:
    """What is written below each field, in one line."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    docs = {}
    for field, doc in pairwise(definition.body):  # type: ignore[attr-defined]
        match field, doc:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                docs[name] = " ".join(text.split())
    return docs


def _constants(cls: type) -> str:
    name, choices = cls.__name__, {name: _choices(hint) for name, hint in get_type_hints(cls).items()}
    lines = [
        f"export const DEFAULT_{name.upper()}: {name} = {json.dumps(asdict(cls()), indent=2)};\n",
        f"export const {name.upper()}_CHOICES = {{",
        *(f"  {field}: {json.dumps(values)}," for field, values in choices.items() if values),
        "} as const;\n",
    ]
    return "\n".join(lines)


def _lookup(name: str, table: Mapping[str, object], known: dict[str, str]) -> str:
    (kind,) = {type(value) for value in table.values()}
    rows = {key: asdict(value) if is_dataclass(value) else value for key, value in table.items()}  # type: ignore[arg-type]
    lines = [f"  {json.dumps(key)}: {json.dumps(row, ensure_ascii=False)}," for key, row in rows.items()]
    return "\n".join([f"export const {name}: Record<string, {_type(kind, known)}> = {{", *lines, "};\n"])


def _choices(hint: Any) -> tuple:
    """Of a literal, of a list of them, or of one that may be missing."""
    if get_origin(hint) is Literal:
        return get_args(hint)
    return next((get_args(inner) for inner in get_args(hint) if get_origin(inner) is Literal), ())


def _type(hint: Any, known: dict[str, str]) -> str:
    origin, inner = get_origin(hint), get_args(hint)
    if hint in _PLAIN:
        return _PLAIN[hint]
    if origin is Literal:
        return " | ".join(f'"{value}"' for value in inner)
    if origin in (Union, types.UnionType):
        return " | ".join(_type(member, known) for member in inner)
    if origin is list or (origin is tuple and inner[1:] == (...,)):
        member = _type(inner[0], known)
        return f"({member})[]" if "|" in member else f"{member}[]"
    if origin is tuple:
        return "[" + ", ".join(_type(member, known) for member in inner) + "]"
    if origin is dict:
        return f"Record<{_type(inner[0], known)}, {_type(inner[1], known)}>"
    if is_dataclass(hint) and isinstance(hint, type):
        _declare(hint, known)
        return hint.__name__
    raise TypeError(f"the page has no type for {hint!r}")
