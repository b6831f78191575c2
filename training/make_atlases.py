"""The small atlases that built-in models bring: of built-in sentences and pictures, PCA, up to 1,000 points a head.

    python training/make_atlases.py

Run again, it writes the same files.
"""

from __future__ import annotations

import tempfile
from itertools import islice
from pathlib import Path

import headscope as hs
from headscope.atlases import pack_atlas
from headscope.corpora import Example, builtin_sentences, corpus
from headscope.models.loading import BUILTIN

# The translation model has twice as many heads as the others.
POINTS = {"gpt": 900, "bert": 900, "translate": 600, "vit": 1000}
N_PAIRS = 30


def pairs() -> list[Example]:
    """Built-in sentences with what the translation model makes of them."""
    model = hs.load("builtin:translate")
    return [
        Example(f"sentence {number}", text=example.text, target=model.generate(example.text, max_new_tokens=60).text)
        for number, example in enumerate(islice(builtin_sentences(), N_PAIRS))
    ]


def pictures() -> list[Example]:
    """The built-in pictures."""
    return list(corpus(BUILTIN / "images"))


pairs.__name__, pictures.__name__ = "built-in sentences, translated", "built-in pictures"
SOURCES = {"translate": pairs, "vit": pictures}


def make(name: str, folder: Path) -> None:
    """One atlas."""
    source = corpus(SOURCES[name]) if name in SOURCES else builtin_sentences()
    atlas = hs.atlas(f"builtin:{name}", source, folder / name, points=POINTS[name])
    file = BUILTIN / name / "atlas.zip"
    pack_atlas(atlas, file)
    print(f"{file.name} of {name}: {file.stat().st_size:,} bytes, {atlas!r}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        for model in POINTS:
            make(model, Path(place))
