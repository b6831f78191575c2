"""Traces as a run sees layers, so that a measure is written once: for the corpus, and for what is at hand."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
import torch

from headscope.analysis.statistics import Sample
from headscope.corpora import Example
from headscope.runs import Batch, Layer, Measure, OfCells, Table, Tally
from headscope.runs.batch_plan import Plan
from headscope.runs.cell_measures import watch_cells
from headscope.runs.shard_counts import Ledger
from headscope.runs.worker import WHOLE_CELLS
from headscope.sites import Site
from headscope.traces import Inputs, LayerRecord, Trace

# As many as a run's shard has, so that what is counted by shards comes out the same.
_SHARD = Plan().shard_size


Figures = Mapping[str, Callable[[LayerRecord], list[Sample]]]


class Counted(Table):
    """What was counted over traces, as a run's table has it."""

    def __init__(
        self, measure: Measure, sums: dict[str, tuple[dict[str, int], np.ndarray]], n_traces: int, reason: str
    ):
        super().__init__(measure.name, measure.settings, [], n_traces)
        self.of, self._sums, self._reason = measure, sums, reason

    def why(self) -> str:
        """The first reason that was given."""
        return self._reason


def count(
    measures: Sequence[Measure],
    traces: Iterable[Trace],
    examples: Iterable[Example],
    figures: Figures,
) -> tuple[dict[str, Counted], int]:
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
        _count_one(ledgers[-1], measures, trace, example, place, figures)
    _end(ledgers[-1:], measures)
    return {measure.name: _gathered(measure, ledgers, n_traces) for measure in measures}, n_traces


def layers(trace: Trace, example: Example, place: int = 0, *, sites: Iterable[Site] | None = None) -> Iterator[Layer]:
    """The attention layers of a trace, as a run shows them: whole, or some heads at a time where they are large."""
    batches: dict[tuple, Batch] = {}
    for site in trace.layers if sites is None else sites:
        record = trace.layers[site]
        # Layers between the same tokens share a batch, and what measures work out of it.
        key = (site.stack, record.key_stack, record.n_queries, record.n_keys)
        if key not in batches:
            batches[key] = _batch(trace, site, example, place)
        yield from _shown(trace, record, batches[key])


def _batch(trace: Trace, site: Site, example: Example, place: int) -> Batch:
    tokens = {site.stack: trace.query_tokens(site), trace.layers[site].key_stack: trace.key_tokens(site)}
    real = {stack: torch.ones(1, len(tokens_of_stack), dtype=torch.bool) for stack, tokens_of_stack in tokens.items()}
    return Batch([example], [Inputs("text" if example.image is None else "image", {}, tokens)], [place], real)


def _shown(trace: Trace, record: LayerRecord, batch: Batch) -> Iterator[Layer]:
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


def _count_one(
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


def _gathered(measure: Measure, ledgers: list[Ledger], n_traces: int) -> Counted:
    """The sums of all shards, one after another [sum, trace, head], for every key."""
    sums_by_key: dict[str, tuple[dict[str, int], np.ndarray]] = {}
    for number, ledger in enumerate(ledgers):
        first, last = number * _SHARD, min((number + 1) * _SHARD, n_traces)
        for (name, key), sums in ledger.sums.items():
            if name != measure.name:
                continue
            names, counts = sums_by_key.get(key, ({}, np.zeros((4, n_traces, 0))))
            there = [(head, at) for head, at in ledger.heads.items() if at < sums.shape[2] and sums[3, :, at].any()]
            places = [names.setdefault(str(head), len(names)) for head, _ in there]
            counts = np.pad(counts, ((0, 0), (0, 0), (0, len(names) - counts.shape[2])))
            counts[:, first:last, places] = sums[:, : last - first, [at for _, at in there]]
            sums_by_key[key] = (names, counts)
    reasons = [ledger.refusals[measure.name][1] for ledger in ledgers if measure.name in ledger.refusals]
    return Counted(measure, sums_by_key, n_traces, reasons[0] if reasons else "")
