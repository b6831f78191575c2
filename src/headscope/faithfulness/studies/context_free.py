"""What a chunker reaches without any context: the commonest tag of each word, or of each part of speech."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from headscope.corpora import Example
from headscope.tasks.iob_chunks import chunk_f1

_UNKNOWN = ""


def lookup_f1(train: Sequence[Example], test: Sequence[Example], units: Callable[[Example], Sequence[str]]) -> float:
    """Chunk F1 on `test` when each unit (a word, a part of speech) gets its commonest tag in `train`.

    Units that training does not have get the commonest tag of all.
    """
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for example in train:
        for unit, tag in zip(units(example), example.tags["chunk"], strict=True):
            counts[unit][tag] += 1
            counts[_UNKNOWN][tag] += 1
    commonest = {unit: tags.most_common(1)[0][0] for unit, tags in counts.items()}
    predicted = [[commonest.get(unit, commonest[_UNKNOWN]) for unit in units(example)] for example in test]
    return chunk_f1([example.tags["chunk"] for example in test], predicted)
