import pytest

from headscope.corpora import CorpusProblem, Example, corpus
from headscope.corpora.conllu import parse_conllu, read_conllu, to_conllu
from headscope.errors import HeadscopeWarning, InputError


def row(number, form, head="_", relation="_", misc="_", upos="_"):
    return "\t".join([str(number), form, "_", upos, "_", "_", str(head), relation, "_", misc])


def sentence(*rows, comment="# sent_id = 1"):
    return "\n".join([comment, *rows]) + "\n\n"


PLAIN = sentence(
    row(1, "She", 2, "nsubj", upos="PRON"),
    row(2, "sings", 0, "root", "SpaceAfter=No", upos="VERB"),
    row(3, ".", 2, "punct", upos="PUNCT"),
)


def read(tmp_path, text):
    path = tmp_path / "a.conllu"
    path.write_text(text)
    return list(read_conllu(path, max_line=20_000))


def test_words_heads_relations_and_tags(tmp_path):
    (example,) = read(tmp_path, PLAIN)
    assert example == Example(
        "a.conllu:1",
        text="She sings.",
        words=("She", "sings", "."),
        spans=((0, 3), (4, 9), (9, 10)),
        tags={"upos": ("PRON", "VERB", "PUNCT")},
        heads=(1, -1, 1),
        relations=("nsubj", "root", "punct"),
    )


def test_words_of_a_multi_word_token_share_its_characters(tmp_path):
    rows = [row("1-2", "don't"), row(1, "do", 3), row(2, "n't", 3), row(3, "go", 0)]
    rows += [row("4-5", "du", misc="SpaceAfter=No"), row(4, "de", 6), row(5, "le", 6), row(6, "pain", 3)]
    (example,) = read(tmp_path, sentence(*rows))
    assert example.text == "don't go dupain"
    assert example.words == ("do", "n't", "go", "de", "le", "pain")
    assert example.spans == ((0, 2), (2, 5), (6, 8), (9, 11), (9, 11), (11, 15))


def test_empty_nodes_have_no_place(tmp_path):
    (example,) = read(tmp_path, sentence(row(1, "tea", 0), row("1.1", "drank"), row(2, "too", 1)))
    assert example.words == ("tea", "too") and example.heads == (-1, 0) and example.text == "tea too"


def test_sentences_without_trees_have_no_heads(tmp_path):
    (example,) = read(tmp_path, sentence(row(1, "tea")))
    assert example.heads == () and example.relations == () and example.tags == {}


@pytest.mark.parametrize(
    ("rows", "line", "reason"),
    [
        (["1\tword\tonly"], 2, "3 tab-separated columns where CoNLL-U has 10"),
        ([row(1, "a", 0), row(3, "b", 1)], 3, "word '3' where 2 was expected"),
        ([row(1, "a", 0), row(2, "b", 9)], 3, "the head is '9', not a number from 0 to 2"),
        ([row(1, "a", 0), row(2, "b", "x")], 3, "the head is 'x'"),
        ([row(1, "a", 1)], 2, "its own head"),
        ([row(1, "a", 2), row(2, "b", 1)], 2, "round in a circle"),
        ([row("1-3", "ab"), row(1, "a", 0)], 3, "ends after the last word"),
        ([row("2-3", "ab"), row(1, "a", 0)], 2, "not a range of words that begins with word 1"),
        ([row("1-2", "ab"), row(1, "a", 0), row("2-3", "bc"), row(2, "b", 1)], 4, "overlaps"),
        ([row(1, "", 0)], 2, "the word is empty"),
    ],
)
def test_a_malformed_line_is_named(tmp_path, rows, line, reason):
    results = read(tmp_path, sentence(*rows) + PLAIN)
    assert isinstance(results[0], CorpusProblem) and results[0].line == line and reason in results[0].reason
    assert isinstance(results[1], Example)  # reading goes on with the next sentence


def test_by_choice_a_malformed_line_is_fatal_or_skipped_and_counted(tmp_path):
    path = tmp_path / "a.conllu"
    path.write_text(PLAIN + sentence("1\tbroken") + PLAIN)
    with pytest.raises(InputError, match=r"a\.conllu, line 7: 2 tab-separated columns"):
        list(corpus(path))
    tolerant = corpus(path, on_error="skip")
    with pytest.warns(HeadscopeWarning, match="line 7"):
        assert len(list(tolerant)) == 2
    assert tolerant.n_problems == 1 and tolerant.problems[0].line == 7
    assert len(list(tolerant)) == 2 and tolerant.n_problems == 1  # said once, counted at each pass


def test_what_is_written_is_read_again(tmp_path):
    (example,) = read(tmp_path, PLAIN)
    (again,) = parse_conllu(to_conllu(example))
    same = ("text", "words", "spans", "tags", "heads", "relations")
    assert [getattr(again, name) for name in same] == [getattr(example, name) for name in same]


def test_a_number_of_thousands_of_digits_is_malformed_like_any_other(tmp_path):
    for text in (sentence(row(1, "a", "9" * 5000)), sentence(row("1-" + "9" * 5000, "a"), row(1, "a", 0))):
        (problem,) = read(tmp_path, text)
        assert isinstance(problem, CorpusProblem) and len(problem.reason) < 150
