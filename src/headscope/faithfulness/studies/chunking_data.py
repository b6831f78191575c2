"""CoNLL-2000 as the chunking study reads it: lower case, numbers as 0, a beginning and an end, 90 % to train on."""

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
from headscope.faithfulness.studies.context_free import lookup_f1
from headscope.faithfulness.studies.stacked_chunk_f1 import StackedChunks
from headscope.faithfulness.studies.word_vectors import word_vectors
from headscope.tasks.data_order import training_batches
from headscope.tasks.iob_chunks import is_iob
from headscope.tasks.task_data import open_data

PAD, BEGIN, END, UNKNOWN = "<pad>", "<bos>", "<eos>", "<unk>"
SPECIAL = (PAD, BEGIN, END, UNKNOWN)
# Tags that no word has; the others follow, sorted.
SPECIAL_TAGS = (PAD, BEGIN, END)
_DEV_SHARE = 0.1
_NO_TAG = -1


@dataclass(frozen=True, eq=False)
class TagBatch:
    """Sentences of like length: word vectors [sentence, word, input], `mask` (True for words, beginning and end),
    tags [sentence, word] (−1 for padding and tags unknown in training), and their places in the split. `gold` has tags
    unknown in training too.
    """

    inputs: Tensor
    mask: Tensor
    labels: Tensor
    places: tuple[int, ...]
    gold: Tensor

    @property
    def is_word(self) -> Tensor:
        """True for words, without beginning and end [sentence, word]."""
        inner = self.mask.clone()
        inner[:, 0] = False
        inner.scatter_(1, (self.mask.sum(1, keepdim=True) - 1), False)
        return inner


@dataclass(frozen=True, eq=False)
class TagSplit:
    """Sentences as ids of words and of tags, each with its beginning and end."""

    word_ids: tuple[Tensor, ...]
    tag_ids: tuple[Tensor, ...]

    def __len__(self) -> int:
        return len(self.word_ids)


class ChunkingData:
    """The three splits, the vocabulary with its frozen vectors, and the tags. Words of the test set have vectors too,
    as they do with published word vectors. Batches are on `device`.
    """

    def __init__(
        self,
        train: Any,
        test: Any,
        vectors: Any,
        *,
        size: int = 300,
        seed: int = 0,
        limit: int | None = None,
        device: torch.device | str = "cpu",
    ):
        sentences, held_out = (_sentences(source, limit) for source in (train, test))
        order = np.random.default_rng(seed).permutation(len(sentences))
        n_dev = max(1, round(len(sentences) * _DEV_SHARE))
        dev = [sentences[place] for place in sorted(order[:n_dev])]
        learned = [sentences[place] for place in sorted(order[n_dev:])]
        if not learned:
            raise InputError("the training data has a single sentence: give at least two, for training and dev.")
        words = {word.lower() for example in (*sentences, *held_out) for word in example.words}
        self.words = (*SPECIAL, *sorted(words))
        self.tags = (*SPECIAL_TAGS, *sorted({tag for example in sentences for tag in example.tags["chunk"]}))
        self._word_ids = {word: number for number, word in enumerate(self.words)}
        unknown = {tag for example in held_out for tag in example.tags["chunk"]} - {*self.tags}
        self._tag_ids = {tag: number for number, tag in enumerate((*self.tags, *sorted(unknown)))}
        self.chunks = StackedChunks(tuple(self._tag_ids), device)
        if odd := sorted(tag for tag in self._tag_ids if tag not in SPECIAL_TAGS and not is_iob(tag)):
            raise InputError(f"{odd[0]!r} is no IOB tag (O, B-type or I-type): the chunking study needs those.")
        known = {word: number for number, word in enumerate(sorted({normalise(word) for word in words}))}
        rows = torch.tensor([known[normalise(word)] for word in self.words[len(SPECIAL) :]])
        self.vectors = torch.zeros(len(self.words), size)
        self.vectors[len(SPECIAL) :] = word_vectors(vectors, list(known), size=size)[rows]
        self.train, self.dev, self.test = (self._split(examples) for examples in (learned, dev, held_out))
        self._examples = sentences, held_out
        content = hashlib.sha256(self.vectors.numpy().tobytes())
        for example in (*sentences, *held_out):
            content.update(repr((example.words, example.tags["chunk"])).encode())
        self.checksum = content.hexdigest()[:16]
        self.device = torch.device(device)
        self.vectors = self.vectors.to(device)

    def batches(self, split: TagSplit, batch_size: int, *, seed: int, epoch: int) -> list[TagBatch]:
        """The batches of an epoch of training: sentences of like length together, in a random order."""
        lengths = [len(ids) for ids in split.word_ids]
        options = {"batch_size": batch_size, "batch_tokens": None, "seed": seed, "epoch": epoch}
        return [self.batch(split, places) for places in training_batches([range(len(split))], lengths, **options)]

    def all_batches(self, split: TagSplit, batch_size: int = 200) -> Iterator[TagBatch]:
        """Every sentence once, by length."""
        order = sorted(range(len(split)), key=lambda place: (len(split.word_ids[place]), place))
        for start in range(0, len(order), batch_size):
            yield self.batch(split, order[start : start + batch_size])

    def batch(self, split: TagSplit, places: Sequence[int]) -> TagBatch:
        """Some sentences, padded to the longest."""
        pad = torch.nn.utils.rnn.pad_sequence
        ids = pad([split.word_ids[place] for place in places], batch_first=True, padding_value=0).to(self.device)
        gold = pad([split.tag_ids[place] for place in places], batch_first=True, padding_value=0).to(self.device)
        mask = ids != 0
        is_known = mask & (gold < len(self.tags))
        return TagBatch(self.vectors[ids], mask, gold.masked_fill(~is_known, _NO_TAG), tuple(places), gold)

    def context_free(self) -> dict[str, float]:
        """Chunk F1 on the test set of the commonest tag of each "word", and of each part of speech ("pos")."""
        return {
            "word": lookup_f1(*self._examples, lambda example: [word.lower() for word in example.words]),
            "pos": lookup_f1(*self._examples, lambda example: example.tags["pos"]),
        }

    def _split(self, examples: Sequence[Example]) -> TagSplit:
        word_ids = [
            torch.tensor([1, *(self._word_ids[word.lower()] for word in example.words), 2]) for example in examples
        ]
        tag_ids = [torch.tensor([1, *(self._tag_ids[tag] for tag in example.tags["chunk"]), 2]) for example in examples]
        return TagSplit(tuple(word_ids), tuple(tag_ids))


def normalise(word: str) -> str:
    """Lower case, and 0 for a word of digits.

    >>> [normalise(word) for word in ("The", "1987", "1.5")]
    ['the', '0', '1.5']
    """
    return "0" if word.isdigit() else word.lower()


def _sentences(source: Any, limit: int | None) -> list[Example]:
    examples = []
    for example in open_data(Path(source) if isinstance(source, str) else source, kind="conll2000"):
        if limit is not None and len(examples) == limit:
            break
        if "chunk" not in example.tags:
            raise InputError(f"{example.id} has no chunk tags: the chunking study needs files in CoNLL-2000's format.")
        examples.append(example)
    if not examples:
        raise InputError(f"there are no sentences in {source!r}: give a file in CoNLL-2000's format.")
    return examples
