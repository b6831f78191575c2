"""Maximum spanning arborescences: the best tree over a sentence's words, exactly (Chu & Liu, 1965; Edmonds, 1967)."""

from typing import NamedTuple

import numpy as np

from headscope.errors import InputError


class _Level(NamedTuple):
    """One contraction: each node's favourite head, the nodes of each new node, and by which edge one enters another."""

    best: np.ndarray
    members: list[list[int]]
    heads: np.ndarray  # [node, new node]: the node of the new node that is the best head
    dependents: np.ndarray  # [new node, new node]: which of the first one's nodes is entered, by its place in members


def max_arborescence(weights: np.ndarray, root: int) -> np.ndarray:
    """The tree with the largest sum of weights [dependent, head] that hangs from `root`: each node's head, −1 for it.

    Weights are finite; the diagonal does not count. Between equal choices the root is preferred, then the lowest index.

    >>> max_arborescence(np.array([[0, 5, 1], [9, 0, 2], [0, 3, 0]]), root=2)
    array([ 2,  0, -1])
    """
    n = len(weights)
    if weights.shape != (n, n) or not 0 <= root < n:
        raise InputError(f"a tree needs weights [node, node] and a root among them, got {weights.shape} and {root}.")
    # The root goes first, so that it wins among equals; it has no head.
    order = np.array([root, *(node for node in range(n) if node != root)])
    current = np.array(weights, dtype=np.float64)[np.ix_(order, order)]
    if not np.isfinite(current[~np.eye(n, dtype=bool)]).all():
        raise InputError("the weights of a tree are finite: give a very low one where there is no edge.")
    current[0] = -np.inf
    levels: list[_Level] = []
    while True:
        np.fill_diagonal(current, -np.inf)
        best = current.argmax(axis=1)
        best[0] = -1
        cycles = _cycles(best.tolist())
        if not cycles:
            break
        current, level = _contract(current, best, cycles)
        levels.append(level)
    for level in reversed(levels):
        best = _expand(best, level)
    heads = np.empty(n, dtype=int)
    heads[order] = np.where(best < 0, -1, order[best])
    return heads


def _cycles(best: list[int]) -> list[list[int]]:
    """The circles that one goes round in when following favourite heads; each node is in one at most."""
    seen, cycles = [-1] * len(best), []
    seen[0] = 0
    for start in range(1, len(best)):
        node, path = start, []
        while seen[node] < 0:
            seen[node] = start
            path.append(node)
            node = best[node]
        if seen[node] == start:
            cycles.append(sorted(path[path.index(node) :]))
    return cycles


def _contract(weights: np.ndarray, best: np.ndarray, cycles: list[list[int]]) -> tuple[np.ndarray, _Level]:
    """Every circle as one node; to enter it costs what the broken edge of the circle was worth."""
    inside = {node: cycle for cycle in cycles for node in cycle}
    members = [inside.get(node, [node]) for node in range(len(weights)) if inside.get(node, [node])[0] == node]
    weights = weights.copy()
    broken = np.array(sorted(inside))
    weights[broken] -= weights[broken, best[broken]][:, None]
    firsts = np.array([nodes[0] for nodes in members])
    to, heads = weights[:, firsts], np.broadcast_to(firsts, (len(weights), len(members))).copy()
    for new, nodes in enumerate(members):
        if len(nodes) > 1:
            chosen = weights[:, nodes].argmax(axis=1)
            heads[:, new] = np.array(nodes)[chosen]
            to[:, new] = weights[np.arange(len(weights)), heads[:, new]]
    merged, dependents = to[firsts], np.zeros((len(members), len(members)), dtype=int)
    for new, nodes in enumerate(members):
        if len(nodes) > 1:
            dependents[new] = to[nodes].argmax(axis=0)
            merged[new] = to[nodes].max(axis=0)
    return merged, _Level(best, members, heads, dependents)


def _expand(new_heads: np.ndarray, level: _Level) -> np.ndarray:
    """Heads of the nodes from those of the new ones: a circle keeps all its edges but the one where it is entered."""
    heads = level.best.copy()
    for new, head in enumerate(new_heads.tolist()):
        if head >= 0:
            entered = level.members[new][level.dependents[new, head]]
            heads[entered] = level.heads[entered, head]
    return heads
