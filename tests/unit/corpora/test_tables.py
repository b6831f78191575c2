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
