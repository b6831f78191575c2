from types import SimpleNamespace

import pytest

from headscope.corpora import Example, corpus
from headscope.errors import InputError


class Dataset(list):
    """As much of a Hugging Face dataset as we read."""

    def __init__(self, rows, features=None):
        super().__init__(rows)
        self.column_names = list(rows[0])
        self.features = features or {}


def test_texts_pairs_and_ready_examples():
    examples = list(corpus(["one", ("two", "three"), Example("mine", text="four")]))
    assert [(example.id, example.text, example.pair) for example in examples] == [
        ("list:0", "one", None),
        ("list:1", "two", "three"),
        ("mine", "four", None),
    ]


def test_what_is_no_text_is_named():
    with pytest.raises(InputError, match="list:1: int is neither"):
        list(corpus(["one", 2]))
    with pytest.raises(InputError, match="list:0: the text is empty"):
        list(corpus([" "]))


def test_columns_of_a_dataset_are_known_by_their_usual_names():
    labels = {"label": SimpleNamespace(names=["bad", "good"])}
    (example,) = corpus(Dataset([{"sentence": "fine", "label": 1, "idx": 0}], labels))
    assert (example.text, example.label) == ("fine", "good")


def test_tags_of_a_dataset_get_their_names():
    tags = {"ner_tags": SimpleNamespace(feature=SimpleNamespace(names=["O", "B-LOC"]))}
    (example,) = corpus(Dataset([{"tokens": ["In", "Rome"], "ner_tags": [0, 1]}], tags))
    assert example.tags == {"ner": ("O", "B-LOC")} and example.text == "In Rome"


def test_translations_are_source_and_target():
    (example,) = corpus(Dataset([{"translation": {"en": "yes", "ru": "дождь"}}]))
    assert (example.text, example.target) == ("yes", "дождь")


def test_columns_of_a_dataset_may_be_chosen():
    (example,) = corpus(Dataset([{"body": "fine", "x": 1}]), columns={"text": "body"})
    assert example.text == "fine"
    with pytest.raises(InputError, match="none of the dataset's columns"):
        corpus(Dataset([{"body": "fine"}]))
    with pytest.raises(InputError, match="no column 'text'"):
        corpus(Dataset([{"body": "fine"}]), columns={"text": "text"})


def test_a_row_without_text_is_named():
    with pytest.raises(InputError, match="dataset:1: the row does not have what its columns promise"):
        list(corpus(Dataset([{"text": "a"}, {"text": None}])))
