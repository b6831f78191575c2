"""The report of heads: what it finds, what it writes, how it goes on, and how it is read again."""

import json
import threading
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tiny_models import FAMILIES, tiny_tokenizer

import headscope as hs
from headscope import runs
from headscope.corpora import Example
from headscope.errors import Cancelled, InputError, LoadError, UnknownHeadError
from headscope.reports import HeadsReport, heads
from headscope.reports.heads_report import corpus_subset
from headscope.reports.relevance_sample import take_sample


def test_every_head_has_a_verdict_and_every_measure_that_applies_a_score(report, gpt) -> None:
    assert list(report.roles) == list(gpt.heads)
    names = set(report.scores)
    assert {
        "positional",
        "dependency_alignment",
        "repeated_induction",
        "relevance",
        "gate_importance",
        "ablation",
    } <= names
    assert any(name.startswith("syntactic/") for name in names) and any(name.startswith("tags/to ") for name in names)
    assert "patch_self" not in names
    assert "tiny.conllu" in repr(report) and report.page.name == "index.html"


def test_roles_and_cases_are_looked_up_by_the_address_of_a_head(report) -> None:
    head = hs.Head("main", 1, 2)
    for loaded in (report, HeadsReport.load(report.folder)):
        assert loaded.roles["L1H2"] is loaded.roles[head] and loaded.roles["L1H2"].head == head
        assert loaded.cases["L1H2"] is loaded.cases[head]
        with pytest.raises(UnknownHeadError, match="there is no L9H9: the heads are L0H0 to"):
            loaded.roles["L9H9"]
        with pytest.raises(UnknownHeadError, match="L1 names 4 heads: say which"):
            loaded.roles["L1"]


def test_its_scores_are_those_of_the_run(report, gpt, treebank, tmp_path) -> None:
    from headscope.analysis.measures.corpus_measures import streaming

    run = runs.run(gpt, treebank, streaming(treebank, gpt, names=["confidence", "entropy"]), tmp_path)
    for name, scores in run.scores().items():
        assert dict(report.scores[name]) == dict(scores)


def test_the_table_holds_every_score(report) -> None:
    table = pq.read_table(report.folder / "scores.parquet")
    assert table.num_rows == sum(len(scores) for scores in report.scores.values())
    row = next(row for row in table.to_pylist() if (row["measure"], row["head"]) == ("confidence", "L1H2"))
    low, high = report.scores["confidence"].intervals[hs.Head("main", 1, 2)]
    assert (row["value"], row["low"], row["high"], row["n"]) == (report.scores["confidence"]["L1H2"], low, high, 24)
    assert (row["stack"], row["layer"], row["index"], row["key"]) == ("main", 1, 2, "")


def test_what_was_written_is_read_again(report) -> None:
    again = HeadsReport.load(report.folder)
    assert again.roles.keys() == report.roles.keys()
    assert [verdict.role for verdict in again.roles.values()] == [verdict.role for verdict in report.roles.values()]
    assert again.scores["relevance"].top(3)[0][0] == report.scores["relevance"].top(3)[0][0]
    assert again.outcome == report.outcome and again.about["corpus"]["n_examples"] == 24
    with pytest.raises(LoadError, match="no report of heads"):
        HeadsReport.load(report.folder / "run")


def test_a_second_call_measures_nothing_again(report, gpt, treebank, monkeypatch) -> None:
    before = (report.folder / "heads.json").read_bytes(), report.page.read_bytes()
    for name in ("relevance", "gate_importance", "ablation"):
        monkeypatch.setitem(heads.__globals__["_METHODS"], name, None)  # would fail if it were called
    calls = []
    heads(gpt, treebank, report.folder, sample=2, progress=calls.append)
    assert {progress.stage for progress in calls} == {"examples", "cases"}
    assert before == ((report.folder / "heads.json").read_bytes(), report.page.read_bytes())


def test_a_cancelled_report_goes_on_where_it_stopped(gpt, treebank, tmp_path) -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(Cancelled, match="the same call goes on"):
        heads(gpt, treebank, tmp_path, relevance=False, importance=False, cancel=stop)
    done = heads(gpt, treebank, tmp_path, relevance=False, importance=False)
    assert done.about["absent"]["relevance"] == "it was not asked for."
    assert "relevance" not in done.scores and done.page.is_file()


def test_a_model_without_answers_is_reported_without_relevance(treebank, tmp_path) -> None:
    from transformers import GPT2Model

    whole = FAMILIES["gpt2"].build()
    bare = hs.Model(GPT2Model(whole.config).eval(), tiny_tokenizer(), name="bare")  # type: ignore[attr-defined]
    done = heads(bare, treebank, tmp_path, limit=4)
    assert "relevance" not in done.scores and done.about["absent"]["relevance"]
    assert done.about["corpus"]["n_examples"] == 4


def test_a_masked_model_is_asked_for_masked_words(bert, treebank, tmp_path) -> None:
    done = heads(bert, treebank, tmp_path, limit=8, importance=False, sample=2)
    assert done.about["sample"]["about"] == "one masked word each"
    assert "relevance" in done.scores


def test_without_a_folder_it_is_kept_in_a_temporary_one(gpt) -> None:
    done = heads(gpt, ["the cat sat on the mat.", "she gave her the book."], relevance=False, importance=False)
    assert done.page.is_file() and "syntactic" not in done.scores


def test_a_limit_narrows_a_corpus_and_leaves_it_as_it_was(treebank) -> None:
    whole = hs.corpus(treebank, limit=10)
    assert (
        len(list(corpus_subset(whole, 3))) == 3 and len(list(corpus_subset(whole, 20))) == 10 and len(list(whole)) == 10
    )


def test_every_takes_a_step_through_the_corpus() -> None:
    texts = [f"text {number}" for number in range(10)]
    assert [example.text for example in corpus_subset(texts, None, 4)] == ["text 0", "text 4", "text 8"]
    assert [example.text for example in corpus_subset(texts, 2, 4)] == ["text 0", "text 4"]
    with pytest.raises(InputError, match="not a step"):
        corpus_subset(texts, None, 0)


def test_json_holds_no_number_that_json_has_not(report) -> None:
    json.loads((report.folder / "heads.json").read_text(), parse_constant=lambda text: pytest.fail(text))


def test_an_extra_measure_is_run_along(gpt, tmp_path) -> None:
    def count(layer):
        yield layer.tally(layer.queries.sum(-1).float(), layer.queries.sum(-1))

    extra = [runs.OfLayers("ones", count)]
    done = heads(gpt, ["the cat sat.", "a dog."], tmp_path / "x", extra=extra, relevance=False, importance=False)
    assert set(done.scores["ones"].values()) == {1.0}
    assert Path(done.folder, "run", "manifest.json").is_file()


def test_why_something_is_absent_does_not_tell_the_folder_of_the_model(tmp_path) -> None:
    whole, folder = hs.load("builtin:bert"), tmp_path / "encoder"
    folder.mkdir()
    encoder = hs.Model(whole.module.bert, whole.processor, name=str(folder))
    report = heads(encoder, ["the cat sat on the mat.", "it was tired."], tmp_path / "report", sample=2)
    assert report.about["model"] == "encoder" and "no head to explain" in report.about["absent"]["relevance"]
    assert str(tmp_path) not in report.page.read_text()


def test_texts_without_a_word_to_mask_are_said_to_have_none() -> None:
    texts = [Example("a:1", text="3 4 5 6 7 8 9 10 11 12 13")]
    with pytest.raises(InputError, match="none of 1 texts"):
        take_sample(hs.load("builtin:bert"), texts, 2)
