"""`headscope heads` and `headscope study`: what they write and print, what they refuse, how they stop."""

import json
from pathlib import Path

import pytest

from headscope import reports
from headscope.errors import Cancelled

FAST = ("--no-relevance", "--no-importance")
TREE = (
    "1\tshe\t_\tPRON\t_\t_\t2\tnsubj\t_\t_\n2\tsat\t_\tVERB\t_\t_\t0\troot\t_\t_\n3\ton\t_\tADP\t_\t_\t2\tobl\t_\t_\n\n"
)


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text("the cat sat on the mat.\nshe gave her sister the book.\nit was tired.\n")
    return path


def test_a_report_is_written_and_told(call, models, texts, tmp_path) -> None:
    result = call("heads", models / "gpt", texts, "-o", tmp_path / "report", "--sample", 2)
    assert result.exit_code == 0, result.output
    assert "heads have no clear role" in result.stdout and str(tmp_path / "report" / "index.html") in result.stdout
    for name in ("index.html", "heads.json", "scores.parquet", "run/manifest.json"):
        assert (tmp_path / "report" / name).is_file()


def test_json_is_one_document(call, models, texts, tmp_path) -> None:
    result = call("heads", models / "gpt", texts, "-o", tmp_path / "report", "--limit", 2, "--json", *FAST)
    printed = json.loads(result.stdout)
    assert printed["corpus"]["n_examples"] == 2 and len(printed["roles"]) == 8
    assert printed["absent"]["relevance"] == "it was not asked for."


def test_columns_say_what_is_read(call, models, tmp_path) -> None:
    table = tmp_path / "table.tsv"
    table.write_text("1\tthe cat sat\ta dog\n2\tit was tired\tshe\n")
    columns = ("--columns", "text=1,pair=2")
    result = call("heads", models / "bert", table, "-o", tmp_path / "report", "--json", *columns, *FAST)
    assert result.exit_code == 0, result.output
    assert "pair from column 2" in json.loads(result.stdout)["corpus"]["about"]
    assert "First example: text 'the cat sat'; pair 'a dog'." in result.stderr


def test_columns_that_cannot_be_told_are_refused_before_the_model_is_loaded(refusal, tmp_path) -> None:
    table = tmp_path / "table.tsv"
    table.write_text("the cat sat\ta dog\tno bird\n")
    assert "--columns text=0,pair=1" in refusal("heads", "nowhere", table, "-o", tmp_path / "x")


def test_images_have_a_report_too(call, models, tmp_path) -> None:
    from PIL import Image

    (tmp_path / "images").mkdir()
    for at in range(3):
        Image.new("RGB", (16, 16), (80 * at, 20, 90)).save(tmp_path / "images" / f"{at}.png")
    result = call("heads", models / "vit", tmp_path / "images", "-o", tmp_path / "report", *FAST)
    assert result.exit_code == 0, result.output
    assert "patches" in result.stdout


def test_what_cannot_be_done_is_refused_before_the_model_is_loaded(refusal, texts, tmp_path) -> None:
    assert "cannot be read" in refusal("heads", "nowhere", texts, "-o", tmp_path / "x", "--columns", "text")
    assert "--engine ray" in refusal("heads", "nowhere", texts, "-o", tmp_path / "x", "--address", "a:1")
    assert "a file is there" in refusal("heads", "nowhere", texts, "-o", texts)
    assert "nothing.txt" in refusal("heads", "nowhere", tmp_path / "nothing.txt", "-o", tmp_path / "x")
    assert "workers load the model" in refusal(
        "heads", "x", texts, "-o", tmp_path / "x", "--engine", "ray", "--dtype", "float16"
    )
    arguments = ("study", "vig", "--model", "x", "--corpus", texts, "-o", tmp_path / "x", "--engine", "ray")
    assert "--trust-remote-code cannot be given" in refusal(*arguments, "--trust-remote-code")


@pytest.mark.parametrize("command", ["heads", "study"])
def test_a_folder_of_others_is_refused_before_the_model_is_loaded(refusal, command, tmp_path) -> None:
    bank, site = tmp_path / "tiny.conllu", tmp_path / "site"
    bank.write_text(TREE)
    site.mkdir()
    for name in ("index.html", "heads.json", "study.json", "scores.parquet"):
        (site / name).write_text("mine")
    arguments = ("nowhere", bank) if command == "heads" else ("vig", "--model", "nowhere", "--corpus", bank)
    assert "it holds heads.json, index.html, scores.parquet, study.json. Nothing" in refusal(
        command, *arguments, "-o", site
    )
    assert {file.name: file.read_text() for file in site.iterdir()} == dict.fromkeys(
        ("index.html", "heads.json", "study.json", "scores.parquet"), "mine"
    )


def test_a_malformed_line_is_named(refusal, call, models, tmp_path) -> None:
    broken = tmp_path / "broken.conllu"
    broken.write_text(TREE + "1\tbroken\n\n")
    message = refusal("heads", models / "gpt", broken, "-o", tmp_path / "x", *FAST)
    assert "broken.conllu, line 5" in message
    result = call("heads", models / "gpt", broken, "-o", tmp_path / "y", "--on-error", "skip", *FAST)
    assert result.exit_code == 0 and "warning: " in result.stderr


@pytest.mark.parametrize("stop", [KeyboardInterrupt, Cancelled])
def test_when_stopped_it_says_that_what_was_done_is_kept(call, models, texts, tmp_path, monkeypatch, stop) -> None:
    def interrupt(*_, **__):
        raise stop

    monkeypatch.setattr(reports, "heads", interrupt)
    result = call("heads", models / "gpt", texts, "-o", tmp_path / "x")
    assert result.exit_code == 130 and "the same command goes on" in result.stderr


def test_a_study_prints_published_numbers_beside_ours(call, models, tmp_path) -> None:
    bank = tmp_path / "tiny.conllu"
    bank.write_text(TREE * 24)
    arguments = ("study", "vig", "--model", models / "gpt", "--corpus", bank, "-o", tmp_path / "study")
    result = call(*arguments)
    assert result.exit_code == 0, result.output
    assert "published" in result.stdout and "57 %" in result.stdout
    assert (tmp_path / "study" / "study.md").is_file()
    assert json.loads(call(*arguments, "--json").stdout)["name"] == "vig"


def test_a_study_without_trees_is_refused(refusal, models, texts, tmp_path) -> None:
    assert "treebank" in refusal("study", "vig", "--model", models / "gpt", "--corpus", texts, "-o", tmp_path / "x")
