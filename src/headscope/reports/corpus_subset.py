"""A part of a corpus: every n-th example, and no more than a limit."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from headscope.corpora import Corpus, CorpusProblem, Example, corpus
from headscope.errors import InputError


def corpus_subset(source: Any, limit: int | None, every: int = 1) -> Corpus:
    """Every Nth example of a corpus, at most `limit` of them: for files that are sorted."""
    if every < 1:
        raise InputError(f"every={every} is not a step: 1 takes all examples, 2 every second.")
    whole = source if isinstance(source, Corpus) else corpus(source)
    limits = [maximum for maximum in (whole.limit, limit) if maximum is not None]
    if every == 1 and not limits:
        return whole
    about = f"{whole.about}; one in {every}" if every > 1 else whole.about
    options: dict[str, Any] = {"files": whole.files, "limit": min(limits, default=None), "on_error": whole.on_error}
    return Corpus(whole.name, whole.kind, about, partial(_every_nth, whole, every), **options)


def _every_nth(whole: Corpus, every: int) -> Iterator[Example | CorpusProblem]:
    """What cannot be read is passed on, so that it is counted where it always is."""
    place = 0
    for example in whole.read():
        if isinstance(example, CorpusProblem):
            yield example
            continue
        if place % every == 0:
            yield example
        place += 1
