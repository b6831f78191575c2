"""Trees beside a head, on a sentence made by hand: The small cat saw her."""

import numpy as np
import pytest
from made_treebank import HEADS, RELATIONS, WORDS, example, one_hot, tokens, trace

import headscope as hs
from headscope.errors import InputError
from headscope.views.parts import part
from headscope.views.trees import attention_between, words_of_trace

GOLD = example()
# Tokens: [CLS] The small cat saw her [SEP]. Every word looks at its head; the root and the special tokens at [CLS].
TO_HEADS = one_hot([0, 3, 3, 4, 0, 4, 0])
TO_NEXT = one_hot([0, 2, 3, 4, 5, 6, 0])


@pytest.fixture
def tree_trace():
    return trace(TO_HEADS, TO_HEADS.T, TO_NEXT, on=tokens(GOLD))


def test_the_words_and_their_tree_are_told_by_positions(tree_trace):
    gold = part(tree_trace, "gold", gold=GOLD).props
    assert (gold.words, gold.forms) == ([[1], [2], [3], [4], [5]], list(WORDS))
    assert (gold.heads, gold.relations, gold.stack) == (list(HEADS), list(RELATIONS), "main")
    assert part(tree_trace, "gold").props.words == []


def test_a_head_that_looks_at_heads_has_the_gold_tree(tree_trace):
    tree = part(tree_trace, "tree/L0H0?way=A", gold=GOLD).props
    assert tree.heads == list(HEADS) and (tree.n_right, tree.n_words, tree.uas) == (5, 5, 1.0)
    assert tree.agrees == [True, True, True, False, True]  # the root has no head to look at
    turned = part(tree_trace, "tree/L0H1?way=AT", gold=GOLD).props
    assert turned.heads == list(HEADS) and turned.uas == 1.0


def test_a_next_token_head_is_the_branching_baseline(tree_trace):
    tree = part(tree_trace, "tree/L0H2?way=A", gold=GOLD).props
    # The → small, small → cat, cat → saw, her → root: two of four right, and the root that is given.
    assert tree.heads == [1, 2, 3, -1, 3]
    assert tree.uas == tree.baselines["next"] == pytest.approx(4 / 5)
    assert tree.baselines["root"] == pytest.approx(3 / 5) and tree.baselines["previous"] == pytest.approx(2 / 5)


def test_pieces_of_a_word_are_taken_together():
    on = tokens(GOLD, split=(2,))
    assert [token.text for token in on][2:5] == ["small", "c", "at"]
    pattern = np.full((8, 8), 1 / 8)
    words = [(1,), (2,), (3, 4), (5,), (6,)]
    between = attention_between(trace(pattern, on=on), hs.Head("main", 0, 0), words)
    assert between[0].tolist() == pytest.approx([1 / 8, 1 / 8, 2 / 8, 1 / 8, 1 / 8])
    assert part(trace(pattern, on=on), "gold", gold=GOLD).props.words[2] == [3, 4]


def test_without_a_gold_tree_the_root_is_the_likeliest(tree_trace):
    tree = part(tree_trace, "tree/L0H0?way=A").props
    assert tree.heads == list(HEADS) and tree.uas is None and tree.agrees == []
    assert words_of_trace(tree_trace).words == WORDS


def test_a_view_draws_them_and_keeps_them_in_its_page(tree_trace):
    view = hs.head_view(tree_trace, "L0H0", arcs=GOLD, tree=True)
    assert view.selection.arcs == "A" and view.gold is GOLD
    assert 'data-key="gold"' in view.html() and 'data-key="tree/L0H0?way=A"' in view.html()
    assert hs.head_view(tree_trace, "L0H0", arcs=GOLD).selection.arcs == "gold"
    assert 'data-key="gold"' not in hs.head_view(tree_trace, "L0H0").html()
    both = hs.head_view(tree_trace, "L0H0", arcs=GOLD, tree="A+AT").html()
    assert 'data-key="tree/L0H0?way=A%2BAT"' in both


def test_a_figure_has_the_relations_and_says_how_well_the_tree_agrees(tree_trace):
    figure = hs.head_view(tree_trace, "L0H0", arcs=GOLD, tree=True).figure()
    texts = {text.get_text() for axes in figure.axes for text in axes.texts}
    assert set(RELATIONS) <= texts
    assert "UAS 100 %" in figure.get_supxlabel()
    plain = hs.head_view(tree_trace, "L0H0").figure()
    assert not set(RELATIONS) & {text.get_text() for axes in plain.axes for text in axes.texts}


@pytest.mark.parametrize(
    ("options", "error_text"),
    [
        ({"arcs": hs.corpora.Example("x", text="Hi")}, "has no words"),
        ({"tree": "B"}, "'A', 'AT', 'A\\+AT'"),
    ],
)
def test_what_cannot_be_drawn_is_said(tree_trace, options, error_text):
    with pytest.raises(InputError, match=error_text):
        hs.head_view(tree_trace, "L0H0", **options)


def test_a_tree_is_of_one_head_that_looks_from_word_to_word(tree_trace):
    with pytest.raises(InputError, match="the tree is of one"):
        part(tree_trace, "tree/L0?way=A", gold=GOLD)
    with pytest.raises(InputError, match="way='X'"):
        part(tree_trace, "tree/L0H0?way=X")
    sentence = example(words=("Hi",), tags=("X",), heads=(-1,), relations=("root",))
    assert (
        "this text has 1"
        in part(trace(one_hot([0, 1, 0]), on=tokens(sentence)), "tree/L0H0?way=A", gold=sentence).props.no_tree
    )
