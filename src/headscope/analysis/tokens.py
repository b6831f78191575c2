"""Heads that look at tokens by where or what they are: the previous one, the same one, the one after the same one.

Induction follows Olsson et al. (2022): on [A][B] … [A], attention from the second A to B.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from headscope.errors import InputError
from headscope.sites import Head
from headscope.traces import Trace


class Sample(NamedTuple):
    """Of one head on one input: the sum of a weight over queries, over how many, and the sum that chance would give."""

    total: float
    n_queries: float
    chance: float


def previous_token(trace: Trace) -> Iterator[tuple[Head, Sample]]:
    """Weight on the token just before each query; chance is an equal share of what the query can see."""
    for head in _self_heads(trace):
        pattern = trace.pattern(head)
        queries = [place for place in _plain(trace, head) if place > 0]
        weights = pattern[queries, np.array(queries, dtype=int) - 1]
        yield head, Sample(float(weights.sum()), len(queries), float((1 / _visible(pattern)[queries]).sum()))


def duplicate_token(trace: Trace) -> Iterator[tuple[Head, Sample]]:
    """Weight on earlier occurrences of the query's own token, over the queries that have one."""
    yield from _matched(trace, shift=0)


def induction(trace: Trace) -> Iterator[tuple[Head, Sample]]:
    """Weight on the tokens that followed earlier occurrences of the query's own token."""
    yield from _matched(trace, shift=1)


def _matched(trace: Trace, *, shift: int) -> Iterator[tuple[Head, Sample]]:
    """Weight on the tokens `shift` places after earlier occurrences of the same token."""
    targets: dict[str, np.ndarray] = {}
    for head in _self_heads(trace):
        if head.stack not in targets:
            targets[head.stack] = _targets(trace, head, shift)
        wanted = targets[head.stack]
        queries = wanted.any(1)
        pattern = trace.pattern(head)
        chance = (wanted[queries].sum(1) / _visible(pattern)[queries]).sum()
        yield head, Sample(float((pattern * wanted)[queries].sum()), float(queries.sum()), float(chance))


def _targets(trace: Trace, head: Head, shift: int) -> np.ndarray:
    """True where a key stands `shift` after an earlier occurrence of the query's token [query, key]."""
    tokens = trace.query_tokens(head)
    ids = np.array([-1 if token.id is None or token.special else token.id for token in tokens])
    if (ids == -1).all():
        raise InputError("this measure compares token ids, and these tokens have none: run the model on text.")
    same = (ids[:, None] == ids[None, :]) & (ids[:, None] != -1)
    same = np.tril(same, -1)
    wanted = np.zeros_like(same)
    wanted[:, shift:] = same[:, : same.shape[1] - shift]
    return np.tril(wanted, -1)  # the query itself is no evidence


def _self_heads(trace: Trace) -> list[Head]:
    return [head for head in trace.heads if head.kind == "self"]


def _plain(trace: Trace, head: Head) -> list[int]:
    return [place for place, token in enumerate(trace.query_tokens(head)) if not token.special]


def _visible(pattern: np.ndarray) -> np.ndarray:
    """How many keys each query can see: in a causal pattern the weights above the diagonal are zero."""
    length = pattern.shape[0]
    is_causal = pattern.shape[0] == pattern.shape[1] and not np.triu(pattern, 1).any()
    return np.arange(1, length + 1) if is_causal else np.full(length, pattern.shape[1])
