"""Spanning arborescences against every tree there is, on graphs small enough to try them all."""

import itertools

import numpy as np
import pytest

from headscope.analysis.structure.arborescence import max_arborescence
from headscope.errors import InputError


def reaches(heads, root: int) -> bool:
    """Whether every node hangs from the root."""
    for start in range(len(heads)):
        node, steps = start, 0
        while node != root and steps <= len(heads):
            node, steps = heads[node], steps + 1
        if node != root:
            return False
    return True


def best_by_trying(weights: np.ndarray, root: int) -> float:
    n, best = len(weights), -np.inf
    others = [node for node in range(n) if node != root]
    for chosen in itertools.product(range(n), repeat=n - 1):
        heads = dict(zip(others, chosen, strict=True)) | {root: -1}
        if all(node != head for node, head in heads.items()) and reaches(heads, root):
            best = max(best, sum(weights[node, heads[node]] for node in others))
    return best


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("kind", ["real", "tied", "cyclic"])
def test_no_tree_is_better(n, kind):
    rng = np.random.default_rng(n)
    for _ in range(12 if n < 6 else 3):
        weights = rng.normal(size=(n, n))
        if kind == "tied":
            weights = rng.integers(0, 3, (n, n)).astype(float)
        if kind == "cyclic":  # every node prefers its neighbour strongly: circles inside circles
            order = rng.permutation(n)
            weights[order, np.roll(order, 1)] += 5
            weights[order[: n // 2], np.roll(order[: n // 2], 1)] += 5
        for root in range(n):
            heads = max_arborescence(weights, root)
            assert heads[root] == -1 and reaches(heads, root)
            total = sum(weights[node, heads[node]] for node in range(n) if node != root)
            assert total == pytest.approx(best_by_trying(weights, root))


def test_circles_within_circles_are_untied():
    # 1 and 2 want each other, 3 and 4 want each other, the two pairs want each other; all is entered from 0 by 4.
    weights = np.full((5, 5), -100.0)
    weights[1, 2] = weights[2, 1] = weights[3, 4] = weights[4, 3] = 10.0
    weights[1, 3] = weights[3, 2] = 5.0
    weights[4, 0] = 1.0
    assert max_arborescence(weights, 0).tolist() == [-1, 3, 1, 4, 0]


def test_a_tree_is_found_again_at_any_length():
    rng = np.random.default_rng(0)
    for n in (1, 40, 150):
        order = rng.permutation(n)
        heads = np.full(n, -1)
        for place in range(1, n):
            heads[order[place]] = order[rng.integers(place)]
        weights = rng.random((n, n))
        weights[np.arange(n), heads] += 2.0
        assert max_arborescence(weights, int(order[0])).tolist() == heads.tolist()


def test_equal_weights_go_to_the_root():
    assert max_arborescence(np.zeros((4, 4)), 2).tolist() == [2, 2, -1, 2]


def test_weights_that_are_not_finite_are_refused():
    with pytest.raises(InputError, match="finite"):
        max_arborescence(np.array([[0.0, -np.inf], [0.0, 0.0]]), 0)
    with pytest.raises(InputError, match="root"):
        max_arborescence(np.zeros((2, 2)), 2)
