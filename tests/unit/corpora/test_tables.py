import re

import pytest

from headscope.corpora import corpus
from headscope.errors import InputError


def table(tmp_path, text, **options):
    path = tmp_path / "a.tsv"
    path.write_text(text)
    return corpus(path, **options)


def test_pairs_are_the_first_two_columns(tmp_path):
    pairs = table(tmp_path, 'A man sleeps.\tHe "is" asleep.\tx\n')
    (example,) = pairs
    assert (example.text, example.pair, pairs.kind) == ("A man sleeps.", 'He "is" asleep.', "pairs")


def test_a_first_line_of_language_codes_says_that_it_is_a_translation(tmp_path):
    translations = table(tmp_path, "en\tru\nYes.\tиюль.\n")
    (example,) = translations
    assert (example.text, example.target, example.id) == ("Yes.", "июль.", "a.tsv:2")
    assert "text from 'en', target from 'ru'" in translations.about


def test_a_first_line_may_name_text_and_label(tmp_path):
    reviews = table(tmp_path, "label\tsentence\n1\tfine film\n")
    (example,) = reviews
    assert (example.text, example.label, example.pair) == ("fine film", "1", None)


@pytest.mark.parametrize("columns", [{"text": 2, "label": 0}, {"text": "words", "label": "kind"}])
def test_columns_may_be_chosen_by_number_or_name(tmp_path, columns):
    (example,) = table(tmp_path, "kind\trest\twords\ngood\t?\tfine film\n", columns=columns)
    assert (example.text, example.label) == ("fine film", "good")


def test_columns_that_are_not_there_are_refused(tmp_path):
    with pytest.raises(InputError, match="there is no column 'body': the first line has 'a b', 'c d'"):
        table(tmp_path, "a b\tc d\n", columns={"text": "body"})
    with pytest.raises(InputError, match="there is no column 4"):
        table(tmp_path, "a b\tc d\n", columns={"text": 4})
    with pytest.raises(InputError, match="there is no field 'body'"):
        table(tmp_path, "a b\tc d\n", columns={"body": 0})


def test_lines_with_too_few_columns_or_empty_ones_are_named(tmp_path):
    with pytest.raises(InputError, match=r"a\.tsv, line 2: 1 columns where 2 are needed"):
        list(table(tmp_path, "one two\tthree four\nfive six\n"))
    with pytest.raises(InputError, match=r"a\.tsv, line 2: the pair is empty"):
        list(table(tmp_path, "one two\tthree four\nfive six\t \n"))


MRPC = "".join(
    f"{row % 2}\t{row}\t{row + 7}\tthe cat sat on mat {row}.\tOn mat {row} a cat was sitting.\n" for row in range(5)
)


@pytest.mark.parametrize(
    "header",
    ["Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n", "quality\tid1\tid2\tfirst\tsecond\n", ""],
    ids=["short words above numbers", "identifiers", "no header"],
)
@pytest.mark.parametrize("kind", [None, "pairs"])
def test_pairs_are_the_two_columns_of_sentences_wherever_they_are(tmp_path, header, kind):
    pairs = table(tmp_path, header + MRPC, kind=kind)
    examples = list(pairs)
    assert (pairs.kind, len(examples)) == ("pairs", 5)
    assert (examples[0].text, examples[0].pair) == ("the cat sat on mat 0.", "On mat 0 a cat was sitting.")


def test_a_header_names_texts_and_label_in_any_case(tmp_path):
    header = "Label\tID\tSentence1\tSentence2\n"
    (example,) = table(tmp_path, f"{header}yes\t3\ta cat\tone dog\n")
    assert (example.text, example.pair, example.label) == ("a cat", "one dog", "yes")
    (example,) = table(tmp_path, f"{header}yes\t3\ta cat\tone dog\n", columns={"text": "sentence2"})
    assert example.text == "one dog"


def test_languages_are_named_beside_other_columns(tmp_path):
    translations = table(tmp_path, "set\ten\tru\nnews\tA cat sleeps.\tиюль идёт.\n")
    (example,) = translations
    assert (translations.kind, example.text, example.target) == ("translation", "A cat sleeps.", "июль идёт.")


def test_sentences_without_spaces_are_texts(tmp_path):
    (example,) = table(tmp_path, "7\t猫在睡觉。\tA cat sleeps.\n")
    assert (example.text, example.pair) == ("猫在睡觉。", "A cat sleeps.")


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("a cat\tone dog\tno bird\n", None, "which of 3 columns hold the two sentences cannot be told"),
        ("title\tanswer\nmy cat\tit sat\n", "table", "hold the text cannot be told. They are: 0 'title' (as 'my cat')"),
        ("label\tsentence\n1\tfine film\n2\tno film\n", "pairs", "--columns text=1,pair=0"),
        ("7\tfine film\n9\tno film\n", "translation", 'columns={"text": 1, "target": 0}, on the command line'),
        ("\n", "pairs", "nothing to read"),
    ],
)
def test_columns_that_cannot_be_told_are_refused_with_what_they_are(tmp_path, text, kind, words):
    with pytest.raises(InputError, match=re.escape(words)):
        table(tmp_path, text, kind=kind)


def test_a_table_of_single_words_has_no_header_of_its_own(tmp_path):
    assert [example.text for example in table(tmp_path, "cat\tchat\ndog\tchien\n")] == ["cat", "dog"]


def test_one_column_of_sentences_is_the_text(tmp_path):
    reviews = table(tmp_path, "a fine film\t0.5\tgood\na dull one\t0.1\tbad\n")
    assert (reviews.kind, [example.text for example in reviews]) == ("table", ["a fine film", "a dull one"])


def test_blank_lines_before_a_header_are_no_header(tmp_path):
    assert [example.text for example in table(tmp_path, "\nlabel\tsentence\n1\tfine film\n")] == ["fine film"]
