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
