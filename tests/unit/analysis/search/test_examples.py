"""Examples of a corpus: tables known on paper, the same as brute force, kept and resumed."""

import sys
import threading

import numpy as np
import pytest
import torch
from tiny_models import FAMILIES, SENTENCES, tiny_tokenizer

import headscope as hs
from headscope.analysis.search.example_tables import KEPT, TopExamples
from headscope.analysis.search.examples import Place, stream_of
from headscope.errors import Cancelled, HeadscopeError, InputError
from headscope.models import Model
from headscope.runs import worker

# The package has a function of this name too.
module = sys.modules["headscope.analysis.search.examples"]
TEXTS = [f"{sentence} {tail}" for tail in ("the cat", "she was tired") for sentence in SENTENCES[:6]]


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(FAMILIES["llama"].build(), tiny_tokenizer())


def brute(model: Model, read) -> list[tuple[float, int, int]]:
    """Of every text the strongest token that is not special: strongest first."""
    strongest = []
    for number, text in enumerate(TEXTS):
        trace = model.run(text, record="full")
        values = np.array(read(trace), float)
        values[[token.special for token in trace.tokens["main"]]] = -np.inf
        strongest.append((float(values.max()), number, int(values.argmax())))
    return sorted(strongest, key=lambda row: -row[0])


def test_a_table_on_paper():
    top = TopExamples("nowhere")
    values = torch.tensor([[[1.0, 9.0, 3.0]], [[4.0, 2.0, -7.0]], [[5.0, 8.0, 100.0]]])  # [example, coordinate, token]
    there = torch.tensor([[True, True, True], [True, True, True], [True, True, False]])
    top._add("x", values[:2], there[:2], [0, 1], 0)
    top._add("x", values[2:], there[2:], [2], 0)
    strength, example, token = (table[:, 0, :3].tolist() for table in top._tables["x"])
    assert strength[0] == [9.0, 8.0, 4.0] and example[0] == [0, 2, 1] and token[0] == [1, 1, 0]
    assert strength[1] == [7.0, -1.0, -5.0] and example[1] == [1, 0, 2] and token[1] == [2, 0, 0]
    assert top._tables["x"][1][0, 0, 3:].eq(-1).all()


def test_the_strongest_are_those_of_brute_force(model, tmp_path):
    folder = tmp_path / "kept"
    for place, read in (
        ("L1.neurons[3]", lambda trace: trace.neurons("L1")[:, 3]),
        ("L1H2.query[1]", lambda trace: trace.query("L1H2")[:, 1]),
        ("L0H3.key[0]", lambda trace: trace.key("L0H3")[:, 0]),
        ("L0H1.value[2]", lambda trace: trace.value("L0H1")[:, 2]),
        ("L1H0", lambda trace: trace.pattern("L1H0")[:, 1:].max(-1)),
    ):
        examples = hs.examples(model, TEXTS, place, k=4, folder=folder)
        expected = brute(model, read)[:4]
        assert [example.value for example in examples] == pytest.approx([row[0] for row in expected], abs=1e-4), place
        assert [example.id for example in examples] == [f"list:{row[1]}" for row in expected], place
        assert [example.token for example in examples] == [row[2] for row in expected], place
        for example in examples:
            if example.key is None:
                assert example.values[example.token] == pytest.approx(example.value, abs=1e-4)
            else:
                assert example.values[example.key] == pytest.approx(example.value, abs=1e-4)
    lowest = hs.examples(model, TEXTS, "L1.neurons[3]", k=1, lowest=True, folder=folder)
    assert lowest[0].value == pytest.approx(-brute(model, lambda trace: -trace.neurons("L1")[:, 3])[0][0], abs=1e-4)
    assert "L1.neurons[3]" in repr(lowest) and "«" in repr(lowest)


def test_a_second_question_does_not_read_the_corpus_through_the_model_again(model, tmp_path, monkeypatch):
    shards = []
    shard = worker.Worker.shard
    monkeypatch.setattr(
        worker.Worker, "shard", lambda self, index, *a, **b: shards.append(index) or shard(self, index, *a, **b)
    )
    monkeypatch.setattr(module, "SHARD", 5)
    first = hs.examples(model, TEXTS, "L1.neurons[3]", k=2, folder=tmp_path / "kept")
    every = list(range(-(-len(TEXTS) // 5)))
    assert shards == every and len(every) > 1
    hs.examples(model, TEXTS, "L0H1.value[2]", k=2, folder=tmp_path / "kept")
    again = hs.examples(model, TEXTS, "L1.neurons[3]", k=2, folder=tmp_path / "kept")
    assert shards == every and [example.id for example in again] == [example.id for example in first]


def test_stopped_it_goes_on_where_it_was(model, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SHARD", 4)
    whole = hs.examples(model, TEXTS, "L1.neurons[3]", k=4, folder=tmp_path / "whole")
    stop = threading.Event()

    def progress(_) -> None:
        if list((tmp_path / "kept").glob("top-*")):
            stop.set()

    with pytest.raises(Cancelled):
        hs.examples(model, TEXTS, "L1.neurons[3]", folder=tmp_path / "kept", progress=progress, cancel=stop)
    done = sorted(shard.name for shard in (tmp_path / "kept").glob("top-*"))
    assert done and len(done) < -(-len(TEXTS) // 4)
    resumed = hs.examples(model, TEXTS, "L1.neurons[3]", k=4, folder=tmp_path / "kept")
    assert [(example.id, example.token) for example in resumed] == [(example.id, example.token) for example in whole]
    assert np.allclose([example.value for example in resumed], [example.value for example in whole], atol=1e-5)


def test_a_folder_of_texts_is_read_file_by_file(tmp_path):
    (tmp_path / "b.txt").write_text("second\n")
    (tmp_path / "a.txt").write_text("first\nand more\n")
    (tmp_path / "notes.md").write_text("not read\n")
    stream = stream_of(tmp_path)
    assert [example.text for example in stream] == ["first", "and more", "second"] and stream.name == tmp_path.name


def test_the_cache_is_the_users(model, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    hs.examples(model, TEXTS[:2], "L0H0", k=1)
    assert len(list((tmp_path / "headscope" / "examples").glob("*/top-000000.safetensors"))) == 1


@pytest.mark.parametrize(
    ("place", "error_text"),
    [
        ("L3", "is no place"),
        ("L1H0.neurons[2]", "is no place"),
        ("L1.query[2]", "is no place"),
        ("L1.neurons[999]", "0 to"),
        ("L1H0.query[999]", "coordinates"),
        ("L9H0", "no head L9H0"),
        ("L9.neurons[0]", "no MLP neurons"),
        ("", "is no place"),
    ],
)
def test_what_is_not_there_is_said(model, tmp_path, place, error_text):
    with pytest.raises(HeadscopeError, match=error_text):
        hs.examples(model, TEXTS, place, folder=tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


def test_other_mistakes(model, tmp_path):
    with pytest.raises(InputError, match=f"1 to {KEPT}"):
        hs.examples(model, TEXTS, "L0H0", k=99, folder=tmp_path / "kept")
    with pytest.raises(InputError, match="no lowest end"):
        hs.examples(model, TEXTS, "L0H0", lowest=True, folder=tmp_path / "kept")
    assert str(Place.parse("cross.L1H0.key[3]")) == "cross.L1H0.key[3]"
