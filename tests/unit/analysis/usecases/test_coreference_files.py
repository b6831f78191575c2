"""Coreference files: each format by hand, with the places of pronoun and people."""

from pathlib import Path

import pytest

import headscope as hs
from headscope.analysis.usecases.coreference_files import read_schemas
from headscope.errors import InputError, LoadError


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def named(schema: hs.Schema, pronoun: str) -> dict[str, str]:
    """What stands at the places that a schema tells."""
    text = schema.text(pronoun)
    return {who: text[slice(*schema.span(pronoun, who))] for who in ("pronoun", "occupation", "participant")}


def test_winobias_in_brackets(tmp_path):
    path = write(
        tmp_path / "anti.txt",
        "1 [The developer] argued with the designer because [she] did not like the design.",
        "2 The CEO called [the construction worker] and gave [him] the keys.",
        "",
        "3 [The nurse] told the tailor about [her] day.",
        "4 The guard thanked [the clerk] and paid [her] .",
    )
    first, second, third, fourth = read_schemas(path)
    assert first.text("he") == "The developer argued with the designer because he did not like the design."
    assert named(first, "she") == {"pronoun": "she", "occupation": "developer", "participant": "designer"}
    assert (first.answer, first.case) == ("occupation", "nominative")
    assert second.text("she") == "The CEO called the construction worker and gave her the keys."
    assert (second.answer, second.case, second.participant) == ("participant", "accusative", "construction worker")
    assert third.text("he") == "The nurse told the tailor about his day." and third.case == "possessive"
    assert fourth.text("he") == "The guard thanked the clerk and paid him ." and fourth.answer == "participant"


def test_gap_by_offsets(tmp_path):
    header = "ID\tText\tPronoun\tPronoun-offset\tA\tA-offset\tA-coref\tB\tB-offset\tB-coref\tURL"
    text = "Ann met Zoe. Later she left, and Zoe stayed."
    rows = [f"{number}\t{text}\tshe\t19\tAnn\t0\t{a}\tZoe\t8\t{b}\thttp" for number, (a, b) in enumerate(
        [("TRUE", "FALSE"), ("FALSE", "FALSE"), ("FALSE", "TRUE")]
    )]  # fmt: skip
    first, last = read_schemas(write(tmp_path / "gap.tsv", header, *rows))
    assert (first.answer, last.answer) == ("occupation", "participant")
    assert first.text("he") == "Ann met Zoe. Later he left, and Zoe stayed."
    assert named(last, "they") == {"pronoun": "they", "occupation": "Ann", "participant": "Zoe"}


def test_winogender_as_before(tmp_path):
    row = "nurse\tpatient\t1\tThe $OCCUPATION asked the $PARTICIPANT if $NOM_PRONOUN slept."
    path = write(tmp_path / "t.tsv", "occupation(0)\tother-participant(1)\tanswer\tsentence", row)
    (schema,) = read_schemas(path)
    assert schema.text("she") == "The nurse asked the patient if she slept." and schema.answer == "participant"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("1 [The developer] met the designer.", "line 1: not one person and one pronoun in brackets"),
        ("1 [The developer] met the wizard and [she] left.", "none of WinoBias's forty occupations"),
        ("nurse\tpatient", "line 1: not an occupation, a participant"),
    ],
)
def test_what_does_not_fit_is_named_with_its_line(tmp_path, line, problem):
    with pytest.raises(LoadError, match=problem):
        read_schemas(write(tmp_path / "bad.txt", line))


def test_a_schema_of_ones_own_is_measured():
    own = hs.Schema(
        "The {occupation} met the {participant} and {pronoun} smiled.", "cook", "guest", "occupation", "nominative"
    )
    result = hs.analysis.antecedents(hs.load("builtin:bert"), [own])
    assert result.n_skipped == 0 and result.best()[1] in (0.0, 0.5, 1.0)
    with pytest.raises(InputError, match=r"headscope\.Schema"):
        hs.analysis.antecedents(hs.load("builtin:bert"), ["The cook met the guest."])
