"""One pass in memory counts what a run counts."""

import threading

import pytest
from tiny_models import FAMILIES, tiny_bert_tokenizer

import headscope as hs
from headscope import runs
from headscope.analysis.corpus_in_memory import count_corpus
from headscope.errors import Cancelled, InputError
from headscope.progress import Progress

TEXTS = ["the cat sat on the mat.", "it was tired.", "she gave her sister the book.", "he read it to them."]


@pytest.fixture(scope="module")
def bert() -> hs.Model:
    return hs.Model(FAMILIES["bert"].build(), tiny_bert_tokenizer(), name="tiny bert")


def previous(layer):
    plain = layer.plain_queries[:, 1:].float()
    weights = layer.pattern.diagonal(-1, 2, 3) * plain[:, None]
    yield layer.tally(weights.sum(-1), plain.sum(-1), (plain / layer.visible[:, 1:]).sum(-1))


def test_a_pass_in_memory_equals_a_run(bert, tmp_path):
    measure = runs.OfLayers("previous", previous)
    expected = runs.run(bert, TEXTS, [measure], tmp_path / "run").scores()["previous"]
    totals = count_corpus(bert, TEXTS, measure)
    scores = totals.mean()
    assert totals.n_examples == 4 and scores.n_samples == 4
    assert scores.to_json() == expected.to_json()


def test_shards_add_up(bert, monkeypatch):
    monkeypatch.setattr("headscope.analysis.corpus_in_memory.Plan.shard_size", 256)
    done = []
    many = count_corpus(bert, TEXTS * 70, runs.OfLayers("previous", previous), progress=done.append)
    few = count_corpus(bert, TEXTS, runs.OfLayers("previous", previous))
    assert done[-1] == Progress("examples", 280, 280) and many.n_blocks == 280
    for head, value in few.mean().items():
        assert many.mean()[head] == pytest.approx(value, abs=1e-6)


def test_limits_and_what_cannot_be_read(bert):
    assert count_corpus(bert, TEXTS, runs.OfLayers("previous", previous), limit=2).n_examples == 2
    with pytest.raises(InputError, match="at least one"):
        count_corpus(bert, TEXTS, runs.OfLayers("previous", previous), limit=0)
    with pytest.raises(InputError, match="no examples"):
        count_corpus(bert, [], runs.OfLayers("previous", previous))
    long = hs.corpus([*TEXTS, "the cat " * 400], on_error="skip")
    totals = count_corpus(bert, long, runs.OfLayers("previous", previous))
    assert totals.n_examples == 4 and list(totals.passed_over) == ["list:4"]
    stop = threading.Event()
    stop.set()
    with pytest.raises(Cancelled):
        count_corpus(bert, TEXTS, runs.OfLayers("previous", previous), cancel=stop)
