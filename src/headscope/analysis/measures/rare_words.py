"""Rare words: heads whose largest weight goes to the rarest token of a sentence (Voita et al., 2019, section 5.3)."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headscope.analysis.measures.content_rows import once_per_batch, rows
from headscope.runs import Layer, Measure, Refusal, Tally
from headscope.runs.measure import Tallies
from headscope.scores import Scores

# "sentences where the least frequent token is not among the top-500 most frequent tokens".
N_FREQUENT = 500
# With more tokens a sentence that occur once in the corpus, the rarest token is mostly several that are tied.
MANY_TIED = 1.5


def n_tied(scores: Scores) -> float:
    """How many tokens a sentence has, on average, that occur once in the corpus: they are tied for the rarest."""
    return scores.settings.get("once", 0) / max(1, scores.n_samples)


@dataclass
class RareWord(Measure):
    """The share of queries whose largest weight is on the rarest token, or on one of the `among` rarest.

    Frequencies are those of the corpus itself, or a table that is given. Only sentences with a token outside the 500
    most frequent count, as in the paper. Tokens that are equally rare share a place: with `among=1` all that are as
    rare as the rarest count, with 2 all that are as rare as the second. Chance, an even choice among kept keys, counts
    them likewise. Targets that a translator writes itself are not counted: their tokens have no frequency before the
    run.
    """

    name: str = "rare_word"
    counts: Mapping[int, int] = field(default_factory=Counter, repr=False)
    among: int = 1
    settings: dict[str, Any] = field(init=False)

    def __post_init__(self):
        ordered = sorted(self.counts, key=lambda id: (-self.counts[id], id))
        self._frequent = frozenset(ordered[:N_FREQUENT])
        self.settings = {
            "among": self.among,
            "frequent": N_FREQUENT,
            "types": len(self.counts),
            "tokens": int(sum(self.counts.values())),
            "once": sum(count == 1 for count in self.counts.values()),
        }

    def watch(self, layer: Layer) -> Tallies:
        """Count queries that look most at a rare token."""
        if layer.batch.tokens(layer.key_stack)[0].kind != "text":
            return
        if layer.key_stack == "decoder" and any(example.target is None for example in layer.examples):
            yield Refusal("the model wrote the targets itself: how often their tokens occur is not known beforehand")
            return
        tokens = rows(layer).tokens
        rare, has = once_per_batch(layer, f"rare {self.among}", lambda: self._rare(layer, tokens.keys))
        if not has.any():
            yield Refusal(f"no token of it is outside the {N_FREQUENT} most frequent of {len(self.counts)}")
            return

        def even() -> Tensor:
            wanted = rare.cumsum(-1) if layer.is_causal else rare.sum(-1, keepdim=True)
            return (tokens.queries * wanted / tokens.seen.clamp_min(1)).sum(-1)

        hits, n_queries = rows(layer).hits(rare), tokens.queries.sum(-1)
        chance = once_per_batch(layer, f"even rare {self.among}", even)
        places = [
            place for place, is_there in zip(layer.batch.places[layer.rows], has.tolist(), strict=True) if is_there
        ]
        yield Tally(layer.heads, places, hits[has], n_queries[has][:, None], chance[has][:, None])

    def _rare(self, layer: Layer, content_keys: Tensor) -> tuple[Tensor, Tensor]:
        """Which keys are rare [example, key], and which examples have one [example]."""
        ids = layer.batch.ids(layer.key_stack)[layer.rows, : content_keys.shape[1]].cpu().numpy()
        different, which = np.unique(ids, return_inverse=True)
        counts = np.array([self.counts.get(id, 0) for id in different.tolist()])[which].reshape(ids.shape)
        unusual = np.array([id not in self._frequent for id in different.tolist()])[which].reshape(ids.shape)
        keys = content_keys.cpu().numpy()
        counts = np.where(keys, counts, np.iinfo(counts.dtype).max)
        limit = np.sort(counts, -1)[:, min(self.among, counts.shape[1]) - 1]
        has = (keys & unusual).any(-1) & (keys.sum(-1) > self.among)
        rare = keys & (counts <= limit[:, None]) & has[:, None]
        return torch.from_numpy(rare).to(content_keys.device), torch.from_numpy(has).to(content_keys.device)
