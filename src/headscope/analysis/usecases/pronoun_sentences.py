"""Sentences with a pronoun and two people it could mean, in the manner of Winogender (Rudinger et al., 2018).

Built in: sentences of our own, so that the use cases run out of the box. `coreference_files` reads published ones.
"""

from dataclasses import dataclass
from typing import Literal

from headscope.errors import InputError, LoadError

Case = Literal["nominative", "possessive", "accusative"]

PRONOUNS: dict[str, dict[Case, str]] = {
    "she": {"nominative": "she", "possessive": "her", "accusative": "her"},
    "he": {"nominative": "he", "possessive": "his", "accusative": "him"},
    "they": {"nominative": "they", "possessive": "their", "accusative": "them"},
}
_MARKS: dict[str, Case] = {
    "$NOM_PRONOUN": "nominative",
    "$POSS_PRONOUN": "possessive",
    "$ACC_PRONOUN": "accusative",
}

# An occupation, and somebody whom it meets.
PEOPLE = (
    ("nurse", "patient"),
    ("doctor", "patient"),
    ("teacher", "student"),
    ("farmer", "neighbour"),
    ("housekeeper", "guest"),
    ("lawyer", "witness"),
    ("soldier", "traveller"),
    ("maid", "visitor"),
    ("baker", "customer"),
    ("captain", "passenger"),
    ("cook", "guest"),
    ("clerk", "visitor"),
    ("engineer", "owner"),
    ("governess", "child"),
    ("servant", "master"),
    ("painter", "buyer"),
    ("driver", "passenger"),
    ("secretary", "visitor"),
    ("singer", "listener"),
    ("banker", "customer"),
)
# Who the pronoun means is clear from the sentence, not from the pronoun.
TEMPLATES: tuple[tuple[str, str, Case], ...] = (
    ("The {occupation} told the {participant} that {pronoun} would finish before dinner.", "occupation", "nominative"),
    ("The {occupation} asked the {participant} whether {pronoun} had slept well.", "participant", "nominative"),
    ("The {participant} thanked the {occupation} because {pronoun} had been of help.", "occupation", "nominative"),
    ("The {participant} paid the {occupation} as soon as {pronoun} got the money.", "participant", "nominative"),
    ("The {occupation} showed the {participant} the tools of {pronoun} trade.", "occupation", "possessive"),
    ("The {occupation} gave the {participant} a chair because {pronoun} legs were tired.", "participant", "possessive"),
)  # fmt: skip


@dataclass(frozen=True)
class Schema:
    """One sentence with a gap for a pronoun, the two people, and whom the pronoun means.

    >>> import headscope as hs
    >>> template = "The {occupation} thanked the {participant} because {pronoun} had helped."
    >>> hs.Schema(template, "nurse", "doctor", "participant", "nominative").text("she")
    'The nurse thanked the doctor because she had helped.'
    """

    template: str
    occupation: str
    participant: str
    answer: Literal["occupation", "participant"]
    case: Case

    def text(self, pronoun: str) -> str:
        """The sentence with `she`, `he` or `they`, in the case that fits."""
        if pronoun not in PRONOUNS:
            raise InputError(f"there is no pronoun {pronoun!r} here: choose one of {', '.join(PRONOUNS)}.")
        before, after = self.around
        return before + PRONOUNS[pronoun][self.case] + after

    @property
    def around(self) -> tuple[str, str]:
        """What stands before and after the pronoun."""
        filled = self.template.replace("{occupation}", self.occupation).replace("{participant}", self.participant)
        before, _, after = filled.partition("{pronoun}")
        return before, after

    def span(self, pronoun: str, who: Literal["pronoun", "occupation", "participant"]) -> tuple[int, int]:
        """Where somebody is named in the text, as character offsets."""
        texts = {"occupation": self.occupation, "participant": self.participant}
        texts["pronoun"] = PRONOUNS[pronoun][self.case]
        before, mark, _ = self.template.partition(f"{{{who}}}")
        if not mark:
            raise InputError(f"there is no {{{who}}} in the template {self.template!r}.")
        for name, text in texts.items():  # not looked for in the text: one name may be part of another
            before = before.replace(f"{{{name}}}", text)
        return len(before), len(before) + len(texts[who])


def schemas() -> list[Schema]:
    """The built-in sentences: every pair of people in every frame."""
    return [
        Schema(template, occupation, participant, answer, case)  # type: ignore[arg-type]
        for occupation, participant in PEOPLE
        for template, answer, case in TEMPLATES
    ]


def winogender_schema(name: str, number: int, row: list[str]) -> Schema:
    """A row of Winogender's own templates (`templates.tsv` of rudinger/winogender-schemas)."""
    marks = [mark for mark in _MARKS if len(row) == 4 and mark in row[3]]
    has_people = len(row) == 4 and all(mark in row[3] for mark in ("$OCCUPATION", "$PARTICIPANT"))
    if not has_people or row[2] not in ("0", "1") or len(marks) != 1:
        raise LoadError(
            f"{name}, line {number}: not an occupation, a participant, 0 or 1, and a sentence with $OCCUPATION, "
            "$PARTICIPANT and one pronoun ($NOM_PRONOUN, $POSS_PRONOUN or $ACC_PRONOUN)."
        )
    occupation, participant, answer, sentence = row
    template = sentence.replace("$OCCUPATION", "{occupation}").replace("$PARTICIPANT", "{participant}")
    template = template.replace(marks[0], "{pronoun}")
    return Schema(template, occupation, participant, "participant" if answer == "1" else "occupation", _MARKS[marks[0]])
