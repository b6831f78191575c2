"""Which examples share a batch, and in which order batches come: the same for the same seed."""

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

# Inputs of like length share a batch; they are sought among this many batches, so that the order remains random.
_POOL = 50


class HasLength(Protocol):
    """What takes positions in a batch."""

    @property
    def length(self) -> int:
        """How many."""
        ...


def evaluation_batches(
    groups: Sequence[Sequence[int]], inputs: Sequence[HasLength], batch_size: int
) -> Iterator[list[int]]:
    """Batches of inputs that may share one (`groups`), those of like length together."""
    for group in groups:
        ordered = sorted(group, key=lambda place: (-inputs[place].length, place))
        for start in range(0, len(ordered), batch_size):
            yield ordered[start : start + batch_size]


def training_batches(
    groups: Sequence[Sequence[int]],
    lengths: Sequence[int],
    *,
    batch_size: int,
    batch_tokens: int | None,
    seed: int,
    epoch: int,
) -> list[list[int]]:
    """The batches of an epoch: shuffled, then cut into pools whose inputs are sorted by length, so that a batch has
    little padding, then shuffled as batches. `batch_tokens` bounds the positions of a batch, padding counted.
    """
    rng = np.random.default_rng((seed, epoch))
    batches: list[list[int]] = []
    for group in groups:
        order = [group[place] for place in rng.permutation(len(group))]
        for start in range(0, len(order), batch_size * _POOL):
            pool = sorted(order[start : start + batch_size * _POOL], key=lambda place: lengths[place])
            batches += _cut(pool, lengths, batch_size, batch_tokens)
    return [batches[place] for place in rng.permutation(len(batches))]


def _cut(pool: list[int], lengths: Sequence[int], batch_size: int, batch_tokens: int | None) -> list[list[int]]:
    """Batches of neighbours in a pool that is sorted by length: the last of a batch is its longest."""
    batches: list[list[int]] = [[]]
    for place in pool:
        n_next = len(batches[-1]) + 1
        is_full = n_next > batch_size or (batch_tokens is not None and n_next * lengths[place] > batch_tokens)
        if batches[-1] and is_full:
            batches.append([])
        batches[-1].append(place)
    return batches
