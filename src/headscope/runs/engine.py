"""Runs in this process: one shard after another."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch

from headscope.corpora import Example
from headscope.errors import InputError
from headscope.models import Model, load
from headscope.progress import Cancel
from headscope.runs.batch_plan import Plan
from headscope.runs.manifest import identity
from headscope.runs.measure import Measure
from headscope.runs.worker import Worker

Source = Model | str | Path | Callable[[], Model]


@dataclass(frozen=True)
class ShardTask:
    """A shard to be done."""

    index: int
    examples: Sequence[Example]


@dataclass(frozen=True)
class Done:
    """A shard that is done: its Parquet file, and how many examples it had."""

    index: int
    data: bytes
    n_examples: int


class Crew(Protocol):
    """Whoever does the shards, the model at hand."""

    identity: dict[str, Any]

    def work(
        self, tasks: Iterator[ShardTask], plan: Plan, digest: str, *, report: Callable[[int], None], cancel: Cancel
    ) -> Iterator[Done]:
        """Do the tasks, and give them back as they are done."""
        ...

    def close(self) -> None:
        """Let go of the model."""
        ...


class Engine(Protocol):
    """Where a run takes place."""

    def threads(self) -> int:
        """How many threads a worker has, unless it is told."""
        ...

    def crew(self, model: Source, measures: Sequence[Measure], threads: int) -> Crew:
        """Workers with the model loaded."""
        ...


@dataclass(frozen=True)
class Local:
    """This process, with the model as it is."""

    def threads(self) -> int:
        """As many as torch has."""
        return torch.get_num_threads()

    def crew(self, model: Source, measures: Sequence[Measure], threads: int) -> Crew:
        """One worker."""
        return _Alone(as_model(model), measures)


class _Alone:
    def __init__(self, model: Model, measures: Sequence[Measure]):
        self.model, self.measures = model, measures
        self.identity = identity(model)

    def work(
        self, tasks: Iterator[ShardTask], plan: Plan, digest: str, *, report: Callable[[int], None], cancel: Cancel
    ) -> Iterator[Done]:
        worker = Worker(self.model, self.measures, plan)
        for task in tasks:
            ledger = worker.shard(task.index, task.examples, report=report, cancel=cancel)
            names = [measure.name for measure in self.measures]
            yield Done(task.index, ledger.parquet(names, digest), len(task.examples))

    def close(self) -> None:
        pass


def as_model(model: Source, *, device: str | None = None) -> Model:
    """A model from what stands for one: itself, a name or folder, or a function that makes it."""
    if isinstance(model, Model):
        return model
    if isinstance(model, str | Path):
        return load(model, device=device)
    if callable(model):
        loaded = model()
        if isinstance(loaded, Model):
            return loaded
        raise InputError(f"the function that was to make a model gave {type(loaded).__name__}.")
    raise InputError(f"a run needs a model, its name, or a function that makes it, got {type(model).__name__}.")
