"""`headscope view`: what it writes, what it prints, what it refuses."""

import json
from pathlib import Path

import pytest
from PIL import Image

from headscope.views import saved_page


@pytest.fixture(autouse=True)
def stand_in(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("static")
    (folder / "headscope.js").write_text("const page = 1;")
    (folder / "headscope.css").write_text("p { color: red }")
    monkeypatch.setattr(saved_page, "STATIC", folder)
    return folder


@pytest.mark.parametrize("suffix", ["html", "png", "csv", "json"])
def test_a_head_view_is_written_and_told(call, models, tmp_path, suffix):
    target = tmp_path / f"x.{suffix}"
    result = call("view", "head", models / "gpt", "the cat sat", "--head", "L1H2", "--top", 2, "-o", target)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"saved {target} (")
    assert "L1H2: head view" in result.stdout
    assert target.stat().st_size > 100


def test_a_model_view_of_a_pair(call, models, tmp_path):
    target = tmp_path / "x.html"
    options = ("--pair", "the dog", "--sort", "entropy", "--colour", "confidence", "--least", 0.1, "--json")
    result = call("view", "model", models / "bert", "the cat", *options, "-o", target)
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert (printed["saved"], printed["view"], printed["notes"]) == (str(target), "model", [])
    assert printed["selection"]["sort"] == "entropy" and printed["bytes"] == target.stat().st_size


def test_without_a_file_the_numbers_are_printed(call, models):
    result = call("view", "head", models / "gpt", "the cat sat", "--layer", "L1")
    assert result.exit_code == 0, result.output
    assert "query token" in result.stdout and "the strongest 20 of" in result.stdout
    printed = json.loads(call("view", "head", models / "gpt", "the cat sat", "--head", "L0H0", "--json").stdout)
    assert printed["columns"][0] == "head" and {row[0] for row in printed["rows"]} == {"L0H0"}


def test_an_encoder_decoder_with_a_target(call, models, tmp_path):
    target = tmp_path / "x.csv"
    arguments = ("the cat", "--target", "a dog", "--head", "cross.L2H1", "--by", "words", "--hide", "special")
    assert call("view", "head", models / "marian", *arguments, "-o", target).exit_code == 0
    assert "cross.L2H1" in target.read_text("utf-8-sig")


def test_a_saved_trace_needs_no_model(call, models, tmp_path):
    assert call("trace", models / "gpt", "the cat sat", "-o", tmp_path / "run").exit_code == 0
    assert call("view", "model", tmp_path / "run", "-o", tmp_path / "x.html").exit_code == 0


def test_what_was_left_out_is_told(call, models, tmp_path, monkeypatch):
    monkeypatch.setattr(saved_page.page, "__kwdefaults__", {"budget": 0.0005, "static": None})
    result = call("view", "model", models / "gpt", "the cat sat", "-o", tmp_path / "x.html")
    assert "to keep it small: " in result.stdout


@pytest.mark.parametrize(
    "options, error_text",
    [
        (("--head", "L9H9"), "there is no L9H9"),
        (("--head", "L0H0", "--layer", "L1"), "give one of them"),
        (("--token", "left:3"), "--token left:3 is not a token"),
        (("--top", 2, "--mass", 0.5), "two filters"),
        (("-o", "x.gif"), "'x.gif' ends in none of them"),
        (("-o", "missing/x.html"), "there is no folder missing"),
        (("--between", "AB"), "needs a pair of texts"),
    ],
)
def test_mistakes_are_explained_before_or_after_the_run(refusal, models, options, error_text):
    assert error_text in refusal("view", "head", models / "gpt", "the cat sat", *options)


def test_a_saved_trace_takes_no_text(call, refusal, models, tmp_path):
    call("trace", models / "gpt", "the cat sat", "-o", tmp_path / "run")
    assert "holds a trace, whose input is known" in refusal("view", "head", tmp_path / "run", "the cat")


def test_help_has_an_example(call):
    for view in ("head", "model"):
        result = call("view", view, "--help")
        assert result.exit_code == 0 and f"headscope view {view} builtin:" in result.stdout


def test_a_terminal_shows_the_measures_that_fit_it(call, models):
    def columns(*options: str) -> list[str]:
        output = call("view", "model", models / "gpt", "the cat sat", *options).stdout
        return [cell.strip() for cell in output.splitlines()[2].strip("┃").split("┃")]

    assert columns() == ["head", "confidence", "previous_token", "first_token", "distance"]
    assert columns("--sort", "entropy") == ["head", "entropy"]
    assert columns("--sort", "entropy", "--colour", "distance") == ["head", "entropy", "distance"]
    result = call("view", "model", models / "gpt", "the cat sat")
    assert "more columns: -o x.csv saves them" in result.stdout
    whole = json.loads(call("view", "model", models / "gpt", "the cat sat", "--json").stdout)
    assert len(whole["columns"]) > 8


def test_a_neuron_view_is_written_or_printed(call, models, refusal, tmp_path):
    target = tmp_path / "x.html"
    arguments = ("view", "neuron", models / "gpt", "the cat sat", "--head", "L1H2", "--token", 2)
    result = call(*arguments, "--sort", "contribution", "--fold", "value", "-o", target)
    assert result.exit_code == 0, result.output
    assert "L1H2: neuron view" in result.stdout and 'data-key="neuron/L1H2"' in target.read_text()
    printed = call(*arguments).stdout
    assert "q·k" in printed and "softmax" not in printed and "q×k 3" not in printed and "more columns" in printed
    table = json.loads(call(*arguments, "--sort", "1", "--json").stdout)
    assert table["selection"]["against"] == 1
    assert {"q·k", "score", "weight", "q×k 3", "a·v 0"} <= set(table["columns"])
    every = call("view", "neuron", models / "gpt", "the cat sat", "--every", "query").stdout
    assert "query 0" in every and "query 5" in every and "more columns" in every
    assert "'mixed'" in refusal("view", "neuron", models / "gpt", "the cat", "--every", "heads")
    assert "0 to" in refusal("view", "neuron", models / "gpt", "the cat", "--token", 99)


def test_activations_are_written_or_printed(call, models, refusal, tmp_path):
    target = tmp_path / "x.html"
    arguments = ("view", "activations", models / "gpt", "the cat sat")
    result = call(*arguments, "--stream", "norm", "-o", target)
    assert result.exit_code == 0, result.output
    assert ": activations view" in result.stdout and 'data-key="activations/main"' in target.read_text()
    table = json.loads(call(*arguments, "--token", "1", "--json").stdout)
    assert {row[table["columns"].index("position")] for row in table["rows"]} == {1}
    assert {"place", "norm", "cosine to last"} <= set(table["columns"])
    assert "0 to" in refusal(*arguments, "--token", 99)
    call("trace", models / "gpt", "the cat sat", "-o", tmp_path / "run")
    assert "take the model" in refusal("view", "activations", tmp_path / "run")


def test_a_difference_to_another_text_another_model_or_a_saved_trace(call, models, tmp_path):
    target = tmp_path / "x.csv"
    result = call(
        "view", "head", models / "gpt", "the cat sat", "--against", "the dog sat", "--head", "L1H2", "-o", target
    )
    assert result.exit_code == 0, result.output
    assert "difference" in target.read_text("utf-8-sig").splitlines()[0] and "c / d" in target.read_text("utf-8-sig")
    assert call("trace", models / "gpt", "the cat sat", "-o", tmp_path / "run").exit_code == 0
    same_run = call("view", "model", models / "gpt", "the cat sat", "--against-model", tmp_path / "run", "--json")
    table = json.loads(same_run.stdout)
    moved = table["columns"].index("total_variation")
    assert {row[moved] for row in table["rows"]} == {0.0}
    refusal = call("view", "model", models / "gpt", "the cat sat", "--against-model", models / "bert")
    assert refusal.exit_code != 0 and "side by side" in refusal.output


def test_neurons_and_activations_are_subtracted_too(call, models, refusal, tmp_path):
    arguments = (models / "gpt", "the cat sat", "--against", "the dog sat")
    result = call("view", "neuron", *arguments, "--head", "L1H2", "-o", tmp_path / "x.html")
    assert result.exit_code == 0 and "difference, neuron view" in result.stdout, result.output
    table = json.loads(call("view", "activations", *arguments, "--whose", "B", "--json").stdout)
    assert {"norm A", "norm B", "norm A − B", "log-probability A − B"} <= set(table["columns"])
    assert call("view", "activations", *arguments, "--stream", "norm", "-o", tmp_path / "x.png").exit_code == 0
    same = ("view", "activations", models / "gpt", "the cat sat", "--against-model", models / "gpt", "--json")
    table = json.loads(call(*same).stdout)
    assert {row[table["columns"].index("norm A − B")] for row in table["rows"]} == {0.0}
    call("trace", models / "gpt", "the cat sat", "-o", tmp_path / "run")
    assert "take the model" in refusal("view", "activations", *arguments[:2], "--against-model", tmp_path / "run")


def test_a_picture_for_a_paper_has_its_width(call, refusal, models, tmp_path):
    head = ("view", "head", models / "gpt", "the cat sat", "--head", "L0H1")
    call(*head, "-o", tmp_path / "x.png", "--width", "column")
    with Image.open(tmp_path / "x.png") as picture:
        assert picture.width == int(3.33 * 400)
    call(*head, "-o", tmp_path / "x.pdf", "--width", "2.5")
    assert b"/MediaBox [ 0 0 180 " in (tmp_path / "x.pdf").read_bytes()
    assert "choose 'column'" in refusal(*head, "-o", tmp_path / "y.pdf", "--width", "poster")
    assert "for pictures" in refusal(*head, "-o", tmp_path / "y.html", "--width", "page")
    assert "-o" in refusal(*head, "--width", "page")
