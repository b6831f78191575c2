"""Heads that are alike: divergences known on paper, streaming against holding everything, maps of known places."""

import numpy as np
import pytest
from tiny_models import FAMILIES, tiny_bert_tokenizer

import headscope as hs
from headscope.analysis.structure.similarity import (
    Similarity,
    average_linkage,
    classical_scaling,
    head_similarity,
)
from headscope.errors import InputError
from headscope.sites import Head

TEXTS = [
    "the cat sat on the mat because it was tired.",
    "it was tired.",
    "she gave her sister the book, and he read it to them.",
    "the animal did not cross the street because it was too wide.",
]


@pytest.fixture(scope="module")
def bert() -> hs.Model:
    return hs.Model(FAMILIES["bert"].build(), tiny_bert_tokenizer(), name="tiny bert")


def jsd(p: np.ndarray, q: np.ndarray) -> float:
    """As in the books: the mean of two Kullback-Leibler divergences from the middle."""

    def kl(p: np.ndarray, other: np.ndarray) -> float:
        return float((p[p > 0] * np.log(p[p > 0] / other[p > 0])).sum())

    return (kl(p, (p + q) / 2) + kl(q, (p + q) / 2)) / 2


def test_streaming_equals_holding_everything(bert):
    similarity = head_similarity(bert, TEXTS)
    traces = bert.run(TEXTS)
    for i, other in ((0, 1), (0, len(similarity.heads) - 1), (2, 5)):
        heads = similarity.heads[i], similarity.heads[other]
        rows = [zip(*(trace.pattern(head).astype(float) for head in heads), strict=True) for trace in traces]
        expected = np.mean([jsd(p, q) for pairs in rows for p, q in pairs])
        assert similarity.divergences[i, other] == pytest.approx(expected, abs=1e-6)
    assert similarity.n_queries == sum(len(trace.tokens["main"]) for trace in traces) and similarity.n_examples == 4
    assert similarity.heads == tuple(bert.heads)
    repeated = head_similarity(bert, TEXTS * 2)
    np.testing.assert_allclose(repeated.divergences, similarity.divergences, atol=1e-6)


def test_long_inputs_are_sampled(bert, monkeypatch):
    monkeypatch.setattr("headscope.analysis.structure.similarity.MAX_QUERIES", 3)
    similarity = head_similarity(bert, TEXTS, limit=2)
    assert similarity.n_queries == 6
    np.testing.assert_array_equal(similarity.divergences, head_similarity(bert, TEXTS, limit=2).divergences)


def test_scores_and_neighbours():
    heads = tuple(Head("main", index // 2, index % 2) for index in range(4))
    divergences = np.array([[0, 1, 4, 4], [1, 0, 4, 4], [4, 4, 0, 1], [4, 4, 1, 0]]) / 10
    similarity = Similarity(heads, divergences, n_queries=7, n_examples=2)
    assert similarity.nearest("L0H0", 1) == [(Head("main", 0, 1), 0.1)]
    assert similarity.apartness()["L1H0"] == pytest.approx(0.3)
    assert similarity.by_layer() == pytest.approx((0.1, 0.4))
    assert similarity.clusters(2) == [list(heads[:2]), list(heads[2:])]
    assert similarity.map().share <= 1.0
    with pytest.raises(InputError, match="L7H0"):
        similarity.between("L7H0", "L0H0")


def test_a_map_finds_places_again():
    places = np.random.default_rng(0).normal(size=(9, 2))
    squared = ((places[:, None] - places) ** 2).sum(-1)
    head_map = classical_scaling(squared)
    np.testing.assert_allclose(((head_map.places[:, None] - head_map.places) ** 2).sum(-1), squared, atol=1e-9)
    assert head_map.share == pytest.approx(1.0)


def test_with_enough_dimensions_a_map_of_heads_is_exact(bert):
    similarity = head_similarity(bert, TEXTS)
    whole = similarity.map(len(similarity.heads))
    np.testing.assert_allclose(((whole.places[:, None] - whole.places) ** 2).sum(-1), similarity.divergences, atol=1e-8)
    assert similarity.map(2).share < whole.share == pytest.approx(1.0)


def test_groups_are_joined_by_their_means():
    places = np.array([0.0, 0.1, 0.25, 5.0, 5.2, 9.0])
    assert average_linkage(np.abs(places[:, None] - places), 3) == [[0, 1, 2], [3, 4], [5]]
    with pytest.raises(InputError, match="1 to 6"):
        average_linkage(np.abs(places[:, None] - places), 7)


def test_only_heads_between_the_same_tokens_are_compared():
    model = hs.load("builtin:translate")
    pairs = [hs.corpora.Example("one", text="A cat.", target="Кошка.")]
    assert {head.kind for head in head_similarity(model, pairs, among="cross").heads} == {"cross"}
    assert {head.stack for head in head_similarity(model, pairs).heads} == {"encoder"}
    with pytest.raises(InputError, match="encoder, decoder, cross"):
        head_similarity(model, pairs, among="vision")
