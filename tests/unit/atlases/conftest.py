"""Tiny models and the texts that their atlases are made of."""

import pytest
from tiny_models import FAMILIES, tiny_tokenizer

import headscope as hs
from headscope.atlases import Atlas

TEXTS = [
    "the cat sat on the mat because it was tired.",
    "it was tired.",
    "she gave her sister the book, and he read it to them.",
    "the cat sat.",
    "a quick brown fox jumps over the lazy dog!",
    "he read it.",
]


@pytest.fixture(scope="session")
def gpt() -> hs.Model:
    return hs.Model(FAMILIES["gpt2"].build(), tiny_tokenizer(), name="tiny gpt")


@pytest.fixture(scope="session")
def llama() -> hs.Model:
    return hs.Model(FAMILIES["llama"].build(), tiny_tokenizer(), name="tiny llama")


@pytest.fixture(scope="session")
def marian() -> hs.Model:
    return hs.Model(FAMILIES["marian"].build(), tiny_tokenizer(), name="tiny marian")


@pytest.fixture(scope="session")
def atlas(gpt: hs.Model, tmp_path_factory: pytest.TempPathFactory) -> Atlas:
    """An atlas of all texts, with maps and scores; not to be written to."""
    return hs.atlas(gpt, TEXTS, tmp_path_factory.mktemp("atlas") / "atlas", points=None)
