"""Attention between the words of a treebank, and its trees as tensors: for dependency alignment and syntactic heads."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from headscope.analysis.measures.content_rows import once_per_batch, rows
from headscope.runs import Layer


class GoldTrees(NamedTuple):
    """Over the words of a batch [example, word]: the head of each (−1: none, or it has no tokens), the number of its
    relation, and whether the word itself has tokens.
    """

    heads: Tensor
    relations: Tensor
    has_tokens: Tensor


def by_words(layer: Layer) -> Tensor | None:
    """The pattern by words, keys that are not kept left out [example, head, word, word]; None off the text.

    To a word the sum over its pieces, from it the mean (Clark et al., 2019, section 4.1).
    """
    if layer.site.kind == "cross" or layer.site.stack != layer.batch.text_stack:
        return None
    return layer.once("kept words", lambda: _by_words(layer))


def _by_words(layer: Layer) -> Tensor | None:
    def make() -> tuple[Tensor, Tensor]:
        pieces = layer.batch.word_weights()[layer.rows, :, : layer.pattern.shape[3]].to(layer.pattern)
        to = (pieces * rows(layer).tokens.keys[:, None]).mT.contiguous()
        return pieces / pieces.sum(-1, keepdim=True).clamp_min(1.0), to

    means, to = once_per_batch(layer, "word pieces", make)
    if not means.shape[1]:
        return None
    n_heads, n_queries = layer.pattern.shape[1:3]
    summed = (layer.pattern.flatten(1, 2) @ to).unflatten(1, (n_heads, n_queries))
    return means[:, None] @ summed


def trees(layer: Layer, relations: dict[str, int]) -> GoldTrees:
    """The gold trees of a layer's examples; relations by their number, −1 for others."""
    return once_per_batch(layer, f"trees {' '.join(relations)}", lambda: _trees(layer, relations))


def _trees(layer: Layer, relations: dict[str, int]) -> GoldTrees:
    words = layer.batch.words()[layer.rows]
    shape = (len(words), layer.batch.word_weights().shape[1])
    heads, names = np.full(shape, -1), np.full(shape, -1)
    has_tokens = np.zeros(shape, dtype=bool)
    for row, (example, positions) in enumerate(zip(layer.examples, words, strict=True)):
        has = np.array([bool(word_positions) for word_positions in positions], dtype=bool)
        has_tokens[row, : len(has)] = has
        if example.heads:
            head = np.array(example.heads)
            joins = (head >= 0) & has & has[head]
            heads[row, : len(has)] = np.where(joins, head, -1)
            number = [relations.get(relation, -1) for relation in example.relations]
            names[row, : len(has)] = np.where(joins, number, -1)
    device = layer.pattern.device
    return GoldTrees(*(torch.from_numpy(words_data).to(device) for words_data in (heads, names, has_tokens)))
