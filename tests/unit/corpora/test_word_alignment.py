import pytest
from tiny_models import tiny_bert_tokenizer
from tiny_tokenizers import byte_tokenizer

from headscope.corpora import align
from headscope.models.inputs.display_tokens import encode
from headscope.traces import Token, Tokens


def tokens(*spans):
    return Tokens(
        tuple(Token("x", special=span is None, start=span and span[0], end=span and span[1]) for span in spans)
    )


def spans_of(text, *words):
    spans, at = [], 0
    for word in words:
        at = text.index(word, at)
        spans.append((at, at + len(word)))
        at += len(word)
    return spans


@pytest.mark.parametrize(
    ("positions", "words", "expected"),
    [
        # One token a word, special tokens around
        ([None, (0, 3), (4, 8), None], [(0, 3), (4, 8)], [(1,), (2,)]),
        # Pieces of words, and a token that takes the space before it
        ([(0, 2), (2, 3), (3, 6), (6, 8)], [(0, 3), (4, 8)], [(0, 1), (2, 3)]),
        # A token over two words goes to that with which it shares more, the first of equals
        ([(0, 5)], [(0, 2), (2, 5)], [(), (0,)]),
        ([(0, 4)], [(0, 2), (2, 4)], [(0,), ()]),
        # Words that share their characters (du = de + le): the first has the tokens
        ([(0, 1), (1, 2)], [(0, 2), (0, 2)], [(0, 1), ()]),
        # Several tokens for one character (bytes)
        ([(0, 1), (0, 1), (0, 1), (1, 2)], [(0, 1), (1, 2)], [(0, 1, 2), (3,)]),
        # Tokens without characters, words past the end of a text that was cut, no words at all
        ([(0, 0), (0, 3)], [(0, 3), (4, 8)], [(1,), ()]),
        ([(0, 3)], [], []),
        ([], [(0, 3)], [()]),
    ],
)
def test_tokens_find_their_words(positions, words, expected):
    assert align(tokens(*positions), words) == expected


def test_other_segments_and_tokens_of_unknown_place_belong_to_no_word():
    mixed = Tokens((Token("a", start=0, end=1), Token("b", segment="B", start=0, end=1), Token("c")))
    assert align(mixed, [(0, 1)]) == [(0,)]
    assert align(mixed, [(0, 1)], segment="B") == [(1,)]


def test_a_word_piece_tokenizer_that_lowers_and_strips_accents():
    text = "THE Café's dog"
    words = spans_of(text, "THE", "Café", "'s", "dog")
    tokens = encode(tiny_bert_tokenizer(), text).display()
    word_texts = ["".join(tokens[at].text for at in group).lower() for group in align(tokens, words)]
    assert word_texts[0] == "the" and word_texts[3] == "dog"
    assert word_texts[1] in ("café", "cafe") and word_texts[2].endswith("s")


def test_a_byte_tokenizer_with_emoji_and_spaces_in_tokens():
    text = "the 👩‍👩‍👧 cat"
    words = spans_of(text, "the", "👩‍👩‍👧", "cat")
    tokens = encode(byte_tokenizer(), text).display()
    groups = align(tokens, words)
    assert all(groups) and sorted(at for group in groups for at in group) == sorted(
        at
        for at, token in enumerate(tokens)
        if token.start is not None and token.end > token.start and text[token.start : token.end].strip()
    )
    assert len(groups[1]) > 4  # one family, many bytes
