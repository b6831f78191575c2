"""Heads that match words across a pair of sentences, or across source and target."""

from collections.abc import Iterator

import numpy as np

from headscope.analysis.tokens import Sample
from headscope.errors import InputError
from headscope.sites import Head
from headscope.traces import Tokens, Trace


def same_word(trace: Trace) -> Iterator[tuple[Head, Sample]]:
    """Of the attention that crosses from one sentence to the other, the share that lands on the query's own word.

    Over queries whose word stands in the other sentence. A ratio of sums: queries that send nothing across count for
    nothing. Chance is the word's share of the other sentence's tokens. In a translation the sentences are source and
    target.
    """
    by_head = {head: _across(trace, head) for head in trace.heads}
    if not any(crosses.any() for crosses, _ in by_head.values()):
        raise InputError("same_word_across needs a pair of sentences that share words: run the model on a pair.")
    for head, (crosses, matches) in by_head.items():
        pattern = trace.pattern(head)
        queries = matches.any(1)
        sent = (pattern * crosses)[queries].sum(1)
        chance = matches[queries].sum(1) / np.maximum(crosses[queries].sum(1), 1)
        yield head, Sample(float((pattern * matches)[queries].sum()), float(sent.sum()), float((sent * chance).sum()))


def _across(trace: Trace, head: Head) -> tuple[np.ndarray, np.ndarray]:
    """Which cells cross to the other sentence, and which of those lead to the same word [query, key]."""
    rows, keys = trace.query_tokens(head), trace.key_tokens(head)
    row_words, key_words = _words(rows), _words(keys)
    plain_rows = np.array([not token.special for token in rows])[:, None]
    plain_keys = np.array([not token.special for token in keys])[None, :]
    if head.kind == "cross":
        crosses = plain_rows & plain_keys
    else:
        row_segments = np.array([token.segment for token in rows])[:, None]
        crosses = (row_segments != np.array([token.segment for token in keys])[None, :]) & plain_rows & plain_keys
    same = np.array(row_words, dtype=object)[:, None] == np.array(key_words, dtype=object)[None, :]
    return crosses, crosses & same & np.array([word is not None for word in row_words])[:, None]


def _words(tokens: Tokens) -> list[str | None]:
    """The whole word that each token is part of, in lower case; None for marks and special tokens."""
    whole: dict[int, str] = {}
    for token in tokens:
        if token.word is not None:
            whole[token.word] = whole.get(token.word, "") + token.text.casefold()
    found = [None if token.word is None or token.special else whole[token.word] for token in tokens]
    return [word if word and any(letter.isalnum() for letter in word) else None for word in found]
