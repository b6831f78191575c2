"""Dependency alignment on attention that follows the tree, and on attention that does not."""

import pytest
from made_treebank import HEADS, example, one_hot, tokens, trace, uniform

import headscope as hs

ONE = example()
GOLD = one_hot([0, *(6 if head < 0 else head + 1 for head in HEADS), 6])  # the root looks at [SEP]


def test_attention_to_gold_heads_is_aligned_altogether():
    scores = hs.measure("dependency_alignment", trace(GOLD, on=tokens(ONE)), examples=[ONE])
    assert scores["L0H0"] == pytest.approx(1)


def test_a_previous_token_head_is_as_aligned_as_neighbours_are_joined():
    previous = one_hot([0, 0, 1, 2, 3, 4, 5])
    scores = hs.measure("dependency_alignment", trace(previous, on=tokens(ONE)), examples=[ONE])
    # Of the four pairs of neighbours, three are joined: small-cat, cat-saw, saw-her.
    assert scores["L0H0"] == pytest.approx(3 / 4)


def test_even_attention_is_as_aligned_as_chance_by_words_however_they_are_split():
    scores = hs.measure("dependency_alignment", trace(uniform(7), on=tokens(ONE)), examples=[ONE])
    assert scores["L0H0"] == pytest.approx(8 / 25) and scores.baseline == pytest.approx(8 / 25)
    gold = one_hot([0, 3, 3, 5, 5, 7, 5, 7])  # cat is tokens 3 and 4: the first looks to saw, as does the second
    scores = hs.measure("dependency_alignment", trace(gold, on=tokens(ONE, split=(2,))), examples=[ONE])
    assert scores["L0H0"] == pytest.approx(1)


def test_without_trees_it_says_what_it_needs():
    with pytest.raises(hs.HeadscopeError, match="treebank"):
        hs.measure("dependency_alignment", trace(GOLD, on=tokens(ONE)))
