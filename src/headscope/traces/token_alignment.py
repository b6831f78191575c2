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
            told = f"all {len(self)} {self.noun} aligned"
        elif self.n_one == self.n_other:
            told = f"{len(self)} of {self.n_one} {self.noun} aligned"
        else:
            told = f"{len(self)} of {self.n_one} and {self.n_other} {self.noun} aligned"
        replaced = Counter(token.text for token, same in zip(self.tokens, self.is_same, strict=True) if not same)
        if not replaced:
            return told
        named = [text if count == 1 else f"{text}, {count} times" for text, count in replaced.most_common(_MOST_NAMED)]
        more = "; …" if len(replaced) > _MOST_NAMED else ""
        return f"{told}, {replaced.total()} of them replaced ({'; '.join(named)}{more})"

    def readings(self, groups: Sequence[Group], tokens: Tokens, renormalise: bool) -> tuple[Reading, Reading]:
        """Both runs read by groups of pairs."""
        read = [
            Reading(tuple(tuple(p for pair in group for p in side[pair]) for group in groups), tokens, renormalise)
            for side in (self.ones, self.others)
        ]
        return read[0], read[1]


def align(one: Trace, other: Trace, by: Literal["tokens", "words"], how: Align) -> dict[str, Alignment]:
    """The alignment of every stack of the first run that the second has too; refused, with the reason, if none fits."""
    found = {}
    for stack, partner in _partners(one, other):
        first, second = one.reading(stack), other.reading(partner)
        kinds = first.tokens.kind, second.tokens.kind
        if kinds[0] != kinds[1]:
            raise InputError(
                f"{_NOUNS[kinds[0]]} and {_NOUNS[kinds[1]]} have no tokens in common: "
                "compare runs of the same kind of input."
            )
        if kinds[0] != "text":
            pairs = _by_position(first.tokens, second.tokens, f"{_NOUNS[kinds[0]]} in {stack}")
        elif by == "words":
            first, second = first.merged(_word), second.merged(_word)
            pairs = _words(one, other, first.tokens, second.tokens)
        elif how == "position":
            pairs = _by_position(first.tokens, second.tokens, f"tokens in {stack}")
        else:
            pairs = _by_text(first.tokens, second.tokens)
        found[stack] = _made(stack, partner, first, second, pairs, by if kinds[0] == "text" else _NOUNS[kinds[0]])
    return found


_NOUNS = {"text": "tokens of text", "patches": "patches", "frames": "frames"}


def _partners(one: Trace, other: Trace) -> list[tuple[str, str]]:
    """Stacks by name; a model of one stack against one of several meets the first of those."""
    shared = [(stack, stack) for stack in one.tokens if stack in other.tokens]
    if shared:
        return shared
    if not one.tokens or not other.tokens:
        raise InputError("one of the two runs has no tokens, so there is nothing to align.")
    return [(next(iter(one.tokens)), next(iter(other.tokens)))]


def _word(token: Token) -> object:
    return None if token.special or token.word is None else (token.segment, token.word)


Pairs = list[tuple[int, int, bool]]


def _by_position(one: Tokens, other: Tokens, noun: str) -> Pairs:
    if len(one) != len(other) or one.grid != other.grid:
        raise InputError(
            f"the two runs have {len(one)} and {len(other)} {noun}: position by position, only equal numbers align."
        )
    return [
        (place, place, first.text == second.text) for place, (first, second) in enumerate(zip(one, other, strict=True))
    ]


def _by_text(one: Tokens, other: Tokens) -> Pairs:
    """The longest common subsequence of texts; between its parts, stretches of equal length one for one."""
    first, second = [[(token.text, token.special) for token in side] for side in (one, other)]
    same = longest_common(first, second)
    is_shared = any(not one[place].special for place, _ in same)
    if not is_shared and (any(not token.special for token in one) or any(not token.special for token in other)):
        raise InputError(
            f"the two inputs have no token in common ({_some(one)} and {_some(other)}), so there is nothing to align: "
            "compare runs of the same text, or of texts that differ in some words."
        )
    pairs: Pairs = []
    at = (0, 0)
    for place, partner in [*same, (len(one), len(other))]:
        gap = place - at[0]
        if gap == partner - at[1]:
            pairs += [(at[0] + step, at[1] + step, False) for step in range(gap)]
        if place < len(one):
            pairs.append((place, partner, True))
        at = (place + 1, partner + 1)
    return pairs


def _words(one: Trace, other: Trace, first: Tokens, second: Tokens) -> Pairs:
    """Of the same text, words by their place in it; of two texts, by what they read."""
    if not _is_same_text(one, other):
        return _by_text(_plain_words(first), _plain_words(second))
    partners = {_word(token): place for place, token in enumerate(second) if _word(token) is not None}
    found = [
        (place, partners[_word(token)], True)
        for place, token in enumerate(first)
        if partners.get(_word(token)) is not None
    ]
    if not found:
        raise InputError("no word of the text was read by both models, so there is nothing to align.")
    return found


def _plain_words(tokens: Tokens) -> Tokens:
    """Upper and lower case alike: some tokenizers know no other."""
    return Tokens(tuple(replace(token, text=token.text.lower()) for token in tokens), tokens.kind)


def _is_same_text(one: Trace, other: Trace) -> bool:
    if one.inputs is None or other.inputs is None or one.inputs.text is None:
        return False
    return (one.inputs.text, one.inputs.pair) == (other.inputs.text, other.inputs.pair)


def _made(stack: str, partner: str, one: Reading, other: Reading, pairs: Pairs, noun: str) -> Alignment:
    named = []
    for place, twin, same in pairs:
        token, second = one.tokens[place], other.tokens[twin]
        is_alike = same or token.text == second.text
        named.append(token if is_alike else replace(token, text=f"{token.text} / {second.text}", id=None))
    return Alignment(
        stack,
        partner,
        tuple(one.groups[place] for place, _, _ in pairs),
        tuple(other.groups[twin] for _, twin, _ in pairs),
        tuple(same for _, _, same in pairs),
        Tokens(tuple(named), one.tokens.kind, one.tokens.grid if len(named) == len(one.tokens) else None),
        len(one.groups),
        len(other.groups),
        noun,
        one.renormalise or other.renormalise,
    )


def longest_common(one: Sequence[Hashable], other: Sequence[Hashable]) -> list[tuple[int, int]]:
    """The longest common subsequence of two sequences, as pairs of positions; of equally long ones the latest.

    A row of the table is one whole number, a bit a column (Crochemore et al., 2001; Hyyrö, 2004): thousands of tokens
    take milliseconds.
    """
    start, end = _shared_ends(one, other)
    first, second = one[start : len(one) - end], other[start : len(other) - end]
    places: dict[Hashable, int] = {}
    for place, item in enumerate(second):
        places[item] = places.get(item, 0) | 1 << place
    full = (1 << len(second)) - 1
    rows, row = [full], full
    for item in first:
        met = row & places.get(item, 0)
        row = (row + met | row - met) & full
        rows.append(row)
    found, i, j = [], len(first), len(second)
    while i and j:
        if first[i - 1] == second[j - 1]:
            i, j = i - 1, j - 1
            found.append((start + i, start + j))
        elif rows[i] >> (j - 1) & 1:  # the last column adds nothing
            j -= 1
        else:
            i -= 1
    begins = [(place, place) for place in range(start)]
    return [*begins, *reversed(found), *((len(one) - end + place, len(other) - end + place) for place in range(end))]


def _shared_ends(one: Sequence[Hashable], other: Sequence[Hashable]) -> tuple[int, int]:
    most = min(len(one), len(other))
    start = next((place for place in range(most) if one[place] != other[place]), most)
    end = next((place for place in range(most - start) if one[-1 - place] != other[-1 - place]), most - start)
    return start, end


def _some(tokens: Tokens) -> str:
    texts = [token.text for token in tokens if not token.special]
    return " ".join(texts[:4]) + (" …" if len(texts) > 4 else "") if texts else "special tokens alone"
