"""What a task is: data, the loss that training lowers, and the metric that the model is judged by."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, get_args

import numpy as np
import torch
from torch import Tensor, nn

from headscope.corpora import Corpus, Example
from headscope.errors import HeadscopeWarning, InputError
from headscope.interventions import Intervention
from headscope.models import Model
from headscope.models.capture.passes import Pass
from headscope.models.inputs.batch import batchable
from headscope.progress import Cancel, OnProgress, Steps
from headscope.tasks.data_order import evaluation_batches
from headscope.tasks.score import Score, score_of
from headscope.tasks.task_data import Columns, open_data
from headscope.tasks.task_names import Split

# Places with this label have no target.
NO_LABEL = -100
# Examples that are not kept in memory are read so many at a time.
_BLOCK = 512


@dataclass(frozen=True, eq=False)
class TaskInput:
    """An example as the model takes it, with what it should answer: `labels` has one id for each row of its logits,
    or is a single id for a model that classifies. `words` are the rows that answer for words, −1 for none.
    """

    example: Example
    inputs: Any
    labels: Tensor
    n_bytes: int = 0
    words: tuple[int, ...] = ()

    @property
    def length(self) -> int:
        """How many positions it takes in a batch."""
        return self.inputs.length


class LearningTask(ABC):
    """Data with a loss and a metric. `fit` trains a model for it; `evaluate` gives its score.

    Made by `translation`, `language_modelling`, `masked_language_modelling`, `sequence_classification`, `tagging` or
    `image_classification`. `train`, `dev` and `test` are corpora, or None.
    """

    name: ClassVar[str]
    takes: ClassVar[str]
    """The kind of model that it needs, in words."""
    metrics: ClassVar[tuple[str, ...]]
    """Those that it can be judged by, the default first."""
    kind: ClassVar[str | None] = None
    """How a table is read as a corpus."""
    keeps_inputs: ClassVar[bool] = True
    """Whether examples are read once and remain in memory; images are read again for every batch."""

    cuts: ClassVar[bool] = True
    """Whether texts that are longer than the model's positions are cut, rather than read in parts."""

    def __init__(
        self,
        train: Any = None,
        dev: Any = None,
        test: Any = None,
        *,
        metric: str | None = None,
        columns: Columns | None = None,
        label_smoothing: float = 0.0,
    ):
        self.metric = self.check_metric(metric)
        if not 0 <= label_smoothing < 1:
            raise InputError(f"label_smoothing is at least 0 and below 1, got {label_smoothing}.")
        self.label_smoothing = label_smoothing
        read = partial(open_data, kind=self.kind, columns=columns)
        self.train, self.dev, self.test = (None if data is None else read(data) for data in (train, dev, test))
        self._known: dict[str, tuple[Any, list[TaskInput]]] = {}

    def __repr__(self) -> str:
        splits = {split: getattr(self, split) for split in get_args(Split)}
        named = ", ".join(f"{split}={data.name}" for split, data in splits.items() if data is not None)
        return f"tasks.{self.name}({named or 'no data'}, metric={self.metric!r})"

    # What each task says

    @classmethod
    @abstractmethod
    def fits(cls, model: Model) -> bool:
        """Whether a model can do this task at all."""

    @abstractmethod
    def read_examples(self, model: Model, examples: Sequence[Example]) -> Iterator[TaskInput]:
        """Examples as the model takes them, with their labels; long texts may give several."""

    def prepare_batch(self, model: Model, batch: Sequence[TaskInput], *, training: bool) -> Sequence[TaskInput]:
        """The batch as it is shown to the model: here unchanged; masked language modelling hides tokens."""
        return batch

    def counts(
        self, model: Model, logits: Tensor, labels: Tensor, batch: Sequence[TaskInput], metric: str
    ) -> np.ndarray:
        """What a metric is computed from [example, column]: nats, targets, correct, then the task's own."""
        flat, targets = logits.reshape(-1, logits.shape[-1]).float(), labels.reshape(-1)
        nats = nn.functional.cross_entropy(flat, targets, ignore_index=NO_LABEL, reduction="none")
        is_target = targets != NO_LABEL
        columns = (nats, is_target, (flat.argmax(-1) == targets) & is_target)
        rows = [column.cpu().double().reshape(len(batch), -1).sum(1) for column in columns]
        return torch.stack(rows, 1).numpy()

    def prepare_model(self, model: Model) -> None:
        """What training for the task writes into the model's configuration: here nothing."""
        return None

    # Reading

    def check(self, model: Model) -> None:
        """Refuse a model that cannot do this task, and say which tasks it can do."""
        if self.fits(model):
            return
        from headscope.tasks.all_tasks import fitting_tasks

        names = ", ".join(fitting_tasks(model)) or "none"
        raise InputError(
            f"{self.name} needs {self.takes}; {model.name} is a {type(model.module).__name__}. "
            f"Tasks that fit this model: {names}."
        )

    def check_metric(self, metric: str | None) -> str:
        """The metric by name; by default the task's first."""
        if metric is not None and metric not in self.metrics:
            raise InputError(f"{self.name} has no metric {metric!r}: choose one of {', '.join(self.metrics)}.")
        return metric or self.metrics[0]

    def data(self, split: Split) -> Corpus:
        """The corpus of a split; an error where there is none."""
        corpus: Corpus | None = getattr(self, split)
        if corpus is None:
            raise InputError(
                f"there is no {split} data: tasks.{self.name}({split}=…) takes a file, a list or a dataset."
            )
        return corpus

    def inputs(self, model: Model, split: Split) -> list[TaskInput]:
        """A split as the model takes it; read once for a tokenizer."""
        known = self._known.get(split)
        if known is None or known[0] is not model.processor:
            known = self._known[split] = (model.processor, self.read(model, self.data(split)))
        return known[1]

    def read(self, model: Model, examples: Iterable[Example]) -> list[TaskInput]:
        """Examples as the model takes them; a warning says how many were cut to the model's positions."""
        self.check(model)
        examples = list(examples)
        if not examples:
            raise InputError(f"there is nothing to read for {self.name}: the data is empty.")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", HeadscopeWarning)
            inputs = list(self.read_examples(model, examples))
        n_cut = 0
        for warning in caught:
            if issubclass(warning.category, HeadscopeWarning) and "cut off" in str(warning.message):
                n_cut += 1
            else:
                warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
        if n_cut and self.cuts:
            n_cut = min(n_cut, len(examples))  # a target is read twice
            cut = f"{n_cut} of {len(examples)} examples were cut to the positions of {model.name}."
            warnings.warn(cut, HeadscopeWarning, stacklevel=3)
        return inputs

    # Loss and metric

    def loss(
        self,
        model: Model,
        batch: Sequence[TaskInput],
        interventions: Sequence[Intervention] = (),
        *,
        training: bool = True,
        within: AbstractContextManager | None = None,
        cancel: Cancel | None = None,
    ) -> Tensor:
        """Cross-entropy in nats, the mean over the targets of the batch; it carries a gradient. `within` is entered
        around the forward pass, as `torch.autocast`.
        """
        logits, labels, _ = self._forward(
            model, batch, interventions, training, grad=True, lets_go=True, within=within, cancel=cancel
        )
        flat, targets = logits.reshape(-1, logits.shape[-1]).float(), labels.reshape(-1)
        total = nn.functional.cross_entropy(
            flat, targets, ignore_index=NO_LABEL, reduction="sum", label_smoothing=self.label_smoothing
        )
        return total / (targets != NO_LABEL).sum().clamp_min(1)

    def evaluate(
        self,
        model: Model,
        examples: "Split | Iterable[Example] | Sequence[TaskInput]" = "dev",
        interventions: Sequence[Intervention] = (),
        *,
        metric: str | None = None,
        batch_size: int = 32,
        interval: bool = False,
        cancel: Cancel | None = None,
        progress: OnProgress | None = None,
    ) -> Score:
        """The score of the model on examples, or on a split ("dev" or "test"), without dropout and in the precision of
        its weights. `interval` adds a bootstrap interval over examples.
        """
        metric = self.check_metric(metric or self.metric)
        self.check(model)
        sources = self._sources(model, examples)
        steps = Steps("evaluating", len(sources), progress, cancel)
        counts: list[np.ndarray] = []
        for block in self._blocks(model, sources):
            rows: dict[int, np.ndarray] = {}
            for batch in evaluation_batches(self.batchable(model, block), block, batch_size):
                with torch.no_grad():
                    inputs = [block[place] for place in batch]
                    logits, labels, prepared = self._forward(model, inputs, interventions, False, cancel=cancel)
                    rows |= zip(batch, self.counts(model, logits, labels, prepared, metric), strict=True)
                steps.add(len(batch))
            counts.append(self._by_example(block, np.stack([rows[place] for place in range(len(block))])))
        return score_of(metric, np.concatenate(counts), interval=interval)

    def _sources(self, model: Model, examples: Any) -> Sequence[Any]:
        """What is evaluated: inputs, or the examples of a task that reads them batch by batch."""
        if isinstance(examples, str):
            if examples not in get_args(Split):
                raise InputError(f"there is no split {examples!r}: choose one of {', '.join(get_args(Split))}.")
            split: Any = examples
            return self.inputs(model, split) if self.keeps_inputs else list(self.data(split))
        examples = list(examples)
        is_read = bool(examples) and isinstance(examples[0], TaskInput)
        return self.read(model, examples) if self.keeps_inputs and not is_read else examples

    def _blocks(self, model: Model, sources: Sequence[Any]) -> Iterator[Sequence[TaskInput]]:
        if not sources:
            raise InputError(f"there is nothing to evaluate {self.name} on: the data is empty.")
        if isinstance(sources[0], TaskInput):
            yield sources
            return
        for start in range(0, len(sources), _BLOCK):
            yield self.read(model, sources[start : start + _BLOCK])

    def batchable(self, model: Model, inputs: Sequence[TaskInput]) -> list[list[int]]:
        """Which inputs may share a batch without changing a number: groups of places."""
        return batchable([task_input.inputs for task_input in inputs], model.module, model.processor)

    @staticmethod
    def _by_example(inputs: Sequence[TaskInput], counts: np.ndarray) -> np.ndarray:
        """Counts of the parts of long texts, added up: the interval resamples whole examples."""
        rows: dict[int, int] = {}
        owners = [rows.setdefault(id(task_input.example), len(rows)) for task_input in inputs]
        summed = np.zeros((len(rows), counts.shape[1]))
        np.add.at(summed, owners, counts)
        return summed

    def _forward(
        self,
        model: Model,
        batch: Sequence[TaskInput],
        interventions: Sequence[Intervention],
        training: bool,
        **options: Any,
    ) -> tuple[Tensor, Tensor, Sequence[TaskInput]]:
        """Logits, the labels of their rows, and the batch as it was shown to the model."""
        prepared = self.prepare_batch(model, batch, training=training)
        passing = Pass.of(model, [task_input.inputs for task_input in prepared], interventions)
        logits = passing.run(training=training, check=not training, **options).logits
        labels = [task_input.labels for task_input in prepared]
        if logits is None or logits.ndim != labels[0].ndim + 2:
            raise InputError(f"{self.name} needs {self.takes}: {model.name} gives no such logits.")
        if labels[0].ndim == 0:
            return logits, torch.stack(labels).to(logits.device), prepared
        padded = torch.full(logits.shape[:2], NO_LABEL)
        for row, row_labels in enumerate(labels):
            padded[row, : len(row_labels)] = row_labels
        return logits, padded.to(logits.device), prepared
