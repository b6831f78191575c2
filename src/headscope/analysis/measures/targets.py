"""Targets: the cells of a pattern that a head fills if it does one thing, such as looking one token back.

Each function looks at tokens alone and marks cells [query, key]; how much weight a head puts there is its score.
A query counts when it has somewhere to look. Functions give None where they say nothing about such tokens.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from headscope.traces import Tokens

OPENING = {"(": ")", "[": "]", "{": "}", "«": "»", "“": "”", "„": "“", "\u2018": "\u2019"}
STRAIGHT = ('"',)


@dataclass(frozen=True, eq=False)
class PatternTokens:
    """The tokens on both sides of a pattern."""

    queries: Tokens
    keys: Tokens
    is_cross: bool

    @cached_property
    def plain_queries(self) -> np.ndarray:
        """True for queries that are not special tokens [query]."""
        return np.array([not token.special for token in self.queries])

    @cached_property
    def plain_keys(self) -> np.ndarray:
        """True for keys that are not special tokens [key]."""
        return np.array([not token.special for token in self.keys])

    @cached_property
    def same_ids(self) -> np.ndarray | None:
        """True where query and key are the same token [query, key]; None where tokens have no ids."""
        ids = np.array([-1 if token.id is None or token.special else token.id for token in self.queries])
        if self.is_cross or (ids == -1).all():
            return None
        return (ids[:, None] == ids[None, :]) & (ids[:, None] != -1)

    @cached_property
    def marks(self) -> np.ndarray:
        """True for keys that are punctuation [key]."""
        return np.array([is_mark(token.text) and not token.special for token in self.keys])


@dataclass(frozen=True)
class Target:
    """Cells looked for, `wanted` [query, key], out of `among`: other cells, or None for all that the query can see."""

    wanted: np.ndarray
    among: np.ndarray | None = None


TargetOf = Callable[[PatternTokens], Target | None]

# All targets of a batch ask about the same tokens, one target after another: the places of a few batches are kept.
_KEPT = 256
_recent: dict[tuple[int, int, bool], PatternTokens] = {}


def places_of(queries: Tokens, keys: Tokens, is_cross: bool) -> PatternTokens:
    """The places between these tokens, made once for all targets."""
    places = _recent.get((id(queries), id(keys), is_cross))
    if places is None or places.queries is not queries or places.keys is not keys:
        if len(_recent) >= _KEPT:
            _recent.clear()
        places = _recent[id(queries), id(keys), is_cross] = PatternTokens(queries, keys, is_cross)
    return places


# By where a token stands


def self_token(places: PatternTokens) -> Target | None:
    """The query itself."""
    return _offset(places, 0)


def previous_token(places: PatternTokens) -> Target | None:
    """The token just before."""
    return _offset(places, -1)


def next_token(places: PatternTokens) -> Target | None:
    """The token just after; a causal model cannot see it, and is left out."""
    return _offset(places, 1)


def first_token(places: PatternTokens) -> Target:
    """The first token of all, whatever it is."""
    return _one_key(places, 0)


def last_token(places: PatternTokens) -> Target:
    """The last token of all; in a causal model the query itself, at the end."""
    return _one_key(places, len(places.keys) - 1)


def special_tokens(places: PatternTokens) -> Target | None:
    """Special tokens, such as [CLS], [SEP] and the end of a sentence."""
    special = ~places.plain_keys
    return Target(places.plain_queries[:, None] & special[None, :]) if special.any() else None


# By what a token is


def duplicate_token(places: PatternTokens) -> Target | None:
    """Earlier occurrences of the query's own token."""
    same = places.same_ids
    return None if same is None else Target(np.tril(same, -1))


def same_token(places: PatternTokens) -> Target | None:
    """Other occurrences of the query's own token, before and after."""
    same = places.same_ids
    return None if same is None else Target(same & ~np.eye(len(same), dtype=bool))


def induction(places: PatternTokens) -> Target | None:
    """What followed earlier occurrences of the query's own token (Olsson et al., 2022): on [A][B] … [A], B."""
    same = places.same_ids
    if same is None:
        return None
    wanted = np.zeros_like(same)
    wanted[:, 1:] = np.tril(same, -1)[:, :-1]
    return Target(np.tril(wanted, -1))  # the query itself is no evidence


def punctuation(places: PatternTokens) -> Target | None:
    """Marks: tokens without a letter or a digit."""
    marks = places.marks
    return Target(places.plain_queries[:, None] & marks[None, :]) if marks.any() else None


def paired_marks(places: PatternTokens) -> Target | None:
    """The other half of a pair of quotes or brackets."""
    if places.is_cross:
        return None
    wanted = np.zeros((len(places.queries), len(places.keys)), dtype=bool)
    waiting: list[tuple[int, str]] = []
    for place, token in enumerate(places.queries):
        mark = token.text.strip()
        expected = waiting[-1][1] if waiting else None
        if mark == expected:
            partner, _ = waiting.pop()
            wanted[place, partner] = wanted[partner, place] = True
        elif mark in OPENING or mark in STRAIGHT:
            waiting.append((place, OPENING.get(mark, mark)))
    return Target(wanted) if wanted.any() else None


def names(places: PatternTokens) -> Target | None:
    """Words with a capital that do not begin a sentence: names, mostly. Nothing in text without capitals."""
    keys = places.keys
    is_name = np.zeros(len(keys), dtype=bool)
    seen_sentence: int | None = None
    by_word: dict[int, bool] = {}
    for place, token in enumerate(keys):
        if token.special or token.word is None:
            continue
        starts = token.sentence != seen_sentence
        if token.word not in by_word:
            text = token.text.strip()
            by_word[token.word] = not starts and text[:1].isupper() and text != "I"
            seen_sentence = token.sentence if any(character.isalnum() for character in text) else seen_sentence
        is_name[place] = by_word[token.word]
    return Target(places.plain_queries[:, None] & is_name[None, :]) if is_name.any() else None


# Across two sentences


def same_word_across(places: PatternTokens) -> Target | None:
    """Of the attention that crosses to the other sentence, that which lands on the query's own word.

    A share: queries that send nothing across count for nothing. In a translation the sentences are source and target.
    """
    crosses = _crosses(places)
    if not crosses.any():
        return None
    row_words, key_words = _words(places.queries), _words(places.keys)
    same = np.array(row_words, dtype=object)[:, None] == np.array(key_words, dtype=object)[None, :]
    matches = crosses & same & np.array([word is not None for word in row_words])[:, None]
    return Target(matches, among=crosses) if matches.any() else None


def between(source: str, target: str) -> TargetOf:
    """All tokens of one sentence of a pair, from those of another: `between("A", "B")`."""

    def cells(places: PatternTokens) -> Target | None:
        if places.is_cross or {token.segment for token in places.keys} != {"A", "B"}:
            return None
        rows = np.array([token.segment == source for token in places.queries]) & places.plain_queries
        columns = np.array([token.segment == target for token in places.keys]) & places.plain_keys
        return Target(rows[:, None] & columns[None, :])

    cells.__doc__ = f"Tokens of sentence {target}, from sentence {source}."
    return cells


# On images


def patch_neighbour(places: PatternTokens) -> Target | None:
    """The up to eight patches around each patch of an image."""
    return _patches(places, lambda rows, columns: np.maximum(abs(rows), abs(columns)) == 1)


def patch_self(places: PatternTokens) -> Target | None:
    """The patch itself."""
    return _patches(places, lambda rows, columns: (rows == 0) & (columns == 0))


def patch_row(places: PatternTokens) -> Target | None:
    """The other patches of the same row of the image."""
    return _patches(places, lambda rows, columns: (rows == 0) & (columns != 0))


def patch_column(places: PatternTokens) -> Target | None:
    """The other patches of the same column of the image."""
    return _patches(places, lambda rows, columns: (rows != 0) & (columns == 0))


# Inside


def _offset(places: PatternTokens, offset: int) -> Target | None:
    if places.is_cross:
        return None
    wanted = np.eye(len(places.queries), len(places.keys), k=offset, dtype=bool)
    return Target(wanted & places.plain_queries[:, None])


def _one_key(places: PatternTokens, index: int) -> Target:
    wanted = np.zeros((len(places.queries), len(places.keys)), dtype=bool)
    wanted[places.plain_queries, index] = True
    return Target(wanted)


def _crosses(places: PatternTokens) -> np.ndarray:
    """True where a cell leads from one sentence to the other [query, key]."""
    plain = places.plain_queries[:, None] & places.plain_keys[None, :]
    if places.is_cross:
        return plain
    rows = np.array([token.segment for token in places.queries])[:, None]
    return (rows != np.array([token.segment for token in places.keys])[None, :]) & plain


def _words(tokens: Tokens) -> list[str | None]:
    """The whole word that each token is part of, in lower case; None for marks and special tokens."""
    whole: dict[int, str] = {}
    for token in tokens:
        if token.word is not None:
            whole[token.word] = whole.get(token.word, "") + token.text.casefold()
    words = [None if token.word is None or token.special else whole[token.word] for token in tokens]
    return [word if word and not is_mark(word) else None for word in words]


def is_mark(text: str) -> bool:
    """Whether a text is punctuation: not blank, without a letter or a digit."""
    return bool(text.strip()) and not any(letter.isalnum() for letter in text)


def _patches(places: PatternTokens, wanted: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Target | None:
    """Cells by the distance in rows and columns of the grid between two patches."""
    if places.queries.kind != "patches" or places.queries.grid is None or places.is_cross:
        return None
    rows, columns = places.queries.grid
    patches = np.flatnonzero(places.plain_queries)
    if len(patches) != rows * columns:
        return None
    row, column = np.divmod(np.arange(rows * columns), columns)
    cells = np.zeros((len(places.queries), len(places.keys)), dtype=bool)
    cells[np.ix_(patches, patches)] = wanted(row[:, None] - row, column[:, None] - column)
    return Target(cells)
