"""Texts of two classes as the sentiment study reads them: lower case, numbers as one word, a beginning and an end."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headscope.corpora import Example
from headscope.errors import InputError
from headscope.faithfulness.studies.word_vectors import word_vectors
from headscope.tasks.data_order import training_batches
from headscope.tasks.task_data import Columns, open_data

_PAD, _BEGIN, _END, _N_SPECIAL = 0, 1, 2, 3
NUMBER = "qqq"
MOST_WORDS = 200


@dataclass(frozen=True, eq=False)
class TextBatch:
    """Texts of like length: word vectors [text, word, input], `mask` (True for words, beginning and end), and labels
    [text] of 0 and 1.
    """

    inputs: Tensor
    mask: Tensor
    labels: Tensor
    places: tuple[int, ...]

    @property
    def attended(self) -> Tensor:
        """True for words: beginning and end are not attended [text, word]."""
        inner = self.mask.clone()
        inner[:, 0] = False
        return inner.scatter(1, self.mask.sum(1, keepdim=True) - 1, False)

    @property
    def uniform(self) -> Tensor:
        """The same weight on every word [1, text, 1, word]."""
        words = self.attended.float()
        return (words / words.sum(1, keepdim=True))[None, :, None]


@dataclass(frozen=True, eq=False)
class TextSplit:
    """Texts as ids of words with beginning and end, and their labels."""

    word_ids: tuple[Tensor, ...]
    labels: Tensor

    def __len__(self) -> int:
        return len(self.word_ids)


class SentimentData:
    """Three splits, and the vocabulary of all of them with frozen vectors. Batches are on `device`."""

    def __init__(
        self,
        splits: Sequence[Any],
        vectors: Any,
        *,
        columns: Columns | None = None,
        size: int = 300,
        limit: int | None = None,
        device: torch.device | str = "cpu",
    ):
        examples = [_examples(source, columns, limit) for source in splits]
        names = sorted({str(example.label) for split in examples for example in split})
        if len(names) != 2:
            raise InputError(f"the sentiment study needs two classes, and the texts have {len(names)}: {names[:6]}.")
        words = sorted({word for split in examples for example in split for word in words_of(str(example.text))})
        self.words = ("<pad>", "<bos>", "<eos>", *words)
        self._word_ids = {word: number for number, word in enumerate(self.words)}
        self.vectors = torch.zeros(len(self.words), size)
        self.vectors[_N_SPECIAL:] = word_vectors(vectors, words, size=size)
        self.train, self.dev, self.test = (self._split(split, names) for split in examples)
        content = hashlib.sha256(self.vectors.numpy().tobytes())
        for split in (self.train, self.dev, self.test):
            content.update(repr(([ids.tolist() for ids in split.word_ids], split.labels.tolist())).encode())
        self.checksum = content.hexdigest()[:16]
        self.device = torch.device(device)
        self.vectors = self.vectors.to(device)

    def batches(self, split: TextSplit, batch_size: int, *, seed: int, epoch: int) -> list[TextBatch]:
        """The batches of an epoch of training: texts of like length together, in a random order."""
        lengths = [len(ids) for ids in split.word_ids]
        options = {"batch_size": batch_size, "batch_tokens": None, "seed": seed, "epoch": epoch}
        return [self.batch(split, places) for places in training_batches([range(len(split))], lengths, **options)]

    def all_batches(self, split: TextSplit, n: int | None = None, batch_size: int = 128) -> Iterator[TextBatch]:
        """The first n texts (default: all) once, by length."""
        count = len(split) if n is None else min(n, len(split))
        order = sorted(range(count), key=lambda place: (len(split.word_ids[place]), place))
        for start in range(0, count, batch_size):
            yield self.batch(split, order[start : start + batch_size])

    def batch(self, split: TextSplit, places: Sequence[int]) -> TextBatch:
        """Some texts, padded to the longest."""
        ids = torch.nn.utils.rnn.pad_sequence(
            [split.word_ids[place] for place in places], batch_first=True, padding_value=_PAD
        ).to(self.device)
        labels = split.labels[list(places)].to(self.device)
        return TextBatch(self.vectors[ids], ids != _PAD, labels, tuple(places))

    def _split(self, examples: Sequence[Example], names: Sequence[str]) -> TextSplit:
        word_ids = tuple(
            torch.tensor([_BEGIN, *(self._word_ids[word] for word in words_of(str(example.text))), _END])
            for example in examples
        )
        return TextSplit(word_ids, torch.tensor([float(names.index(str(example.label))) for example in examples]))


def words_of(text: str) -> list[str]:
    """Words between spaces in lower case; those with a digit are one word.

    >>> words_of("In 1987 It sang")
    ['in', 'qqq', 'it', 'sang']
    """
    words = [NUMBER if any(letter.isdigit() for letter in word) else word.lower() for word in text.split()]
    return words[:MOST_WORDS]


def _examples(source: Any, columns: Columns | None, limit: int | None) -> list[Example]:
    """The texts in a random order, always the same: files are often sorted by class."""
    examples = []
    for example in open_data(Path(source) if isinstance(source, str) else source, columns=columns):
        if not example.text or example.label is None:
            raise InputError(
                f"{example.id} has no text or no label: the sentiment study needs both. Name the columns: "
                "text=…,label=…."
            )
        examples.append(example)
    if not examples:
        raise InputError(f"there are no texts in {source!r}.")
    order = np.random.default_rng(0).permutation(len(examples))
    return [examples[place] for place in order[:limit]]
