"""Pronoun sentences of published coreference files: Winogender's templates, WinoBias's brackets, GAP's offsets."""

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from headscope.analysis.usecases.pronoun_sentences import Case, Schema, schemas, winogender_schema
from headscope.errors import InputError, LoadError

# The forty occupations of WinoBias (Zhao et al., 2018): the person that is not in brackets is known by them.
OCCUPATIONS = (
    "accountant", "analyst", "assistant", "attendant", "auditor", "baker", "carpenter", "cashier", "ceo", "chief",
    "cleaner", "clerk", "construction worker", "cook", "counselor", "designer", "developer", "driver", "editor",
    "farmer", "guard", "hairdresser", "housekeeper", "janitor", "laborer", "lawyer", "librarian", "manager", "mechanic",
    "mover", "nurse", "physician", "receptionist", "salesperson", "secretary", "sheriff", "supervisor", "tailor",
    "teacher", "writer",
)  # fmt: skip
_BRACKETS = re.compile(r"\[([^\[\]]+)\]")
_ARTICLE = re.compile(r"^(?:the|a|an)\s+", re.IGNORECASE)
_NUMBER = re.compile(r"^\s*\d+\s+")
_CASES: dict[str, Case] = {
    "he": "nominative", "she": "nominative", "they": "nominative",
    "him": "accusative", "them": "accusative",
    "his": "possessive", "their": "possessive",
}  # fmt: skip
# Before these, "her" is an object: what follows is no noun that somebody could have.
_AFTER_AN_OBJECT = frozenset(
    (
        "a", "about", "after", "again", "all", "an", "and", "as", "at", "because", "before", "but", "by", "for", "from",
        "if", "in", "into", "of", "on", "or", "out", "so", "that", "the", "there", "to", "until", "up", "when", "where",
        "which", "while", "who", "with", "without", "yesterday",
    )
)  # fmt: skip
_GAP: tuple[str, ...] = (
    "ID",
    "Text",
    "Pronoun",
    "Pronoun-offset",
    "A",
    "A-offset",
    "A-coref",
    "B",
    "B-offset",
    "B-coref",
)


Sentences = Sequence[Schema] | str | Path
"""Schemas of one's own, or a coreference file: Winogender's templates, WinoBias's sentences, GAP's table."""


def sentences_of(sentences: Sentences | None) -> list[Schema]:
    """The sentences that were given, or the built-in ones."""
    if sentences is None:
        return schemas()
    chosen = read_schemas(sentences) if isinstance(sentences, str | Path) else list(sentences)
    wrong = next((sentence for sentence in chosen if not isinstance(sentence, Schema)), None)
    if wrong is not None:
        raise InputError(
            "sentences are schemas (headscope.Schema) or a coreference file (Winogender's templates.tsv, WinoBias, "
            f"GAP), got {type(wrong).__name__}: the place of the pronoun and of the people must be known."
        )
    if not chosen:
        raise InputError("no sentences were given: give schemas, or nothing for the built-in ones.")
    return chosen


def read_schemas(path: str | Path) -> list[Schema]:
    """The sentences of a coreference file; the first line that is not empty decides which format it has.

    Winogender's `templates.tsv`; WinoBias's lines, where the pronoun and the person it means are in brackets; GAP's
    table. Sentences of GAP whose pronoun means neither person are left out.
    """
    path = Path(path)
    if not path.is_file():
        raise LoadError(
            f"there is no file {path}: give Winogender's templates.tsv, WinoBias's sentences or GAP's table."
        )
    with path.open(encoding="utf-8", newline="") as file:
        lines = file.read().splitlines()
    first = next((line for line in lines if line.strip()), "")
    if tuple(first.split("\t")[: len(_GAP)]) == _GAP:
        return list(_gap(path.name, lines))
    if "\t" not in first and _BRACKETS.search(first):
        return list(_winobias(path.name, lines))
    return list(_winogender(path.name, lines))


def _winogender(name: str, lines: Sequence[str]) -> Iterator[Schema]:
    for number, row in enumerate(csv.reader(lines, delimiter="\t"), 1):
        if number > 1 or not row or not row[0].startswith("occupation"):
            yield winogender_schema(name, number, row)


def _winobias(name: str, lines: Sequence[str]) -> Iterator[Schema]:
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield _bracketed(f"{name}, line {number}", _NUMBER.sub("", line).strip())


def _bracketed(where: str, sentence: str) -> Schema:
    """One sentence such as `[The developer] argued with the designer because [she] did not like the design.`"""
    marked = list(_BRACKETS.finditer(sentence))
    pronouns = [mark for mark in marked if mark[1].strip().lower() in (*_CASES, "her")]
    if len(marked) != 2 or len(pronouns) != 1:
        raise LoadError(f"{where}: not one person and one pronoun in brackets, as WinoBias has them.")
    pronoun = pronouns[0]
    person = next(mark for mark in marked if mark is not pronoun)
    meant = _ARTICLE.sub("", person[1].strip())
    article = person[1].strip()[: -len(meant)]
    other = _other_person(where, sentence, person.span(), meant)
    cuts = sorted([(*person.span(), "meant"), (*pronoun.span(), "pronoun"), (*other, "other")])
    named = [who for _, _, who in cuts if who != "pronoun"]
    roles = dict(zip(named, ("occupation", "participant"), strict=True))
    template, end = "", 0
    for start, stop, who in cuts:
        template += sentence[end:start] + (article if who == "meant" else "")
        template += "{pronoun}" if who == "pronoun" else f"{{{roles[who]}}}"
        end = stop
    texts = {roles["meant"]: meant, roles["other"]: sentence[slice(*other)]}
    case = _case(pronoun[1], sentence[pronoun.end() :])
    return Schema(template + sentence[end:], texts["occupation"], texts["participant"], roles["meant"], case)  # type: ignore[arg-type]


def _other_person(where: str, sentence: str, taken: tuple[int, int], meant: str) -> tuple[int, int]:
    """Where the other of the two people is named: an occupation outside the brackets."""
    for occupation in sorted(OCCUPATIONS, key=len, reverse=True):
        if occupation == meant.lower():
            continue
        for match in re.finditer(rf"\b{re.escape(occupation)}\b", sentence, re.IGNORECASE):
            if match.end() <= taken[0] or match.start() >= taken[1]:
                return match.span()
    raise LoadError(
        f"{where}: beside {meant!r} none of WinoBias's forty occupations is named, so the other person is not known. "
        "Make schemas of your own: headscope.Schema."
    )


def _case(pronoun: str, after: str) -> Case:
    word = pronoun.strip().lower()
    if word != "her":
        return _CASES[word]
    following = re.match(r"\s+(\w+)", after)
    is_object = following is None or following[1].lower() in _AFTER_AN_OBJECT
    return "accusative" if is_object else "possessive"


def _gap(name: str, lines: Sequence[str]) -> Iterator[Schema]:
    for number, line in enumerate(lines[1:], 2):
        if not line.strip():
            continue
        cells = line.split("\t")
        try:
            row = dict(zip(_GAP, cells, strict=False))
            text, places = row["Text"], {who: int(row[f"{who}-offset"]) for who in ("Pronoun", "A", "B")}
            answers = [row[f"{who}-coref"].strip().upper() == "TRUE" for who in ("A", "B")]
        except (KeyError, ValueError) as error:
            raise LoadError(f"{name}, line {number}: not a row of GAP ({error}).") from error
        if any(answers):
            yield _at_offsets(f"{name}, line {number}", text, row, places, answers)


def _at_offsets(where: str, text: str, row: dict[str, str], places: dict[str, int], answers: list[bool]) -> Schema:
    pronoun = row["Pronoun"]
    for who, start in places.items():
        if text[start : start + len(row[who])] != row[who]:
            raise LoadError(f"{where}: {row[who]!r} does not stand at character {start} of the text.")
    if pronoun.lower() not in (*_CASES, "her") or "{" in text:
        raise LoadError(f"{where}: {pronoun!r} is no pronoun that can be replaced here, or the text holds braces.")
    marks = {"Pronoun": "pronoun", "A": "occupation", "B": "participant"}
    template, end = "", 0
    for start, who in sorted((start, who) for who, start in places.items()):
        template += f"{text[end:start]}{{{marks[who]}}}"
        end = start + len(row[who])
    case = _case(pronoun, text[places["Pronoun"] + len(pronoun) :])
    answer = "occupation" if answers[0] else "participant"
    return Schema(template + text[end:], row["A"], row["B"], answer, case)
