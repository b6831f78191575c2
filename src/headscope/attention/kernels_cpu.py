"""The figures of a tile, compiled for the processor: one visit to each row, while it is in the cache.

As tensor operations they take ten passes over the tile, and each waits for memory. What they mean is said in
`Summariser`, which has them so for short inputs and for other devices. The compiler makes vector instructions of loops
over whole arrays and slices, not of loops with offsets: hence the small functions. It works at first use, for some
seconds, and what it made is kept.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

_LOWEST = np.int32(np.iinfo(np.int32).min)
# Sums may be taken in any order; NaN and infinity stay what they are.
_OPTIONS: dict[str, Any] = {"nogil": True, "fastmath": {"reassoc", "contract", "nsz"}, "error_model": "numpy"}


def compiled(function: Callable) -> Any:
    """The function, to be compiled at its first call."""
    try:
        return njit(cache=True, **_OPTIONS)(function)
    except RuntimeError:  # there is nowhere to keep what the compiler makes
        return njit(**_OPTIONS)(function)


@compiled
def _insert(best: NDArray, places: NDArray, number: int, limit: int, value: int, place: int) -> int:
    """Put a value in its place among the best so far, after equal ones; gives how many there are now."""
    if number == limit:
        if value <= best[limit - 1]:
            return number
        number -= 1
    i = number
    while i > 0 and best[i - 1] < value:
        best[i], places[i] = best[i - 1], places[i - 1]
        i -= 1
    best[i], places[i] = value, place
    return number + 1


@compiled
def _largest(bits: NDArray) -> int:
    largest = bits[0]
    for j in range(bits.shape[0]):
        largest = max(largest, bits[j])
    return largest


@compiled
def _strongest(bits: NDArray, cell: int, maxima: NDArray, best: NDArray, keys: NDArray) -> int:
    """The largest of a row in order, ties to the lower key, and how many there are; and the largest of every cell."""
    n_top = len(best)
    # They lie in as many cells, those with the largest maxima, and weigh no less than the last of these.
    n_best = 0
    for c in range(len(maxima)):
        maxima[c] = _largest(bits[c * cell : (c + 1) * cell])
        n_best = _insert(best, keys, n_best, n_top, maxima[c], c)
    floor = best[n_top - 1] if n_best == n_top else _LOWEST
    n_best = 0
    for c in range(len(maxima)):
        if maxima[c] >= floor:
            some = bits[c * cell : (c + 1) * cell]
            for j in range(some.shape[0]):
                if some[j] >= floor:
                    n_best = _insert(best, keys, n_best, n_top, some[j], c * cell + j)
    return n_best


@compiled
def _means(weights: NDArray, scores: NDArray, places: NDArray, here: np.float32, total: NDArray) -> Any:
    """The mean score and the mean distance from here under the weights, which are added to the total."""
    score, distance = np.float32(0), np.float32(0)
    for j in range(weights.shape[0]):
        weight = weights[j]
        score += weight * scores[j]
        distance += weight * abs(here - places[j])
        total[j] += weight
    return score, distance


@compiled
def add_tile(
    pattern: NDArray,
    tile_scores: NDArray,
    first_head: int,
    first_row: int,
    first_key: int,
    offset: int,
    row_cell: int,
    key_cell: int,
    lse: NDArray,
    entropy: NDArray,
    largest: NDArray,
    distance: NDArray,
    argmax: NDArray,
    top_keys: NDArray,
    top_weights: NDArray,
    received: NDArray,
    map_bits: NDArray,
) -> None:
    """Take in a tile of a pattern and its scores [head, row, column], whose rows are softmaxes of the scores.

    The figures are those of the whole layer. `offset` is how far the first query stands behind the first key; the cells
    are those of the map, which is given as its bits. The last four figures may be empty: then they are left out.
    """
    n_heads, n_rows, n_columns = pattern.shape
    # Weights are not negative, so their bits order as they do; and integers, which cannot be NaN, compare faster.
    all_bits = pattern.view(np.int32)
    is_whole = map_bits.shape[0] > 0
    n_keys = received.shape[1]
    n_top = min(top_keys.shape[2], n_keys) if is_whole else 1
    most = np.float32(math.log(n_keys))
    share = np.float32(1 / lse.shape[1])
    maxima = np.empty((n_columns + key_cell - 1) // key_cell, np.int32)
    best = np.empty(n_top, np.int32)
    keys = np.empty(n_top, np.int64)
    places = np.arange(n_columns).astype(np.float32)
    total = np.zeros(n_columns, np.float32)
    for head in range(n_heads):
        h = first_head + head
        total[:] = 0
        for r in range(n_rows):
            row = first_row + r
            weights, scores = pattern[head, r], tile_scores[head, r]
            here = np.float32(row + offset - first_key)
            mean_score, mean_distance = _means(weights, scores, places, here, total)
            n_best = _strongest(all_bits[head, r], key_cell, maxima, best, keys)
            strongest = weights[keys[0]]
            surprisal = -np.log(strongest)
            denominator = scores[keys[0]] + surprisal
            lse[h, row] = denominator
            # Entropy lies between these two. Both are exact for a query that may see nothing: it gives all keys the
            # same, and its scores are too low to reckon with.
            bounded = denominator - mean_score
            bounded = most if bounded > most else bounded
            entropy[h, row] = surprisal if bounded < surprisal else bounded
            largest[h, row] = strongest
            distance[h, row] = mean_distance
            argmax[h, row] = keys[0] + first_key
            if not is_whole:
                continue
            n_nothing = 0
            for i in range(n_top):
                weight, key = np.float32(0), np.int64(n_columns + i - n_best)
                if i < n_best:
                    weight, key = weights[keys[i]], keys[i]
                if first_key > 0 and weight == 0:
                    # Keys that weigh nothing tie: those before the tile count too, the lowest first.
                    key = n_nothing - first_key
                    n_nothing += 1
                top_keys[h, row, i] = key + first_key
                top_weights[h, row, i] = weight
            cells = map_bits[h, row // row_cell, first_key // key_cell :]
            for c in range(len(maxima)):
                cells[c] = max(cells[c], maxima[c])
        if is_whole:
            received[h, first_key : first_key + n_columns] += share * total
