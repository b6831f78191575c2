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


def test_columns_of_a_table_may_be_named(call, models, tmp_path) -> None:
    table = tmp_path / "table.tsv"
    table.write_text("title\tbody\nmy cat\tthe cat sat on the mat\nno cat\tit was tired\n")
    arguments = ("examples", models / "gpt", table, "L1.neurons[3]", "--folder", tmp_path / "kept")
    result = call(*arguments, "--columns", "text=Body", "--json")
    assert result.exit_code == 0, result.output
    assert {"".join(row["tokens"]).count("cat") for row in json.loads(result.stdout)["examples"]} == {0, 1}
    assert "First example: text 'the cat sat on the mat'." in result.stderr
