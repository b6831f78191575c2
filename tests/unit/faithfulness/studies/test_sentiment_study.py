"""The whole sentiment study on made-up opinions: 2 seeds × 2 epochs, resumed, and reported."""

import json
from collections import Counter
from pathlib import Path

import pytest

from headscope.faithfulness import AdversaryOptions
from headscope.faithfulness.studies import ClassifierOptions, SentimentOptions
from headscope.faithfulness.studies.sentiment import ENCODERS, GUIDES
from headscope.reports.studies.sentiment import sentiment_study

OPTIONS = SentimentOptions(
    seeds=2, lambdas=(0.001, 0.1), epochs=2, adversary_epochs=2, tested=6, inputs=8,
    classifier=ClassifierOptions(batch_size=8, width=8), adversary=AdversaryOptions(patterns=2, steps=20),
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(opinions: tuple[Path, Path, Path], tiny_bert, tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("study") / "sentiment"
    sentiment_study(*opinions, tiny_bert, place, OPTIONS)
    return place


def test_every_classifier_and_text_has_a_line(folder) -> None:
    lines = [json.loads(line) for line in (folder / "training" / "figures.jsonl").read_text().splitlines()]
    counts = Counter((line["kind"], line["encoder"]) for line in lines if "kind" in line)
    assert counts == {
        ("base", "average"): 1, ("guided", "average"): len(GUIDES),
        **{(kind, encoder): n for encoder in ENCODERS for kind, n in (("base", 2), ("adversary", 2), ("uniform", 1))},
    }  # fmt: skip
    for encoder in ENCODERS:
        tested = [line for line in lines if line["stack"] == f"texts-{encoder}"]
        assert len(tested) == 6 and all(line["adversary_jsd"] >= 0 for line in tested)
        assert all(line["adversary_tvd"] <= 0.05 for line in tested)


def test_a_finished_study_trains_nothing(folder, opinions: tuple[Path, Path, Path], tiny_bert) -> None:
    stages: list[str] = []
    study = sentiment_study(
        *opinions, tiny_bert, folder, OPTIONS, progress=lambda progress: stages.append(progress.stage)
    )
    assert not stages and len(study.rows) == 16


def test_the_report_has_the_papers_tables_and_plot(folder) -> None:
    study = json.loads((folder / "study.json").read_text())
    published = " ".join(check["published"] for check in study["checks"])
    assert "0.61; 0.35; – [released]" in published and "0.784 [released]" in published and "JSD 0.514" not in published
    page = (folder / "index.html").read_text()
    assert page.count("<figure>") == 4 and "per-text adversaries" in page and "other seeds" in page
    assert (folder / "figures.parquet").is_file()
