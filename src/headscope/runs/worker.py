"""One shard through the model: examples made ready, batched by length, and every measure fed from one pass."""

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from headscope.attention import expand_heads
from headscope.choices import Record
from headscope.corpora import Example
from headscope.errors import InputError
from headscope.models import Model
from headscope.models.capture.passes import Pass, training_mode
from headscope.models.capture.recorder import Captured
from headscope.models.capture.session import Observer
from headscope.models.generation import continue_inputs, longest_target
from headscope.models.inputs.batch import batchable
from headscope.models.inputs.prepare import prepare
from headscope.progress import Cancel, stop_if
from headscope.runs.batch import CorpusBatch, Layer
from headscope.runs.batch_plan import Plan
from headscope.runs.cell_measures import OfCells, watch_cells
from headscope.runs.free_memory import return_free_memory
from headscope.runs.measure import Measure, Tallies
from headscope.runs.shard_counts import Ledger
from headscope.sites import Site
from headscope.traces import RECORDS, Inputs, LayerRecord

# Up to this many cells of example × head × query × key a layer is watched whole; beyond, some heads at a time.
WHOLE_CELLS = 2**26


class Worker:
    """A model and the measures that watch it; does one shard at a time."""

    def __init__(self, model: Model, measures: Sequence[Measure], plan: Plan):
        self.model, self.measures, self.plan = model, list(measures), plan
        for measure in self.measures:
            measure.start(model)
        self._cancel: Cancel | None = None
        self._grams: dict[str, tuple[Tensor | None, str]] = {}

    def shard(
        self,
        index: int,
        examples: Sequence[Example],
        *,
        report: Callable[[int], None] | None = None,
        cancel: Cancel | None = None,
    ) -> Ledger:
        """Everything that the measures count over one shard; `report` hears how many examples a batch had."""
        self._cancel = cancel
        ledger = Ledger(index, [example.id for example in examples], self.plan)
        with _threads(self.plan.threads), training_mode(self.model.module, False):
            inputs = self._ready(examples, ledger)
            for number, places in enumerate(self._batches(inputs)):
                stop_if(cancel)
                self._pass(ledger, examples, inputs, places, (self.plan.seed, index, number), cancel)
                if report is not None:
                    report(len(places))
            for measure in self.measures:
                ledger.add(measure.name, measure.end())
                ledger.files |= measure.files()
        return_free_memory()
        return ledger

    # Inputs

    def _ready(self, examples: Sequence[Example], ledger: Ledger) -> dict[int, Inputs]:
        """The examples as the model takes them; those that it cannot take are refused or passed over."""
        together = self._together(examples)
        if together is not None:
            return dict(enumerate(together))
        ready: dict[int, Inputs] = {}
        for place, example in enumerate(examples):
            try:
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    ready[place] = self._inputs([example])[0]
                for warning in caught:
                    ledger.note(place, warning)
            except InputError as problem:
                if self.plan.on_error == "fail":
                    raise InputError(
                        f"{example.id}: {problem} Make the corpus with on_error='skip' to pass over it."
                    ) from problem
                ledger.pass_over(place, str(problem))
        return ready

    def _together(self, examples: Sequence[Example]) -> list[Inputs] | None:
        """All at once, which is faster; None where something is to be said of one of them."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                inputs = self._inputs(examples)
            except InputError:
                return None
        return None if caught else inputs

    def _inputs(self, examples: Sequence[Example]) -> list[Inputs]:
        model = self.model
        has_both = any(example.text is not None and example.image is not None for example in examples)
        prepared = prepare(
            model.processor,
            model.module,
            [example.image if example.text is None else example.text for example in examples],
            pair=_column(example.pair for example in examples),
            target=_column(example.target for example in examples),
            image=[example.image if example.text is not None else None for example in examples] if has_both else None,
            truncate=self.plan.truncate,
            stacks=model.stacks if model.has_layout else None,
        )
        assert isinstance(prepared, list)  # as it was given one
        options: dict[str, Any] = {"max_new_tokens": longest_target(model), "cancel": self._cancel}
        return [
            continue_inputs(model, inputs, **options).inputs if inputs.needs_target else inputs for inputs in prepared
        ]

    def _batches(self, inputs: dict[int, Inputs]) -> list[list[int]]:
        """Places that go together: of like length, few enough; the order of places decides between equals."""
        places = list(inputs)
        groups = batchable([inputs[place] for place in places], self.model.module, self.model.processor)
        batches: list[list[int]] = []
        for group in groups:
            lengths = {places[at]: _length(inputs[places[at]]) for at in group}
            batch: list[int] = []
            for place in sorted(lengths, key=lambda place: (lengths[place], place)):
                is_full = len(batch) == self.plan.batch_size
                if batch and (is_full or (len(batch) + 1) * lengths[place] > self.plan.batch_tokens):
                    batches.append(batch)
                    batch = []
                batch.append(place)
            batches.append(batch)
        return batches

    # One pass

    def _pass(
        self,
        ledger: Ledger,
        examples: Sequence[Example],
        inputs: dict[int, Inputs],
        places: list[int],
        seed: tuple[int, ...],
        cancel: Cancel | None,
    ) -> None:
        forward = Pass.of(self.model, [inputs[place] for place in places])
        ready = forward.batch
        batch = CorpusBatch([examples[place] for place in places], ready.examples, places, ready.real, seed)
        counts: list[tuple[str, Tallies]] = []
        of_cells = [measure for measure in self.measures if isinstance(measure, OfCells)]

        def watch(layer: Layer) -> None:
            counts.extend((name, [tally]) for name, tally in watch_cells(layer, of_cells))
            for measure in self.measures:
                if not isinstance(measure, OfCells):
                    counts.append((measure.name, list(measure.watch(layer))))

        wanted = _most(measure.record for measure in self.measures)
        is_whole = self._is_whole(batch)
        record = _most([wanted, None if is_whole else "heads"])
        passed = forward.run(
            record=record,
            exact=is_whole or None,
            logits=1
            if wanted is None
            else "all"
            if wanted == "full"
            else "answers",  # without traces nobody reads them
            observers=[_LayerWatcher(self, batch, watch)],
            cancel=cancel,
        )
        batch = replace(batch, classes=passed.classes(), traces=[] if wanted is None else passed.traces())
        for measure in self.measures:
            counts.append((measure.name, measure.update(batch)))
        for name, counted in counts:
            ledger.add(name, counted)
        batch.release()

    def _is_whole(self, batch: CorpusBatch) -> bool:
        """Whether the patterns of every layer can be held whole."""
        layers = self.model.layout.layers
        if any(layer.is_windowed for layer in layers):
            return False
        longest = {stack: max(len(tokens) for tokens in batch.tokens(stack)) for stack in batch.inputs[0].tokens}
        most = max(longest.values(), default=1)
        cells = (
            layer.n_heads * longest.get(layer.site.stack, most) * longest.get(layer.key_stack, most) for layer in layers
        )
        return len(batch) * max(cells, default=0) <= WHOLE_CELLS

    def gram(self, captured: Captured) -> tuple[Tensor | None, str]:
        """W_Oᵀ·W_O of a layer's heads, worked out once."""
        name = str(captured.layer.site)
        if name not in self._grams:
            self._grams[name] = self.model.output_gram(captured.layer)
        return self._grams[name]


class _LayerWatcher(Observer):
    """Shows each layer of a batch to the measures: whole if it is at hand, else from the records of its examples."""

    def __init__(self, worker: Worker, batch: CorpusBatch, watch: Callable[[Layer], None]):
        self.worker, self.batch, self.watch = worker, batch, watch

    def layer(self, captured: Captured) -> None:
        """Show one layer, as many examples or heads at a time as may be held."""
        if captured.pattern is None or captured.pattern.shape[0] != len(self.batch):
            for example, record in enumerate(captured.records):
                self._show_record(captured, example, record)
            return
        value = None if captured.value is None else expand_heads(captured.value, captured.layer.n_heads)
        n, step = len(self.batch), max(1, WHOLE_CELLS // captured.pattern[0].numel())
        for rows in (slice(first, min(first + step, n)) for first in range(0, n, step)):
            values = None if value is None else value[rows]
            vectors = [None if vector is None else vector[rows] for vector in (captured.query, captured.key)]
            self._show(captured, rows, 0, captured.pattern[rows].detach().float(), values, *vectors)

    def _show_record(self, captured: Captured, example: int, record: LayerRecord) -> None:
        """One example, as many heads at a time as may be held."""
        step = max(1, WHOLE_CELLS // (record.n_queries * record.n_keys))
        for first in range(0, record.n_heads, step):
            pattern = record.patterns(slice(first, first + step))[None]
            value = None
            if record.value is not None:
                value = expand_heads(record.value[None], record.n_heads)[:, first : first + step]
            query = None if record.query is None else record.query[None, first : first + step]
            key = None if record.key is None or first else record.key[None]  # groups are not cut like heads
            self._show(captured, slice(example, example + 1), first, pattern, value, query, key)

    def neurons(self, site: Site, activations: Tensor) -> None:
        """Show MLP activations."""
        for measure in self.worker.measures:
            measure.watch_neurons(site, activations.detach(), self.batch)

    def _show(
        self,
        captured: Captured,
        rows: slice,
        first: int,
        pattern: Tensor,
        value: Tensor | None,
        query: Tensor | None = None,
        key: Tensor | None = None,
    ) -> None:
        layer, real = captured.layer, self.batch.real

        def of(stack: str, length: int) -> Tensor:
            known = real.get(stack)
            if known is None or known.shape[1] < length or (known.shape[1] > length and rows.stop - rows.start > 1):
                return torch.ones(pattern.shape[0], length, dtype=torch.bool, device=pattern.device)
            return known[rows, :length].to(pattern.device)

        queries, keys = of(layer.site.stack, pattern.shape[2]), of(layer.key_stack, pattern.shape[3])
        about = (layer.site, layer.key_stack, layer.is_causal, self.batch, rows, first)
        layer_rows = Layer(*about, pattern, queries, keys, value, lambda: self.worker.gram(captured), query, key)
        self.watch(layer_rows)
        layer_rows.release()


class _threads:  # noqa: N801  a context manager reads as a verb
    """Torch on this many threads, since sums over several depend on how many."""

    def __init__(self, count: int):
        self.count = count

    def __enter__(self) -> None:
        self.before = torch.get_num_threads()
        if self.count != self.before:
            torch.set_num_threads(self.count)

    def __exit__(self, *problem: object) -> None:
        if self.count != self.before:
            torch.set_num_threads(self.before)


def _column(values: Iterable[Any]) -> list[Any] | None:
    """One value for each example; None where none has one."""
    column = list(values)
    return column if any(value is not None for value in column) else None


def _length(inputs: Inputs) -> int:
    return max((len(tokens) for tokens in inputs.tokens.values()), default=1)


def _most(records) -> Record | None:
    """The record that holds all of these."""
    named = [record for record in records if record is not None]
    return max(named, key=RECORDS.index) if named else None
