"""Heads that look from one sentence to the other because the two belong together (Vig, 2019, section 4.2).

A head that merely spreads its attention crosses over as well: so each pair is compared with the same first sentence
beside the second of another pair, one of about the same length.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headscope.analysis.measures.measure import MEASURES, samples_on
from headscope.analysis.statistics import paired_test
from headscope.analysis.usecases.applicability import check_fits
from headscope.analysis.usecases.pronoun_sentences import schemas
from headscope.errors import InputError
from headscope.models import Model
from headscope.progress import Cancel, OnProgress, Steps
from headscope.scores import Scores
from headscope.sites import Head
from headscope.traces import Trace


@dataclass(frozen=True, eq=False)
class Between:
    """Per head, the share of attention that crosses between the sentences, in real pairs and in shuffled ones.

    `scores.baselines` are the shuffled shares; `differences` are real less shuffled, with intervals; `p_values` are
    corrected for the number of heads.
    """

    scores: Scores
    differences: Scores
    p_values: dict[Head, float]

    def significant(self, level: float = 0.05) -> list[tuple[Head, float, float]]:
        """Heads that cross more in real pairs than in shuffled ones: head, share, share when shuffled."""
        ranked = self.scores.above(len(self.scores))
        return [row for row in ranked if self.p_values[row[0]] <= level and row[1] > row[2]]


def between_sentences(
    model: Model,
    pairs: Sequence[tuple[str, str]] | None = None,
    *,
    seed: int = 0,
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> Between:
    """Rank heads by how much more they cross between sentences that belong together; built-in pairs unless given."""
    check_fits("between_sentences", model, needs_pairs=True)
    chosen = list(pairs) if pairs is not None else built_in_pairs()
    if len(chosen) < 2:
        raise InputError(f"shuffling needs at least two pairs, got {len(chosen)}.")
    partner = _shuffle(chosen)
    real, shuffled, heads = [], [], []
    steps = Steps("sentence pairs", len(chosen), progress, cancel)
    for place, (first, second) in enumerate(chosen):
        steps.next()
        together = model.run(first, pair=second, record="heads", cancel=cancel)
        apart = model.run(first, pair=chosen[partner[place]][1], record="heads", cancel=cancel)
        heads = [head for head in together.heads if head.kind == "self" and head.stack == "main"]
        real.append(_crossing_shares(together))
        shuffled.append(_crossing_shares(apart))
    test = paired_test(np.array(real) - np.array(shuffled), seed=seed)
    scores = Scores(
        "attention between the sentences",
        dict(zip(heads, map(float, np.mean(real, 0)), strict=True)),
        settings={"pairs": len(chosen), "seed": seed},
        n_samples=len(chosen),
        baseline=float(np.mean(shuffled)),
        intervals={},
        baselines=dict(zip(heads, map(float, np.mean(shuffled, 0)), strict=True)),
    )
    differences = test.scores("real less shuffled", heads, len(chosen), {"pairs": len(chosen), "seed": seed})
    return Between(scores, differences, test.p_values(heads))


def built_in_pairs() -> list[tuple[str, str]]:
    """Three hundred pairs of built-in sentences about the same two people."""
    by_people: dict[tuple[str, str], list[str]] = {}
    for schema in schemas():
        by_people.setdefault((schema.occupation, schema.participant), []).append(schema.text("she"))
    return [
        (texts[first], texts[second])
        for texts in by_people.values()
        for first in range(len(texts))
        for second in range(first + 1, len(texts))
    ]


def _shuffle(pairs: Sequence[tuple[str, str]]) -> list[int]:
    """For each pair, another whose second sentence is about as long and not the same: length alone draws attention."""
    order = sorted(range(len(pairs)), key=lambda place: (len(pairs[place][1]), pairs[place][1], place))
    partner = [0] * len(pairs)
    for rank, place in enumerate(order):
        others = (order[(rank + step) % len(order)] for step in range(1, len(order)))
        other = next((candidate for candidate in others if not set(pairs[candidate]) & set(pairs[place])), None)
        if other is None:
            raise InputError(f"no other pair has sentences of its own to stand beside {pairs[place][0]!r}.")
        partner[place] = other
    return partner


def _crossing_shares(trace: Trace) -> np.ndarray:
    """The mean share of attention from A to B and from B to A, in every head [head]."""
    shares = []
    for site in trace.layers:
        if site.kind != "self" or site.stack != "main":
            continue
        totals = np.zeros(trace.layers[site].n_heads)
        counts = 0.0
        for name in ("a_to_b", "b_to_a"):
            target = MEASURES[name].target
            samples = None if target is None else samples_on(trace, site, target)
            if samples is None:
                raise InputError("between_sentences needs a model that takes sentence pairs.")
            totals += [sample.total for sample in samples]
            counts += samples[0].n_queries
        shares.append(totals / counts)
    return np.concatenate(shares)
