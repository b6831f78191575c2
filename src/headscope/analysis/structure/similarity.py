"""Which heads are alike: Jensen-Shannon divergence between their patterns (Clark et al., 2019, section 6), and a map.

JSD(p, q) = H((p + q) / 2) − (H(p) + H(q)) / 2 in nats: 0 for equal patterns, ln 2 for patterns that share no key.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headscope.analysis.corpus_in_memory import count_corpus
from headscope.attention.divergence import MOST_JENSEN_SHANNON, pairwise_jensen_shannon
from headscope.errors import InputError
from headscope.models import Model
from headscope.progress import Cancel, OnProgress
from headscope.runs import CorpusBatch, Layer, Measure
from headscope.runs.measure import Tallies
from headscope.scores import Scores
from headscope.sites import Head, Site

# Queries of one example that are compared; of a longer one so many are drawn, so that memory stays bounded.
MAX_QUERIES = 64
_BATCH_TOKENS = 2048


@dataclass(frozen=True, eq=False)
class Similarity:
    """Divergence of every head from every other [head, head], a mean over queries, in nats."""

    heads: tuple[Head, ...]
    divergences: np.ndarray
    n_queries: int
    n_examples: int

    def between(self, first: str | Head, second: str | Head) -> float:
        """The divergence of two heads."""
        names = [str(head) for head in self.heads]
        for head in (first, second):
            if str(head) not in names:
                raise InputError(f"{head} was not compared: the heads are {names[0]} to {names[-1]}.")
        return float(self.divergences[names.index(str(first)), names.index(str(second))])

    def nearest(self, head: str | Head, k: int = 3) -> list[tuple[Head, float]]:
        """The k heads that are most like a head."""
        others = [(other, self.between(head, other)) for other in self.heads if str(other) != str(head)]
        return sorted(others, key=lambda pair: (pair[1], pair[0]))[:k]

    def apartness(self) -> Scores:
        """The mean divergence of each head from all others: how much it is a head of its own."""
        n = len(self.heads)
        means = self.divergences.sum(1) / max(n - 1, 1)
        settings = {"queries": self.n_queries, "unit": "nats", "largest possible": MOST_JENSEN_SHANNON}
        return Scores("apartness", dict(zip(self.heads, means.tolist(), strict=True)), settings, self.n_examples)

    def by_layer(self) -> tuple[float, float]:
        """The mean divergence of two heads of one layer, and of two heads of different layers."""
        layers = np.array([head.layer for head in self.heads])
        is_pair = np.triu(np.ones_like(self.divergences, dtype=bool), 1)
        is_same = layers[:, None] == layers
        with np.errstate(invalid="ignore"):
            within, across = self.divergences[is_pair & is_same], self.divergences[is_pair & ~is_same]
        return tuple(float(pairs.mean()) if pairs.size else float("nan") for pairs in (within, across))  # type: ignore

    def map(self, n_dimensions: int = 2) -> "Map":
        """A place for each head, so that squared distances come near the divergences."""
        return classical_scaling(self.divergences, n_dimensions)

    def clusters(self, n: int) -> list[list[Head]]:
        """Heads in n groups by average linkage, largest first: the two groups least apart are joined, and so on."""
        return [[self.heads[place] for place in group] for group in average_linkage(self.divergences, n)]


@dataclass(frozen=True, eq=False)
class Map:
    """Places [head, dimension], and the share of all squared distance that they keep."""

    places: np.ndarray
    share: float


def head_similarity(
    model: Model,
    source: Any,
    *,
    among: str | None = None,
    limit: int | None = None,
    seed: int = 0,
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> Similarity:
    """Compare all heads that attend between the same tokens, over a corpus.

    `among` is a stack, or "cross"; by default the stack that reads the input. Every real query counts, special tokens
    too; of an example with more than 64, 64 are drawn. Memory does not grow with the corpus.
    """
    watch = _Comparing(_sites(model, among))
    options = {"limit": limit, "seed": seed, "progress": progress, "cancel": cancel}
    table = count_corpus(model, source, watch, batch_tokens=_BATCH_TOKENS, **options)
    if not watch.n_queries:
        raise InputError(f"nothing could be compared: {table.why()}")
    divergences = watch.total / watch.n_queries
    return Similarity(tuple(watch.heads), divergences, watch.n_queries, table.n_examples)


@dataclass
class _Comparing(Measure):
    """Holds the patterns of one batch, layer by layer, and compares them when it has passed."""

    sites: Sequence[Site]
    name: str = "similarity"
    settings: dict[str, Any] = field(default_factory=dict)

    def start(self, model: Model) -> None:
        self.heads = [head for head in model.heads if head.site in self.sites]
        self.total, self.n_queries = np.zeros((len(self.heads), len(self.heads))), 0
        self._patterns: dict[int, dict[Head, Tensor]] = {}  # by the first example that is shown

    def watch(self, layer: Layer) -> Tallies:
        if layer.site in self.sites:
            rows = layer.batch.once(
                ("compared", layer.rows.start, layer.pattern.shape[2]), lambda: _choose_queries(layer)
            )
            chosen = layer.pattern.transpose(1, 2)[rows[:, 0], rows[:, 1]]  # [query, head, key]
            patterns_by_head = self._patterns.setdefault(layer.rows.start, {})
            patterns_by_head.update({head: chosen[:, at].clone() for at, head in enumerate(layer.heads)})
        return ()

    def update(self, batch: CorpusBatch) -> Tallies:
        for patterns_by_head in self._patterns.values():
            shapes = {tuple(patterns.shape) for patterns in patterns_by_head.values()}
            if len(shapes) > 1 or len(patterns_by_head) < len(self.heads):
                raise InputError("the heads of this model attend over different grids: they cannot be compared.")
            patterns = torch.stack([patterns_by_head[head] for head in self.heads])
            self.total += pairwise_jensen_shannon(patterns).cpu().numpy()
            self.n_queries += patterns.shape[1]
        self._patterns.clear()
        return ()


def classical_scaling(squared: np.ndarray, n_dimensions: int = 2) -> Map:
    """Places whose squared distances are nearest to those given [head, head] (Torgerson, 1952).

    The root of a Jensen-Shannon divergence is a Euclidean distance, and so is that of a mean of them: with enough
    dimensions the map is exact.
    """
    n = len(squared)
    centre = np.eye(n) - 1 / n
    values, vectors = np.linalg.eigh(-centre @ squared @ centre / 2)
    order = np.argsort(-values)[:n_dimensions]
    places = vectors[:, order] * np.sqrt(np.clip(values[order], 0.0, None))
    # An eigenvector has no sign of its own: the largest coordinate is made positive, so that maps come out the same.
    signs = np.sign(places[np.abs(places).argmax(0), np.arange(places.shape[1])])
    whole = np.clip(values, 0.0, None).sum()
    share = float(np.clip(values[order], 0.0, None).sum() / whole) if whole > 0 else 1.0
    return Map(places * np.where(signs == 0, 1.0, signs), share)


def average_linkage(distances: np.ndarray, n: int) -> list[list[int]]:
    """Average linkage: places of heads in n groups, largest first."""
    if not 1 <= n <= len(distances):
        raise InputError(f"{len(distances)} heads make 1 to {len(distances)} groups, got {n}.")
    groups = [[place] for place in range(len(distances))]
    means = distances.astype(np.float64)
    np.fill_diagonal(means, np.inf)
    while len(groups) > n:
        keep, drop = sorted(divmod(int(means.argmin()), len(groups)))
        sizes = len(groups[keep]), len(groups[drop])
        means[keep] = means[:, keep] = (sizes[0] * means[keep] + sizes[1] * means[drop]) / sum(sizes)
        means[keep, keep] = np.inf
        means = np.delete(np.delete(means, drop, axis=0), drop, axis=1)
        groups[keep] = sorted(groups[keep] + groups.pop(drop))
    return sorted(groups, key=lambda group: (-len(group), group))


def _choose_queries(layer: Layer) -> Tensor:
    """Which queries are compared: the real ones, or so many of them [query, (example, position)]."""
    rng, queries = layer.batch.rng(), []
    for row, real in enumerate(layer.queries.cpu().numpy()):
        positions = np.flatnonzero(real)
        if len(positions) > MAX_QUERIES:
            positions = np.sort(rng.choice(positions, MAX_QUERIES, replace=False))
        queries += [(row, position) for position in positions.tolist()]
    return torch.tensor(queries, device=layer.pattern.device)


def _sites(model: Model, among: str | None) -> list[Site]:
    sites = [layer.site for layer in model.layout.layers]
    if among is None:
        among = next(site.stack for site in sites if site.kind == "self")
    matching = [site for site in sites if (site.kind == among if among == "cross" else site.stack == among)]
    matching = [site for site in matching if site.kind == ("cross" if among == "cross" else "self")]
    if not matching:
        there = dict.fromkeys("cross" if site.kind == "cross" else site.stack for site in sites)
        raise InputError(f"there are no heads in {among!r}: choose one of {', '.join(there)}.")
    return matching
