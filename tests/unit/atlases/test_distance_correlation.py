import itertools

import numpy as np
import pytest
import torch
from scipy.stats import pearsonr, spearmanr

from headscope.atlases.distance_correlation import MOST_PAIRS, Pairs, distance_correlation
from headscope.atlases.joint_space import JointSpace


def vectors(n: int = 30, dim: int = 6) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(3)
    return generator.normal(1.0, 1.0, (n, dim)), generator.normal(0.0, 2.0, (n, dim))


STARTS = np.array([0, 7, 9, 30])


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("cosine", [False, True])
def test_correlations_are_those_of_scipy(is_causal: bool, cosine: bool) -> None:
    query, key = vectors()
    rows, all_dots, all_distances = [], [], []
    for first, last in itertools.pairwise(STARTS):
        for i in range(first, last):
            keys = key[first : i + 1] if is_causal else key[first:last]
            dots = keys @ query[i]
            if cosine:
                distances = 1 - dots / np.linalg.norm(keys, axis=1) / np.linalg.norm(query[i])
            else:
                distances = np.linalg.norm(keys - query[i], axis=1)
            all_dots, all_distances = [*all_dots, *dots], [*all_distances, *distances]
            if len(keys) >= 3:
                rows.append((pearsonr(dots, distances)[0], spearmanr(dots, distances)[0]))
    result = distance_correlation(query, key, query, key, Pairs(STARTS, STARTS, is_causal), cosine=cosine)
    assert (result.pearson, result.spearman) == pytest.approx(np.mean(rows, axis=0))
    assert result.pooled_pearson == pytest.approx(pearsonr(all_dots, all_distances)[0])
    assert result.pooled_spearman == pytest.approx(spearmanr(all_dots, all_distances)[0])


def test_the_lift_makes_every_query_rank_its_keys_exactly() -> None:
    query, key = (torch.from_numpy(part) for part in vectors())
    space = JointSpace.fit(query, key)
    points = space.queries(query, "lifted").numpy(), space.keys(key, "lifted").numpy()
    result = distance_correlation(query.numpy(), key.numpy(), *points, Pairs(STARTS, STARTS, False))
    assert result.spearman == pytest.approx(-1.0, abs=1e-12)


def test_ties_share_their_rank() -> None:
    query, key = np.array([[1.0]]), np.array([[1.0], [1.0], [2.0], [3.0]])
    pairs = Pairs(np.array([0, 1]), np.array([0, 4]), False)
    result = distance_correlation(query, key, query, -key, pairs)
    assert result.spearman == pytest.approx(1.0)


def test_queries_that_all_keys_are_equal_to_are_not_counted() -> None:
    query, key = np.ones((4, 2)), np.ones((4, 2))
    starts = np.array([0, 4])
    result = distance_correlation(query, key, query, key, Pairs(starts, starts, False))
    assert np.isnan([result.pearson, result.spearman, result.pooled_pearson, result.near]).all()


def test_pooled_pairs_are_a_fair_sample_where_all_texts_are_of_the_same_length() -> None:
    # 40 texts of 50 tokens are 100,000 pairs, of which 50,000 are pooled: every second would be the even keys alone.
    generator = np.random.default_rng(0)
    starts = np.arange(0, 2001, 50)
    query, key = generator.normal(size=(2, 2000, 4))
    points = np.where(np.arange(2000)[:, None] % 2 == 0, key, -key)  # even keys are near their queries, odd keys far
    pairs = Pairs(starts, starts, False)
    assert pairs.count() == 2 * MOST_PAIRS
    result = distance_correlation(query, key, query, points, pairs)
    assert result.pooled_pearson == pytest.approx(0.0, abs=0.02)
    assert result.pooled_spearman == pytest.approx(0.0, abs=0.02)
