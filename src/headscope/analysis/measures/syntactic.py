"""Syntactic heads: those that find the other end of a dependency (Voita et al., 2019, section 5.2)."""

from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np
import torch
from torch import Tensor

from headscope.analysis.measures.content_rows import once_per_batch, strongest
from headscope.analysis.measures.counted_in_groups import Grouped
from headscope.analysis.measures.treebank_words import by_words, trees
from headscope.corpora import Example
from headscope.runs import Layer, MeasureTable
from headscope.runs.measure import Tallies
from headscope.scores import Scores

# "if its accuracy is at least 10 % higher than the baseline": in points.
MARGIN = 0.1
# Relations with fewer cases say nothing.
FEWEST = 20
TO_HEAD, TO_DEPENDENT = "→head", "→dependent"

Offsets = dict[str, Counter[int]]


class Syntactic(Grouped):
    """For each relation and direction, the share of words whose largest weight is on the other end.

    Keys are "nsubj→head" (from the subject to its verb) and "nsubj→dependent". A head with several dependents of one
    relation counts once, and finds it by any of them. Attention is by words: to a split word the sum over its pieces,
    from it the mean, no special tokens, and nothing to itself (Clark et al., 2019). `baselines` are the accuracy of
    always looking at the most frequent offset of that relation and direction; `settings["syntactic"]` names the heads
    that are ten points better.
    """

    def __init__(self, name: str, offsets: Mapping[str, int], relations: Iterable[str] | None = None):
        known = sorted({key.partition("→")[0] for key in offsets})
        self.relations = [relation for relation in known if relations is None or relation in set(relations)]
        keys = [relation + way for way in (TO_HEAD, TO_DEPENDENT) for relation in self.relations]
        modal = {key: int(offsets[key]) for key in keys}
        super().__init__(name, keys, {"offsets": modal, "margin": MARGIN})
        self.numbers = {relation: at for at, relation in enumerate(self.relations)}

    def watch(self, layer: Layer) -> Tallies:
        """Every relation, both ways."""
        words = by_words(layer)
        if words is None or not self.relations:
            return ()
        gold = trees(layer, self.numbers)
        marks, n_sources, baseline = once_per_batch(layer, f"relations {self.name}", lambda: self._sources(layer))
        if not bool(n_sources.any()):
            return ()
        n_heads, n_words = words.shape[1:3]
        others = 1 - torch.eye(n_words, device=words.device)
        looked = strongest(words * others)[1]  # [example, head, word]
        to_head = ((looked == gold.heads[:, None]) & (looked >= 0)).to(words) @ marks
        # A word that looks at one of its dependents has found it, by the relation of that dependent.
        at = looked.clamp_min(0)
        spread = (gold.heads[:, None].expand(-1, n_heads, -1), gold.relations[:, None].expand(-1, n_heads, -1))
        heads, relations = (links.gather(2, at) for links in spread)
        places = torch.arange(n_words, device=words.device)
        is_found = (looked >= 0) & (heads == places) & (relations >= 0)
        to_dependent = words.new_zeros(*words.shape[:2], len(self.relations) + 1)
        to_dependent.scatter_add_(
            2, torch.where(is_found, relations, len(self.relations)), to_dependent.new_ones(()).expand_as(at)
        )
        total = torch.cat([to_head, to_dependent[..., :-1]], -1)
        self.count(layer, total, n_sources[:, None], baseline[:, None], has=n_sources > 0)
        return ()

    def _sources(self, layer: Layer) -> tuple[Tensor, Tensor, Tensor]:
        """1 where a word has a relation to its head [example, word, relation]; how many sources each key has, and how
        many of them the modal offset finds [example, key].
        """
        gold = trees(layer, self.numbers)
        heads, relations = gold.heads.cpu().numpy(), gold.relations.cpu().numpy()
        row, word = np.nonzero((heads >= 0) & (relations >= 0))
        head, relation = heads[row, word], relations[row, word]
        marks, below, right, right_below = np.zeros((4, *heads.shape, len(self.relations)), dtype=np.float32)
        marks[row, word, relation] = below[row, head, relation] = 1.0
        modal = self.settings["offsets"]
        to_head, to_dependent = (
            np.array([modal[relation + way] for relation in self.relations]) for way in (TO_HEAD, TO_DEPENDENT)
        )
        right[row, word, relation] = head - word == to_head[relation]
        at = word - head == to_dependent[relation]
        right_below[row[at], head[at], relation[at]] = 1.0
        n_sources = np.concatenate([marks.sum(1), below.sum(1)], -1)
        baseline = np.concatenate([right.sum(1), right_below.sum(1)], -1)
        device = layer.pattern.device
        of_head, sources, found_by_offset = (
            torch.from_numpy(counts).to(device) for counts in (marks, n_sources, baseline)
        )
        return of_head, sources, found_by_offset

    def finish(self, table: MeasureTable) -> dict[str, Scores]:
        """Accuracy by relation and direction, those with few cases left out."""
        scores_by_key, keys = {}, table.keys()
        for key in keys:
            scores = table.mean(key)
            if scores.settings["queries"] < FEWEST:
                continue
            better = [str(head) for head, value in scores.items() if value >= (scores.baseline or 0.0) + MARGIN]
            settings = {"offset": self.settings["offsets"][key], "margin": MARGIN, "syntactic": better}
            settings["queries"] = scores.settings["queries"]
            scores_by_key[key] = Scores(
                scores.method,
                scores.values_by_head,
                settings,
                scores.n_samples,
                scores.baseline,
                scores.intervals,
                scores.baselines,
            )
        return scores_by_key


def count_offsets(examples: Iterable[Example]) -> Offsets:
    """How often each relation, in each direction, lies at each distance in words. Needs no model."""
    offsets: Offsets = {}
    for example in examples:
        add_offsets(offsets, example)
    return offsets


def add_offsets(offsets: Offsets, example: Example) -> None:
    """Add one tree's. A head with several dependents of one relation counts at each offset that would find one."""
    for word, (head, relation) in enumerate(zip(example.heads, example.relations, strict=True)):
        if head >= 0:
            offsets.setdefault(relation + TO_HEAD, Counter())[head - word] += 1
            offsets.setdefault(relation + TO_DEPENDENT, Counter())[word - head] += 1


def modal_offsets(offsets: Offsets) -> dict[str, int]:
    """The most frequent offset of each relation and direction; the nearer of equals, and the one before."""
    return {
        key: min(counts, key=lambda offset: (-counts[offset], abs(offset), offset)) for key, counts in offsets.items()
    }
