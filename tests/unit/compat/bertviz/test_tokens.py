"""Spellings of tokens, read as people do."""

import pytest

from headscope.compat.bertviz.tokens import tokens_of


@pytest.mark.parametrize(
    "spelled, texts, words",
    [
        # Word pieces
        (["[CLS]", "play", "##ing", ".", "[SEP]"], ["[CLS]", "play", "ing", ".", "[SEP]"], [None, 0, 0, 1, None]),
        # Byte-level BPE
        (["The", "Ġcat", "Ġsat", "ting", "."], ["The", "cat", "sat", "ting", "."], [0, 1, 2, 2, 3]),
        (["æĹ¥", "æľ¬"], ["日", "本"], [0, 1]),
        (["caf", "Ã©"], ["caf", "é"], [0, 0]),
        (["Ġcaf", "Ã", "©"], ["caf", "é 1/2", "é 2/2"], [0, 0, 0]),
        # SentencePiece
        (["▁She", "▁see", "s", "</s>"], ["She", "see", "s", "</s>"], [0, 1, 1, None]),
        # BPE with end-of-word marks
        (["play", "ing</w>", "cards</w>"], ["play", "ing", "cards"], [0, 0, 1]),
        # Words as they are, with letters that could be bytes
        (["café", "naïve", "Ωmega"], ["café", "naïve", "Ωmega"], [0, 1, 2]),
        (["<|endoftext|>", "Hi", "Ġ[MASK]"], ["<|endoftext|>", "Hi", "[MASK]"], [None, 0, 1]),
    ],
)  # fmt: skip
def test_marks_are_read_back(spelled, texts, words):
    tokens = tokens_of(spelled, prettify=True)
    assert tokens.texts == texts
    assert [token.word for token in tokens][: len(words)] == words or texts[-1] == "[MASK]"
    assert [token.special for token in tokens] == [word is None for word in words]


def test_spellings_may_stay():
    tokens = tokens_of(["Ġcat", "##s", "[SEP]"], prettify=False, second=1)
    assert tokens.texts == ["Ġcat", "##s", "[SEP]"]
    assert [token.segment for token in tokens] == ["A", "B", "B"]
    assert [token.special for token in tokens] == [False, False, True]
