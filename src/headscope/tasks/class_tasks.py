"""Classes: of a text or a pair of texts, of an image, or of every word of a sentence."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from headscope.arguments import parsed_number
from headscope.corpora import Example, align
from headscope.errors import InputError
from headscope.models import Model
from headscope.tasks.iob_chunks import count_chunks, is_iob
from headscope.tasks.learning_task import NO_LABEL, LearningTask, TaskInput
from headscope.tasks.task_data import Columns


class ClassTask(LearningTask):
    """A task whose answers are classes with names."""

    suffix: ClassVar[str]
    """What the names of Transformers' classes for it end with."""

    def __init__(self, *splits: Any, **options: Any):
        super().__init__(*splits, **options)
        self._labels: tuple[str, ...] | None = None

    @classmethod
    def fits(cls, model: Model) -> bool:
        """Whether the model's class is made for this task."""
        return type(model.module).__name__.endswith(cls.suffix)

    def labels_of(self, example: Example) -> tuple[str, ...]:
        """The labels of an example: here its class."""
        if example.label is None:
            raise InputError(
                f"{example.id} has no label: {self.name} needs one. Name its column: columns={{'label': …}}."
            )
        return (example.label,)

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the classes in the training data (or, without it, in the rest), sorted."""
        if self._labels is None:
            data = next((data for data in (self.train, self.dev, self.test) if data is not None), None)
            if data is None:
                raise InputError(f"tasks.{self.name} has no data, so its classes are unknown: give train=… or dev=….")
            names = {label for example in data for label in self.labels_of(example)}
            self._labels = tuple(sorted(names, key=_number_first))
        return self._labels

    def class_ids(self, model: Model) -> dict[str, int]:
        """The model's class of each label: by the model's own names, else by the order of `labels`."""
        names = {int(number): str(name) for number, name in (getattr(model.config, "id2label", None) or {}).items()}
        numbers = {name: number for number, name in names.items()}
        if set(self.labels) <= numbers.keys():
            return numbers
        are_unnamed = all(name == f"LABEL_{number}" for number, name in names.items())
        if are_unnamed and len(self.labels) <= len(names):
            return {label: number for number, label in enumerate(self.labels)}
        raise InputError(
            f"the data has {len(self.labels)} classes ({', '.join(self.labels[:8])}), and {model.name} has "
            f"{len(names)} ({', '.join(list(numbers)[:8])}): "
            f"make the model with num_labels={len(self.labels)}, or with these names."
        )

    def prepare_model(self, model: Model) -> None:
        """Write the names of the classes into the configuration of a model that has none of its own."""
        numbers = self.class_ids(model)
        names = getattr(model.config, "id2label", None) or {}
        if not set(self.labels) <= set(names.values()):
            model.config.id2label = names | {number: label for label, number in numbers.items()}
            model.config.label2id = {label: number for number, label in model.config.id2label.items()}


class SequenceClassification(ClassTask):
    """See `sequence_classification`."""

    name = "sequence_classification"
    takes = "a model with classes for a text (…ForSequenceClassification)"
    suffix = "ForSequenceClassification"
    metrics = ("accuracy", "loss")

    def read_examples(self, model: Model, examples: Sequence[Example]) -> Iterator[TaskInput]:
        """A text or a pair, with its class."""
        numbers = self.class_ids(model)
        for example in examples:
            if not example.text:
                raise InputError(
                    f"{example.id} has no text: {self.name} needs one. Name its column: columns={{'text': …}}."
                )
            inputs = model.read(example.text, pair=example.pair, truncate=True)
            yield TaskInput(example, inputs, torch.tensor(_number(numbers, self.labels_of(example)[0])))


class ImageClassification(ClassTask):
    """See `image_classification`."""

    name = "image_classification"
    takes = "a model with classes for an image (…ForImageClassification)"
    suffix = "ForImageClassification"
    metrics = ("accuracy", "loss")
    kind = "images"
    keeps_inputs = False

    def read_examples(self, model: Model, examples: Sequence[Example]) -> Iterator[TaskInput]:
        """An image, with its class."""
        numbers = self.class_ids(model)
        for example in examples:
            if example.image is None:
                raise InputError(
                    f"{example.id} has no image: {self.name} needs a folder of images with a subfolder per class."
                )
            yield TaskInput(
                example, model.read(example.image), torch.tensor(_number(numbers, self.labels_of(example)[0]))
            )


class Tagging(ClassTask):
    """See `tagging`."""

    name = "tagging"
    takes = "a model with classes for every token (…ForTokenClassification)"
    suffix = "ForTokenClassification"
    metrics = ("f1", "accuracy", "loss")
    kind = "conll2000"

    def __init__(self, *splits: Any, column: str | None, metric: str | None, **options: Any):
        super().__init__(*splits, metric=metric, **options)
        self.column = column
        if metric is None and any(data is not None for data in (self.train, self.dev, self.test)):
            self.metric = "f1" if all(map(is_iob, self.labels)) else "accuracy"

    def labels_of(self, example: Example) -> tuple[str, ...]:
        """The tags of its words."""
        columns = example.tags
        column = self.column or ("chunk" if "chunk" in columns else next(iter(columns), None))
        if column is None or column not in columns:
            there = f"it has {', '.join(columns)}" if columns else "it has none"
            raise InputError(f"{example.id} has no tags {column or ''!r}: {there}. Choose with column=….")
        return columns[column]

    def read_examples(self, model: Model, examples: Sequence[Example]) -> Iterator[TaskInput]:
        """A sentence; the first token of each word answers for it."""
        numbers = self.class_ids(model)
        for example in examples:
            inputs = model.read(example.text, truncate=True)
            stack = next((name for name in ("encoder", "text") if name in inputs.tokens), "main")
            words = tuple(group[0] if group else -1 for group in align(inputs.tokens[stack], example.spans))
            labels = torch.full((len(inputs.tokens[stack]),), NO_LABEL)
            for tag, place in zip(self.labels_of(example), words, strict=True):
                if place >= 0:
                    labels[place] = numbers.get(tag, NO_LABEL)
            yield TaskInput(example, inputs, labels, words=words)

    def counts(
        self, model: Model, logits: Tensor, labels: Tensor, batch: Sequence[TaskInput], metric: str
    ) -> np.ndarray:
        """For F1 with correct, predicted and gold phrases; a word without tokens reads as O, and counts as wrong."""
        counts = super().counts(model, logits, labels, batch, metric)
        gold = [self.labels_of(task_input.example) for task_input in batch]
        if metric != "f1":
            counts[:, 1] = [len(tags) for tags in gold]
            return counts
        phrases = [count_chunks(*pair) for pair in zip(gold, self._tags(model, logits, batch), strict=True)]
        return np.concatenate([counts, np.array(phrases, dtype=float)], 1)

    def _tags(self, model: Model, logits: Tensor, batch: Sequence[TaskInput]) -> list[list[str]]:
        """The predicted tag of every word."""
        names = {number: label for label, number in self.class_ids(model).items()}
        best = logits.argmax(-1).tolist()
        return [
            [names.get(row[place], "O") if place >= 0 else "O" for place in task_input.words]
            for row, task_input in zip(best, batch, strict=True)
        ]


def sequence_classification(
    train: Any = None,
    dev: Any = None,
    test: Any = None,
    *,
    metric: str | None = None,
    columns: Columns | None = None,
    label_smoothing: float = 0.0,
) -> SequenceClassification:
    """Classify texts or pairs of texts: tables with columns for text and label, or datasets.

    `columns` say which column is what: `{"text": 1, "label": "class"}`. `metric` is "accuracy" (default) or "loss".
    """
    return SequenceClassification(train, dev, test, metric=metric, columns=columns, label_smoothing=label_smoothing)


def image_classification(
    train: Any = None,
    dev: Any = None,
    test: Any = None,
    *,
    metric: str | None = None,
    columns: Columns | None = None,
    label_smoothing: float = 0.0,
) -> ImageClassification:
    """Classify images: folders with a subfolder per class, or datasets. `metric` is "accuracy" (default) or "loss"."""
    return ImageClassification(train, dev, test, metric=metric, columns=columns, label_smoothing=label_smoothing)


def tagging(
    train: Any = None,
    dev: Any = None,
    test: Any = None,
    *,
    column: str | None = None,
    metric: str | None = None,
    columns: Columns | None = None,
    label_smoothing: float = 0.0,
) -> Tagging:
    """Tag every word of a sentence: files in the format of CoNLL-2000, or datasets with words and tags.

    `column` is the kind of tag. Default: chunk, or the first there is. `metric` is "f1" over phrases (default for IOB
    tags; the rules of conlleval), "accuracy" (default for other tags) or "loss".
    """
    options = {"metric": metric, "columns": columns, "label_smoothing": label_smoothing}
    return Tagging(train, dev, test, column=column, **options)


def _number_first(label: str) -> tuple[int, str]:
    """Sorts labels that are numbers by these."""
    number = parsed_number(label)
    return (-1 if number is None else number, label)


def _number(numbers: dict[str, int], label: str) -> int:
    """The class of a label; one that training did not have is an error."""
    if label not in numbers:
        raise InputError(f"the label {label!r} is unknown: the classes are {', '.join(numbers)}.")
    return numbers[label]
