"""The training data of a fit: its batches, and a hash by which the same data is known again."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

from headscope.corpora import Example
from headscope.models import Model
from headscope.tasks.data_order import training_batches
from headscope.tasks.fit_options import FitOptions
from headscope.tasks.learning_task import LearningTask, TaskInput


class TrainingData:
    """Batches by epoch and place; their order follows from the seed alone."""

    def __init__(self, model: Model, task: LearningTask, options: FitOptions):
        self.model, self.task, self.options = model, task, options
        self.sources: Sequence[Any]
        if task.keeps_inputs:
            self.sources = inputs = task.inputs(model, "train")
            self.lengths = [task_input.length for task_input in inputs]
            self.groups = task.batchable(model, inputs)
        else:
            self.sources = list(task.data("train"))
            self.lengths = [1] * len(self.sources)
            self.groups = [list(range(len(self.sources)))]
        self._order: tuple[int, list[list[int]]] = (-1, [])

    def order(self, epoch: int) -> list[list[int]]:
        """The batches of an epoch, as places in the data."""
        if self._order[0] != epoch:
            settings = self.options
            sizes = {"batch_size": settings.batch_size, "batch_tokens": settings.batch_tokens}
            order = training_batches(self.groups, self.lengths, **sizes, seed=settings.seed, epoch=epoch)
            self._order = (epoch, order)
        return self._order[1]

    def batch(self, epoch: int, place: int) -> Sequence[TaskInput]:
        """A batch of an epoch."""
        chosen = [self.sources[index] for index in self.order(epoch)[place]]
        return chosen if self.task.keeps_inputs else self.task.read(self.model, chosen)


def data_checksum(examples: Iterable[Example]) -> str:
    """The SHA-256 of what examples say; of images their names and classes."""
    digest = hashlib.sha256()
    for example in examples:
        texts = (example.id, example.text, example.pair, example.target, example.label)
        digest.update(repr((*texts, sorted(example.tags.items()))).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
