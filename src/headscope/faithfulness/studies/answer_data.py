"""Tagging and classification in the same terms: texts, the tokens from which an answer is read, and its class."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from headscope.faithfulness.studies.chunking_data import ChunkingData, TagBatch, TagSplit
from headscope.faithfulness.studies.sentiment_data import SentimentData, TextBatch, TextSplit

NO_ANSWER = -1
_EVALUATED = 200


@dataclass(frozen=True, eq=False)
class AnswerBatch:
    """Texts of like length: word vectors [text, word, input] and `mask` (True for tokens). An answer is read from token
    `tokens` of text `texts`; `labels` has its class (−1: unknown). All three are [answer].
    """

    inputs: Tensor
    mask: Tensor
    labels: Tensor
    texts: Tensor
    tokens: Tensor


class AnswerData(Protocol):
    """The texts of a task."""

    n_classes: int
    device: torch.device
    n_texts: dict[str, int]

    def batches(self, batch_size: int, *, seed: int, epoch: int) -> list[AnswerBatch]:
        """The batches of an epoch of training."""
        ...

    def all_batches(self, split: str) -> Iterator[AnswerBatch]:
        """Every text of "train", "dev" or "test" once."""
        ...


class WordAnswers:
    """An answer for every word: its chunk tag."""

    def __init__(self, data: ChunkingData):
        self.data, self.device, self.n_classes = data, data.device, len(data.tags)
        self._splits: dict[str, TagSplit] = {"train": data.train, "dev": data.dev, "test": data.test}
        self.n_texts = {name: len(split) for name, split in self._splits.items()}

    def batches(self, batch_size: int, *, seed: int, epoch: int) -> list[AnswerBatch]:
        """The batches of an epoch of training."""
        return [_of_words(batch) for batch in self.data.batches(self.data.train, batch_size, seed=seed, epoch=epoch)]

    def all_batches(self, split: str) -> Iterator[AnswerBatch]:
        """Every sentence once, by length."""
        return map(_of_words, self.data.all_batches(self._splits[split], _EVALUATED))


class TextAnswers:
    """One answer for each text, read from its first token: its class."""

    def __init__(self, data: SentimentData):
        self.data, self.device, self.n_classes = data, data.device, 2
        self._splits: dict[str, TextSplit] = {"train": data.train, "dev": data.dev, "test": data.test}
        self.n_texts = {name: len(split) for name, split in self._splits.items()}

    def batches(self, batch_size: int, *, seed: int, epoch: int) -> list[AnswerBatch]:
        """The batches of an epoch of training."""
        return [_of_texts(batch) for batch in self.data.batches(self.data.train, batch_size, seed=seed, epoch=epoch)]

    def all_batches(self, split: str) -> Iterator[AnswerBatch]:
        """Every text once, by length."""
        return map(_of_texts, self.data.all_batches(self._splits[split], batch_size=_EVALUATED))


def _of_words(batch: TagBatch) -> AnswerBatch:
    texts, tokens = batch.is_word.nonzero(as_tuple=True)
    return AnswerBatch(batch.inputs, batch.mask, batch.labels[texts, tokens], texts, tokens)


def _of_texts(batch: TextBatch) -> AnswerBatch:
    texts = torch.arange(len(batch.mask), device=batch.mask.device)
    return AnswerBatch(batch.inputs, batch.mask, batch.labels.long(), texts, torch.zeros_like(texts))
