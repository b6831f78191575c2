"""Tokens as tokenizers spell them, read back: bytes to letters, marks to words, special tokens known by their looks."""

import re
from collections.abc import Sequence
from types import SimpleNamespace

from headscope.errors import InputError
from headscope.models.inputs.segmentation import sentences_of, words_of
from headscope.models.inputs.token_bytes import Piece, join_surfaces, surfaces_of
from headscope.traces import Token, Tokens

_SPECIAL = re.compile(
    r"\[(?:CLS|SEP|PAD|BOS|EOS|unused\d+)\]|</?s>|<(?:pad|bos|eos|cls|sep|start_of_turn|end_of_turn)>|<\|[^|<>]+\|>"
)


def tokens_of(spellings: Sequence[str], *, prettify: bool, second: int | None = None) -> Tokens:
    """Tokens from their spellings; those from `second` on belong to the other sentence of a pair."""
    spellings = [str(spelling) for spelling in spellings]
    if second is not None and not 0 < second < len(spellings):
        raise InputError(
            f"sentence_b_start={second} is not inside the {len(spellings)} tokens: sentence B begins at 1 to "
            f"{len(spellings) - 1}."
        )
    first = len(spellings) if second is None else second
    segments = ["A"] * first + ["B"] * (len(spellings) - first)
    if not prettify:
        return Tokens(
            tuple(
                Token(text, special=_is_special(text), word=place, segment=segment)
                for place, (text, segment) in enumerate(zip(spellings, segments, strict=True))
            )
        )
    style = _style(spellings)
    return Tokens((*_read(spellings[:first], "A", style), *_read(spellings[first:], "B", style)))


def _is_special(text: str) -> bool:
    return _SPECIAL.fullmatch(text) is not None


def _style(spellings: list[str]) -> SimpleNamespace:
    """What stands in for the tokenizer, which we do not have: it says only whether letters stand for bytes."""
    words = [word for word in spellings if not _is_special(word)]
    in_bytes = SimpleNamespace(is_fast=False, byte_decoder=True)
    if any("Ġ" in word or "Ċ" in word for word in words):
        return in_bytes
    text = "".join(words)
    if not text.isascii():
        read = b"".join(surfaces_of(in_bytes, [Piece(0, word) for word in words], set()))
        if read != text.encode() and _decodes(read):
            return in_bytes
    return SimpleNamespace(is_fast=False)


def _decodes(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _read(spellings: list[str], segment: str, style: SimpleNamespace) -> list[Token]:
    """The tokens of one sentence: the text they spell together, and the place of each in it."""
    pieces = [Piece(1 if _is_special(spelling) else 0, spelling) for spelling in spellings]
    text, spans = join_surfaces(surfaces_of(style, pieces, {1}))
    words, _ = words_of(text)
    sentences = sentences_of(text)
    tokens = []
    for place, (piece, span) in enumerate(zip(pieces, spans, strict=True)):
        if piece.id == 1:
            tokens.append(Token(piece.raw, special=True, segment=segment))
            continue
        start, end = _trim_spaces(text, *span)
        display = _part(text, spans, place) or text[start:end] or piece.raw
        inside = range(start, max(end, start + 1))
        word = next((words[at] for at in inside if at in words), None)
        sentence = sentences[min(start, len(sentences) - 1)] if sentences else None
        tokens.append(Token(display, None, False, word, sentence, segment, start, end))
    return tokens


def _trim_spaces(text: str, start: int, end: int) -> tuple[int, int]:
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
