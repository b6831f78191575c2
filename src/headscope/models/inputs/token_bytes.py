"""What each piece of a tokenizer writes: from `Ġthe`, `##ing`, `▁the` or `<0xF0>` back to bytes and to text."""

from dataclasses import dataclass
from typing import Any

import regex

# A `PreTrainedTokenizerBase`, whose own types say that any of its attributes may be a list.
Tokenizer = Any

BYTE_CODE = regex.compile(r"<0x([0-9A-Fa-f]{2})>")
_NO_SPACE_BEFORE = {mark.encode() for mark in ".,!?;:…)]}'’-/%。，！？"}  # noqa: RUF001  marks of other scripts
_NO_SPACE_AFTER = {mark.encode() for mark in "([{'’-/"}


@dataclass(frozen=True)
class Piece:
    """One token as the tokenizer gave it; `text_index` says which text it came from (None: added by the tokenizer)."""

    id: int
    raw: str
    text_index: int | None = None
    span: tuple[int, int] | None = None


def align_characters(rebuilt: str, text: str) -> list[int | None]:
    """For each character of the rebuilt text, its place in the original, where it can be found nearby."""
    places: list[int | None] = []
    cursor = 0
    for character in rebuilt:
        reach = 1 if character.isspace() else 24
        near = range(cursor, min(cursor + reach, len(text)))
        place = next((k for k in near if text[k] == character or text[k].casefold() == character.casefold()), None)
        if place is not None:
            cursor = place + 1
        places.append(place)
    return places


def surfaces_of(tokenizer: Tokenizer, pieces: list[Piece], special: set[int]) -> list[bytes]:
    """The UTF-8 bytes that each piece writes, a leading space included."""
    raws = [piece.raw for piece in pieces if piece.id not in special]
    style = _style(tokenizer, raws)
    surfaces = [b" " if piece.id in special else _surface(piece.raw, style) for piece in pieces]
    return _close_up(surfaces) if style == "word pieces" else surfaces


def _style(tokenizer: Tokenizer, raws: list[str]) -> str:
    decoder = str(tokenizer.backend_tokenizer.decoder) if tokenizer.is_fast else ""
    if "ByteLevel" in decoder or hasattr(tokenizer, "byte_decoder"):
        return "byte level"
    if hasattr(tokenizer, "_utf_vocab_size"):
        return "bytes"
    if "WordPiece" in decoder or hasattr(tokenizer, "wordpiece_tokenizer") or any(raw[:2] == "##" for raw in raws):
        return "word pieces"
    if any(raw.endswith("@@") for raw in raws):
        return "continued"
    marked = any("▁" in raw or raw.endswith("</w>") for raw in raws)
    characters = not tokenizer.is_fast and all(len(raw) == 1 for raw in raws)
    return "marked" if marked or characters or decoder not in ("", "None") else "words"


def _surface(raw: str, style: str) -> bytes:
    if code := BYTE_CODE.fullmatch(raw):
        return bytes([int(code[1], 16)])
    if style == "bytes" and len(raw) == 1 and ord(raw) < 256:
        return bytes([ord(raw)])
    end = b" " if raw.endswith("</w>") else b""
    raw = raw.removesuffix("</w>")
    if style == "byte level":
        known = all(character in _BYTES for character in raw)
        return (bytes(_BYTES[character] for character in raw) if known else raw.encode()) + end
    if style == "word pieces":
        return raw[2:].encode() if raw.startswith("##") else b" " + raw.encode()
    if style == "continued":
        return raw[:-2].encode() if raw.endswith("@@") else raw.encode() + b" "
    if style == "words":
        return b" " + raw.encode()
    return raw.replace("▁", " ").encode() + end


def _close_up(surfaces: list[bytes]) -> list[bytes]:
    """Word pieces do not say where a mark had a space before it: write marks the way English does."""
    closed = []
    before = b""
    for surface in surfaces:
        is_close = surface[1:] in _NO_SPACE_BEFORE or before in _NO_SPACE_AFTER
        closed.append(surface[1:] if is_close and surface[:1] == b" " else surface)
        before = surface[1:] if surface[:1] == b" " else surface
    return closed


def _byte_table() -> dict[str, int]:
    """Byte-level BPE writes each byte as a printable character: GPT-2's table, read backwards."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + k): byte for k, byte in enumerate(others)}


_BYTES = _byte_table()


def join_surfaces(surfaces: list[bytes]) -> tuple[str, list[tuple[int, int]]]:
    """The text that the surfaces write together, and the characters each has a part in."""
    data = b"".join(surfaces)
    characters: list[str] = []
    place_of_byte: list[int] = []
    at = 0
    while at < len(data):
        lead = data[at]
        length = 1 if lead < 0xC0 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
        try:
            character = data[at : at + length].decode()
        except UnicodeDecodeError:
            character, length = "\ufffd", 1
        place_of_byte += [len(characters)] * length
        characters.append(character)
        at += length
    text = "".join(characters)
    lead = len(text) - len(text.lstrip(" "))
    spans, at = [], 0
    for surface in surfaces:
        first = place_of_byte[at] if at < len(data) else len(characters)
        last = place_of_byte[at + len(surface) - 1] + 1 if surface else first
        spans.append((max(first - lead, 0), max(last - lead, 0)))
        at += len(surface)
    return text[lead:], spans
