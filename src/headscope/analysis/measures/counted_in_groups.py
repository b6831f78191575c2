"""Measures of many quantities at once (a tag, an offset, a relation): counted by groups of neighbouring examples.

A row for every example, head and relation would be millions for a thousand sentences, so sums are kept for groups of
16 neighbours within a shard. Intervals resample groups, which is also the careful choice: neighbours are sentences of
one document.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headscope.runs import Layer, Measure, Tally
from headscope.runs.measure import Tallies
from headscope.sites import Head

GROUP = 16
_TOTAL, _QUERIES, _CHANCE, _EXAMPLES = range(4)


class Grouped(Measure):
    """Holds the sums of a shard [group, head, key], and gives them away at its end."""

    name: str
    settings: dict[str, Any]

    def __init__(self, name: str, keys: Sequence[str], settings: dict[str, Any]):
        self.name, self.keys, self.settings = name, list(keys), settings
        self._sums_by_heads: dict[tuple[Head, ...], np.ndarray] = {}  # [sum, group, head, key]

    def count(self, layer: Layer, total: Tensor, n_queries: Tensor, chance: Tensor, *, has: Tensor) -> None:
        """Take in sums [example, head, key], or [example, 1, key] where all heads agree; `has` [example, key] says
        which examples they are about.
        """
        heads = tuple(layer.heads)
        groups = np.asarray(layer.batch.places[layer.rows]) // GROUP
        shard_sums = self._room(heads, int(groups.max()) + 1)
        sums = (total, n_queries, chance, has[:, None])
        # One product adds up the examples of every group, for all four sums.
        numbers, which = np.unique(groups, return_inverse=True)
        adds = torch.zeros(len(numbers), len(groups), dtype=torch.float64)
        adds[torch.from_numpy(which), torch.arange(len(groups))] = 1.0
        for place, quantity in enumerate(sums):
            group_sums = (adds @ quantity.double().cpu().flatten(1)).unflatten(1, quantity.shape[1:])
            shard_sums[place, numbers] += group_sums.numpy()

    def end(self) -> Tallies:
        """The sums of the shard, a tally a key."""
        sums_by_heads, self._sums_by_heads = self._sums_by_heads, {}
        if not sums_by_heads:
            return
        n_groups = max(sums.shape[1] for sums in sums_by_heads.values())
        padded = [
            np.pad(block, ((0, 0), (0, n_groups - block.shape[1]), (0, 0), (0, 0))) for block in sums_by_heads.values()
        ]
        heads, sums = [head for layer_heads in sums_by_heads for head in layer_heads], np.concatenate(padded, axis=2)
        for at, key in enumerate(self.keys):
            filled = np.flatnonzero(sums[_EXAMPLES, :, :, at].any(-1))
            if len(filled):
                total, n_queries, chance, n_examples = sums[..., at][:, filled]
                yield Tally(heads, (filled * GROUP).tolist(), total, n_queries, chance, key=key, n_examples=n_examples)

    def _room(self, heads: tuple[Head, ...], n_groups: int) -> np.ndarray:
        shard_sums = self._sums_by_heads.get(heads, np.zeros((4, 0, len(heads), len(self.keys))))
        if shard_sums.shape[1] < n_groups:
            shard_sums = np.pad(shard_sums, ((0, 0), (0, n_groups - shard_sums.shape[1]), (0, 0), (0, 0)))
        self._sums_by_heads[heads] = shard_sums
        return shard_sums
