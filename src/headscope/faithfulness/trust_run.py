"""From a run of the tests to a verdict for every head, layer and the whole model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headscope.faithfulness.trust_measure import REASON, YARDSTICK, Scope
from headscope.faithfulness.verdict_rule import (
    LEAST_TEXTS,
    TrustVerdict,
    VerdictPart,
    agreement,
    combine,
    exclusive,
    need,
)
from headscope.faithfulness.verdict_text import SUMMARIES, sentence
from headscope.runs import MeasureTable
from headscope.sites import Head


@dataclass(frozen=True)
class HeadTrust:
    """What the tests say of one head (or of heads that were replaced together): the verdict, its parts, sentences, and
    the mean of every figure over `n_texts`.
    """

    name: str
    verdict: TrustVerdict
    parts: tuple[VerdictPart, ...]
    figures: Mapping[str, float]
    n_texts: int
    summary: str
    sentences: tuple[str, ...]

    def part(self, name: str) -> VerdictPart:
        """The part "agreement", "need" or "exclusive"."""
        return next(part for part in self.parts if part.name == name)

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary; `from_json` reads it back."""
        plain = vars(self) | {"parts": [vars(part) for part in self.parts], "figures": dict(self.figures)}
        return plain | {"sentences": list(self.sentences)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "HeadTrust":
        """What `to_json` wrote; null is a figure that there is none of."""
        rows: list[dict[str, Any]] = [{name: _number(value) for name, value in part.items()} for part in data["parts"]]
        parts = tuple(VerdictPart(**row) for row in rows)
        figures = {name: _number(value) for name, value in data["figures"].items()}
        return cls(**(data | {"parts": parts, "figures": figures, "sentences": tuple(data["sentences"])}))


def verdicts(
    table: MeasureTable, scope: Scope, heads: Sequence[Head], *, was_searched: bool, seed_change: float | None = None
) -> list[HeadTrust]:
    """The verdict of every head, from what a run counted; of a layer or the model for the other scopes."""
    keys = table.keys()
    values = {key: text_values(table, key, heads) for key in keys if not key.startswith(REASON)}
    reasons = _reasons(table, heads)
    n_texts = max((len(column) for column in values.values()), default=0)
    nothing = np.full((n_texts, len(heads)), np.nan)

    def of(name: str) -> np.ndarray:
        return values.get(name, nothing)

    yardstick = of(YARDSTICK)[:, 0] if n_texts else np.zeros(0)
    parts = zip(
        agreement(of("tau_gradient"), of("tau_left_out"), yardstick),
        need(of("change_permuted"), of("change_uniform"), seed_change),
        exclusive(of("farthest_share"), was_searched=was_searched),
        strict=True,
    )
    trusts = []
    for place, (head, head_parts) in enumerate(zip(heads, parts, strict=True)):
        figures = {name: _mean(column[:, place]) for name, column in values.items()}
        trusts.append(_head_trust(label(head, scope), head_parts, figures, reasons.get(head, "")))
    return trusts


def text_values(table: MeasureTable, key: str, heads: Sequence[Head]) -> np.ndarray:
    """One figure of every text [text, head], NaN where it was not tested."""
    blocks = table.blocks(key)
    values = np.full((len(blocks.total), len(heads)), np.nan)
    column_of = {head: column for column, head in enumerate(blocks.heads)}
    for place, head in enumerate(heads):
        if head in column_of:
            column = column_of[head]
            counts = blocks.n_queries[:, column]
            values[:, place] = np.divide(
                blocks.total[:, column], counts, out=np.full(len(counts), np.nan), where=counts > 0
            )
    return values


def label(head: Head, scope: Scope) -> str:
    """The name of what was replaced: a head, its layer, or all heads."""
    return {"heads": str(head), "layers": str(head.site), "model": "all heads"}[scope]


def _head_trust(name: str, parts: Sequence[VerdictPart], figures: Mapping[str, float], reason: str) -> HeadTrust:
    if reason:  # other reasons of a part have nothing to do with texts in which the head could not be tested
        parts = [replace(part, reason=f"{part.reason}; {reason}") if part.n < LEAST_TEXTS else part for part in parts]
    verdict = combine(parts)
    sentences = tuple(sentence(part, figures) for part in parts)
    return HeadTrust(name, verdict, tuple(parts), figures, max(part.n for part in parts), SUMMARIES[verdict], sentences)


def _reasons(table: MeasureTable, heads: Sequence[Head]) -> dict[Head, str]:
    """The most frequent reason why a head was not tested, with the number of texts."""
    counts: dict[Head, dict[str, float]] = {}
    keys = table.keys()
    for key in keys:
        if key.startswith(REASON):
            sums = table.sums(key)
            for head, count in zip(sums.heads, sums.total, strict=True):
                counts.setdefault(head, {})[key.removeprefix(REASON)] = float(count)
    first = {head: max(counts[head], key=lambda reason: counts[head][reason]) for head in heads if head in counts}
    return {head: f"in {counts[head][reason]:.0f} texts {reason}" for head, reason in first.items()}


def _mean(values: np.ndarray) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else float("nan")


def _number(value: Any) -> Any:
    return float("nan") if value is None else value
