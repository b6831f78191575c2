"""The data of the chunking study: splits, normalisation, F1 by conlleval's rules, and what needs no context."""

from pathlib import Path

import pytest
import torch

from headscope.errors import InputError
from headscope.faithfulness.studies.chunking_data import SPECIAL_TAGS, ChunkingData
from headscope.faithfulness.studies.context_free import lookup_f1
from headscope.faithfulness.studies.stacked_chunk_f1 import StackedChunks, stacked_f1
from headscope.tasks.iob_chunks import chunk_f1
from headscope.tasks.task_data import open_data


def test_a_tenth_is_dev_and_nothing_is_in_two_splits(data) -> None:
    assert (len(data.train), len(data.dev), len(data.test)) == (36, 4, 10)


def test_numbers_share_a_vector_and_case_is_dropped(data, tiny_bert, tmp_path) -> None:
    file = tmp_path / "few.txt"
    lines = [f"{word} NN B-NP" for word in ("1987", "12", "The", "the", "cat", "sat", "mat", "dog", "bird", "house")]
    file.write_text("\n\n".join(lines) + "\n")
    few = ChunkingData(file, file, tiny_bert, size=4)
    vector = dict(zip(few.words, few.vectors, strict=True))
    assert "The" not in vector and vector["1987"].equal(vector["12"])
    assert not vector["<bos>"].any() and vector["cat"].any()


def test_a_chunk_ends_at_o(data) -> None:
    batch = data.batch(data.test, range(len(data.test)))
    right = data.chunks.counts(batch.gold, batch.gold[None], batch.is_word)
    assert stacked_f1(right) == [1.0]
    # Words between phrases tagged as padding read as O.
    padding = batch.gold.masked_fill(batch.gold == data.tags.index("O"), 0)
    assert stacked_f1(data.chunks.counts(batch.gold, padding[None], batch.is_word)) == [1.0]
    assert data.tags[: len(SPECIAL_TAGS)] == SPECIAL_TAGS


def test_stacked_f1_is_that_of_conlleval() -> None:
    names = ("<pad>", "O", "B-NP", "I-NP", "B-VP", "I-VP")
    generator = torch.Generator().manual_seed(0)
    gold, *predicted = torch.randint(0, len(names), (4, 50, 9), generator=generator)
    lengths = torch.randint(1, 10, (50, 1), generator=generator)
    is_word = torch.arange(9) < lengths
    ours = stacked_f1(StackedChunks(names).counts(gold, torch.stack(predicted), is_word))

    def tags(rows: torch.Tensor) -> list[list[str]]:
        written = [[names[number].replace("<pad>", "O") for number in row] for row in rows.tolist()]
        return [row[:length] for row, length in zip(written, lengths.flatten().tolist(), strict=True)]

    assert ours == [chunk_f1(tags(gold), tags(rows)) for rows in predicted] and 0 < min(ours) < max(ours) < 1


def test_tags_of_the_test_set_alone_count_as_missed(tiny_bert, tmp_path) -> None:
    for name, tag in (("train", "NP"), ("test", "XP")):
        lines = [f"{word} NN B-{tag}" for word in ("cat", "sat", "mat", "dog", "bird")]
        (tmp_path / name).write_text("\n\n".join(lines) + "\n")
    data = ChunkingData(tmp_path / "train", tmp_path / "test", tiny_bert, size=4)
    batch = data.batch(data.test, [0])
    assert batch.labels.tolist() == [[1, -1, 2]] and "B-XP" not in data.tags
    predicted = batch.gold[None].clone()
    predicted[0, 0, 1] = data.tags.index("B-NP")
    assert data.chunks.counts(batch.gold, predicted, batch.is_word).tolist() == [[0, 1, 1]]


def test_words_are_those_between_beginning_and_end(data) -> None:
    batch = data.batch(data.test, [0, 1])
    assert batch.mask.sum(1).tolist() == [9, 6] and batch.is_word.sum(1).tolist() == [7, 4]
    assert not batch.is_word[:, 0].any() and not batch.is_word[1, 5]


def test_a_model_too_narrow_for_the_vectors_is_refused(files: tuple[Path, Path], tiny_bert) -> None:
    with pytest.raises(InputError, match="Choose a wider model"):
        ChunkingData(*files, tiny_bert, size=300)


def test_a_file_without_chunks_is_refused(tiny_bert, tmp_path) -> None:
    (tmp_path / "empty.txt").write_text("\n")
    with pytest.raises(InputError, match="no sentences"):
        ChunkingData(tmp_path / "empty.txt", tmp_path / "empty.txt", tiny_bert, size=4)


def test_context_free_taggers_reach_what_is_published(shared_data) -> None:
    train, test = (
        list(open_data(shared_data / "conll2000" / f"{split}.txt.xz", kind="conll2000")) for split in ("train", "test")
    )
    assert lookup_f1(train, test, lambda example: example.tags["pos"]) == pytest.approx(0.7707, abs=5e-5)
    lower = lookup_f1(train, test, lambda example: [word.lower() for word in example.words])
    assert lower == pytest.approx(0.711, abs=5e-4)
