"""Studies on tiny models: every check is made, written three ways, and what cannot be checked is refused."""

import json

import pytest

from headscope.errors import InputError
from headscope.reports.studies import STUDIES, Check, Study, study
from headscope.reports.studies.charts import histogram


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_is_made_and_written(name, gpt, bert, treebank, tmp_path) -> None:
    study_report = study(name, bert if name == "raganato" else gpt, treebank, tmp_path)
    assert len(study_report.checks) >= 8 and all(check.published and check.ours for check in study_report.checks)
    saved = json.loads((tmp_path / "study.json").read_text())
    assert saved["name"] == name and len(saved["checks"]) == len(study_report.checks)
    page = (tmp_path / "index.html").read_text()
    assert "<gpt>" not in page and "http" not in page.replace("http-equiv", "")
    lines = (tmp_path / "study.md").read_text().splitlines()
    assert sum(line.startswith("| ") for line in lines) == len(study_report.checks) + len(study_report.parts())


def test_the_treebank_alone_is_checked_by_hand(gpt, treebank, tmp_path) -> None:
    ours_by_check = {check.what: check.ours for check in study("vig", gpt, treebank, tmp_path).checks}
    # Lengths of the two trees: 1 1 2 1 4 5 and 1 1 2 1 3 1 5, each as often.
    assert ours_by_check["mean dependency length, words"] == f"{28 / 13:.2f}"
    assert ours_by_check["dependencies within 18 words"] == "100.0 %"


def test_a_corpus_without_trees_is_refused(gpt, tmp_path) -> None:
    with pytest.raises(InputError, match="needs a treebank"):
        study("vig", gpt, ["the cat sat."], tmp_path)


def test_an_unknown_study_names_those_there_are(gpt, tmp_path) -> None:
    with pytest.raises(InputError, match="vig, voita, raganato"):
        study("clark", gpt, ["the cat sat."], tmp_path)


def test_a_page_escapes_what_it_is_told(tmp_path) -> None:
    example_study = Study("x", "A & B", "them", "<m>", "c", 3, (Check("part", "a|b", "<1>", "2"),), ("n",))
    assert "&lt;1&gt;" in example_study.html() and "A &amp; B" in example_study.html()
    assert "a\\|b" in example_study.markdown()


def test_a_histogram_counts_in_whole_numbers() -> None:
    chart = histogram("t", "c", {"a": [0.1] * 10, "b": [0.9]}, bins=2, limits=(0.0, 1.0), x="x", y="n")
    assert ">10</text>" in chart.svg and ">2.5</text>" not in chart.svg
    assert "<title>a: 10</title>" in chart.svg and "<title>b: 1</title>" in chart.svg
