"""`headscope study chunking`, `sentiment` and `exclusive`: what they refuse before anything trains."""

from pathlib import Path

import pytest

CHUNKS = "the DT B-NP\ncat NN I-NP\nsat VBD B-VP\n. . O\n\na DT B-NP\ndog NN I-NP\nran VBD B-VP\n"
TEXTS = "text\tlabel\nthe cat sat\t1\na dog ran\t0\n"


@pytest.fixture
def arguments(models, tmp_path: Path) -> dict[str, tuple]:
    """A whole command of each study."""
    (tmp_path / "chunks.txt").write_text(CHUNKS)
    (tmp_path / "texts.tsv").write_text(TEXTS)
    chunks, texts, last = (
        tmp_path / "chunks.txt",
        tmp_path / "texts.tsv",
        ("--vectors", models / "bert", "-o", tmp_path / "x"),
    )
    splits = ("--train", texts, "--dev", texts, "--test", texts)
    return {
        "chunking": ("study", "chunking", "--train", chunks, "--test", chunks, *last),
        "sentiment": ("study", "sentiment", *splits, *last),
        "exclusive": ("study", "exclusive", "--chunks", chunks, "--chunks-test", chunks, *splits, *last),
    }


@pytest.mark.parametrize("name", ["chunking", "sentiment", "exclusive"])
def test_what_cannot_be_trained_is_refused(refusal, arguments, name, tmp_path) -> None:
    command = arguments[name]
    assert "no device 'cuda:99' on this machine" in refusal(*command, "--device", "cuda:99")
    assert "--lambdas 'a,b' are no numbers" in refusal(*command, "--lambdas", "a,b")
    assert "above 0" in refusal(*command, "--lambdas", "0")
    assert "Choose a wider model, or a smaller size" in refusal(*command)  # 300 components of a tiny model
    assert not (tmp_path / "x").exists()
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "thesis.txt").write_text("mine")
    assert "it holds thesis.txt. Nothing was written" in refusal(*command)


def test_texts_are_refused_where_chunks_are_needed(refusal, arguments, tmp_path) -> None:
    swapped = [
        tmp_path / "texts.tsv" if value == tmp_path / "chunks.txt" else value for value in arguments["exclusive"]
    ]
    assert "texts.tsv" in refusal(*swapped)
    assert "at most seeds (5), got 6" in refusal(*arguments["exclusive"], "--adversary-seeds", 6)


@pytest.mark.parametrize("name", ["chunking", "sentiment", "exclusive"])
def test_help_has_an_example_and_the_defaults(call, name) -> None:
    text = " ".join(call("study", name, "--help").stdout.split())
    assert f"Example: headscope study {name} --" in text and "--device" in text and "[default: 20]" in text
