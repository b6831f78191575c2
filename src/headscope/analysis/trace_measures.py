"""Traces as a run sees layers, so that a measure is written once: for the corpus, and for what is at hand."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import torch

from headscope.analysis.memory_table import MemoryTable
from headscope.corpora import Example
from headscope.runs import CorpusBatch, Layer, Measure, OfCells, Sample, Tally
from headscope.runs.batch_plan import Plan
from headscope.runs.cell_measures import watch_cells
from headscope.runs.shard_counts import Ledger
from headscope.runs.worker import WHOLE_CELLS
from headscope.sites import Site
from headscope.traces import Inputs, LayerRecord, Trace

# As many as a run's shard has, so that what is counted by shards comes out the same.
_SHARD = Plan().shard_size


Figures = Mapping[str, Callable[[LayerRecord], list[Sample]]]


def count(
    measures: Sequence[Measure],
    traces: Iterable[Trace],
    examples: Iterable[Example],
    figures: Figures,
) -> tuple[dict[str, MemoryTable], int]:
    """What every measure counts over traces, one table each, and how many traces there were.

    `figures` are functions of a layer's record for measures that need no pattern.
    """
    ledgers: list[Ledger] = []
    n_traces = 0
    for trace, example in zip(traces, examples, strict=False):
        place = n_traces % _SHARD
        if place == 0:
            _end(ledgers[-1:], measures)
            ledgers.append(Ledger(len(ledgers), [""] * _SHARD, Plan()))
        n_traces += 1
        _count_trace(ledgers[-1], measures, trace, example, place, figures)
    _end(ledgers[-1:], measures)
    return {measure.name: _table(measure, ledgers, n_traces) for measure in measures}, n_traces


def layers(trace: Trace, example: Example, place: int = 0, *, sites: Iterable[Site] | None = None) -> Iterator[Layer]:
    """The attention layers of a trace, as a run shows them: whole, or some heads at a time where they are large."""
    batches: dict[tuple, CorpusBatch] = {}
    for site in trace.layers if sites is None else sites:
        record = trace.layers[site]
        # Layers between the same tokens share a batch, and what measures work out of it.
        key = (site.stack, record.key_stack, record.n_queries, record.n_keys)
        if key not in batches:
            batches[key] = _batch(trace, site, example, place)
        yield from _heads_at_a_time(trace, record, batches[key])


def _batch(trace: Trace, site: Site, example: Example, place: int) -> CorpusBatch:
    tokens = {site.stack: trace.query_tokens(site), trace.layers[site].key_stack: trace.key_tokens(site)}
    real = {stack: torch.ones(1, len(tokens_of_stack), dtype=torch.bool) for stack, tokens_of_stack in tokens.items()}
    return CorpusBatch([example], [Inputs("text" if example.image is None else "image", {}, tokens)], [place], real)


def _heads_at_a_time(trace: Trace, record: LayerRecord, batch: CorpusBatch) -> Iterator[Layer]:
    site = record.site
    step = record.n_heads if trace.readings else max(1, WHOLE_CELLS // (record.n_queries * record.n_keys))
    for first in range(0, record.n_heads, step):
        heads = slice(first, first + step)
        pattern = trace.patterns(site) if trace.readings else record.patterns(heads)
        known = {}
        if record.value_norms is not None and not trace.readings:
            known["norms"] = record.value_norms[heads].float().cpu()[None]
        reason = record.no_norms or "the trace holds no values for tokens as they are read"
        yield Layer(
            site=site,
            key_stack=record.key_stack,
            is_causal=record.is_causal,
            batch=batch,
            rows=slice(0, 1),
            first_head=first,
            pattern=pattern[None].float().cpu(),
            queries=batch.real[site.stack],
            keys=batch.real[record.key_stack],
            gram=lambda reason=reason: (None, reason),
            _known=known,
        )


def _count_trace(
    ledger: Ledger, measures: Sequence[Measure], trace: Trace, example: Example, place: int, figures: Figures
) -> None:
    watching = [measure for measure in measures if measure.name not in figures]
    for name, figure in figures.items():
        for record in trace.layers.values():
            ledger.add(name, [_tally(record, figure(record), place)])
    if not watching:
        return
    of_cells = [measure for measure in watching if isinstance(measure, OfCells)]
    for layer in layers(trace, example, place):
        for name, tally in watch_cells(layer, of_cells):
            ledger.add(name, [tally])
        for measure in watching:
            if not isinstance(measure, OfCells):
                ledger.add(measure.name, measure.watch(layer))


def _tally(record: LayerRecord, samples: list[Sample], place: int) -> Tally:
    total, n_queries, chance = ([list(column)] for column in zip(*samples, strict=True))
    return Tally(record.heads(), [place], total, n_queries, chance)


def _end(ledgers: list[Ledger], measures: Sequence[Measure]) -> None:
    for ledger in ledgers:
        for measure in measures:
            ledger.add(measure.name, measure.end())


def _table(measure: Measure, ledgers: list[Ledger], n_traces: int) -> MemoryTable:
    """The sums of all shards, one after another."""
    table = MemoryTable(measure, n_traces)
    for number, ledger in enumerate(ledgers):
        table.take(ledger, number * _SHARD)
    return table
