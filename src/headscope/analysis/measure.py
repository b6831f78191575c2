"""From traces to Scores: every measure gives samples, and this averages them, with chance and an interval."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headscope.analysis import across, patches, tokens
from headscope.errors import HeadscopeError
from headscope.scores import Scores
from headscope.sites import Head
from headscope.traces import Trace

N_RESAMPLES = 1000


@dataclass(frozen=True)
class Measure:
    """A quantity of one head on one input: its mean over the queries it is about, and what chance would give.

    `samples(trace)` yields for each head the weight sums and how many queries they are of; `applies` says to which
    inputs.
    """

    name: str
    samples: Callable[..., Iterator[tuple[Head, "Sample"]]]
    about: str


Sample = tokens.Sample

# Every measure by its name. Adding one is adding a function that yields samples, and a line here.
MEASURES: dict[str, Measure] = {
    one.name: one
    for one in (
        Measure("previous_token", tokens.previous_token, "attention to the token just before"),
        Measure("duplicate_token", tokens.duplicate_token, "attention to earlier occurrences of the same token"),
        Measure("induction", tokens.induction, "attention to what followed the same token before"),
        Measure("same_word_across", across.same_word, "share of attention across the pair that goes to the same word"),
        Measure("patch_neighbour", patches.neighbour, "attention from a patch to the eight around it"),
    )
}


def measure(name: str, traces: Trace | Iterable[Trace], **settings: Any) -> Scores:
    """Score every head by a named measure over one trace or many.

    Intervals are bootstrapped over traces, so they are there when there are at least two.

    >>> import headscope as hs
    >>> hs.measure("previous_token", trace).top(3)  # doctest: +SKIP
    """
    if name not in MEASURES:
        raise HeadscopeError(f"there is no measure {name!r}: the measures are {', '.join(MEASURES)}.")
    held: dict[Head, list[Sample]] = {}
    n_traces = 0
    for trace in [traces] if isinstance(traces, Trace) else traces:
        n_traces += 1
        for head, sample in MEASURES[name].samples(trace, **settings):
            held.setdefault(head, []).append(sample)
    if not n_traces:
        raise HeadscopeError(f"there is nothing to measure {name} on: no traces were given.")
    means = {head: _mean(samples) for head, samples in held.items()}
    n_queries = max((sum(one.n_queries for one in samples) for samples in held.values()), default=0)
    chances = [_chance(samples) for samples in held.values()]
    return Scores(
        method=name,
        values_by_head=means,
        settings=settings | {"queries": int(n_queries)},
        n_samples=n_traces,
        baseline=float(np.nanmean(chances)) if chances and not np.isnan(chances).all() else None,
        intervals=_intervals(held) if n_traces > 1 else {},
    )


def _mean(samples: Sequence[Sample]) -> float:
    count = sum(one.n_queries for one in samples)
    return float(sum(one.total for one in samples) / count) if count else float("nan")


def _chance(samples: Sequence[Sample]) -> float:
    count = sum(one.n_queries for one in samples)
    return float(sum(one.chance for one in samples) / count) if count else float("nan")


def _intervals(held: dict[Head, list[Sample]]) -> dict[Head, tuple[float, float]]:
    """95 % bootstrap intervals of the means, resampling traces; the same resamples for every head."""
    n_traces = max(len(samples) for samples in held.values())
    chosen = np.random.default_rng(0).integers(0, n_traces, (N_RESAMPLES, n_traces))
    found = {}
    for head, samples in held.items():
        if len(samples) != n_traces:
            continue
        totals, counts = (np.array([getattr(one, name) for one in samples]) for name in ("total", "n_queries"))
        with np.errstate(invalid="ignore", divide="ignore"):
            means = totals[chosen].sum(1) / counts[chosen].sum(1)
        low, high = np.nanquantile(means, [0.025, 0.975]) if not np.isnan(means).all() else (float("nan"),) * 2
        found[head] = (float(low), float(high))
    return found
