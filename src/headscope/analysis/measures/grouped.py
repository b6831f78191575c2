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
        self._held: dict[tuple[Head, ...], np.ndarray] = {}  # [sum, group, head, key]

    def count(self, layer: Layer, total: Tensor, n_queries: Tensor, chance: Tensor, *, has: Tensor) -> None:
        """Take in sums [example, head, key], or [example, 1, key] where all heads agree; `has` [example, key] says
        which examples they are about.
        """
        heads = tuple(layer.heads)
        groups = np.asarray(layer.batch.places[layer.rows]) // GROUP
        held = self._room(heads, int(groups.max()) + 1)
        sums = (total, n_queries, chance, has[:, None])
        # One product adds up the examples of every group, for all four sums.
        numbers, which = np.unique(groups, return_inverse=True)
        adds = torch.zeros(len(numbers), len(groups), dtype=torch.float64)
        adds[torch.from_numpy(which), torch.arange(len(groups))] = 1.0
        for place, one in enumerate(sums):
            found = (adds @ one.double().cpu().flatten(1)).unflatten(1, one.shape[1:])
            held[place, numbers] += found.numpy()

    def end(self) -> Tallies:
        """The sums of the shard, a tally a key."""
        held, self._held = self._held, {}
        if not held:
            return
        n_groups = max(sums.shape[1] for sums in held.values())
        padded = [np.pad(one, ((0, 0), (0, n_groups - one.shape[1]), (0, 0), (0, 0))) for one in held.values()]
        heads, sums = [head for some in held for head in some], np.concatenate(padded, axis=2)
        for at, key in enumerate(self.keys):
            found = np.flatnonzero(sums[_EXAMPLES, :, :, at].any(-1))
            if len(found):
                total, n_queries, chance, n_examples = sums[..., at][:, found]
                yield Tally(heads, (found * GROUP).tolist(), total, n_queries, chance, key=key, n_examples=n_examples)

    def _room(self, heads: tuple[Head, ...], n_groups: int) -> np.ndarray:
        held = self._held.get(heads, np.zeros((4, 0, len(heads), len(self.keys))))
        if held.shape[1] < n_groups:
            held = np.pad(held, ((0, 0), (0, n_groups - held.shape[1]), (0, 0), (0, 0)))
        self._held[heads] = held
        return held
