"""Which examples of a corpus an atlas is made from: a random sample, as many as its points allow."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from headscope.corpora import Corpus, Example
from headscope.errors import InputError
from headscope.models import Model

# So many examples are read first, to know how long they are.
_FIRST = 16
# Of what the lengths so far suggest, this much more is read at once.
_MARGIN = 1.2


@dataclass(frozen=True)
class ExampleSample:
    """The examples, in the order of the corpus, how many tokens they have, and of how many examples they were drawn."""

    examples: list[Example]
    n_tokens: int
    n_in_corpus: int
    sha256: str

    def corpus(self, source: Corpus) -> Corpus:
        """The sample as a corpus for a run."""
        about = f"{source.about}; {len(self.examples)} of {self.n_in_corpus} examples"
        options: dict[str, Any] = {"files": source.files, "on_error": source.on_error}
        return Corpus(source.name, source.kind, about, lambda: iter(self.examples), **options)


def sample_examples(
    model: Model, source: Corpus, most_tokens: int | None, *, seed: int = 0, truncate: bool = False
) -> ExampleSample:
    """Examples in random order until the next would exceed `most_tokens`; at least one. None takes all.

    Only what is drawn is held and tokenized, so a large corpus costs no more memory than a small one.
    """
    survey = source.survey()
    if not survey.n_examples:
        raise InputError(f"there is nothing to draw: {source!r} has no examples.")
    order = np.random.default_rng(seed).permutation(survey.n_examples)
    n_read = survey.n_examples if most_tokens is None else min(_FIRST, survey.n_examples)
    while True:
        drawn = set(order[:n_read].tolist())
        examples = {place: example for place, example in enumerate(source) if place in drawn}
        lengths = {place: _n_tokens(model, example, source, truncate) for place, example in examples.items()}
        total = sum(lengths.values())
        if n_read == survey.n_examples or (most_tokens is not None and total > most_tokens):
            break
        share = (most_tokens or 0) / max(total, 1)
        n_read = min(survey.n_examples, max(n_read + 1, int(n_read * share * _MARGIN)))
    chosen = sorted(_within([int(place) for place in order[:n_read]], lengths, most_tokens))
    n_tokens = sum(lengths[place] for place in chosen)
    return ExampleSample([examples[place] for place in chosen], n_tokens, survey.n_examples, survey.sha256)


def _within(order: list[int], lengths: dict[int, int], most_tokens: int | None) -> Iterator[int]:
    total = 0
    usable = [place for place in order if lengths.get(place)]
    if not usable:
        raise InputError("the model can read no example of the corpus.")
    yield usable[0]
    total = lengths[usable[0]]
    for place in islice(usable, 1, None):
        total += lengths[place]
        if most_tokens is not None and total > most_tokens:
            return
        yield place


def _n_tokens(model: Model, example: Example, source: Corpus, truncate: bool) -> int:
    """How many tokens the longest stack of an example has; 0 where it is skipped."""
    try:
        first = example.image if example.text is None else example.text
        image = example.image if example.text is not None else None
        inputs = model.read(first, pair=example.pair, target=example.target, image=image, truncate=truncate)
    except InputError as problem:
        if source.on_error == "skip":
            return 0
        raise InputError(f"{example.id}: {problem} Make the corpus with on_error='skip' to pass over it.") from problem
    assert not isinstance(inputs, list)  # as one example was given
    return inputs.length
