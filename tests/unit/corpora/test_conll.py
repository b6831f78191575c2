import pytest

from headscope.corpora import CorpusProblem, corpus
from headscope.corpora.conll import read_conll
from headscope.errors import InputError


def test_words_and_tags(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("He PRP B-NP\nreckons VBZ B-VP\n\nYes UH O\n")
    first, second = read_conll(path, max_line=100)
    assert first.text == "He reckons" and first.spans == ((0, 2), (3, 10))
    assert first.tags == {"pos": ("PRP", "VBZ"), "chunk": ("B-NP", "B-VP")}
    assert second.id == "a.txt:4"


def test_other_columns_may_be_named(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("Rome NNP B-NP B-LOC\n")
    (example,) = read_conll(path, tags=("pos", "chunk", "ner"), max_line=100)
    assert example.tags["ner"] == ("B-LOC",)


def test_a_line_with_another_number_of_columns_is_named(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("He PRP B-NP\nreckons VBZ\n")
    (problem,) = read_conll(path, max_line=100)
    assert isinstance(problem, CorpusProblem) and problem.line == 2 and "found 2 columns" in problem.reason


def test_names_of_things_are_a_column_like_others(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("-DOCSTART- -X- -X- O\n\nEU NNP B-NP B-ORG\nrejects VBZ B-VP O\n\nRome NNP B-NP B-LOC\n")
    sentences = corpus(path)
    assert "pos, chunk, ner" in sentences.about
    assert [sentence.tags["ner"] for sentence in sentences] == [("B-ORG", "O"), ("B-LOC",)]
    # A list of columns says that these are words with tags, whatever they are called.
    path.write_text("EU organisation\nrejects none\n")
    (example,) = corpus(path, columns=["entity"])
    assert example.tags == {"entity": ("organisation", "none")}


def test_columns_that_say_nothing_of_a_file_are_refused(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("A sentence.\n")
    with pytest.raises(InputError, match="whose columns are known"):
        corpus(path, columns={"text": 0})
    with pytest.raises(InputError, match="names the tags of CoNLL-2000"):
        corpus(path, kind="pairs", columns=["pos"])
