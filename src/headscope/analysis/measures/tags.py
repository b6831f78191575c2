"""Which parts of speech heads look at, and from which (Vig & Belinkov, 2019, section 4.2)."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from headscope.analysis.measures.content_rows import once_per_batch, rows, visible_pairs
from headscope.analysis.measures.counted_in_groups import Grouped
from headscope.runs import Layer
from headscope.runs.measure import Tallies


class TagShares(Grouped):
    """P(tag) = Σ a_ij [tag of j] / Σ a_ij, keys "to NOUN" …; with the tag of i, keys "from NOUN" ….

    Every piece of a word has its tag. Keys that are not kept, and tokens that belong to no tagged word, are left out,
    so that the shares of all tags add up to one. Chance "to" is what queries would give if they shared out evenly what
    they send; "from", what they would send if each sent as much.
    """

    def __init__(self, name: str, column: str, tags: Sequence[str]):
        keys = [f"{way} {tag}" for way in ("to", "from") for tag in tags]
        super().__init__(name, keys, {"tags": column, "of": list(tags)})
        self.column, self.tags = column, list(tags)

    def watch(self, layer: Layer) -> Tallies:
        """All tags, both ways."""
        if layer.site.kind == "cross" or layer.site.stack != layer.batch.text_stack:
            return ()
        marks, shares, has = once_per_batch(layer, f"tags {self.name}", lambda: self._marks(layer))
        if marks is None:
            return ()
        queries = has[1].to(marks)  # [example, token]
        keys = marks.sum(-1) * rows(layer).tokens.keys
        received = (queries[:, None, None] @ layer.pattern)[:, :, 0] * keys[:, None]
        sent = (layer.pattern @ keys[:, None, :, None])[..., 0] * queries[:, None]
        whole = sent.sum(-1)[:, :, None].expand(-1, -1, 2 * len(self.tags))
        total = torch.cat([received @ marks, sent @ marks], -1)
        rate = (marks * has[1][..., None]).sum(1) / has[1].sum(-1)[:, None].clamp_min(1)  # of queries, each tag's share
        chance = torch.cat([sent @ shares, whole[..., : len(self.tags)] * rate[:, None]], -1)
        self.count(layer, total, whole, chance, has=has[0])
        return ()

    def _marks(self, layer: Layer) -> tuple[Tensor | None, Tensor, tuple[Tensor, Tensor]]:
        """1 where a token has a tag [example, token, tag]; of the tagged keys that a query sees the share of each tag
        [example, query, tag]; which examples have a tag [example, key]; and which queries count [example, query].
        """
        number = {tag: at for at, tag in enumerate(self.tags)}
        n_tokens = layer.pattern.shape[2]
        has_tag = np.zeros((len(layer.examples), n_tokens, len(self.tags)), dtype=np.float32)
        for row, (example, words) in enumerate(zip(layer.examples, layer.batch.words()[layer.rows], strict=True)):
            for tag, positions in zip(example.tags.get(self.column, ()), words, strict=False):
                if tag in number:
                    has_tag[row, positions, number[tag]] = 1.0
        marks = torch.from_numpy(has_tag).to(layer.pattern.device)
        tokens = rows(layer).tokens
        queries = (marks.sum(-1) > 0) & tokens.queries
        seen = visible_pairs(layer).to(marks) @ marks  # [example, query, tag]
        shares = seen / seen.sum(-1, keepdim=True).clamp_min(1.0)
        # An example is about every tag, one that it does not have too, if it has tags at all: shares are of one whole.
        is_tagged = queries.any(-1)[:, None].expand(-1, 2 * len(self.tags))
        return marks if bool(is_tagged.any()) else None, shares, (is_tagged, queries)
