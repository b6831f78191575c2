"""Which measures a corpus can be run with, made ready for it."""

from collections.abc import Iterable
from typing import Any

from headscope.analysis.measures.catalogue import MEASURES
from headscope.analysis.measures.corpus_contents import Inventory, take_inventory
from headscope.corpora import Corpus, Example, corpus
from headscope.models import Model
from headscope.runs import Measure


def streaming(
    source: Any, model: Model | None = None, *, names: Iterable[str] | None = None, inventory: Inventory | None = None
) -> list[Measure]:
    """All measures that apply to a corpus (or whatever `corpus` takes), or those of `names` that do, for `runs.run`.

    The corpus is gone through once, for what it has, for the most frequent offset of every dependency relation, and,
    with a model, for how often each token occurs; without one, rare words are left out. An `inventory` that was
    taken spares the pass.

    >>> import headscope as hs
    >>> model, texts = hs.load("builtin:gpt"), ["The doctor asked the nurse a question. She"] * 3
    >>> [measure.name for measure in hs.analysis.streaming(texts, model)][:3]
    ['confidence', 'peak_weight', 'entropy']
    """
    if inventory is None:
        inventory = take_inventory(_examples(source), model)
    chosen = list(MEASURES) if names is None else list(names)
    return [
        measure.over(inventory) for name, measure in MEASURES.items() if name in chosen and measure.applies(inventory)
    ]


def _examples(source: Any) -> Iterable[Example]:
    if isinstance(source, Corpus):
        return source
    if isinstance(source, list | tuple) and source and all(isinstance(example, Example) for example in source):
        return source
    return corpus(source)
