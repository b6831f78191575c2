"""Where in the server's corpus (or the built-in sentences) a head, a coordinate or a neuron is strongest."""

from dataclasses import dataclass

import numpy as np

from headscope.analysis.search.example_tables import KEPT
from headscope.analysis.search.examples import CorpusExample, examples
from headscope.corpora import builtin_sentences
from headscope.errors import InputError
from headscope.server.tasks.task import Desk, Task
from headscope.views.contract import ExampleProps, ExamplesProps
from headscope.views.wire import Part

# Tokens on either side of the one that stands out.
AROUND = 14
LONGEST_PLACE = 80


@dataclass(frozen=True)
class ExamplesOptions:
    """Of which place, as `hs.examples` reads it; how many, and at which end."""

    place: str = ""
    k: int = 10
    lowest: bool = False


def _examples(desk: Desk, options: ExamplesOptions) -> Part:
    if len(options.place) > LONGEST_PLACE:
        raise InputError(f"a place has at most {LONGEST_PLACE} characters, as in 'L3.neurons[17]'.")

    k = max(1, min(options.k, KEPT))
    matches = examples(
        desk.model,
        builtin_sentences() if desk.corpus is None else desk.corpus,
        options.place,
        k=k,
        lowest=options.lowest,
        truncate=True,
        progress=desk.progress,
        cancel=desk.cancel,
    )
    rows, values = zip(*map(_example_props, matches), strict=True) if len(matches) else ((), ())
    props = ExamplesProps(str(matches.place), matches.corpus, matches.n_examples, matches.lowest, list(rows))
    joined = np.concatenate(values).astype(np.float32) if values else np.zeros(0, np.float32)
    return Part("examples", props, {"values": joined})


def _example_props(example: CorpusExample) -> tuple[ExampleProps, np.ndarray]:
    """The stretch around what stands out: of a head, what is looked at; of anything else, the token itself."""
    token = _plain(example.tokens[example.token])
    texts, centre, at, label = example.tokens, example.token, example.token, token
    if example.key is not None:
        label = f"{token} → {_plain(example.key_tokens[example.key])}"
        if example.key_tokens != example.tokens:  # the keys are another text
            texts, centre, at = example.key_tokens, example.key, -1
    first, last = max(0, centre - AROUND), min(len(texts), centre + AROUND + 1)
    window = [_plain(text) for text in texts[first:last]]
    return ExampleProps(example.id, window, at - first if at >= 0 else -1, example.value, label), example.values[
        first:last
    ]


def _plain(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


EXAMPLES = Task("examples", ExamplesOptions, _examples)
