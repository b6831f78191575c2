"""Tasks of GLUE and SuperGLUE by name, and datasets by name."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import headscope as hs
from headscope.errors import HeadscopeError, InputError, LoadError, MissingExtraError


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_tables_of_glue_by_the_name_of_the_task(tmp_path):
    mrpc = write(
        tmp_path / "mrpc.tsv",
        "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String",
        "1\t7\t8\tHe sat.\tHe took a seat.",
    )
    example = next(iter(hs.corpus(mrpc, kind="glue/mrpc")))
    assert (example.text, example.pair, example.label) == ("He sat.", "He took a seat.", "1")
    qnli = write(tmp_path / "q.tsv", "index\tquestion\tsentence\tlabel", "0\tWho?\tShe did.\tentailment")
    example = next(iter(hs.corpus(qnli, kind="glue/qnli")))
    assert (example.text, example.pair, example.label) == ("Who?", "She did.", "entailment")
    cola = write(tmp_path / "cola.tsv", "gj04\t1\t\tShe sings.", "gj04\t0\t*\tSings she the.")
    corpus = hs.corpus(cola, kind="glue/cola")
    assert [(example.text, example.label) for example in corpus] == [("She sings.", "1"), ("Sings she the.", "0")]
    assert "glue/cola" in repr(corpus) and corpus.kind == "table"


def test_test_files_have_no_label(tmp_path):
    sst2 = write(tmp_path / "test.tsv", "index\tsentence", "0\tA fine film.")
    example = next(iter(hs.corpus(sst2, kind="glue/sst2")))
    assert (example.text, example.label) == ("A fine film.", None)


def test_json_lines_of_superglue(tmp_path):
    rows = [{"question": "is it?", "passage": "It is.", "label": True}, {"question": "", "passage": "x"}]
    boolq = write(tmp_path / "val.jsonl", *map(json.dumps, rows), "[1]", "no json")
    corpus = hs.corpus(boolq, kind="superglue/boolq", on_error="skip")
    with pytest.warns(hs.errors.HeadscopeWarning, match="no text in 'question'"):
        (example,) = corpus
    assert (example.text, example.pair, example.label) == ("is it?", "It is.", "True")
    assert [problem.line for problem in corpus.problems] == [2, 3, 4] and corpus.kind == "pairs"


def test_a_task_that_does_not_fit_the_file_is_refused(tmp_path):
    table = write(tmp_path / "a.tsv", "one\ttwo", "a b\tc d")
    with pytest.raises(InputError, match="no column 'question1', which glue/qqp has"):
        hs.corpus(table, kind="glue/qqp")
    with pytest.raises(InputError, match=r"give a \.jsonl file"):
        hs.corpus(table, kind="superglue/boolq")
    with pytest.raises(InputError, match="there is no kind of corpus 'glue/none'"):
        hs.corpus(table, kind="glue/none")


class Dataset:
    """As the package datasets gives one, so far as a corpus needs it."""

    def __init__(self, rows: list[dict]):
        self.rows, self.column_names, self.features = rows, list(rows[0]), {}

    def __iter__(self):
        return iter(self.rows)


def test_a_dataset_of_the_hub_by_name(monkeypatch):
    calls = []

    def load_dataset(*args, **options):
        calls.append((args, options))
        return Dataset([{"question": "Who?", "sentence": "She did.", "label": 1, "idx": 0}])

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
    (example,) = hs.corpus("hf:nyu-mll/glue:qnli:validation")
    assert (example.text, example.pair, example.label) == ("Who?", "She did.", "1")
    next(iter(hs.corpus("hf:someone/texts::test", columns={"text": "sentence"})))
    assert calls == [
        (("nyu-mll/glue", "qnli"), {"split": "validation", "streaming": True}),
        (("someone/texts", None), {"split": "test", "streaming": True}),
    ]


def test_what_the_hub_refuses_is_said(monkeypatch):
    def load_dataset(*args, **options):
        raise ConnectionError("no network")

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
    with pytest.raises(LoadError, match="could not get the dataset 'hf:a/b': ConnectionError: no network"):
        hs.corpus("hf:a/b")
    for name in ("hf:", "hf:a:b:c:d"):
        with pytest.raises(InputError, match="names no dataset"):
            hs.corpus(name)
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtraError, match="pip install datasets"):
        hs.corpus("hf:a/b")
    assert issubclass(MissingExtraError, HeadscopeError)
