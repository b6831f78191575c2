"""Sentences of the server's corpus to start from: short ones, with their trees where they have them."""

from pathlib import Path

import pytest

from headscope.corpora.conllu import parse_conllu
from headscope.server.corpus_sentences import MOST_CHARACTERS, MOST_WORDS, N_SAMPLES, samples_of


def row(number: str, word: str, head: str, misc: str = "_") -> str:
    return "\t".join([number, word, "lemma", "X", "Y", "Some=Thing", head, "dep", "_", misc])


FLAT = [row("1", "We", "2"), row("2", "met", "0"), row("3", "them", "2"), row("4", "today", "2", "SpaceAfter=No")]
TREE = "\n".join([*FLAT, row("5", ".", "2")])
# French: "du" is two words, neither of which stands in the text.
FUSED = "\n".join([row("1", "Il", "2"), row("2", "vient", "0"), row("3-4", "du", "_"), row("3", "de", "5"),
                   row("4", "le", "5"), row("5", "nord", "2")])  # fmt: skip


def test_trees_are_given_as_short_conllu_that_reads_the_same(tmp_path: Path) -> None:
    path = tmp_path / "bank.conllu"
    path.write_text(f"# text = kept out\n{TREE}\n\n{FUSED}\n\n{TREE}\n\n")
    (sample,) = samples_of(path)  # the same once; what cannot be told in words alone is left out
    assert sample.name == "We met them today." and sample.text is not None
    (sentence,) = parse_conllu(sample.text)
    assert sentence.text == "We met them today." and sentence.heads == (1, -1, 1, 1, 1)
    assert sentence.relations == ("dep",) * 5 and sentence.tags["upos"] == ("X",) * 5
    assert "lemma" not in sample.text and "#" not in sample.text


def test_lines_of_a_text_are_offered_as_they_are_and_only_short_ones(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    many = " ".join(["a"] * (MOST_WORDS + 1))
    wide = " ".join(["x" * MOST_CHARACTERS] * 4)
    good = [f"Here is line number {n}." for n in range(N_SAMPLES + 4)]
    path.write_text("\n".join(["Too short.", many, wide, *good]))
    assert [sample.text for sample in samples_of(path)] == good[:N_SAMPLES]


def test_a_folder_is_gone_through_file_by_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("A line of plain text.\n")
    (tmp_path / "b.conllu").write_text(TREE + "\n\n")
    assert [sample.name for sample in samples_of(tmp_path)] == ["A line of plain text.", "We met them today."]


def test_what_is_malformed_is_passed_over_and_other_corpora_have_none(tmp_path: Path) -> None:
    broken = tmp_path / "broken.conllu"
    broken.write_text("1\tbroken\n\n" + TREE + "\n\n")
    assert len(samples_of(broken)) == 1
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("text\tpair\nOne two three four.\tFive six seven eight.\n")
    (tmp_path / "empty.txt").write_text("")
    assert samples_of(pairs) == samples_of(tmp_path / "empty.txt") == samples_of(None) == []


@pytest.mark.parametrize("text", [TREE, "A line of plain text."])
def test_the_page_is_told_and_can_run_them(start, run, tmp_path: Path, text: str) -> None:
    path = tmp_path / "corpus.txt"
    path.write_text(text + "\n\n")
    client = start(corpus=path)
    (sample,) = client.get("/api/settings").json()["samples"]
    last = run(client, sample["text"])[-1]
    assert last["state"] == "done", last
    gold = client.workbench.runs.find(last["trace"]).gold
    assert (gold is not None) == (text == TREE)
    if gold is not None:
        assert gold.heads == (1, -1, 1, 1, 1)
