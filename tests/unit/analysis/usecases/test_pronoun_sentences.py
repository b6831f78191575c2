"""Sentences with a pronoun and two people: the built-in ones and Winogender's."""

import pytest

from headscope.analysis.usecases.coreference_files import read_schemas, sentences_of
from headscope.analysis.usecases.pronoun_sentences import PEOPLE, TEMPLATES, Schema, schemas
from headscope.errors import InputError, LoadError


def test_the_built_in_sentences_differ_in_the_pronoun_alone():
    sentences = schemas()
    assert len(sentences) == len(PEOPLE) * len(TEMPLATES)
    for schema in sentences:
        she, he = schema.text("she"), schema.text("he")
        before, after = schema.around
        assert she.startswith(before) and he.startswith(before) and she.endswith(after) and he.endswith(after)
        assert "{" not in she and she != he
        for who in ("occupation", "participant"):
            start, end = schema.span("she", who)
            assert she[start:end] == getattr(schema, who)
        start, end = schema.span("he", "pronoun")
        assert he[start:end] in ("he", "his", "him")


def test_a_template_of_winogender_is_read(tmp_path):
    path = tmp_path / "templates.tsv"
    path.write_text(
        "occupation(0)\tother-participant(1)\tanswer\tsentence\n"
        "technician\tcustomer\t1\tThe $OCCUPATION told the $PARTICIPANT that $NOM_PRONOUN could pay with cash.\n"
    )
    assert read_schemas(path) == [
        Schema(
            "The {occupation} told the {participant} that {pronoun} could pay with cash.",
            "technician",
            "customer",
            "participant",
            "nominative",
        )
    ]


def test_all_of_winogender_reads(shared_data):
    sentences = read_schemas(shared_data / "winogender" / "templates.tsv")
    assert len(sentences) == 120 and len({schema.occupation for schema in sentences}) == 60


def test_what_cannot_be_read_is_named(tmp_path):
    path = tmp_path / "templates.tsv"
    path.write_text("a\tb\t7\tThe $OCCUPATION saw $NOM_PRONOUN.\n")
    with pytest.raises(LoadError, match="line 1"):
        read_schemas(path)
    with pytest.raises(LoadError, match="no file"):
        read_schemas(tmp_path / "none.tsv")
    with pytest.raises(InputError, match="she, he, they"):
        schemas()[0].text("xe")


def test_a_name_that_is_part_of_another_is_found_in_its_own_place():
    schema = Schema(
        "The {participant} told the {occupation} that {pronoun} left.",
        "nurse",
        "nursery maid",
        "occupation",
        "nominative",
    )
    text = schema.text("she")
    assert [text[slice(*schema.span("she", who))] for who in ("occupation", "participant")] == ["nurse", "nursery maid"]
    assert schema.span("she", "occupation")[0] > schema.span("she", "participant")[1]
    with pytest.raises(InputError, match=r"no \{participant\}"):
        Schema("The {occupation} said {pronoun} left.", "nurse", "", "occupation", "nominative").span(
            "he", "participant"
        )


def test_sentences_are_schemas_or_a_file_and_nothing_else(tmp_path):
    assert sentences_of(None) == schemas() and sentences_of(schemas()[:2]) == schemas()[:2]
    with pytest.raises(InputError, match="got str"):
        sentences_of(["The nurse said she left."])  # type: ignore[list-item]
    with pytest.raises(InputError, match="no sentences"):
        sentences_of([])
    path = tmp_path / "templates.tsv"
    path.write_text("clerk\tvisitor\t0\tThe $OCCUPATION saw $NOM_PRONOUN.\n")
    with pytest.raises(LoadError, match=r"line 1.*\$PARTICIPANT"):
        sentences_of(path)
