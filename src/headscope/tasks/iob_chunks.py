"""Phrase F1 over IOB tags, with the rules of conlleval (Tjong Kim Sang and Buchholz, 2000)."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from headscope.errors import InputError


class Chunk(NamedTuple):
    """A phrase: its type, its first word, and the word after its last."""

    type: str
    start: int
    end: int


class ChunkCounts(NamedTuple):
    """How many phrases are right, how many were predicted, and how many there are."""

    correct: int
    predicted: int
    gold: int

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall; 0 where nothing is right."""
        return 2 * self.correct / (self.predicted + self.gold) if self.correct else 0.0


def is_iob(tag: str) -> bool:
    """Whether a tag is O, or B- or I- with a type."""
    return tag == "O" or (tag[:2] in ("B-", "I-") and len(tag) > 2)


def chunks(tags: Sequence[str]) -> Iterator[Chunk]:
    """The phrases of a sentence's tags.

    B- begins a phrase. I- goes on with one of the same type, and begins one after O or another type: so IOB1, where B-
    only parts neighbours of a type, and IOB2 read the same.

    >>> [tuple(chunk) for chunk in chunks(["B-NP", "I-NP", "I-VP", "O", "I-NP", "B-NP"])]
    [('NP', 0, 2), ('VP', 2, 3), ('NP', 4, 5), ('NP', 5, 6)]
    """
    start, type_before = 0, ""
    for place, tag in enumerate([*tags, "O"]):
        if not is_iob(tag):
            raise InputError(f"{tag!r} is no IOB tag (O, B-type or I-type): phrase F1 needs those; accuracy takes any.")
        chunk_type = tag[2:]
        if type_before and (tag[0] != "I" or chunk_type != type_before):
            yield Chunk(type_before, start, place)
            type_before = ""
        if chunk_type and not type_before:
            start, type_before = place, chunk_type


def count_chunks(gold: Sequence[str], predicted: Sequence[str]) -> ChunkCounts:
    """The counts of one sentence; a phrase is right if its type, beginning and end are."""
    if len(gold) != len(predicted):
        raise InputError(f"there are {len(gold)} gold tags and {len(predicted)} predicted: give one of each per word.")
    true_chunks, predicted_chunks = set(chunks(gold)), set(chunks(predicted))
    return ChunkCounts(len(true_chunks & predicted_chunks), len(predicted_chunks), len(true_chunks))


def chunk_f1(gold: Iterable[Sequence[str]], predicted: Iterable[Sequence[str]]) -> float:
    """Phrase F1 (0 to 1) over sentences: a phrase is right if its type, beginning and end are.

    >>> chunk_f1([["B-NP", "I-NP", "O", "B-VP"]], [["B-NP", "I-NP", "O", "B-NP"]])
    0.5
    """
    pairs = zip(gold, predicted, strict=True)
    totals = [sum(column) for column in zip(*(count_chunks(*pair) for pair in pairs), strict=True)]
    return ChunkCounts(*totals).f1 if totals else 0.0
