"""Positional heads: those that look most at one fixed distance (Voita et al., 2019, section 5.1)."""

import numpy as np
import torch

from headscope.analysis.measures.content_rows import ContentTokens, once_per_batch, rows
from headscope.analysis.measures.counted_in_groups import Grouped
from headscope.runs import Layer, MeasureTable
from headscope.runs.measure import Tallies
from headscope.scores import Scores

# Modal offsets are in practice −1 or +1; one further away than this is not found.
REACH = 8
# "at least 90 % of the time its maximum attention weight is assigned to a specific relative position".
CRITERION = 0.9


class Positional(Grouped):
    """The share of queries whose largest weight is at the head's most frequent offset.

    A query counts for an offset when a kept key stands there and it can see it; special tokens, and the first token of
    a causal model, are not kept (`rows.py`). `settings["offsets"]` of the scores tells each head's offset, and
    `settings["positional"]` which heads meet the criterion of 90 %. Chance is an even choice among kept keys.
    """

    def __init__(self, name: str = "positional", *, reach: int = REACH):
        offsets = range(-reach, reach + 1)
        super().__init__(name, [f"{offset:+d}" for offset in offsets], {"reach": reach})
        self.reach = reach

    def watch(self, layer: Layer) -> Tallies:
        """Count every offset at once."""
        if layer.site.kind == "cross" or layer.batch.tokens(layer.site.stack)[0].kind == "patches":
            return ()
        content = rows(layer)
        n_queries, chance = once_per_batch(
            layer, f"offsets {self.reach}", lambda: self._possible(layer, content.tokens)
        )
        places = torch.arange(layer.pattern.shape[2], device=layer.pattern.device)
        offsets = content.argmax - places + self.reach
        outside = 2 * self.reach + 1
        is_counted = content.tokens.queries[:, None] & (content.argmax >= 0) & (offsets >= 0) & (offsets < outside)
        index = torch.where(is_counted, offsets, outside)
        hits = layer.pattern.new_zeros(*index.shape[:2], outside + 1)
        hits.scatter_add_(2, index, hits.new_ones(()).expand_as(index))
        self.count(layer, hits[..., :outside], n_queries[:, None], chance[:, None], has=n_queries > 0)
        return ()

    def _possible(self, layer: Layer, tokens: ContentTokens) -> tuple[torch.Tensor, torch.Tensor]:
        """How many queries have a key at each offset, and what an even choice would give [example, offset]."""
        length = layer.pattern.shape[2]
        n_queries, chance = [], []
        for offset in range(-self.reach, self.reach + 1):
            has = torch.zeros_like(tokens.queries)
            first, last = max(0, -offset), min(length, length - offset)
            if first < last and not (layer.is_causal and offset > 0):
                has[:, first:last] = tokens.keys[:, first + offset : last + offset]
            has &= tokens.queries
            n_queries.append(has.sum(-1))
            chance.append((has / tokens.seen.clamp_min(1)).sum(-1))
        return torch.stack(n_queries, -1), torch.stack(chance, -1)

    def finish(self, table: MeasureTable) -> Scores:
        """One score a head, at its own offset: the one that it looks at most often."""
        keys = table.keys()
        sums = {key: table.sums(key) for key in keys}
        blocks = {key: table.blocks(key) for key in keys}
        values, baselines, offsets, n_examples, spread = {}, {}, {}, 0, {}
        for head in sorted({head for key_sums in sums.values() for head in key_sums.heads}):
            at = {key: key_sums.heads.index(head) for key, key_sums in sums.items() if head in key_sums.heads}
            modal = max(at, key=lambda key: sums[key].total[at[key]])
            modal_sums, place = sums[modal], at[modal]
            values[head] = float(modal_sums.total[place] / modal_sums.n_queries[place])
            baselines[head] = float(modal_sums.chance[place] / modal_sums.n_queries[place])
            offsets[str(head)] = int(modal)
            n_examples = max(n_examples, int(modal_sums.n_examples[place]))
            spread[head] = [blocks[modal].total[:, place], blocks[modal].n_queries[:, place]]
        totals, n_queries = (np.stack([head_blocks[part] for head_blocks in spread.values()], -1) for part in (0, 1))
        known = {
            "criterion": CRITERION,
            "offsets": offsets,
            "positional": [str(head) for head, value in values.items() if value >= CRITERION],
            "queries": int(n_queries.sum(0).max()),
        }
        return Scores(
            method=self.name,
            values_by_head=values,
            settings=self.settings | known,
            n_samples=n_examples,
            baseline=float(np.mean(list(baselines.values()))),
            intervals=table.intervals(totals, n_queries, list(spread)) if table.n_blocks > 1 else {},
            baselines=baselines,
        )
