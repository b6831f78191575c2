"""Sentences of the server's corpus to start from: its first short ones, with their trees where it has them."""

import itertools
from pathlib import Path

from headscope.analysis.search.examples import stream_of
from headscope.corpora import Corpus, Example
from headscope.corpora.conllu import looks_like_conllu, parse_conllu, to_conllu
from headscope.errors import HeadscopeError
from headscope.server.log import logger, type_and_place
from headscope.views.contract import PresetProps

N_SAMPLES = 8
# Sentences worth looking at that fit on a screen; they are looked for at the beginning only.
LEAST_WORDS, MOST_WORDS = 4, 24
MOST_CHARACTERS = 200
N_LOOKED_AT = 500


def samples_of(source: Path | Corpus | None) -> list[PresetProps]:
    """Inputs from the beginning of a corpus; none where it holds something else, or cannot be read."""
    if source is None:
        return []
    try:
        stream = stream_of(source)
        return [] if stream.kind == "images" else _first(stream)
    except HeadscopeError as error:
        logger.warning("no sentences of %s to start from: %s", source.name, type_and_place(error))
        return []


def _first(stream: Corpus) -> list[PresetProps]:
    samples: dict[str, PresetProps] = {}
    for example in itertools.islice(stream.read(), N_LOOKED_AT):
        sample = _sample(example) if isinstance(example, Example) else None
        if sample is not None:
            samples.setdefault(sample.text or "", sample)
        if len(samples) == N_SAMPLES:
            break
    return list(samples.values())


def _sample(example: Example) -> PresetProps | None:
    text = (example.text or "").strip()
    n_words = len(example.words) or len(text.split())
    if example.pair is not None or example.target is not None or not LEAST_WORDS <= n_words <= MOST_WORDS:
        return None
    if len(text) > MOST_CHARACTERS or looks_like_conllu(text):
        return None
    if not example.heads:
        return PresetProps(text, "", text)
    tree = to_conllu(example)
    # A word that the text has in another form than its own cannot be told without the line of the token it is part of.
    if [(sentence.text, sentence.spans) for sentence in parse_conllu(tree)] != [(example.text, example.spans)]:
        return None
    return PresetProps(text, "", tree)
