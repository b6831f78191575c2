"""What a key asks for: the one parser of keys. `views/contract.py` lists them."""

import re
from dataclasses import dataclass
from typing import Literal, get_args
from urllib.parse import parse_qsl, unquote

from headscope.attention.summaries import MAP_SIZE
from headscope.choices import By, Vectors, Way, What
from headscope.errors import InputError

WINDOW_SIZE = 1024
# A key may name every token of a long input in `hide`, and no more.
_LONGEST = 2**20
_KNOWN = {
    "trace": ("minus",),
    "maps": ("size", "minus"),
    "layer": ("what", "by", "hide", "minus"),
    "row": ("query", "key", "what", "by", "hide", "minus"),
    "window": ("rows", "columns", "size", "what", "by", "hide", "minus"),
    "neuron": ("query", "minus"),
    "vectors": ("of", "rows", "minus"),
    "scores": ("minus",),
    "alignment": ("by", "minus"),
    "relation": ("source", "target", "minus"),
    "image": ("minus",),
    "sound": ("minus",),
    "rollout": (),
    "gold": (),
    "tree": ("way",),
}
# Of two runs: they make no sense without the second.
_PAIRED = ("alignment", "relation")
_PLACED = {"layer": "L3", "row": "L3", "window": "L3H2", "neuron": "L3H2", "vectors": "L3H2"}
_PLACED |= {"image": "main", "sound": "encoder", "rollout": "L5", "tree": "L3H2"}


@dataclass(frozen=True)
class Asked:
    """A key, taken apart. `hide` holds (stack or None, position); `rows` and `columns` are None for all."""

    kind: str
    place: str = ""
    what: What = "pattern"
    by: By = "tokens"
    way: Way = "A"
    hide: tuple[tuple[str | None, int], ...] = ()
    size: int = MAP_SIZE
    side: Literal["query", "key"] = "query"
    index: int = 0
    rows: tuple[int, int] | None = None
    columns: tuple[int, int] | None = None
    query: int | None = None
    of: Vectors = "key"
    minus: str = ""
    """The run that is subtracted, or compared with, by the name the page knows it by."""
    source: int = 0
    target: int = 0


def parse_key(key: str) -> Asked:
    """Read `layer/L3?what=pattern` and the like; whether the trace has that layer is seen later."""
    if len(key) > _LONGEST:
        raise InputError(f"a key has at most {_LONGEST:,} characters, this one {len(key):,}.")
    path, _, query = key.partition("?")
    kind, _, place = unquote(path).partition("/")
    if kind not in _KNOWN:
        raise InputError(f"there is no part {_short(kind)}: the parts are {', '.join(_KNOWN)}.")
    if (kind in _PLACED) != bool(place):
        example = f"{kind}/{_PLACED[kind]}" if kind in _PLACED else kind
        raise InputError(f"{_short(path)} is no key: write {example!r}.")
    given = _options(kind, query)
    asked: dict = {"kind": kind, "place": place}
    if "what" in given:
        asked["what"] = _one_of("what", given["what"], get_args(What))
    if "by" in given:
        asked["by"] = _one_of("by", given["by"], get_args(By))
    if "way" in given:
        asked["way"] = _one_of("way", given["way"], get_args(Way))
    if given.get("hide"):
        asked["hide"] = tuple(_position(one) for one in given["hide"].split(","))
    largest = MAP_SIZE if kind == "maps" else WINDOW_SIZE
    asked["size"] = _size(given["size"], largest) if "size" in given else largest
    if kind == "row":
        sides = [side for side in ("query", "key") if side in given]
        if len(sides) != 1:
            raise InputError(f"row/{place} takes a query or a key: write 'row/{place}?query=5' or 'row/{place}?key=5'.")
        asked["side"], asked["index"] = sides[0], _number(sides[0], given[sides[0]])
    if kind == "neuron" and "query" in given:
        asked["query"] = _number("query", given["query"])
    if "of" in given:
        asked["of"] = _one_of("of", given["of"], get_args(Vectors))
    for name in ("rows", "columns"):
        if name in given:
            asked[name] = _span(name, given[name])
    asked["minus"] = given.get("minus", "")
    if kind in _PAIRED and not asked["minus"]:
        raise InputError(f"{kind} is of two runs: say which the other is, as in {kind}?minus=ID.")
    for name in ("source", "target") if kind == "relation" else ():
        if name not in given:
            raise InputError("a relation has a source and a target: write relation?source=4&target=1&minus=ID.")
        asked[name] = _number(name, given[name])
    return Asked(**asked)


def _options(kind: str, query: str) -> dict[str, str]:
    given: dict[str, str] = {}
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query), errors="strict")
    except ValueError as error:
        raise InputError(f"{_short(query)} does not read as options: write name=value, joined by &.") from error
    for name, value in pairs:
        if name not in _KNOWN[kind]:
            known = f"it takes {', '.join(_KNOWN[kind])}" if _KNOWN[kind] else "it takes none"
            raise InputError(f"{kind} has no option {_short(name)}: {known}.")
        if name in given:
            raise InputError(f"{kind} was given {name} twice.")
        given[name] = value
    return given


def _one_of(name: str, value: str, known: tuple[str, ...]) -> str:
    if value not in known:
        raise InputError(f"{name}={_short(value)} is not known: choose one of {', '.join(known)}.")
    return value


def _size(text: str, largest: int) -> int:
    size = _number("size", text)
    if not 1 <= size <= largest:
        raise InputError(f"size={size} is outside 1 to {largest}.")
    return size


def _number(name: str, text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise InputError(f"{name}={_short(text)} is not a position: positions are whole numbers from 0.")
    return int(text)


def _position(text: str) -> tuple[str | None, int]:
    stack, colon, place = text.rpartition(":")
    return (stack if colon else None), _number("hide", place)


def _span(name: str, text: str) -> tuple[int, int]:
    found = re.fullmatch(r"([0-9]{1,9}):([0-9]{1,9})", text)
    if not found or int(found[1]) >= int(found[2]):
        raise InputError(f"{name}={_short(text)} is no range: write {name}=0:512, the second number past the last.")
    return int(found[1]), int(found[2])


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "…")
