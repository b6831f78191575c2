"""A word tagger: the module computes what the study's stacked tagger computes, and its folder opens like any other."""

from pathlib import Path

import pytest
import torch

import headscope as hs
from headscope import tasks
from headscope.faithfulness.studies.stacked_tagger import TaggerShape, draw_tagger, tag
from headscope.models.word_tagger import save_word_tagger

WORDS = ("<pad>", "<bos>", "<eos>", "<unk>", "the", "cat", "1987", "sat")
TAGS = ("<pad>", "<bos>", "<eos>", "B-NP", "I-NP", "O")
IDS = torch.tensor([[1, 4, 5, 6, 7, 2], [1, 7, 2, 0, 0, 0]])


@pytest.fixture(scope="module")
def parameters() -> dict[str, torch.Tensor]:
    return {name: value + 0.1 for name, value in draw_tagger(TaggerShape(20, 16, 4, len(TAGS)), 3).items()}


@pytest.fixture(scope="module")
def vectors() -> torch.Tensor:
    return torch.randn(len(WORDS), 20, generator=torch.Generator().manual_seed(0)) * (torch.arange(8) > 3)[:, None]


@pytest.fixture(scope="module")
def folder(parameters, vectors, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("word-tagger") / "tagger"
    save_word_tagger(place, parameters, vectors, WORDS, TAGS, n_heads=4)
    return place


def test_it_computes_what_the_stacked_tagger_computes(folder, parameters, vectors) -> None:
    model = hs.load(folder)
    stacked = tag({name: value[None] for name, value in parameters.items()}, vectors[IDS], IDS != 0)
    with torch.no_grad():
        output = model.module(input_ids=IDS, attention_mask=(IDS != 0).long())
    torch.testing.assert_close(output.logits[IDS != 0], stacked.logits[0][IDS != 0])
    traces = model.run(["the cat 1987 sat", "sat"])
    for row, trace in enumerate(traces):
        n = len(trace.tokens["main"])
        ours = torch.as_tensor(trace.pattern("L0H2"))
        torch.testing.assert_close(ours, stacked.pattern[0, row, 2, :n, :n], atol=1e-6, rtol=1e-5)


def test_it_is_verified_and_reads_words_as_they_are_written(folder) -> None:
    model = hs.load(folder)
    assert model.verified and [str(head) for head in model.heads] == ["L0H0", "L0H1", "L0H2", "L0H3"]
    tokens = model.run("The zebra 1987").tokens["main"]
    assert [(token.text, token.id) for token in tokens] == [
        ("<bos>", 1), ("The", 4), ("<unk>", 3), ("1987", 6), ("<eos>", 2),
    ]  # fmt: skip


def test_it_is_scored_by_the_tagging_task(folder, tmp_path) -> None:
    (tmp_path / "dev.txt").write_text("the DT B-NP\ncat NN I-NP\nsat VBD O\n")
    score = tasks.tagging(dev=tmp_path / "dev.txt").evaluate(hs.load(folder), metric="accuracy")
    assert score.n == 1 and 0 <= score.value <= 1


def test_a_head_that_is_silenced_writes_nothing(folder, parameters, vectors) -> None:
    model = hs.load(folder)
    with torch.no_grad(), model.session([hs.silence("L0H1")]):
        edited = model.module(input_ids=IDS[:1]).logits
    without = {name: value.clone()[None] for name, value in parameters.items()}
    without["value.weight"][..., 4:8] = 0.0
    expected = tag(without, vectors[IDS[:1]], IDS[:1] != 0).logits[0]
    torch.testing.assert_close(edited, expected)
