"""Tokens as tokenizers spell them, read back: bytes to letters, marks to words, special tokens known by their looks."""

import re
from collections.abc import Sequence
from types import SimpleNamespace

from headscope.errors import InputError
from headscope.models.inputs.segmentation import sentences_of, words_of
from headscope.models.inputs.token_bytes import Piece, joined, surfaces_of
from headscope.traces import Token, Tokens

_SPECIAL = re.compile(
    r"\[(?:CLS|SEP|PAD|BOS|EOS|unused\d+)\]|</?s>|<(?:pad|bos|eos|cls|sep|start_of_turn|end_of_turn)>|<\|[^|<>]+\|>"
)


def tokens_of(given: Sequence[str], *, prettify: bool, second: int | None = None) -> Tokens:
    """Tokens from their spellings; those from `second` on belong to the other sentence of a pair."""
    spelled = [str(one) for one in given]
    if second is not None and not 0 < second < len(spelled):
        raise InputError(
            f"sentence_b_start={second} is not inside the {len(spelled)} tokens: sentence B begins at 1 to "
            f"{len(spelled) - 1}."
        )
    first = len(spelled) if second is None else second
    segments = ["A"] * first + ["B"] * (len(spelled) - first)
    if not prettify:
        return Tokens(
            tuple(
                Token(text, special=_is_special(text), word=place, segment=segment)
                for place, (text, segment) in enumerate(zip(spelled, segments, strict=True))
            )
        )
    style = _style(spelled)
    return Tokens((*_read(spelled[:first], "A", style), *_read(spelled[first:], "B", style)))


def _is_special(text: str) -> bool:
    return _SPECIAL.fullmatch(text) is not None


def _style(spelled: list[str]) -> SimpleNamespace:
    """What stands in for the tokenizer, which we do not have: it says only whether letters stand for bytes."""
    words = [one for one in spelled if not _is_special(one)]
    in_bytes = SimpleNamespace(is_fast=False, byte_decoder=True)
    if any("Ġ" in one or "Ċ" in one for one in words):
        return in_bytes
    text = "".join(words)
    if not text.isascii():
        read = b"".join(surfaces_of(in_bytes, [Piece(0, one) for one in words], set()))
        if read != text.encode() and _decodes(read):
            return in_bytes
    return SimpleNamespace(is_fast=False)


def _decodes(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _read(spelled: list[str], segment: str, style: SimpleNamespace) -> list[Token]:
    """The tokens of one sentence: the text they spell together, and the place of each in it."""
    pieces = [Piece(1 if _is_special(one) else 0, one) for one in spelled]
    text, spans = joined(surfaces_of(style, pieces, {1}))
    words, _ = words_of(text)
    sentences = sentences_of(text)
    found = []
    for place, (piece, span) in enumerate(zip(pieces, spans, strict=True)):
        if piece.id == 1:
            found.append(Token(piece.raw, special=True, segment=segment))
            continue
        start, end = _trimmed(text, *span)
        shown = _part(text, spans, place) or text[start:end] or piece.raw
        inside = range(start, max(end, start + 1))
        word = next((words[at] for at in inside if at in words), None)
        sentence = sentences[min(start, len(sentences) - 1)] if sentences else None
        found.append(Token(shown, None, False, word, sentence, segment, start, end))
    return found


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """Without the spaces around it, unless spaces are all there is."""
    inside = text[start:end]
    if not inside.strip():
        return start, end
    return start + len(inside) - len(inside.lstrip()), end - (len(inside) - len(inside.rstrip()))


def _part(text: str, spans: list[tuple[int, int]], place: int) -> str | None:
    """`é 1/2` for a token that holds some of the bytes of one character."""
    start, end = spans[place]
    same = [index for index, span in enumerate(spans) if span[0] < end and span[1] > start]
    if end - start != 1 or len(same) < 2:
        return None
    return f"{text[start:end]} {same.index(place) + 1}/{len(same)}"
