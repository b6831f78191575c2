"""`headscope trust`: what it writes and prints, and what it refuses."""

import json
from pathlib import Path

import pytest

FAST = ("--permutations", 1, "--adversary-steps", 0, "--heads", "L1H2")


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text("the cat sat on the mat.\nshe gave her sister the book.\nit was tired.\n")
    return path


def test_a_report_is_written_and_told(call, models, texts, tmp_path) -> None:
    result = call("trust", models / "gpt", texts, "-o", tmp_path / "trust", *FAST)
    assert result.exit_code == 0, result.output
    assert "1 not tested, on" in result.stdout and "L1H2" in result.stdout  # three texts are too few
    for name in ("report.html", "trust.json", "trust.parquet", "run/manifest.json"):
        assert (tmp_path / "trust" / name).is_file()
    again = call("trust", models / "gpt", texts, "-o", tmp_path / "trust", "--json", *FAST)
    printed = json.loads(again.stdout)
    assert [head["name"] for head in printed["heads"]] == ["L1H2"]
    assert printed["about"]["task"] == "language_modelling" and printed["about"]["tests"]["adversary"] is None


def test_what_does_not_fit_is_refused(refusal, models, texts, tmp_path) -> None:
    folder = tmp_path / "trust"
    assert "runs on this machine" in refusal("trust", models / "gpt", texts, "-o", folder, "--engine", "ray")
    assert "cannot do tagging" in refusal("trust", models / "gpt", texts, "-o", folder, "--task", "tagging")
    assert "there is no L9H9" in refusal("trust", models / "gpt", texts, "-o", folder, "--heads", "L9H9")
    assert not folder.exists()
