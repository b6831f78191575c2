"""Maximum flow against every cut there is, on networks small enough to try them all."""

import itertools

import numpy as np
import pytest

from headscope.analysis.structure.maximum_flow import Network


def least_cut(capacities: np.ndarray, top: int, bottom: int) -> float:
    n_layers, n, _ = capacities.shape
    source, nodes = (n_layers, top), [(layer, node) for layer in range(n_layers + 1) for node in range(n)]
    others = [node for node in nodes if node not in (source, (0, bottom))]
    best = np.inf
    for chosen in itertools.product((False, True), repeat=len(others)):
        above = {source} | {node for node, is_above in zip(others, chosen, strict=True) if is_above}
        cut = sum(
            capacities[layer, row, column]
            for layer, row, column in itertools.product(range(n_layers), range(n), range(n))
            if (layer + 1, row) in above and (layer, column) not in above
        )
        best = min(best, cut)
    return best


@pytest.mark.parametrize("shape", [(1, 3, 3), (2, 3, 3), (3, 2, 2), (4, 2, 2)])
def test_the_flow_is_the_least_cut(shape):
    rng = np.random.default_rng(0)
    for _ in range(3):
        capacities = rng.random(shape) * (rng.random(shape) < 0.7)
        network = Network(capacities)
        for top, bottom in itertools.product(range(shape[1]), repeat=2):
            assert network.flow(top, bottom) == pytest.approx(least_cut(capacities, top, bottom), abs=1e-9)


def test_flow_goes_back_where_that_helps():
    # Node 0 may only go by 0, which both need: the greedy path of node 1 through it has to be taken back.
    capacities = np.zeros((2, 2, 2))
    capacities[1, 0] = [1.0, 1.0]
    capacities[0, 0] = [1.0, 0.0]
    capacities[0, 1] = [0.5, 0.5]
    assert Network(capacities).flow(0, 0) == pytest.approx(1.5)


def test_nothing_flows_where_no_path_leads():
    assert Network(np.tril(np.ones((3, 4, 4)))).flow(0, 3) == 0.0
