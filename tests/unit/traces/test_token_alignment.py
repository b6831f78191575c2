"""Alignments known on paper."""

import random

import pytest
import torch

from headscope.errors import InputError
from headscope.traces import Tokens, Trace, compare
from headscope.traces.token_alignment import longest_common
from headscope.traces.tokens import Token


def trace(text: str, *, special: str = "") -> Trace:
    """A trace of these words, after special tokens."""
    tokens = [Token(text, special=True) for text in special.split()]
    tokens += [Token(word, word=index) for index, word in enumerate(text.split())]
    return Trace.from_patterns([torch.full((1, len(tokens), len(tokens)), 1 / len(tokens))], Tokens(tuple(tokens)))


def pairs(first: str, other: str, **more) -> list[tuple[int, int]]:
    alignment = compare(trace(first), trace(other), **more).alignment["main"]
    return [(a[0], b[0]) for a, b in zip(alignment.ones, alignment.others, strict=True)]


def test_the_same_text_is_aligned_token_by_token():
    comparison = compare(trace("a b c"), trace("a b c"))
    assert comparison.is_identical and comparison.line == "all 3 tokens aligned"


def test_what_is_inserted_has_no_partner():
    assert pairs("the cat sat", "the big cat sat") == [(0, 0), (1, 2), (2, 3)]
    assert pairs("the big cat sat", "the cat sat") == [(0, 0), (2, 1), (3, 2)]
    comparison = compare(trace("the cat sat"), trace("the big cat sat"))
    assert comparison.line == "3 of 3 and 4 tokens aligned" and not comparison.is_identical


def test_what_is_replaced_one_for_one_is_aligned_and_named():
    comparison = compare(trace("the doctor said She left"), trace("the doctor said He left"))
    assert comparison.line == "all 5 tokens aligned, 1 of them replaced (She / He)"
    assert comparison.alignment["main"].tokens.texts == ["the", "doctor", "said", "She / He", "left"]
    assert comparison.alignment["main"].is_same == (True, True, True, False, True)


def test_what_is_replaced_often_is_named_once():
    comparison = compare(trace("a x b x c"), trace("a y b y c"))
    assert comparison.line == "all 5 tokens aligned, 2 of them replaced (x / y, 2 times)"


def test_stretches_of_different_lengths_are_not_guessed_at():
    assert pairs("a x y b", "a z b") == [(0, 0), (3, 2)]


def test_repeated_words_go_with_their_neighbours():
    # Both "the" could be meant; the one before "dog" is.
    assert pairs("a the cat the dog", "b the dog") == [(3, 1), (4, 2)]
    assert pairs("the the the", "the the") == [(0, 0), (1, 1)]


def test_nothing_in_common_is_said():
    with pytest.raises(InputError, match=r"no token in common \(a b c and x y\).*same text"):
        compare(trace("a b c"), trace("x y"))
    # A mark at the beginning is nothing that two texts could share.
    with pytest.raises(InputError, match="no token in common"):
        compare(trace("a b", special="[CLS]"), trace("x y", special="[CLS]"))


def test_positions_align_whatever_the_tokens_read():
    assert pairs("a b", "x y", align="position") == [(0, 0), (1, 1)]
    with pytest.raises(InputError, match="2 and 3 tokens in main"):
        compare(trace("a b"), trace("x y z"), align="position")


def test_patches_align_with_patches_of_the_same_grid_alone():
    def image(count: int, kind="patches") -> Trace:
        return Trace.from_patterns([torch.eye(count)[None]], Tokens.numbered(count, kind))

    assert compare(image(4), image(4)).line == "all 4 patches aligned"
    with pytest.raises(InputError, match="4 and 9 patches in main"):
        compare(image(4), image(9))
    with pytest.raises(InputError, match="patches and tokens of text have no tokens in common"):
        compare(image(3), trace("a b c"))


def test_the_longest_common_subsequence_is_as_long_as_the_table_says():
    dice = random.Random(0)
    for _ in range(300):
        first, other = ([dice.randrange(4) for _ in range(dice.randrange(14))] for _ in range(2))
        common = longest_common(first, other)
        assert all(first[i] == other[j] for i, j in common)
        assert common == sorted(set(common)) and len({i for i, _ in common}) == len({j for _, j in common}) == len(
            common
        )
        assert len(common) == _length(first, other)


def test_thousands_of_tokens_are_aligned():
    source = [str(index % 700) for index in range(4000)]
    other = [*source[:1500], *(["new"] * 7), *source[1503:]]
    assert len(longest_common(source, other)) == 3997


def _length(left: list, other: list) -> int:
    table = [[0] * (len(other) + 1) for _ in range(len(left) + 1)]
    for i, first in enumerate(left):
        for j, second in enumerate(other):
            table[i + 1][j + 1] = table[i][j] + 1 if first == second else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]
