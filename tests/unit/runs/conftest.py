"""A tiny model, a small corpus, and measures whose answers are known by other means."""

import numpy as np
import pytest
from tiny_models import FAMILIES, tiny_bert_tokenizer, tiny_tokenizer

import headscope as hs
from headscope import runs

TEXTS = [
    "the cat sat on the mat because it was tired.",
    "it was tired.",
    "she gave her sister the book, and he read it to them.",
    "the cat sat.",
    "a quick brown fox jumps over the lazy dog!",
    "he read it.",
    "the animal did not cross the street because it was too wide.",
]


@pytest.fixture(scope="session")
def bert() -> hs.Model:
    return hs.Model(FAMILIES["bert"].build(), tiny_bert_tokenizer(), name="tiny bert")


@pytest.fixture(scope="session")
def gpt() -> hs.Model:
    return hs.Model(FAMILIES["gpt2"].build(), tiny_tokenizer(), name="tiny gpt")


def previous(layer):
    """Weight on the token before, as it passes."""
    if layer.site.kind == "self":
        plain = layer.plain_queries[:, 1:].float()
        weights = layer.pattern.diagonal(-1, 2, 3) * plain[:, None]
        yield layer.tally(weights.sum(-1), plain.sum(-1), (plain / layer.visible[:, 1:]).sum(-1))


def previous_of_trace(trace):
    """The same, from a trace."""
    for head in trace.heads:
        if head.kind == "self":
            pattern = trace.pattern(head)
            queries = np.array([at for at, token in enumerate(trace.query_tokens(head)) if at and not token.special])
            causal = not np.triu(pattern, 1).any()
            seen = queries + 1 if causal else np.full(len(queries), pattern.shape[1])
            yield head, runs.Sample(float(pattern[queries, queries - 1].sum()), len(queries), float((1 / seen).sum()))


@pytest.fixture
def fast() -> runs.Measure:
    return runs.OfLayers("fast", previous)


@pytest.fixture
def slow() -> runs.Measure:
    return runs.OfTraces("slow", previous_of_trace)
