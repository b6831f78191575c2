import json
from pathlib import Path

TEXTS = "the cat sat on the mat.\nit was tired, and the dog was not.\nhe read the book.\n"


def write_texts(folder: Path) -> Path:
    file = folder / "texts.txt"
    file.write_text(TEXTS)
    return file


def test_help_has_an_example(call) -> None:
    result = call("atlas", "--help")
    assert result.exit_code == 0
    assert "Example: headscope atlas builtin:bert" in result.stdout
    assert "--map" in result.stdout and "--points" in result.stdout


def test_an_atlas_with_figure_and_search(call, models, tmp_path) -> None:
    texts, folder, figure = write_texts(tmp_path), tmp_path / "atlas", tmp_path / "atlas.png"
    result = call("atlas", models / "gpt", texts, "-o", folder, "--figure", figure, "--search", "^the$")
    assert result.exit_code == 0, result.output
    assert "Heads that gather the 4 tokens matching ^the$" in result.stdout
    assert "Correlation of distance with dot product" in result.stdout
    assert (folder / "atlas.json").is_file()
    assert figure.read_bytes().startswith(b"\x89PNG")
    again = call("atlas", models / "gpt", texts, "-o", folder, "--json")
    report = json.loads(again.stdout)
    assert report["n_tokens"]["main"] > 10
    assert set(report["scores"]) == {f"L{layer}H{head}" for layer in range(2) for head in range(4)}
    assert report["scores"]["L0H0"]["lifted_spearman"] < -0.999999


def test_what_cannot_be_drawn_is_a_user_error(refusal, models, tmp_path) -> None:
    texts = write_texts(tmp_path)
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "mine.txt").write_text("mine")
    assert "is not an atlas: it holds mine.txt" in refusal("atlas", models / "gpt", texts, "-o", folder)
