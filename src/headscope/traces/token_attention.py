"""How much some tokens look at others, and how much a head looks that far anyway."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from headscope.traces.tokens import Tokens


def weight_between(patterns: Tensor, queries: Sequence[int], keys: Sequence[int]) -> Tensor:
    """Attention to the keys (summed) from the queries (mean), for each head [head, query, key] → [head]."""
    return patterns[:, list(queries)][:, :, list(keys)].sum(2).mean(1)


def usual_at_distance(patterns: Tensor, queries: Sequence[int], keys: Sequence[int], tokens: Tokens) -> Tensor:
    """What other queries give keys at the same distance, summed as `weight_between` does [head, query, key] → [head].

    Special tokens are no other queries; nor are they keys to compare with, unless one is asked about: a head that rests
    on the first token would seem to look that far from whichever query happens to stand there. 0 where there are none.
    """
    plain = np.array([not token.special for token in tokens], dtype=bool)
    others = plain.copy()
    others[list(queries)] = False
    rows = np.flatnonzero(others)
    total = torch.zeros(len(patterns), dtype=torch.float64)
    for query in queries:
        for key in keys:
            ends = rows + key - query
            counts = (ends >= 0) & (ends < min(len(plain), patterns.shape[2]))
            if plain[key]:
                counts[counts] = plain[ends[counts]]
            if counts.any():
                total += patterns[:, rows[counts], ends[counts]].double().mean(1).cpu()
    return total / len(queries)
