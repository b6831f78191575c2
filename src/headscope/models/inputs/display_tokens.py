"""Tokens for display: from a tokenizer's pieces to the text, words and sentences that a person reads."""

import threading
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from headscope.errors import InputError
from headscope.models.inputs.reading_warnings import warn_reader
from headscope.models.inputs.segmentation import GRAPHEME, sentences_of, words_of
from headscope.models.inputs.token_bytes import (
    BYTE_CODE,
    Piece,
    Tokenizer,
    align_characters,
    join_surfaces,
    surfaces_of,
)
from headscope.traces.tokens import Token, Tokens

# Turning truncation on or off changes the shared Rust tokenizer, which then refuses ("Already borrowed") other threads.
_TOKENIZER = threading.Lock()

_VISIBLE = str.maketrans({" ": "␣", "\n": "⏎", "\r": "⏎", "\t": "⇥", "\u00a0": "␣", "\u3000": "␣"})


# A written character of more code points than this is shown by its first ones: accents can be stacked without end.
_LONGEST_CHARACTER = 16


@dataclass(frozen=True)
class Encoded:
    """One text or pair as ids; `display` makes the tokens to show, which costs more than counting them."""

    tokenizer: Tokenizer
    texts: tuple[str, ...]
    fields: dict[str, list[int]]
    encoding: Any

    def __len__(self) -> int:
        return len(self.fields["input_ids"])

    def display(self, marks: "Marks | None" = None) -> Tokens:
        """The tokens to show. `marks` are the tokenizer's, where they are known from an earlier text."""
        marks = marks or marks_of(self.tokenizer)
        if self.tokenizer.is_fast:
            pieces = _fast_pieces(self.tokenizer, self.encoding)
        else:
            pieces = _slow_pieces(self.tokenizer, self.fields, self.texts, marks)
        return show(marks, pieces, self.texts)


def encode(
    tokenizer: Tokenizer,
    text: str,
    pair: str | None = None,
    *,
    as_target: bool = False,
    special: bool = True,
    max_length: int | None = None,
    pad_to: int | None = None,
) -> Encoded:
    """Tokenise one text or pair.

    Nothing is cut unless `max_length` is given; `as_target` reads the text in the target language of a translator.
    """
    texts = (text,) if pair is None else (text, pair)
    options: dict[str, Any] = {"add_special_tokens": special, "verbose": False, "truncation": False, "padding": False}
    if max_length is not None:
        options |= {"truncation": True, "max_length": max_length}
    if pad_to is not None:
        options |= {"padding": "max_length", "max_length": pad_to}
    options["return_offsets_mapping"] = tokenizer.is_fast
    arguments = {"text_target": text} if as_target else {"text": text, "text_pair": pair}
    for part in texts:
        _check_encodable(part)
    with _TOKENIZER:
        encoding = tokenizer(**arguments, **options)
    fields = {name: list(values) for name, values in encoding.items() if name != "offset_mapping"}
    return Encoded(tokenizer, texts, fields, encoding)


def _check_encodable(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"the text cannot be written as UTF-8 ({error.reason} at character {error.start}): it was probably decoded "
            "wrongly. Read the file again with the right encoding, or drop that character."
        ) from error


def tokens_of_ids(
    tokenizer: Tokenizer | None, ids: Sequence[int], segments: Sequence[int] | None = None
) -> tuple[Tokens, list[str | None]]:
    """Tokens for ids whose text is not known, and the texts rebuilt from them (of segment A and of B, or None).

    Without a tokenizer a token is shown as its number.
    """
    if tokenizer is None:
        named = (Token(str(number), number, word=place) for place, number in enumerate(ids))
        return Tokens(tuple(named)), [None, None]
    raws = [str(raw) for raw in tokenizer.convert_ids_to_tokens(list(ids))]
    segments = list(segments) if segments is not None else [0] * len(raws)
    marks = marks_of(tokenizer)
    pieces = [Piece(number, raw) for number, raw in zip(ids, raws, strict=True)]
    texts: list[str] = []
    for segment in (0, 1):
        places = [place for place, of in enumerate(segments) if of == segment]
        surfaces = surfaces_of(tokenizer, [pieces[place] for place in places], marks.special)
        text, spans = join_surfaces(surfaces)
        texts.append(text.rstrip(" "))
        for place, span in zip(places, spans, strict=True):
            if pieces[place].id not in marks.special:
                pieces[place] = Piece(pieces[place].id, pieces[place].raw, segment, span)
    return show(marks, pieces, tuple(texts)), [text or None for text in texts]


class Marks(NamedTuple):
    """What a tokenizer's ids stand for, other than text; slow to find out."""

    special: set[int]
    stand_ins: set[int]
    silent_unknown: str | None


def marks_of(tokenizer: Tokenizer) -> Marks:
    """The special ids, those of [MASK] and [UNK], and the token for what is silently not known."""
    return Marks(special_ids(tokenizer), _stand_ins(tokenizer), _silent_unknown(tokenizer))


def special_ids(tokenizer: Tokenizer) -> set[int]:
    """Ids of tokens that stand for no text. [MASK] and [UNK] do stand for a word, so they are not among them."""
    special = set(tokenizer.all_special_ids)
    special |= {number for number, token in tokenizer.added_tokens_decoder.items() if getattr(token, "special", False)}
    return special - _stand_ins(tokenizer)


def _stand_ins(tokenizer: Tokenizer) -> set[int]:
    """The ids of [MASK] and [UNK]; GPT-2's unknown token is its end of text too, which makes it special."""
    names = ("bos", "eos", "cls", "sep", "pad")
    taken = {getattr(tokenizer, f"{name}_token_id", None) for name in names}
    return {tokenizer.mask_token_id, tokenizer.unk_token_id} - taken - {None}


def _fast_pieces(tokenizer: Tokenizer, encoding: Any) -> list[Piece]:
    ids = encoding["input_ids"]
    raws = tokenizer.convert_ids_to_tokens(ids)
    return [
        Piece(number, raw, text_index, tuple(span) if text_index is not None else None)
        for number, raw, text_index, span in zip(
            ids, raws, encoding.sequence_ids(0), encoding["offset_mapping"], strict=True
        )
    ]


def _slow_pieces(
    tokenizer: Tokenizer, fields: dict[str, list[int]], texts: tuple[str, ...], marks: Marks
) -> list[Piece]:
    """Pieces of a tokenizer that gives no offsets: rebuild the text from them and lay it along the original."""
    ids = fields["input_ids"]
    special = marks.special
    pieces = [Piece(n, str(raw)) for n, raw in zip(ids, tokenizer.convert_ids_to_tokens(ids), strict=True)]
    places = [place for place, number in enumerate(ids) if number not in special]
    length_of_a = len(places)
    if len(texts) == 2:
        length_of_a = len(tokenizer(texts[0], add_special_tokens=False, verbose=False)["input_ids"])
        types = fields.get("token_type_ids")
        if types is not None and any(types):
            length_of_a = sum(1 for place in places if types[place] == 0)
    for text_index, text in enumerate(texts):
        own = places[:length_of_a] if text_index == 0 else places[length_of_a:]
        rebuilt, spans = join_surfaces(surfaces_of(tokenizer, [pieces[place] for place in own], special))
        where = align_characters(rebuilt, text)
        for place, (start, end) in zip(own, spans, strict=True):
            characters = [at for at in where[start:end] if at is not None]
            span = (characters[0], characters[-1] + 1) if characters else None
            pieces[place] = Piece(ids[place], pieces[place].raw, text_index, span)
    return pieces


def show(marks: Marks, pieces: list[Piece], texts: tuple[str, ...]) -> Tokens:
    """Pieces as tokens to show: the person's own text, split characters joined, words and sentences counted."""
    special, stand_ins, silent_unknown = marks
    spans = _with_marks([_trim(piece, texts) for piece in pieces], pieces, texts)
    words, sentences = _readings(pieces, spans, texts, special, stand_ins)
    joined = [
        None
        if piece.text_index is None or piece.id in special or piece.id in stand_ins or _is_blank(piece.raw)
        else span
        for piece, span in zip(pieces, spans, strict=True)
    ]
    parts = _parts(joined, [piece.text_index for piece in pieces], texts)
    tokens: list[Token] = []
    unknown: list[str] = []
    segment = "A"
    for place, (piece, span) in enumerate(zip(pieces, spans, strict=True)):
        if piece.id in special or piece.text_index is None:
            start, end = span if span else (None, None)
            tokens.append(Token(piece.raw, piece.id, special=True, segment=segment, start=start, end=end))
            continue
        segment = "AB"[piece.text_index]
        text = texts[piece.text_index]
        if piece.id in stand_ins:
            label = piece.raw
        elif place in parts:
            (start, end), part, count = parts[place]
            label = f"{_character(text, start, end)} {part}/{count}"
        else:
            label = _visible(piece.raw, text[slice(*span)] if span else None)
            if piece.raw == silent_unknown and label.casefold() != piece.raw.casefold():
                unknown.append(label)
                label = piece.raw
        word = sentence = None
        if span and not _is_blank(piece.raw):
            inside = range(span[0], max(span[1], span[0] + 1))
            word = next((words[piece.text_index].get(k) for k in inside if k in words[piece.text_index]), None)
        if span and sentences[piece.text_index]:
            known = sentences[piece.text_index]
            sentence = known[min(span[0], len(known) - 1)]
        start, end = span if span else (None, None)
        tokens.append(Token(label, piece.id, False, word, sentence, segment, start, end))
    if unknown:
        listed = ", ".join(repr(text) for text in list(dict.fromkeys(unknown))[:8])
        warn_reader(f"the tokenizer does not know {listed}: the model reads {silent_unknown!r} in their place.")
    return Tokens(tuple(tokens))


def _silent_unknown(tokenizer: Tokenizer) -> str | None:
    """An ordinary token that a tokenizer without an unknown token writes for all it does not know."""
    if not tokenizer.is_fast or tokenizer.unk_token_id is not None:
        return None
    return getattr(tokenizer.backend_tokenizer.model, "unk_token", None)


def _trim(piece: Piece, texts: tuple[str, ...]) -> tuple[int, int] | None:
    """The piece's characters without the spaces around them, unless spaces are all it has."""
    if piece.span is None or piece.text_index is None:
        return None
    start, end = piece.span
    slice_ = texts[piece.text_index][start:end]
    if not slice_.strip() or _is_blank(piece.raw):
        return start, end if not slice_.strip() else start
    start += len(slice_) - len(slice_.lstrip(" \u3000\u00a0"))
    return start, max(start, end - len(slice_) + len(slice_.rstrip(" \u3000\u00a0")))


def _with_marks(spans: list, pieces: list[Piece], texts: tuple[str, ...]) -> list:
    """Spans that take in the accents after them, where the tokenizer dropped these."""
    starts = {(piece.text_index, span[0]) for piece, span in zip(pieces, spans, strict=True) if span}
    longer = []
    for piece, span in zip(pieces, spans, strict=True):
        if span and piece.text_index is not None and span[0] < span[1]:
            start, end = span
            text = texts[piece.text_index]
            while end < len(text) and unicodedata.combining(text[end]) and (piece.text_index, end) not in starts:
                end += 1
            span = (start, end)
        longer.append(span)
    return longer


@lru_cache(2**14)
def _is_blank(raw: str) -> bool:
    return not raw.replace("▁", "").replace("Ġ", "").strip(" ")


def _visible(raw: str, text: str | None) -> str:
    if _is_blank(raw):
        return text.translate(_VISIBLE) if text and not text.strip() else "␣" * max(1, len(raw))
    if text is None:
        code = BYTE_CODE.fullmatch(raw)
        return (
            raw
            if code
            else raw.removeprefix("##").removesuffix("</w>").replace("▁", " ").replace("Ġ", " ").strip() or "␣"
        )
    if not text:
        return "␣"
    return (
        text.translate(_VISIBLE) if not text.strip() else text.replace("\n", "⏎").replace("\r", "").replace("\t", "⇥")
    )


def _character(text: str, start: int, end: int) -> str:
    """A written character, shortened where it is many code points long: each of its tokens shows it."""
    return text[start:end] if end - start <= _LONGEST_CHARACTER else text[start : start + _LONGEST_CHARACTER] + "…"


def _parts(
    spans: list[tuple[int, int] | None], text_indices: list[int | None], texts: tuple[str, ...]
) -> dict[int, tuple[tuple[int, int], int, int]]:
    """Which pieces are parts of one written character: place -> (its span, part, number of parts)."""
    part_by_place: dict[int, tuple[tuple[int, int], int, int]] = {}
    for text_index, text in enumerate(texts):
        groups: list[tuple[int, int, list[int]]] = []
        for place, span in enumerate(spans):
            if text_indices[place] != text_index or span is None or span[0] == span[1]:
                continue
            if groups and span[0] < groups[-1][1] and span[1] > groups[-1][0]:
                start, end, places = groups.pop()
                places.append(place)
                groups.append((min(start, span[0]), max(end, span[1]), places))
            else:
                groups.append((*span, [place]))
        for start, end, places in _by_grapheme(groups, text):
            for part, place in enumerate(places, 1):
                if len(places) > 1:
                    part_by_place[place] = ((start, end), part, len(places))
    return part_by_place


def _by_grapheme(groups: list[tuple[int, int, list[int]]], text: str) -> list[tuple[int, int, list[int]]]:
    """Join pieces that lie within one character of several code points: a family emoji, a letter and its accent."""
    if text.isascii():
        return groups
    whole: dict[int, tuple[int, int]] = {}
    for grapheme in GRAPHEME.finditer(text):
        if grapheme.end() - grapheme.start() > 1:
            whole |= dict.fromkeys(range(*grapheme.span()), grapheme.span())
    merged: list[tuple[int, int, list[int]]] = []
    for start, end, places in groups:
        home = whole.get(start)
        if home and merged and end <= home[1] and home[0] <= merged[-1][0] and merged[-1][1] <= home[1]:
            merged[-1][2].extend(places)
            merged[-1] = (home[0], home[1], merged[-1][2])
        else:
            merged.append((start, end, places))
    return merged


def _readings(
    pieces: list[Piece], spans: list, texts: tuple[str, ...], special: set[int], stand_ins: set[int]
) -> tuple[list[dict[int, int]], list[list[int]]]:
    """For each text, the word and the sentence of every character; the counts run on from one text to the next."""
    words, sentences = [], []
    next_word = next_sentence = 0
    for text_index, text in enumerate(texts):
        marks = {
            span: piece.id in stand_ins
            for piece, span in zip(pieces, spans, strict=True)
            if span and piece.text_index == text_index
            if piece.id in special or (piece.id in stand_ins and text[slice(*span)] == piece.raw)
        }
        word_by_character, next_word = words_of(text, next_word, marks)
        words.append(word_by_character)
        sentences.append(sentences_of(text, next_sentence))
        next_sentence = sentences[-1][-1] + 1 if sentences[-1] else next_sentence
    return words, sentences
