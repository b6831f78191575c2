"""Figures of a row: how large its largest weight is, how spread out, how far away.

Of a trace the summary holds them already, at any length: no pattern is computed for them. Over a corpus they are
counted as the patterns pass. Chance is what even attention to all that a query can see would give.
"""

import torch
from torch import Tensor

from headscope.analysis.measures.content_rows import once_per_batch, rows
from headscope.runs import Layer
from headscope.runs.measure import Sample, Tallies
from headscope.traces import LayerRecord

# Of a trace


def summary_peak_weight(layer: LayerRecord) -> list[Sample]:
    """The largest weight of each query, on any key."""
    return _means(layer.summary.max, 1 / _visible(layer))


def summary_entropy(layer: LayerRecord) -> list[Sample]:
    """How spread out each query's attention is, in nats."""
    return _means(layer.summary.entropy, _visible(layer).log())


def summary_distance_all_keys(layer: LayerRecord) -> list[Sample]:
    """How far away each query looks, in tokens: Σ a |i − j| over all keys."""
    return _means(layer.summary.distance, even_distance(_visible(layer), layer.n_queries))


# Over a corpus


def peak_weight(layer: Layer) -> Tallies:
    """The largest weight of each query, on any key."""
    yield _over_queries(layer, layer.pattern.amax(-1), 1 / layer.visible)


def confidence(layer: Layer) -> Tallies:
    """The largest weight of each query on a kept key (Voita et al., 2019, section 4: the end of the sentence is
    excluded as a key, and weights are not renormalised).
    """
    content = rows(layer)
    queries = content.tokens.queries
    chance = (queries / layer.visible).sum(-1)
    yield layer.tally((content.largest * queries[:, None]).sum(-1), queries.sum(-1), chance)


def entropy(layer: Layer) -> Tallies:
    """− Σ a log a, in nats."""
    logs = layer.pattern.clamp_min(torch.finfo(layer.pattern.dtype).tiny).log_()
    entropies = torch.linalg.vecdot(layer.pattern, logs).neg_().clamp_min_(0.0)
    yield _over_queries(layer, entropies, layer.visible.log())


def distance_all_keys(layer: Layer) -> Tallies:
    """Σ a |i − j| over all keys (`distance` excludes those that heads park on)."""
    distances = torch.linalg.vecdot(layer.pattern, _apart(layer).expand_as(layer.pattern))
    yield _over_queries(layer, distances, even_distance(layer.visible, layer.pattern.shape[2]))


def distance(layer: Layer) -> Tallies:
    """Σ a |i − j| / Σ a over kept keys (Vig & Belinkov, 2019, section 5.4, who exclude the first token)."""
    content = rows(layer)
    apart, seen = _apart(layer), content.tokens

    def even() -> Tensor:
        keys = seen.keys[:, None].to(apart).expand(-1, len(apart), -1)
        pairs = keys.tril() if layer.is_causal else keys
        return (pairs * apart).sum(-1) / seen.seen.clamp_min(1)

    total = (content.pattern * apart).sum(-1) * seen.queries[:, None]
    chance = (content.sent * once_per_batch(layer, "even distance", even)[:, None]).sum(-1)
    yield layer.tally(total.sum(-1), content.sent.sum(-1), chance)


def even_distance(visible: Tensor, n_queries: int) -> Tensor:
    """The mean |i − j| of query i over the first `visible` keys [..., query]."""
    place, count = torch.arange(n_queries, device=visible.device), visible.double()
    around = (place * (place + 1) + (count - 1 - place) * (count - place)) / (2 * count)
    return torch.where(place < count, around, place - (count - 1) / 2).float()


# Inside


def _over_queries(layer: Layer, values: Tensor, even: Tensor):
    """Sums over real queries of a figure [example, head, query], with what even attention would give."""
    real = layer.queries
    return layer.tally((values * real[:, None]).sum(-1), real.sum(-1), (even * real).sum(-1))


def _apart(layer: Layer) -> Tensor:
    """|i − j| [query, key]."""

    def make() -> Tensor:
        n_queries, n_keys = layer.pattern.shape[2:]
        query, key = (torch.arange(n, device=layer.pattern.device) for n in (n_queries, n_keys))
        return (query[:, None] - key).abs().to(layer.pattern.dtype)

    return once_per_batch(layer, "apart", make)


def _visible(layer: LayerRecord) -> Tensor:
    """How many keys each query of a record can see, windows aside [query]."""
    seen = torch.arange(1, layer.n_queries + 1)
    return seen.clamp_max(layer.n_keys) if layer.is_causal else torch.full_like(seen, layer.n_keys)


def _means(values: Tensor, even: Tensor) -> list[Sample]:
    """Sums over queries of a figure [head, query]; rows of padding are NaN and count for nothing."""
    known = ~torch.isnan(values)
    totals, counts = values.double().nan_to_num().mul(known).sum(1), known.sum(1)
    chances = (even.double().to(values.device) * known).sum(1)
    return [Sample(*map(float, sums)) for sums in zip(totals, counts, chances, strict=True)]
