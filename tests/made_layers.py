"""Layers made without a model: tokens and patterns by hand, as measures of a run see them."""

from collections.abc import Sequence

import numpy as np
import torch

from headscope.corpora import Example
from headscope.runs import CorpusBatch, Layer, Measure
from headscope.runs.batch_plan import Plan
from headscope.runs.shard_counts import Ledger
from headscope.sites import Site
from headscope.traces import Inputs, Tokens
from headscope.traces.tokens import Token


def sentence(*rows: tuple[str, int] | tuple[str, int, str], name: str = "made") -> Example:
    """An example from words with their heads (counted from 1, 0 for the root), and tags."""
    words = tuple(row[0] for row in rows)
    ends = np.cumsum([len(word) + 1 for word in words])
    spans = tuple((int(end) - len(word) - 1, int(end) - 1) for word, end in zip(words, ends, strict=True))
    tags = {"upos": tuple(row[2] for row in rows if len(row) > 2)} if len(rows[0]) > 2 else {}
    heads = tuple(row[1] - 1 for row in rows)
    return Example(f"{name}:{' '.join(words)}", " ".join(words), words=words, spans=spans, tags=tags, heads=heads)


def in_pieces(text: str, size: int = 100, *, marks: bool = True) -> Tokens:
    """Tokens of at most `size` characters, with a special token at either end (a decoder has one before)."""
    tokens, at = [Token("[CLS]", special=True)], 0
    for number, word in enumerate(text.split(" ")):
        for first in range(0, len(word), size):
            piece = word[first : first + size]
            tokens.append(Token(piece, word=number, start=at + first, end=at + first + len(piece)))
        at += len(word) + 1
    return Tokens((*tokens, Token("[SEP]", special=True)) if marks else tuple(tokens))


def batch_of(examples: Sequence[Example], tokens: Sequence[dict[str, Tokens]]) -> CorpusBatch:
    """A batch of examples, padded on the right."""
    inputs = [Inputs("text", {}, stacks, text=example.text) for stacks, example in zip(tokens, examples, strict=True)]
    real = {}
    for stack in tokens[0]:
        lengths = torch.tensor([len(stacks[stack]) for stacks in tokens])
        real[stack] = torch.arange(int(lengths.max())) < lengths[:, None]
    return CorpusBatch(list(examples), inputs, list(range(len(examples))), real)


def batch_layer(batch: CorpusBatch, patterns: Sequence[np.ndarray], site: Site, key_stack: str | None = None) -> Layer:
    """A layer over the batch; one array [head, query, key] an example."""
    queries, keys = batch.real[site.stack], batch.real[key_stack or site.stack]
    pattern = torch.zeros(len(batch), len(patterns[0]), queries.shape[1], keys.shape[1])
    for row, heads in enumerate(patterns):
        pattern[row, :, : heads.shape[1], : heads.shape[2]] = torch.as_tensor(heads)
    about = (site, key_stack or site.stack, False, batch, slice(0, len(batch)), 0)
    return Layer(*about, pattern, queries, keys)


def ledger_of(measure: Measure, *layers: Layer) -> Ledger:
    """What a measure counts when these layers of one batch pass."""
    batch = layers[0].batch
    ledger = Ledger(0, [example.id for example in batch.examples], Plan())
    for layer in layers:
        ledger.add(measure.name, measure.watch(layer))
    ledger.add(measure.name, measure.update(batch))
    return ledger
