"""Words and sentences of a text, found in the text itself and so the same for every tokenizer."""

import regex

# ruff: noqa: RUF001  marks of other scripts are what this file is about

# One written character. Flags come first because `\X` walks back over all of a run of them at each: quadratic time.
_GRAPHEME = r"\p{Regional_Indicator}{1,2}[\p{GCB=Extend}\p{GCB=SpacingMark}\p{GCB=ZWJ}]*|\X"
GRAPHEME = regex.compile(_GRAPHEME)
_SINGLE = r"\p{Han}\p{Hiragana}\p{Katakana}ー"
_RUN = rf"[[\p{{L}}\p{{N}}\p{{M}}\u200c\u200d]--[{_SINGLE}]]+"
_WORD = regex.compile(rf"(?V1)[{_SINGLE}]\p{{M}}*|{_RUN}(?:['’ʼ‐‑׳״\-]{_RUN})*|(?=\S)(?:{_GRAPHEME})")
_SENTENCE_END = regex.compile(r"[.!?…。！？｡؟۔।]+[\"'”’»)\]」』]*|\n+")
_ALWAYS_ENDS = frozenset("。！？｡؟۔।")
_BEFORE_POINT = regex.compile(r"[\p{L}\p{M}.]+$")
_DOTTED_LETTERS = regex.compile(r"(?:\p{L}\.)+\p{L}")
_ABBREVIATED = (
    "mr mrs ms dr prof st sr jr vs cf fig figs vol al approx dept gen col lt capt sgt rev hon gov inc ltd co corp "
    "mme mlle bzw usw nr им ул руб тыс млн рис проф"
)
_ABBREVIATIONS = frozenset(_ABBREVIATED.split())


def words_of(text: str, first: int = 0, marks: dict[tuple[int, int], bool] | None = None) -> tuple[dict[int, int], int]:
    """The word of every character that is in one, and the next free number.

    A word is a run of letters and digits, apostrophes and hyphens inside it included; every punctuation mark and
    every Han, Hiragana or Katakana character is one. `marks` are special tokens written in the text: one word or none.
    """
    words: dict[int, int] = {}
    at = 0
    for (start, end), is_word in [*sorted((marks or {}).items()), ((len(text), len(text)), False)]:
        for match in _WORD.finditer(text, at, start):
            words |= dict.fromkeys(range(*match.span()), first)
            first += 1
        if is_word:
            words |= dict.fromkeys(range(start, end), first)
            first += 1
        at = end
    return words, first


def sentences_of(text: str, first: int = 0) -> list[int]:
    """The sentence of every character; white space after a sentence belongs to it."""
    has_capitals = text != text.lower()
    ends = {match.end() for match in _SENTENCE_END.finditer(text) if _ends_sentence(text, match, has_capitals)}
    numbers: list[int] = []
    is_open = has_ended = False
    for place, character in enumerate(text):
        has_ended = has_ended or place in ends
        if not character.isspace():
            first += is_open and has_ended
            is_open, has_ended = True, False
        numbers.append(first)
    return numbers


def _ends_sentence(text: str, end: regex.Match, has_capitals: bool) -> bool:
    mark = end.group()
    if mark[0] == "\n" or _ALWAYS_ENDS.intersection(mark):
        return True
    rest = text[end.end() : end.end() + 64]
    if rest and not rest[0].isspace():
        return False
    goes_on = has_capitals and rest.lstrip(" \t")[:1].islower()
    is_quoted = mark[-1] not in ".!?…"
    if goes_on and (is_quoted or mark[0] in ".…"):
        return False
    if mark[0] != "." or mark[:2] == "..":
        return True
    before = _BEFORE_POINT.search(text[max(0, end.start() - 16) : end.start()])
    if before is None:
        return True
    word = before.group()
    is_initial = len(word) == 1 and (word.isupper() or not has_capitals)
    return not (is_initial or word.lower() in _ABBREVIATIONS or _DOTTED_LETTERS.fullmatch(word))
