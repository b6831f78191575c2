"""Induced trees: attention made by hand whose trees are known, then a real treebank."""

import threading

import numpy as np
import pytest
from made_layers import batch_layer, batch_of, in_pieces, ledger_of, sentence

import headscope as hs
from headscope.analysis.memory_table import MemoryTable
from headscope.analysis.structure.trees import (
    BASELINES,
    GROUPS,
    InducedTrees,
    branching_baselines,
    induced_trees,
    tree_of,
)
from headscope.corpora import Example
from headscope.errors import Cancelled, InputError
from headscope.progress import Progress
from headscope.sites import Head, Site

SENTENCES = [
    sentence(
        ("the", 2, "DET"), ("doctor", 3, "NOUN"), ("asked", 0, "VERB"), ("a", 5, "DET"), ("question", 3, "NOUN"),
        (",", 8, "PUNCT"), ("and", 8, "CCONJ"), ("left", 3, "VERB"), (".", 3, "PUNCT"),
    ),
    sentence(("she", 2, "PRON"), ("sings", 0, "VERB"), ("!", 2, "PUNCT")),
    sentence(("yes", 0, "INTJ")),
    sentence(("really", 3, "ADV"), ("very", 3, "ADV"), ("loudly", 0, "ADV"), ("now", 3, "ADV")),
]  # fmt: skip


def between_words(example: Example, cells, *, piece: int = 100) -> tuple[np.ndarray, object]:
    """A pattern over pieces: each piece of a word spreads its weight over the pieces of the word that `cells` name."""
    tokens = in_pieces(example.text, piece)
    n, words = len(tokens), np.array([-1 if token.word is None else token.word for token in tokens])
    pattern = np.zeros((n, n))
    for query in range(n):
        keys = np.flatnonzero(words == cells(int(words[query]))) if words[query] >= 0 else np.array([], dtype=int)
        keys = keys if len(keys) else np.array([n - 1])  # nowhere to look: the last special token
        pattern[query, keys] = 1 / len(keys)
    return pattern, tokens


def count_trees(*cells, piece: int = 100) -> MemoryTable:
    """One head for each way of looking (a function of the example that gives one of words), over all sentences."""
    patterns, tokens = [], []
    for example in SENTENCES:
        pairs = [between_words(example, cells_of(example), piece=piece) for cells_of in cells]
        patterns.append(np.stack([pattern for pattern, _ in pairs]))
        tokens.append({"main": pairs[0][1]})
    measure = InducedTrees()
    measure._any = Head("main", 0, 0)
    layer = batch_layer(batch_of(SENTENCES, tokens), patterns, Site("main", 0))
    table = MemoryTable(measure, len(SENTENCES))
    table.take(ledger_of(measure, layer), 0)
    return table


def gold(example):
    return lambda word: example.heads[word]


def previous(example):
    return lambda word: word - 1 if word > 0 else -2


def following(example):
    return lambda word: word + 1


@pytest.mark.parametrize("piece", [100, 2])
def test_attention_to_gold_heads_gives_the_gold_tree(piece):
    scores = InducedTrees().finish(count_trees(gold, previous, piece=piece))
    for group in GROUPS:
        assert scores[f"A {group}"]["L0H0"] == 1.0
        assert scores[f"A {group}"]["L0H1"] < 1.0
    assert scores["A+AT all"]["L0H0"] == 1.0
    assert scores["A all"].n_samples == 3 and scores["A all"].settings["queries"] == 16  # not the one of one word
    assert scores["A words"].settings["queries"] == 13
    assert 0.0 < scores["A all"].baseline < 0.6
    low, high = scores["A all"].intervals[Head("main", 0, 0)]
    assert low == high == 1.0


def test_turned_attention_gives_the_tree_when_turned_back():
    example = SENTENCES[0]
    n = len(example.words)
    weights = np.zeros((n, n))
    for word, head in enumerate(example.heads):
        if head >= 0:
            weights[head, word] = 1.0
    assert tree_of(weights, 2, "AT").tolist() == list(example.heads)
    assert tree_of(weights, 2, "A+AT").tolist() == list(example.heads)
    assert tree_of(weights, 2, "A").tolist() != list(example.heads)


@pytest.mark.parametrize(("look", "name"), [(previous, "previous"), (following, "next")])
def test_a_head_that_looks_beside_itself_is_exactly_the_branching_baseline(look, name):
    table = count_trees(look)
    scores = InducedTrees().finish(table)
    for group in GROUPS:
        assert scores[f"A {group}"]["L0H0"] == scores[f"A {group}"].settings[name]
    assert {name: scores["A all"].settings[name] for name in BASELINES} == pytest.approx(
        # By hand: three roots; by the next word: the doctor a and . | she ! | very now; previous: she ! | really now
        {"next": 12 / 16, "previous": 7 / 16, "root": 12 / 16}
    )


def test_the_root_left_open_is_another_convention():
    baselines = branching_baselines(SENTENCES)
    # Nothing is given: the last (or first) word is taken for the root, and is not one here.
    assert baselines["next"]["all"] == pytest.approx(6 / 16) and baselines["previous"]["all"] == pytest.approx(2 / 16)


def test_words_without_tokens_are_left_out():
    example = Example("made:0", "du pain", words=("de", "le", "pain"), spans=((0, 2), (0, 2), (3, 7)), heads=(2, 2, -1))
    pattern, tokens = between_words(example, lambda word: 1 - word)
    measure = InducedTrees()
    measure._any = Head("main", 0, 0)
    layer = batch_layer(batch_of([example], [{"main": tokens}]), [pattern[None]], Site("main", 0))
    table = MemoryTable(measure, 1)
    table.take(ledger_of(measure, layer), 0)
    assert measure.finish(table)["A all"].settings["queries"] == 2


@pytest.fixture(scope="module")
def treebank(shared_data):
    return hs.corpus(shared_data / "ud_english_ewt" / "en_ewt-ud-dev.conllu.xz", limit=8)


def test_a_real_model_on_a_treebank(treebank):
    done = []
    trees = induced_trees(hs.load("builtin:bert"), treebank, limit=4, progress=done.append)
    assert done[-1] == Progress("examples", 4, 4)
    assert trees.n_sentences <= 4 and set(trees.scores["A"]["all"]) == set(hs.load("builtin:bert").heads)
    orientation, head, value = trees.best()
    assert trees.scores[orientation]["all"][head] == value > trees.baselines["random"]["all"]
    assert len(trees.layers("AT", "words")) == 6
    assert "gold root" in str(trees) and "only what came before" not in str(trees)


def test_a_causal_model_is_said_to_look_left_only(treebank):
    trees = induced_trees(hs.load("builtin:gpt"), treebank, limit=2)
    assert "only what came before" in str(trees)
    to_the_right = max(trees.scores["A"]["right"].values())
    assert to_the_right <= trees.baselines["root"]["right"]  # what cannot be attached goes to the root, no further


def test_trees_are_a_measure_of_a_run(tmp_path):
    model = hs.load("builtin:bert")
    scores = hs.runs.run(model, SENTENCES, [InducedTrees()], tmp_path / "run").scores()
    trees = induced_trees(model, SENTENCES)
    for orientation, groups in trees.scores.items():
        for group, expected in groups.items():
            assert scores[f"trees/{orientation} {group}"].to_json() == expected.to_json()


def test_without_trees_there_is_nothing_to_compare_with():
    model = hs.load("builtin:bert")
    with pytest.raises(InputError, match="treebank"):
        induced_trees(model, ["A sentence without a tree."])
    stop = threading.Event()
    stop.set()
    with pytest.raises(Cancelled):
        induced_trees(model, SENTENCES, cancel=stop)
