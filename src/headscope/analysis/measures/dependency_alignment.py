"""Dependency alignment: how much attention follows the arcs of the gold tree (Vig & Belinkov, 2019, section 4.2)."""

import torch
from torch import Tensor

from headscope.analysis.measures.content_rows import once_per_batch
from headscope.analysis.measures.treebank_words import by_words, trees
from headscope.runs import Layer, Tally
from headscope.runs.measure import Tallies


def dependency_alignment(layer: Layer) -> Tallies:
    """DepAl = Σ a_ij [i is the head of j, or j of i] / Σ a_ij, between words.

    The paper counts word pieces; here words do (to a split word the sum, from it the mean). Keys that are not kept are
    left out. Chance is the share of arcs among the words that each word sees.
    """
    words = by_words(layer)
    if words is None:
        return

    def make() -> tuple[Tensor, Tensor, Tensor]:
        gold = trees(layer, {})
        n_words = gold.heads.shape[1]
        places = torch.arange(n_words, device=gold.heads.device)
        arcs = gold.heads[:, :, None] == places  # [example, dependent, head]
        seen = gold.has_tokens[:, :, None] & gold.has_tokens[:, None, :]
        arcs, seen = (arcs | arcs.mT) & seen, seen
        if layer.is_causal:
            arcs, seen = arcs.tril(), seen.tril()
        shares = arcs.sum(-1) / seen.sum(-1).clamp_min(1)
        return arcs.to(layer.pattern), shares.to(layer.pattern), (gold.heads >= 0).any(-1)

    arcs, shares, has = once_per_batch(layer, "arcs", make)
    if not has.any():
        return
    sent = words.sum(-1)
    total = torch.linalg.vecdot(words.flatten(2), arcs.flatten(1)[:, None])
    chance = (sent * shares[:, None]).sum(-1)
    places = [place for place, is_there in zip(layer.batch.places[layer.rows], has.tolist(), strict=True) if is_there]
    yield Tally(layer.heads, places, total[has], sent.sum(-1)[has], chance[has])
