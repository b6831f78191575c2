"""Frozen word vectors from a model's input embeddings, where none of the usual ones (GloVe, fastText) are at hand."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from headscope.errors import InputError
from headscope.models import Model, load

# The standard deviation of an element, about that of GloVe's vectors; the tagger's sines have 0.7.
_SCALE = 0.4


def word_vectors(source: Model | str | Path, words: Sequence[str], *, size: int = 300) -> Tensor:
    """A vector [word, size] for each word: the mean of its word pieces' input embeddings, reduced by PCA over `words`.

    The components are scaled together, so that an element has a standard deviation of 0.4.
    """
    model = source if isinstance(source, Model) else load(source, verify=False)
    means = _piece_means(model, words)
    if min(means.shape) < size:
        raise InputError(
            f"{size} components need as many embedding dimensions and words: {model.name} has {means.shape[1]} "
            f"dimensions, and there are {len(words)} words. Choose a wider model, or a smaller size."
        )
    centred = means - means.mean(0)
    values, directions = torch.linalg.eigh(centred.T @ centred)
    largest = directions[:, values.argsort(descending=True)[:size]]
    signs = largest.gather(0, largest.abs().argmax(0, keepdim=True)).sign()  # either sign is an eigenvector
    reduced = centred @ (largest * signs)
    return (reduced * (_SCALE / reduced.std())).float()


def _piece_means(model: Model, words: Sequence[str]) -> Tensor:
    """The mean input embedding of each word's pieces, in float64."""
    embeddings: Any = getattr(model.module, "get_input_embeddings", None)
    if model.tokenizer is None or embeddings is None:
        raise InputError(f"{model.name} has no word pieces with embeddings: name a model of text for the word vectors.")
    table = embeddings().weight.detach().cpu().double()
    means = torch.zeros(len(words), table.shape[1], dtype=torch.float64)
    for place, pieces in enumerate(model.tokenizer(list(words), add_special_tokens=False)["input_ids"]):
        if pieces:  # a word of characters that the tokenizer drops keeps zeros
            means[place] = table[torch.tensor(pieces)].mean(0)
    return means
