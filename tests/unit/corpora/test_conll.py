from headscope.corpora import Problem
from headscope.corpora.conll import read_conll


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
    assert isinstance(problem, Problem) and problem.line == 2 and "found 2 columns" in problem.reason
