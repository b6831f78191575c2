"""What a key asks for: the one parser of keys. `views/contract/` lists them."""

import re
from collections.abc import Sequence
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
    "experts": (),
    "gold": (),
    "tree": ("way",),
}
# Of two runs: they make no sense without the second.
_PAIRED = ("alignment", "relation")
_PLACED = {"layer": "L3", "row": "L3", "window": "L3H2", "neuron": "L3H2", "vectors": "L3H2"}
_PLACED |= {"image": "main", "sound": "encoder", "rollout": "L5", "experts": "L3", "tree": "L3H2"}


@dataclass(frozen=True)
class PartKey:
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


def parse_key(key: str) -> PartKey:
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
    options = key_options(kind, query, _KNOWN[kind])
    fields: dict = {"kind": kind, "place": place}
    if "what" in options:
        fields["what"] = one_of("what", options["what"], get_args(What))
    if "by" in options:
        fields["by"] = one_of("by", options["by"], get_args(By))
    if "way" in options:
        fields["way"] = one_of("way", options["way"], get_args(Way))
    if options.get("hide"):
        fields["hide"] = tuple(_position(text) for text in options["hide"].split(","))
    largest = MAP_SIZE if kind == "maps" else WINDOW_SIZE
    fields["size"] = _size(options["size"], largest) if "size" in options else largest
    if kind == "row":
        sides = [side for side in ("query", "key") if side in options]
        if len(sides) != 1:
            raise InputError(f"row/{place} takes a query or a key: write 'row/{place}?query=5' or 'row/{place}?key=5'.")
        fields["side"], fields["index"] = sides[0], _number(sides[0], options[sides[0]])
    if kind == "neuron" and "query" in options:
        fields["query"] = _number("query", options["query"])
    if "of" in options:
        fields["of"] = one_of("of", options["of"], get_args(Vectors))
    for name in ("rows", "columns"):
        if name in options:
            fields[name] = _span(name, options[name])
    fields["minus"] = options.get("minus", "")
    if kind in _PAIRED and not fields["minus"]:
        raise InputError(f"{kind} is of two runs: say which the other is, as in {kind}?minus=ID.")
    for name in ("source", "target") if kind == "relation" else ():
        if name not in options:
            raise InputError("a relation has a source and a target: write relation?source=4&target=1&minus=ID.")
        fields[name] = _number(name, options[name])
    return PartKey(**fields)


def key_options(kind: str, query: str, known: Sequence[str]) -> dict[str, str]:
    """The options behind a key's question mark, each at most once."""
    options: dict[str, str] = {}
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query), errors="strict")
    except ValueError as error:
        raise InputError(f"{_short(query)} does not read as options: write name=value, joined by &.") from error
    for name, value in pairs:
        if name not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            raise InputError(f"{kind} has no option {_short(name)}: {takes}.")
        if name in options:
            raise InputError(f"{kind} was given {name} twice.")
        options[name] = value
    return options


def one_of(name: str, value: str, known: Sequence[str]) -> str:
    """A value that must be one of a few."""
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
    match = re.fullmatch(r"([0-9]{1,9}):([0-9]{1,9})", text)
    if not match or int(match[1]) >= int(match[2]):
        raise InputError(f"{name}={_short(text)} is no range: write {name}=0:512, the second number past the last.")
    return int(match[1]), int(match[2])


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "…")
