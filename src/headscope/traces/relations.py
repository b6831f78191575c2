"""The same relation in two models: which of its heads does each use to look from one word to another?"""

from dataclasses import dataclass

from headscope.errors import InputError
from headscope.sites import Head
from headscope.traces.pattern_reading import Reading
from headscope.traces.token_attention import usual_at_distance, weight_between
from headscope.traces.trace import Trace

MOST_CELLS = 2**31


@dataclass(frozen=True)
class RelatedHead:
    """One head: its rank in its own model, how much the source word gives the target word, what it gives any word at
    that distance, and how deep it lies (0 the first layer, 1 the last)."""

    rank: int
    head: Head
    weight: float
    baseline: float
    depth: float

    @property
    def above(self) -> float:
        """How far the weight is above the head's own habit."""
        return self.weight - self.baseline


@dataclass(frozen=True)
class Ranking:
    """All heads of one model, those furthest above their own baseline first; `note` says why all are 0, if they are."""

    model: str
    heads: tuple[RelatedHead, ...]
    n_layers: int
    note: str = ""


@dataclass(frozen=True)
class Relation:
    """From a source word to a target word in two runs."""

    source: str
    target: str
    a: Ranking
    b: Ranking

    def top(self, k: int = 5) -> list[tuple[str, RelatedHead]]:
        """The k best heads of each model, with the model's name."""
        return [(side.model, head) for side in (self.a, self.b) for head in side.heads[:k]]

    def table(self, k: int = 10) -> list[dict[str, object]]:
        """The same as rows: model, rank, head, weight, baseline, above, depth. `pandas.DataFrame` takes them."""
        return [
            {
                "model": model,
                "rank": row.rank,
                "head": str(row.head),
                "weight": row.weight,
                "baseline": row.baseline,
                "above": row.above,
                "depth": row.depth,
            }
            for model, row in self.top(k)
        ]

    def __str__(self) -> str:
        lines = [f"{self.source} → {self.target}"]
        for side in (self.a, self.b):
            lines += ["", side.model + (f": {side.note}" if side.note else "")]
            lines += [
                f"  {row.rank:>3}  {row.head!s:<13} {row.weight:6.3f}  usual {row.baseline:6.3f} depth {row.depth:4.2f}"
                for row in side.heads[:5]
            ]
        return "\n".join(lines)


def ranking(trace: Trace, stack: str, reading: Reading, source: list[int], target: list[int]) -> Ranking:
    """Rank the heads of one stack by what the source words give the target words, against what other words give
    their words at that distance. `source` and `target` are places in the reading."""
    layers = [layer for layer in trace.layers.values() if layer.site.stack == layer.key_stack == stack]
    layers = [layer for layer in layers if layer.n_queries == layer.n_keys == len(trace.tokens[stack])]
    if not layers:
        raise InputError(f"{trace.model} has no attention within {stack} in which words could be looked up.")
    cells = sum(layer.n_heads * layer.n_queries**2 for layer in layers)
    if cells > MOST_CELLS:
        raise InputError(
            f"{trace.model} has {cells:,} weights to go through for this, more than {MOST_CELLS:,}: use a shorter text."
        )
    ranked = []
    depths = [layer.site.layer for layer in layers]
    span = max(1, max(depths) - min(depths))
    for layer in layers:
        for index, head in enumerate(layer.heads()):
            pattern = reading.rows(reading.columns(layer.pattern(index).float().cpu()))[None]
            weight = float(weight_between(pattern.double(), source, target))
            usual = float(usual_at_distance(pattern, source, target, reading.tokens))
            ranked.append((head, weight, usual, (layer.site.layer - min(depths)) / span))
    ranked.sort(key=lambda row: (row[2] - row[1], row[0]))
    heads = tuple(RelatedHead(rank, *row) for rank, row in enumerate(ranked, 1))
    is_blind = all(head.weight == 0 for head in heads)
    note = "it never looks that way: its tokens see what comes before them only" if is_blind else ""
    return Ranking(trace.model, heads, len(layers), note)
