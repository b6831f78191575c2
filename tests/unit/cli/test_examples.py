"""`headscope examples`: what it prints, and what it refuses before anything takes its time."""

import json


def test_examples_are_printed(call, models, tmp_path) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("the cat sat on the mat\nshe gave her sister the book\nit was tired\n")
    arguments = ("examples", models / "gpt", texts, "L1.neurons[3]", "-k", 2, "--folder", tmp_path / "kept")
    result = call(*arguments)
    assert result.exit_code == 0, result.output
    assert "strongest in 3 examples of texts.txt" in result.stdout and result.stdout.count("«") == 2
    printed = json.loads(call(*arguments, "--json").stdout)
    first = printed["examples"][0]
    assert first["values"][first["token"]] == max(first["values"][1:] if first["token"] else first["values"])


def test_mistakes_are_named(refusal, tmp_path) -> None:
    (tmp_path / "texts.txt").write_text("the cat\n")
    assert "is no place" in refusal("examples", "nowhere", tmp_path / "texts.txt", "L3")
    assert "nothing.txt" in refusal("examples", "nowhere", tmp_path / "nothing.txt", "L3H2")
    assert "no such file" in refusal("serve", "--corpus", tmp_path / "nothing.txt", "--no-browser")
