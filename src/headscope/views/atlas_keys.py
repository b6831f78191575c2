"""What the key of a part of an atlas asks for. `views/contract/` lists the keys."""

import re
from dataclasses import dataclass
from typing import get_args
from urllib.parse import unquote

from headscope.choices import Coordinates, MapMethod
from headscope.errors import InputError
from headscope.views.part_keys import key_options, one_of

_MAP = ("method", "dims", "coordinates")
_SEARCH = ("text", "regex", "ignore_case")
KNOWN: dict[str, tuple[str, ...]] = {
    "atlas": (),
    "examples": (),
    "tokens": ("stack",),
    "maps": (*_MAP, "points"),
    "map": ("head", *_MAP),
    "columns": ("head", "name", "points"),
    "scores": (),
    "anomalies": (),
    "lines": ("head", "top"),
    "distances": ("head", "coordinates", "pairs"),
    "aggregate": ("head",),
    "pattern": ("head", "example"),
    "hits": _SEARCH,
    "search": _SEARCH,
    "neighbours": ("head", "role", "row", "k"),
    "image": ("example",),
}
_OF_HEAD = ("map", "lines", "distances", "aggregate", "pattern", "neighbours")
_LONGEST = 10_000
# Whole numbers: the least and the most.
_NUMBERS = {
    "points": (2, 200_000),
    "top": (1, 16),
    "pairs": (10, 50_000),
    "example": (0, 10**9),
    "row": (0, 10**9),
    "k": (1, 100),
}


@dataclass(frozen=True)
class AtlasKey:
    """A key, taken apart."""

    kind: str
    head: str = ""
    stack: str = ""
    method: MapMethod = "pca"
    dims: int = 2
    coordinates: Coordinates = "scaled"
    name: str = ""
    role: str = "query"
    text: str = ""
    regex: bool = False
    ignore_case: bool = False
    points: int = 2000
    top: int = 2
    pairs: int = 3000
    example: int = 0
    row: int = 0
    k: int = 10


def parse_atlas_key(key: str) -> AtlasKey:
    """Read `map?head=L3H2&method=umap` and the like; whether the atlas has that head is seen later."""
    if len(key) > _LONGEST:
        raise InputError(f"a key has at most {_LONGEST:,} characters, this one {len(key):,}.")
    path, _, query = key.partition("?")
    kind = unquote(path)
    if kind not in KNOWN:
        raise InputError(f"an atlas has no part {kind[:60]!r}: its parts are {', '.join(KNOWN)}.")
    options = key_options(kind, query, KNOWN[kind])
    if kind in _OF_HEAD and not options.get("head"):
        raise InputError(f"{kind} is of one head: write {kind}?head=L3H2.")
    if kind == "columns" and bool(options.get("head")) == bool(options.get("name")):
        raise InputError("columns are all of one head, or one of all heads: write columns?head=L3H2 or ?name=norm.")
    fields: dict = {"kind": kind}
    fields |= {name: options[name] for name in ("head", "stack", "text", "role") if name in options}
    for name, known in (("method", get_args(MapMethod)), ("coordinates", get_args(Coordinates))):
        if name in options:
            fields[name] = one_of(name, options[name], known)
    if "name" in options:
        fields["name"] = one_of("name", options["name"], ("norm", "key_bias"))
    if "dims" in options:
        fields["dims"] = int(one_of("dims", options["dims"], ("2", "3")))
    for name in ("regex", "ignore_case"):
        if name in options:
            fields[name] = one_of(name, options[name], ("0", "1")) == "1"
    fields |= {name: _number(name, options[name]) for name in _NUMBERS if name in options}
    return AtlasKey(**fields)


def _number(name: str, text: str) -> int:
    least, most = _NUMBERS[name]
    if not re.fullmatch(r"[0-9]{1,10}", text) or not least <= int(text) <= most:
        raise InputError(f"{name}={text[:60]!r} is not a whole number from {least:,} to {most:,}.")
    return int(text)
