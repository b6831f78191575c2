"""From traces to Scores: every measure gives samples, and this averages them, with chance and an interval."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from headscope.analysis import figures, targets
from headscope.analysis.samples import Sample, chance, interval, mean
from headscope.analysis.targets import Places, Target, TargetOf
from headscope.errors import HeadscopeError, InputError
from headscope.scores import Scores
from headscope.sites import Head, Site
from headscope.traces import LayerRecord, Trace


@dataclass(frozen=True)
class Measure:
    """A quantity of one head on one input: the weight on a target, or a figure of the layer's summary.

    `needs` says which inputs it is about; `unit` is empty for a share between 0 and 1.
    """

    name: str
    about: str
    target: TargetOf | None = None
    figure: Callable[[LayerRecord], list[Sample]] | None = None
    needs: str = "a text"
    unit: str = ""


# Every measure by its name. Adding one is adding a function to targets.py or figures.py, and a line here.
MEASURES: dict[str, Measure] = {
    one.name: one
    for one in (
        Measure("confidence", "the largest weight of each query", figure=figures.confidence),
        Measure("entropy", "how spread out attention is, in nats", figure=figures.entropy, unit="nats"),
        Measure("distance", "how far away a query looks, in tokens", figure=figures.distance, unit="tokens"),
        Measure("self_token", "attention to the token itself", targets.self_token),
        Measure("previous_token", "attention to the token just before", targets.previous_token),
        Measure("next_token", "attention to the token just after", targets.next_token),
        Measure("first_token", "attention to the first token of all", targets.first_token),
        Measure("last_token", "attention to the last token of all", targets.last_token),
        Measure(
            "special_tokens",
            "attention to special tokens",
            targets.special_tokens,
            needs="an input with special tokens, such as [CLS]",
        ),
        Measure(
            "duplicate_token",
            "attention to earlier occurrences of the same token",
            targets.duplicate_token,
            needs="tokens with ids, which it compares: run the model on text",
        ),
        Measure(
            "same_token",
            "attention to other occurrences of the same token",
            targets.same_token,
            needs="tokens with ids, which it compares: run the model on text",
        ),
        Measure(
            "induction",
            "attention to what followed the same token before",
            targets.induction,
            needs="tokens with ids, which it compares: run the model on text",
        ),
        Measure("punctuation", "attention to marks", targets.punctuation, needs="a text with punctuation marks"),
        Measure(
            "paired_marks",
            "attention to the other half of a pair of quotes or brackets",
            targets.paired_marks,
            needs="a text with quotes or brackets that open and close",
        ),
        Measure(
            "names",
            "attention to words with a capital inside a sentence",
            targets.names,
            needs="a text with capital letters inside sentences",
        ),
        Measure(
            "same_word_across",
            "share of attention across the pair that goes to the same word",
            targets.same_word_across,
            needs="a pair of sentences that share words: run the model on a pair",
        ),
        *(
            Measure(
                f"{one.lower()}_to_{other.lower()}",
                f"attention of sentence {one} to sentence {other}",
                targets.between(one, other),
                needs="a pair of sentences: run the model on a pair",
            )
            for one in "AB"
            for other in "AB"
        ),
        Measure(
            "patch_self", "attention from a patch to itself", targets.patch_self, needs="an image: a grid of patches"
        ),
        Measure(
            "patch_neighbour",
            "attention from a patch to the eight around it",
            targets.patch_neighbour,
            needs="an image: a grid of patches",
        ),
        Measure(
            "patch_row",
            "attention from a patch to the rest of its row",
            targets.patch_row,
            needs="an image: a grid of patches",
        ),
        Measure(
            "patch_column",
            "attention from a patch to the rest of its column",
            targets.patch_column,
            needs="an image: a grid of patches",
        ),
    )
}


def measure(name: str, traces: Trace | Iterable[Trace]) -> Scores:
    """Score every head by a named measure over one trace or many.

    Intervals are bootstrapped over traces, so they are there when there are at least two.

    >>> import headscope as hs
    >>> hs.measure("previous_token", trace).top(3)  # doctest: +SKIP
    """
    return measure_all([name], traces)[name]


def measure_all(names: Iterable[str], traces: Trace | Iterable[Trace], *, skip: bool = False) -> dict[str, Scores]:
    """Several measures at once: each pattern is computed once for all of them.

    One that says nothing about these inputs is an error, unless told to `skip` such.
    """
    chosen = [_known(name) for name in names]
    held: dict[str, dict[Head, list[Sample]]] = {one.name: {} for one in chosen}
    n_traces = 0
    for trace in [traces] if isinstance(traces, Trace) else traces:
        n_traces += 1
        for name, head, sample in _samples(trace, chosen):
            held[name].setdefault(head, []).append(sample)
    if not n_traces:
        raise HeadscopeError(f"there is nothing to measure {', '.join(held)} on: no traces were given.")
    for name in [name for name, by_head in held.items() if not by_head]:
        if not skip:
            raise InputError(f"{name} needs {MEASURES[name].needs}.")
        del held[name]
    return {name: scores_of(name, by_head, n_traces) for name, by_head in held.items()}


def scores_of(
    method: str, held: Mapping[Head, list[Sample]], n_traces: int, settings: Mapping[str, object] | None = None
) -> Scores:
    """The means of samples, with what chance would give and, from two traces on, intervals."""
    n_queries = max((sum(one.n_queries for one in samples) for samples in held.values()), default=0)
    baselines = {head: chance(samples) for head, samples in held.items()}
    known = [one for one in baselines.values() if one == one]  # NaN is not itself
    return Scores(
        method=method,
        values_by_head={head: mean(samples) for head, samples in held.items()},
        settings=dict(settings or {}) | {"queries": int(n_queries)},
        n_samples=n_traces,
        baseline=float(np.mean(known)) if known else None,
        baselines=baselines if known else {},
        intervals={head: interval(samples) for head, samples in held.items() if n_traces > 1},
    )


def samples_on(trace: Trace, site: Site, target: TargetOf) -> list[Sample] | None:
    """What the heads of one layer put on a target; None where it says nothing about its tokens."""
    found = _target(trace, site, target)
    return None if found is None else found.samples(trace.patterns(site))


def _known(name: str) -> Measure:
    if name not in MEASURES:
        raise HeadscopeError(f"there is no measure {name!r}: the measures are {', '.join(MEASURES)}.")
    return MEASURES[name]


def _samples(trace: Trace, measures: list[Measure]) -> Iterator[tuple[str, Head, Sample]]:
    """Layer by layer, so that one layer's patterns are held at a time."""
    made: dict[tuple[str, str, str, int, int], Target | None] = {}
    for site, layer in trace.layers.items():
        patterns: Tensor | None = None
        for one in measures:
            if one.figure is not None:
                found = one.figure(layer)
            else:
                assert one.target is not None
                key = (one.name, site.kind, f"{site.stack}.{layer.key_stack}", layer.n_queries, layer.n_keys)
                if key not in made:
                    made[key] = _target(trace, site, one.target)
                target = made[key]
                if target is None:
                    continue
                patterns = trace.patterns(site) if patterns is None else patterns
                found = target.samples(patterns)
            for index, sample in enumerate(found):
                yield one.name, site.head(index), sample


def _target(trace: Trace, site: Site, target: TargetOf) -> Target | None:
    return target(Places(trace.query_tokens(site), trace.key_tokens(site), site.kind == "cross"))
