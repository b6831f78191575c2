"""How heads treat long inputs: what rests on the first token, how much stays near, how many tokens hold the rest.

Only self-attention is counted. Chance is what even attention to all that a query can see would give.
"""

import math

import torch
from torch import Tensor

from headscope.analysis.measures.content_rows import once_per_batch
from headscope.runs import Layer, MeasureTable, OfLayers
from headscope.runs.measure import Tallies
from headscope.scores import Scores

# Heads whose mean weight on the first token is above this are sinks (Gu et al., 2025, section 3).
SINK = 0.3
# The last tokens that recency counts, the query's own among them.
WINDOW = 64
# The share of the mass that an effective span holds.
SPAN_MASS = 0.9
# Evenly spaced queries whose span is counted, at most: their weights are sorted.
MAX_QUERIES = 64


class Sink(OfLayers):
    """The weight of every later query on the first token.

    `settings["sinks"]` of the scores names the heads whose mean is above 0.3, and `settings["sink_rate"]` is their
    share of all heads.
    """

    def __init__(self, name: str = "sink"):
        super().__init__(name, weight_on_first)

    def finish(self, table: MeasureTable) -> Scores | dict[str, Scores]:
        """The means, and which heads are sinks."""
        scores = super().finish(table)
        if isinstance(scores, Scores):
            known = [head for head, value in scores.items() if value == value]
            sinks = [str(head) for head in known if scores[head] > SINK]
            scores.settings.update(criterion=SINK, sinks=sinks, sink_rate=len(sinks) / max(1, len(known)))
        return scores


def weight_on_first(layer: Layer) -> Tallies:
    """The weight on the first token, of all queries but the first itself."""
    if layer.site.kind != "self":
        return
    later = layer.queries.clone()
    later[:, 0] = False
    total = (layer.pattern[..., 0] * later[:, None]).sum(-1)
    yield layer.tally(total, later.sum(-1), (later / layer.visible).sum(-1))


def recency(layer: Layer) -> Tallies:
    """The weight on the first token and the last 64, of queries that see more than these; causal layers alone."""
    if layer.site.kind != "self" or not layer.is_causal:
        return
    counts = layer.queries & (layer.visible > WINDOW + 1)
    if not bool(counts.any()):
        return

    def near() -> Tensor:
        place = torch.arange(layer.pattern.shape[3], device=layer.pattern.device)
        behind = torch.arange(layer.pattern.shape[2], device=layer.pattern.device)[:, None] - place
        return (((behind >= 0) & (behind < WINDOW)) | (place == 0)).to(layer.pattern.dtype)

    weights = torch.linalg.vecdot(layer.pattern, once_per_batch(layer, "recent keys", near).expand_as(layer.pattern))
    chance = (counts * (WINDOW + 1) / layer.visible).sum(-1)
    yield layer.tally((weights * counts[:, None]).sum(-1), counts.sum(-1), chance)


def effective_span(layer: Layer) -> Tallies:
    """The smallest number of tokens that hold 90 % of a query's attention; of at most 64 evenly spaced queries."""
    if layer.site.kind != "self":
        return
    step = max(1, math.ceil(layer.pattern.shape[2] / MAX_QUERIES))
    some = slice(step - 1, None, step)
    counts, visible = layer.queries[:, some], layer.visible[:, some]
    mass = layer.pattern[:, :, some].sort(-1, descending=True).values.cumsum(-1)
    spans = 1 + (mass < SPAN_MASS * mass[..., -1:] - 1e-6).sum(-1)
    even = (SPAN_MASS * visible - 1e-6).ceil()
    yield layer.tally((spans * counts[:, None]).sum(-1), counts.sum(-1), (even * counts).sum(-1))
