"""Which tokens of two runs stand for the same: by text, by position, or word by word."""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from headscope.errors import InputError
from headscope.traces.pattern_reading import Reading
from headscope.traces.tokens import Token, Tokens
from headscope.traces.trace import Trace

Align = Literal["text", "position"]
Group = tuple[int, ...]
_MOST_NAMED = 4


@dataclass(frozen=True)
class Alignment:
    """Pairs of places, in order: `ones` of the first run with `others` of the second, as positions in their stacks.

    A place is a token or the pieces of a word. `is_same` tells which pairs read the same; the others were replaced, one
    for one. `tokens` names the pairs: by the first run's token, or by both where they differ ("She / He").
    """

    stack: str
    other_stack: str
    ones: tuple[Group, ...]
    others: tuple[Group, ...]
    is_same: tuple[bool, ...]
    tokens: Tokens
    n_one: int
    n_other: int
    noun: str = "tokens"
    renormalise: bool = False

    def __len__(self) -> int:
        return len(self.ones)

    @property
    def is_whole(self) -> bool:
        """Whether every place of both runs has its partner."""
        return len(self) == self.n_one == self.n_other

    @property
    def is_plain(self) -> bool:
        """Whether it is position by position, nothing left out, put together or weighed anew."""
        plain = tuple((place,) for place in range(self.n_one))
        return self.is_whole and not self.renormalise and self.ones == plain == self.others

    @property
    def line(self) -> str:
        """How many are aligned, and which were replaced."""
        if self.is_whole:
            line = f"all {len(self)} {self.noun} aligned"
        elif self.n_one == self.n_other:
            line = f"{len(self)} of {self.n_one} {self.noun} aligned"
        else:
            line = f"{len(self)} of {self.n_one} and {self.n_other} {self.noun} aligned"
        replaced = Counter(token.text for token, same in zip(self.tokens, self.is_same, strict=True) if not same)
        if not replaced:
            return line
        named = [text if count == 1 else f"{text}, {count} times" for text, count in replaced.most_common(_MOST_NAMED)]
        more = "; …" if len(replaced) > _MOST_NAMED else ""
        return f"{line}, {replaced.total()} of them replaced ({'; '.join(named)}{more})"

    def readings(self, groups: Sequence[Group], tokens: Tokens, renormalise: bool) -> tuple[Reading, Reading]:
        """Both runs read by groups of pairs."""
        read = [
            Reading(tuple(tuple(p for pair in group for p in side[pair]) for group in groups), tokens, renormalise)
            for side in (self.ones, self.others)
        ]
        return read[0], read[1]


def align(a: Trace, b: Trace, by: Literal["tokens", "words"], how: Align) -> dict[str, Alignment]:
    """The alignment of every stack of the first run that the second has too; refused, with the reason, if none fits."""
    alignments = {}
    for stack, partner in _partners(a, b):
        first, second = a.reading(stack), b.reading(partner)
        kinds = first.tokens.kind, second.tokens.kind
        if kinds[0] != kinds[1]:
            raise InputError(
                f"{_NOUNS[kinds[0]]} and {_NOUNS[kinds[1]]} have no tokens in common: "
                "compare runs of the same kind of input."
            )
        if kinds[0] != "text":
            pairs = _by_position(first.tokens, second.tokens, f"{_NOUNS[kinds[0]]} in {stack}")
        elif by == "words":
            first, second = first.merge(_word), second.merge(_word)
            pairs = _words(a, b, first.tokens, second.tokens)
        elif how == "position":
            pairs = _by_position(first.tokens, second.tokens, f"tokens in {stack}")
        else:
            pairs = _by_text(first.tokens, second.tokens)
        alignments[stack] = _alignment(
            stack, partner, first, second, pairs, by if kinds[0] == "text" else _NOUNS[kinds[0]]
        )
    return alignments


_NOUNS = {"text": "tokens of text", "patches": "patches", "frames": "frames"}


def _partners(a: Trace, b: Trace) -> list[tuple[str, str]]:
    """Stacks by name; a model of one stack against one of several meets the first of those."""
    shared = [(stack, stack) for stack in a.tokens if stack in b.tokens]
    if shared:
        return shared
    if not a.tokens or not b.tokens:
        raise InputError("one of the two runs has no tokens, so there is nothing to align.")
    return [(next(iter(a.tokens)), next(iter(b.tokens)))]


def _word(token: Token) -> object:
    return None if token.special or token.word is None else (token.segment, token.word)


Pairs = list[tuple[int, int, bool]]


def _by_position(a: Tokens, b: Tokens, noun: str) -> Pairs:
    if len(a) != len(b) or a.grid != b.grid:
        raise InputError(
            f"the two runs have {len(a)} and {len(b)} {noun}: position by position, only equal numbers align."
        )
    return [(place, place, first.text == second.text) for place, (first, second) in enumerate(zip(a, b, strict=True))]


def _by_text(a: Tokens, b: Tokens) -> Pairs:
    """The longest common subsequence of texts; between its parts, stretches of equal length one for one."""
    first, second = [[(token.text, token.special) for token in side] for side in (a, b)]
    same = longest_common(first, second)
    is_shared = any(not a[place].special for place, _ in same)
    if not is_shared and (any(not token.special for token in a) or any(not token.special for token in b)):
        raise InputError(
            f"the two inputs have no token in common ({_first_texts(a)} and {_first_texts(b)}), so there is nothing to "
            "align: compare runs of the same text, or of texts that differ in some words."
        )
    pairs: Pairs = []
    at = (0, 0)
    for place, partner in [*same, (len(a), len(b))]:
        gap = place - at[0]
        if gap == partner - at[1]:
            pairs += [(at[0] + step, at[1] + step, False) for step in range(gap)]
        if place < len(a):
            pairs.append((place, partner, True))
        at = (place + 1, partner + 1)
    return pairs


def _words(a: Trace, b: Trace, words_a: Tokens, words_b: Tokens) -> Pairs:
    """Of the same text, words by their place in it; of two texts, by what they read."""
    if not _is_same_text(a, b):
        return _by_text(_plain_words(words_a), _plain_words(words_b))
    partners = {_word(token): place for place, token in enumerate(words_b) if _word(token) is not None}
    pairs = [
        (place, partners[_word(token)], True)
        for place, token in enumerate(words_a)
        if partners.get(_word(token)) is not None
    ]
    if not pairs:
        raise InputError("no word of the text was read by both models, so there is nothing to align.")
    return pairs


def _plain_words(tokens: Tokens) -> Tokens:
    """Upper and lower case alike: some tokenizers know no other."""
    return Tokens(tuple(replace(token, text=token.text.lower()) for token in tokens), tokens.kind)


def _is_same_text(a: Trace, b: Trace) -> bool:
    if a.inputs is None or b.inputs is None or a.inputs.text is None:
        return False
    return (a.inputs.text, a.inputs.pair) == (b.inputs.text, b.inputs.pair)


def _alignment(stack: str, partner: str, a: Reading, b: Reading, pairs: Pairs, noun: str) -> Alignment:
    named = []
    for place, twin, same in pairs:
        token, second = a.tokens[place], b.tokens[twin]
        is_alike = same or token.text == second.text
        named.append(token if is_alike else replace(token, text=f"{token.text} / {second.text}", id=None))
    return Alignment(
        stack,
        partner,
        tuple(a.groups[place] for place, _, _ in pairs),
        tuple(b.groups[twin] for _, twin, _ in pairs),
        tuple(same for _, _, same in pairs),
        Tokens(tuple(named), a.tokens.kind, a.tokens.grid if len(named) == len(a.tokens) else None),
        len(a.groups),
        len(b.groups),
        noun,
        a.renormalise or b.renormalise,
    )


def longest_common(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[tuple[int, int]]:
    """The longest common subsequence of two sequences, as pairs of positions; of equally long ones the latest.

    A row of the table is one whole number, a bit a column (Crochemore et al., 2001; Hyyrö, 2004): thousands of tokens
    take milliseconds.
    """
    start, end = _shared_ends(a, b)
    first, second = a[start : len(a) - end], b[start : len(b) - end]
    places: dict[Hashable, int] = {}
    for place, element in enumerate(second):
        places[element] = places.get(element, 0) | 1 << place
    full = (1 << len(second)) - 1
    rows, row = [full], full
    for element in first:
        met = row & places.get(element, 0)
        row = (row + met | row - met) & full
        rows.append(row)
    pairs, i, j = [], len(first), len(second)
    while i and j:
        if first[i - 1] == second[j - 1]:
            i, j = i - 1, j - 1
            pairs.append((start + i, start + j))
        elif rows[i] >> (j - 1) & 1:  # the last column adds nothing
            j -= 1
        else:
            i -= 1
    begins = [(place, place) for place in range(start)]
    return [*begins, *reversed(pairs), *((len(a) - end + place, len(b) - end + place) for place in range(end))]


def _shared_ends(a: Sequence[Hashable], b: Sequence[Hashable]) -> tuple[int, int]:
    most = min(len(a), len(b))
    start = next((place for place in range(most) if a[place] != b[place]), most)
    end = next((place for place in range(most - start) if a[-1 - place] != b[-1 - place]), most - start)
    return start, end


def _first_texts(tokens: Tokens) -> str:
    texts = [token.text for token in tokens if not token.special]
    return " ".join(texts[:4]) + (" …" if len(texts) > 4 else "") if texts else "special tokens alone"
