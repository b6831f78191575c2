"""Variability: how much a head's pattern depends on what the text says (Vig & Belinkov, 2019, section 4.3)."""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from headscope.analysis.measures.content_rows import rows
from headscope.runs import Layer, Measure, Tally
from headscope.runs.measure import Tallies
from headscope.sites import Head

N_TOKENS = 10


@dataclass
class Variability(Measure):
    """Σ_x Σ_ij |a_ij(x) − ā_ij| / (2 Σ_x Σ_ij a_ij) over the first ten tokens, special ones not counted.

    0 when the pattern is the same in every text. The mean ā is that of the shard, 256 texts unless the run was told
    otherwise, so that a corpus is gone through once: of n texts the deviation from their own mean is smaller by about
    1 / 2n. Texts of fewer than ten tokens are passed over. Weights on keys that are not kept are left out.
    """

    name: str = "variability"
    settings: dict[str, Any] = field(default_factory=lambda: {"tokens": N_TOKENS})
    _corners: dict[tuple[Head, ...], list[tuple[list[int], Tensor]]] = field(default_factory=dict, repr=False)

    def watch(self, layer: Layer) -> Tallies:
        """Hold the corner of every pattern until the shard ends."""
        if layer.site.kind == "cross":
            return ()
        size, plain = self.settings["tokens"], layer.plain_queries
        chosen = (plain.sum(-1) >= size).nonzero()[:, 0]
        if len(chosen) and layer.pattern.shape[2] == layer.pattern.shape[3]:
            first = plain[chosen] & (plain[chosen].cumsum(-1) <= size)
            index = first.nonzero()[:, 1].view(len(chosen), size)
            pattern = rows(layer).pattern
            corner = pattern[chosen[:, None, None], :, index[:, :, None], index[:, None, :]]  # heads come last
            places = [layer.batch.places[layer.rows][at] for at in chosen.tolist()]
            self._corners.setdefault(tuple(layer.heads), []).append((places, corner.flatten(1, 2).mT.cpu()))
        return ()

    def end(self) -> Tallies:
        """Compare every text of the shard with their mean; one text alone has nothing to be compared with."""
        corners_by_heads, self._corners = self._corners, {}
        for heads, parts in corners_by_heads.items():
            places = [place for some, _ in parts for place in some]
            if len(places) > 1:
                corners = torch.cat([corner for _, corner in parts]).double()  # [example, head, cell]
                away = (corners - corners.mean(0)).abs().sum(-1)
                yield Tally(heads, places, away, 2 * corners.sum(-1))
