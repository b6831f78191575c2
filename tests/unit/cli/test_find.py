"""`headscope find` and the use cases at the command line."""

import json

import pytest

import headscope as hs

TEXT = "the cat sat on the mat"


def test_heads_are_found_by_example(call, models):
    result = call("find", models / "gpt", TEXT, "--from", "sat", "--to", "cat", "--json")
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    scores = hs.find_heads(hs.load(str(models / "gpt")).run(TEXT), example=("sat", "cat"))
    assert printed["values"] == {str(head): pytest.approx(value, abs=1e-6) for head, value in scores.items()}
    assert printed["ranked"] == [str(head) for head, _, _ in scores.above(len(scores))]


def test_words_that_occur_several_times_are_said_to_count_all(call, models):
    arguments = ("find", models / "gpt", TEXT)
    lines = call(*arguments, "--from", "the", "--to", "the").stdout
    assert "--from the occurs 2 times: all occurrences count." in lines and "--to the occurs 2 times" in lines
    assert "Attention of an occurrence to itself counts too." in lines
    printed = json.loads(call(*arguments, "--from", "mat", "--to", "the", "--json").stdout)
    assert printed["settings"]["occurrences"] == {"from": 1, "to": 2}
    assert "occur" not in call(*arguments, "--from", "mat", "--to", "cat").stdout  # each is in one place
    assert "occur" not in call(*arguments, "--from", "8", "--to", "0").stdout


def test_heads_are_found_by_pattern_over_several_texts(call, models, tmp_path):
    (tmp_path / "texts.txt").write_text(f"{TEXT}\n\nthe mat sat\n")
    result = call("find", models / "gpt", "--texts", tmp_path / "texts.txt", "--pattern", "previous_token", "--top", 3)
    assert result.exit_code == 0, result.output
    assert "heads: previous token, 2 inputs" in result.stdout and "95 % interval" in result.stdout
    assert "previous token: attention to the token just before. Baseline: an even share" in result.stdout
    assert result.stdout.count("L") >= 3


def test_heads_are_found_by_effect(call, models):
    model = hs.load(str(models / "gpt"))
    token = model.run(TEXT).predictions()[0].text
    result = call("find", models / "gpt", TEXT, "--effect", token, "--at", 2, "--by", "mean", "--json")
    assert result.exit_code == 0, result.output
    scores = hs.analysis.ablation(model, TEXT, by="mean", target=token, position=2)
    assert json.loads(result.stdout)["values"] == {
        str(h): pytest.approx(value, abs=1e-6) for h, value in scores.items()
    }


def test_weights_alone_are_enough(call, models):
    result = call("find", models / "longformer", TEXT, "--pattern", "previous_token")
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([TEXT], "say what to find"),
        ([TEXT, "--from", "sat"], "both --from and --to"),
        ([TEXT, "--from", "sat", "--to", "cat", "--pattern", "names"], "one of"),
        (["--pattern", "names"], "nothing to look in"),
        ([TEXT, "--pattern", "names", "--at", 3], "goes with --effect"),
        ([TEXT, "--from", "sat", "--to", "dog"], "'dog' is not a word of this text"),
        ([TEXT, "--pattern", "dance"], "no pattern 'dance'"),
        (["--repeated", "--effect", "cat"], "the prediction of a text"),
        (["--texts", "nowhere.txt", "--pattern", "names"], "cannot read --texts"),
    ],
)
def test_what_cannot_be_found_is_said(refusal, models, arguments, words):
    assert words in refusal("find", models / "gpt", *arguments)


def test_bias_reads_sentences_of_ones_own(call, tmp_path):
    rows = [
        ["nurse", "patient", "0", "The $OCCUPATION told the $PARTICIPANT that $NOM_PRONOUN would come."],
        ["doctor", "patient", "0", "The $OCCUPATION told the $PARTICIPANT that $NOM_PRONOUN would come."],
    ]
    file = tmp_path / "templates.tsv"
    file.write_text("\n".join("\t".join(row) for row in rows))
    result = call("bias", "builtin:gpt", file, "--json")
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert printed["name"] == "bias" and {row["occupation"] for row in printed["tables"][1]["rows"]} == {
        "nurse",
        "doctor",
    }


def test_a_use_case_that_does_not_fit_is_refused(refusal, models):
    assert "does not fit" in refusal("between", models / "gpt")
    assert "does not fit" in refusal("decay", models / "marian")
    assert "there is no file" in refusal("antecedents", models / "gpt", "nowhere.tsv")


@pytest.mark.parametrize("command", ["find", "bias", "antecedents", "between", "decay"])
def test_help_has_an_example(call, command):
    assert f"headscope {command} builtin:" in call(command, "--help").stdout


def test_columns_say_which_sentences_are_pairs_and_texts(call, models, tmp_path):
    table = tmp_path / "table.tsv"
    rows = [f"{row}\tthe cat sat\ta dog ate {'so ' * row}\tit was tired" for row in range(4)]
    table.write_text("\n".join(["id\tfirst\tsecond\tthird", *rows]))
    result = call("between", models / "bert", table)
    assert result.exit_code == 2 and "which of 4 columns hold the two sentences" in result.stderr
    result = call("between", models / "bert", table, "--columns", "text=first,pair=second", "--json")
    assert "First example: text 'the cat sat'; pair 'a dog ate'." in result.stderr
    long = tmp_path / "long.tsv"
    long.write_text(f"id\tbody\n1\t{'the cat sat on the mat ' * 8}\n")
    result = call("decay", models / "gpt", long, "--columns", "text=body", "--json")
    assert "First example: text 'the cat sat on" in result.stderr


def test_columns_without_a_file_are_refused(refusal, models):
    assert "give the file too" in refusal("between", models / "bert", "--columns", "text=1,pair=2")


def test_a_pattern_that_the_text_cannot_show_is_said_with_a_command_that_can(call):
    result = call("find", "builtin:gpt", "the cat sat on a mat", "--pattern", "induction")
    assert result.exit_code == 2
    assert "no token repeats in this text, so induction cannot be seen here" in result.output
    assert "--repeated" in result.output and "headscope find" in result.output
    assert call("find", "builtin:gpt", "the cat sat on a mat", "--pattern", "induction", "--repeated").exit_code == 0
