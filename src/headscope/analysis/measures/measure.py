"""From traces to Scores: every measure counts samples, and this averages them, with chance and an interval."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, repeat

import numpy as np

from headscope.analysis.measures.catalogue import MEASURES as MEASURES
from headscope.analysis.measures.catalogue import Quantity as Quantity
from headscope.analysis.measures.corpus_contents import Inventory, inventory_of_traces
from headscope.analysis.measures.targets import PatternTokens, Target, TargetOf
from headscope.analysis.statistics import chance, interval, mean
from headscope.analysis.trace_measures import count, layers
from headscope.arguments import instance
from headscope.corpora import Example
from headscope.errors import HeadscopeError, InputError
from headscope.runs import OfCells, Tally
from headscope.runs.measure import Sample, numbers
from headscope.scores import Scores
from headscope.sites import Head, Site
from headscope.traces import Tokens, Trace


def measure(name: str, traces: Trace | Iterable[Trace], *, examples: Iterable[Example] | None = None) -> Scores:
    """Score every head by a named measure over one trace or many.

    `examples` are those that the traces are of, one each, for measures that need words, tags, trees or pictures. A
    measure with several keys is asked for by one of them: "tags/to NOUN". Intervals are bootstrapped over traces, so
    they are there when there are at least two.

    >>> import headscope as hs
    >>> trace = hs.load("builtin:gpt").run("The doctor asked the nurse a question. She")
    >>> hs.measure("previous_token", trace).top(1)[0][0]
    Head('L3H2')
    """
    if not isinstance(name, str):
        raise InputError(f"a measure is named by text, such as 'entropy' or 'tags/to NOUN', got {name!r}.")
    known, _, key = name.partition("/")
    scores_by_name = measure_all([known], traces, examples=examples)
    if name not in scores_by_name:
        keys = ", ".join(scores_by_name)
        problem = f"{known} has several scores" if not key else f"{known} has no score for {key!r}"
        raise HeadscopeError(f"{problem}: there are {keys}.")
    return scores_by_name[name]


def measure_all(
    names: Iterable[str],
    traces: Trace | Iterable[Trace],
    *,
    skip: bool = False,
    examples: Iterable[Example] | None = None,
) -> dict[str, Scores]:
    """Several measures at once: each pattern is computed once for all of them. Measures with keys give `name/key`.

    One that says nothing about these inputs is an error, unless told to `skip` such.
    """
    chosen = [_measure_by_name(name) for name in dict.fromkeys(names)]
    sources = _each_trace(traces)
    trace_examples: Iterable[Example] = _blank_examples() if examples is None else examples
    inventory = Inventory()
    if any(measure.build is not None for measure in chosen):
        sources = list(sources)
        trace_examples = [
            example for _, example in zip(sources, chain(trace_examples, _blank_examples()), strict=False)
        ]
        inventory = inventory_of_traces(sources, trace_examples)
    figures = {measure.name: measure.figure for measure in chosen if measure.figure is not None}
    tables, n_traces = count([measure.over(inventory) for measure in chosen], sources, trace_examples, figures)
    if not n_traces:
        raise HeadscopeError(f"there is nothing to measure {', '.join(tables)} on: no traces were given.")
    scores_by_name: dict[str, Scores] = {}
    for measure in chosen:
        table = tables[measure.name]
        if not table.keys():
            if not skip:
                raise InputError(f"{measure.name} needs {measure.needs}{f' ({table.why()})' if table.why() else ''}.")
            continue
        scores = table.of.finish(table)
        if isinstance(scores, Scores):
            scores_by_name[measure.name] = scores
        else:
            scores_by_name |= {f"{measure.name}/{key}": key_scores for key, key_scores in scores.items()}
    return scores_by_name


def _each_trace(traces: Trace | Iterable[Trace]) -> Iterator[Trace]:
    """The traces, one by one: there may be more than fit into memory."""
    remedy = "model.run gives them"
    several = [traces] if isinstance(traces, Trace) else traces
    if not isinstance(several, Iterable) or isinstance(several, str | bytes):
        instance(several, Trace, "what is measured", remedy)
    return (instance(trace, Trace, "each of the traces", remedy) for trace in several)


def scores_of(
    method: str,
    samples_by_head: Mapping[Head, list[Sample]],
    n_traces: int,
    settings: Mapping[str, object] | None = None,
) -> Scores:
    """The means of samples, with what chance would give and, from two traces on, intervals."""
    n_queries = max((sum(sample.n_queries for sample in samples) for samples in samples_by_head.values()), default=0)
    baselines = {head: chance(samples) for head, samples in samples_by_head.items()}
    known = [baseline for baseline in baselines.values() if baseline == baseline]  # NaN is not itself
    return Scores(
        method=method,
        values_by_head={head: mean(samples) for head, samples in samples_by_head.items()},
        settings=dict(settings or {}) | {"queries": int(n_queries)},
        n_samples=n_traces,
        baseline=float(np.mean(known)) if known else None,
        baselines=baselines if known else {},
        intervals={head: interval(samples) for head, samples in samples_by_head.items() if n_traces > 1},
    )


def samples_on(trace: Trace, site: Site, target: TargetOf) -> list[Sample] | None:
    """What the heads of one layer put on a target; None where it says nothing about its tokens."""

    def cells(queries: Tokens, keys: Tokens, *, is_cross: bool) -> Target | None:
        return target(PatternTokens(queries, keys, is_cross))

    samples: list[Sample] = []
    for layer in layers(trace, Example("trace"), sites=[site]):
        for tally in OfCells("target", cells).watch(layer):
            assert isinstance(tally, Tally)
            columns = [
                np.broadcast_to(numbers(column), (1, len(tally.heads)))[0]
                for column in (tally.total, tally.n_queries, tally.chance)
            ]
            samples += [Sample(*map(float, sample)) for sample in zip(*columns, strict=True)]
    return samples or None


def _measure_by_name(name: str) -> Quantity:
    if name not in MEASURES:
        raise HeadscopeError(f"there is no measure {name!r}: the measures are {', '.join(MEASURES)}.")
    return MEASURES[name]


def _blank_examples() -> Iterator[Example]:
    """Examples that say nothing, for traces alone."""
    return repeat(Example("trace"))
