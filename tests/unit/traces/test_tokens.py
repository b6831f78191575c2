"""Tokens as people read them, and the ways of choosing some."""

import json

import pytest

from headscope.errors import UnknownTokenError
from headscope.traces import Token, Tokens

PAIR = Tokens(
    (
        Token("[CLS]", special=True),
        Token("the", word=0, sentence=0),
        Token("cat", word=1, sentence=0),
        Token("[SEP]", special=True),
        Token("the", word=0, sentence=0, segment="B"),
        Token("猫", id=7, word=1, sentence=0, segment="B", start=4, end=5),
        Token("[SEP]", special=True, segment="B"),
    )
)


@pytest.mark.parametrize(
    ("chosen", "positions"),
    [
        (0, [0]),
        (-1, [6]),
        ("the", [1, 4]),
        ("猫", [5]),
        ("segment:A", [1, 2]),
        ("segment:B", [4, 5]),
        (range(2, 5), [2, 3, 4]),
        (slice(-2, None), [5, 6]),
        (slice(9, 12), []),
        ([5, "the", -1, range(1, 3)], [1, 2, 4, 5, 6]),
        ({2, 1}, [1, 2]),
        ((), []),
    ],
)
def test_tokens_are_chosen_by_position_text_segment_range_or_several(chosen, positions):
    assert PAIR.positions(chosen) == positions


@pytest.mark.parametrize("chosen", [7, -8, "dog", "segment:C", True, None, 1.0, [0, 99], range(5, 9), {"a": 1}])
def test_a_choice_that_names_nothing_is_refused(chosen):
    with pytest.raises(UnknownTokenError):
        PAIR.positions(chosen)


def test_the_refusal_says_what_there_is():
    with pytest.raises(UnknownTokenError, match="7 tokens, 0 to 6"):
        PAIR.positions(7)
    with pytest.raises(UnknownTokenError, match=r"no token reads 'dog'.*cat"):
        PAIR.positions("dog")


def test_tokens_are_a_sequence():
    assert len(PAIR) == 7 and PAIR[2].text == "cat" and PAIR[-1].special
    assert PAIR[1:3].texts == ["the", "cat"]
    assert [token.text for token in PAIR] == PAIR.texts


def test_bare_texts_are_each_their_own_word():
    assert [token.word for token in Tokens.of(["a", "b"])] == [0, 1]
    assert Tokens.numbered(3, "patches").texts == ["0", "1", "2"]


@pytest.mark.parametrize("tokens", [PAIR, Tokens(PAIR.items, "patches", (2, 3)), Tokens(())])
def test_tokens_come_back_from_json(tokens):
    assert Tokens.from_json(json.loads(json.dumps(tokens.to_json()))) == tokens
