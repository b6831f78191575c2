import pytest

from headscope.corpora import Corpus, CorpusProblem, Example, corpus
from headscope.errors import HeadscopeWarning, InputError, LoadError


@pytest.fixture
def write(tmp_path):
    def write_file(name, text):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write_file


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("a.txt", "A sentence.\nAnother one.\n", "text"),
        ("a.txt", "He PRP B-NP\nsaid VBD B-VP\n\nYes UH O\n", "conll2000"),
        ("a.txt", "# text = Yes\n1\tYes\t_\t_\t_\t_\t0\troot\t_\t_\n", "conllu"),
        ("a.txt", "one two\tthree\nfour five\tsix\n", "pairs"),
        ("a.conllu", "", "conllu"),
        ("a.tsv", "en\tru\nyes\tиюль\n", "translation"),
        ("a.tsv", "label\ttext\n1\tyes\n", "table"),
        ("wiki", "Three Words O\nand more words here\n", "text"),
    ],
)
def test_the_kind_is_guessed_and_told(write, name, text, kind):
    examples = corpus(write(name, text))
    assert examples.kind == kind
    assert examples.about in repr(examples)


def test_a_kind_may_be_given(write):
    examples = corpus(write("a.txt", "one\ttwo\n"), kind="text")
    assert [example.text for example in examples] == ["one\ttwo"]
    with pytest.raises(InputError, match="the kinds are text, pairs"):
        corpus(write("a.txt", "one"), kind="novel")


def test_blank_lines_are_no_examples_and_ids_are_lines(write):
    assert [example.id for example in corpus(write("a.txt", "\none\n\n two \n"))] == ["a.txt:2", "a.txt:4"]


def test_a_corpus_can_be_read_again_and_limited():
    calls = []

    def stream():
        calls.append(1)
        return (f"text {number}" for number in range(1_000_000_000))

    examples = corpus(stream, limit=3)
    assert (
        [example.text for example in examples]
        == [example.text for example in examples]
        == ["text 0", "text 1", "text 2"]
    )
    assert len(calls) == 2 and examples.name == "stream"


def test_an_iterator_is_refused_since_it_cannot_be_read_again():
    with pytest.raises(InputError, match="only once"):
        corpus(iter(["one"]))


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ("nowhere.txt", LoadError, "there is no file"),
        (3, InputError, "int is not a corpus"),
    ],
)
def test_what_is_no_corpus_is_refused(source, error, message):
    with pytest.raises(error, match=message):
        corpus(source)


def test_files_that_hold_nothing_or_other_formats_are_refused(write):
    with pytest.raises(InputError, match="nothing to read"):
        corpus(write("a.txt", "\n\n"))
    with pytest.raises(InputError, match="turn it into tab-separated columns"):
        corpus(write("a.csv", "a,b"))
    with pytest.raises(InputError, match="at least one example"):
        corpus(["one"], limit=0)
    with pytest.raises(InputError, match="'fail' or 'skip'"):
        corpus(["one"], on_error="ignore")  # type: ignore[arg-type]


def test_the_same_examples_have_the_same_hash_and_others_another(write):
    path = write("a.txt", "one\ntwo\n")
    survey = corpus(path).survey()
    assert survey == corpus(path).survey() and survey.n_examples == 2
    assert corpus(path, limit=1).survey().sha256 != survey.sha256
    assert corpus(write("a.txt", "one\ntwo!\n")).survey().sha256 != survey.sha256


def test_much_that_is_skipped_is_counted_but_not_kept():
    def read():
        for number in range(100):
            yield Example(str(number), text="x") if number % 2 else CorpusProblem("a", number, "bad")

    examples = Corpus("a", "list", "made up", read, on_error="skip")
    with pytest.warns(HeadscopeWarning, match=r"50 of them\), first a, line 0: bad"):
        assert examples.survey().n_problems == 50
    assert len(examples.problems) == 20
