"""A made-up set of tagged sentences, and a tiny model whose embeddings serve as word vectors."""

from pathlib import Path

import pytest
from tiny_models import FAMILIES, tiny_bert_tokenizer

import headscope as hs
from headscope.faithfulness.studies.chunking_data import ChunkingData

SENTENCES = (
    "the DT B-NP\ncat NN I-NP\nsat VBD B-VP\non IN B-PP\nthe DT B-NP\nmat NN I-NP\n. . O",
    "a DT B-NP\ndog NN I-NP\nran VBD B-VP\n. . O",
    "dogs NNS B-NP\nsat VBD B-VP\nin IN B-PP\n1987 CD B-NP\n. . O",
    "the DT B-NP\nold JJ I-NP\ndog NN I-NP\nran VBD B-VP\nto TO B-PP\na DT B-NP\nhouse NN I-NP",
    "she PRP B-NP\nsaw VBD B-VP\nthe DT B-NP\nbird NN I-NP\nsing VB B-VP\n. . O",
)


def write_sentences(file: Path, n: int) -> Path:
    file.write_text("\n\n".join(SENTENCES[place % len(SENTENCES)] for place in range(n)) + "\n")
    return file


@pytest.fixture(scope="session")
def tiny_bert() -> hs.Model:
    return hs.Model(FAMILIES["bert"].build(), tiny_bert_tokenizer(), name="tiny bert")


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("chunks")
    return write_sentences(folder / "train.txt", 40), write_sentences(folder / "test.txt", 10)


@pytest.fixture(scope="session")
def data(files: tuple[Path, Path], tiny_bert: hs.Model) -> ChunkingData:
    return ChunkingData(*files, tiny_bert, size=8)


@pytest.fixture(scope="session")
def opinions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """Tables of texts with a label: train, dev and test."""
    folder = tmp_path_factory.mktemp("opinions")
    good = ("the cat sat on the mat", "a dog ran to the house", "she saw the bird sing", "good cat")
    bad = ("the old dog", "1987 dogs in a house sat", "no bird", "she ran in the old mat")
    rows = [f"{text}\t{label}" for label, texts in ((1, good), (0, bad)) for text in texts]
    places = [folder / f"{name}.tsv" for name in ("train", "dev", "test")]
    for place, times in zip(places, (4, 1, 1), strict=True):
        place.write_text("\n".join(["text\tlabel", *rows * times]) + "\n")
    return places[0], places[1], places[2]
