"""Where in the server's corpus a head, a coordinate or a neuron is strongest: gone through once, then looked up."""

from dataclasses import dataclass

import numpy as np

from headscope.analysis.search.example_tables import KEPT
from headscope.analysis.search.examples import CorpusExample, examples
from headscope.errors import InputError
from headscope.runs.progress import Progress
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
    if desk.corpus is None:
        raise InputError(
            "this server has no corpus to take examples from: start it with headscope serve --corpus FILE (a text a "
            "line), or a folder of such files."
        )
    if len(options.place) > LONGEST_PLACE:
        raise InputError(f"a place has at most {LONGEST_PLACE} characters, as in 'L3.neurons[17]'.")

    def progress(at: Progress) -> None:
        desk.progress(at.n_done, at.n_examples)

    k = max(1, min(options.k, KEPT))
    found = examples(
        desk.model, desk.corpus, options.place, k=k, lowest=options.lowest, progress=progress, cancel=desk.cancel
    )
    shown, values = zip(*map(_shown, found), strict=True) if len(found) else ((), ())
    props = ExamplesProps(str(found.place), found.corpus, found.n_examples, found.lowest, list(shown))
    joined = np.concatenate(values).astype(np.float32) if values else np.zeros(0, np.float32)
    return Part("examples", props, {"values": joined})


def _shown(one: CorpusExample) -> tuple[ExampleProps, np.ndarray]:
    """The stretch around what stands out: of a head, what is looked at; of anything else, the token itself."""
    token = _plain(one.tokens[one.token])
    texts, centre, at, told = one.tokens, one.token, one.token, token
    if one.key is not None:
        told = f"{token} → {_plain(one.key_tokens[one.key])}"
        if one.key_tokens != one.tokens:  # the keys are another text
            texts, centre, at = one.key_tokens, one.key, -1
    first, last = max(0, centre - AROUND), min(len(texts), centre + AROUND + 1)
    shown = [_plain(text) for text in texts[first:last]]
    return ExampleProps(one.id, shown, at - first if at >= 0 else -1, one.value, told), one.values[first:last]


def _plain(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


EXAMPLES = Task("examples", ExamplesOptions, _examples)
