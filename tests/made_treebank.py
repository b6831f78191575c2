"""Sentences made by hand: words with tags and heads, the tokens that stand for them, and traces of patterns."""

import itertools

import torch

from headscope.corpora import Example
from headscope.traces import Token, Tokens, Trace

# The small cat saw her: det, amod and nsubj to the right, root, obj to the left.
WORDS = ("The", "small", "cat", "saw", "her")
TAGS = ("DET", "ADJ", "NOUN", "VERB", "PRON")
HEADS = (2, 2, 3, -1, 3)
RELATIONS = ("det", "amod", "nsubj", "root", "obj")


def example(words=WORDS, tags=TAGS, heads=HEADS, relations=RELATIONS, name="one") -> Example:
    text, spans = " ".join(words), []
    for word in words:
        start = spans[-1][1] + 1 if spans else 0
        spans.append((start, start + len(word)))
    return Example(
        name, text=text, words=tuple(words), spans=tuple(spans), tags={"upos": tags}, heads=heads, relations=relations
    )


def tokens(of: Example, *, split=(), special=True) -> Tokens:
    """[CLS], a token a word (two for those in `split`), [SEP]."""
    sequence = [Token("[CLS]", id=1, special=True)] if special else []
    for place, (start, end) in enumerate(of.spans):
        cuts = [start, (start + end) // 2, end] if place in split else [start, end]
        for first, last in itertools.pairwise(cuts):
            text = (of.text or "")[first:last]
            sequence.append(Token(text, id=10 + len(sequence), word=place, start=first, end=last))
    if special:
        sequence.append(Token("[SEP]", id=2, special=True))
    return Tokens(tuple(sequence))


def trace(*patterns, on: Tokens) -> Trace:
    """One layer, a head a pattern [query, key]."""
    return Trace.from_patterns(
        [torch.stack([torch.as_tensor(pattern, dtype=torch.float32) for pattern in patterns])], on
    )


def one_hot(keys, n_keys=None) -> torch.Tensor:
    """Each query looks at one key and nowhere else."""
    return torch.eye(n_keys or len(keys))[list(keys)]


def uniform(n: int) -> torch.Tensor:
    return torch.full((n, n), 1 / n)
