"""Roles of heads: their meaning, their family and a short form, so that colour is never all there is."""

from dataclasses import dataclass

NO_ROLE = "no clear role"

# The families of roles, in the order of the page.
FAMILIES = {
    "position": "position",
    "syntax": "syntax",
    "copying": "copying",
    "rare": "rare words",
    "across": "between sentences",
    "marks": "marks and names",
    "image": "patches",
    "rest": "at rest",
    "none": NO_ROLE,
}


@dataclass(frozen=True)
class RoleTerm:
    """A role: its name, what a head with it does, its family and its short form (made from the detail where empty)."""

    name: str
    meaning: str
    family: str
    short: str = ""


ROLE_TERMS: dict[str, RoleTerm] = {
    role.name: role
    for role in (
        RoleTerm(
            "positional", "attends at one distance: the previous token, the next, itself, 3 tokens back …", "position"
        ),
        RoleTerm("syntactic", "attends to the other end of a dependency relation, as nsubj→head", "syntax"),
        RoleTerm("induction", "attends to what followed the same token before", "copying", "ind"),
        RoleTerm("duplicate token", "attends to earlier occurrences of the same token", "copying", "dup"),
        RoleTerm("same token", "attends to other occurrences of the same token", "copying", "same"),
        RoleTerm("rare words", "attends to the rarest tokens of the sentence", "rare", "rare"),
        RoleTerm("same word across", "attends to the same word in the other sentence", "across", "same"),
        RoleTerm("alignment", "attends to the source word of the word that it reads, or writes", "across", "align"),
        RoleTerm("from A to B", "sentence A attends to sentence B", "across", "A→B"),
        RoleTerm("from B to A", "sentence B attends to sentence A", "across", "B→A"),
        RoleTerm("punctuation", "attends to punctuation marks", "marks", ".,"),
        RoleTerm("paired marks", "attends to the other half of a pair of quotes or brackets", "marks", "( )"),
        RoleTerm("names", "attends to words with a capital inside a sentence", "marks", "name"),
        RoleTerm("the patch itself", "a patch attends to itself", "image", "self"),
        RoleTerm("local patches", "a patch attends to the eight around it", "image", "local"),
        RoleTerm("the row", "a patch attends to its row", "image", "row"),
        RoleTerm("the column", "a patch attends to its column", "image", "col"),
        RoleTerm("rests on the first token", "most weight is on the first token", "rest", "1st"),
        RoleTerm("rests on the last token", "most weight is on the last token", "rest", "last"),
        RoleTerm("rests on special tokens", "most weight is on special tokens", "rest", "rest"),
    )
}

# Of roles with a detail.
_SHORT_DETAILS = {
    "previous token": "−1",
    "next token": "+1",
    "the token itself": "0",
    "rare words (many tied)": "rare?",
}


def role_family(kind: str | None) -> str:
    """The family of a role's kind; of a head without one, "none"."""
    return "none" if kind is None else ROLE_TERMS[kind].family


def role_short(kind: str, role: str) -> str:
    """A role in a few letters.

    >>> role_short("positional", "3 tokens back"), role_short("syntactic", "syntactic: nsubj→head")
    ('−3', 'nsubj')
    """
    if kind == "syntactic":
        return role.partition(": ")[2].partition("→")[0].partition(":")[0][:5]
    if role in _SHORT_DETAILS:
        return _SHORT_DETAILS[role]
    if ROLE_TERMS[kind].short:
        return ROLE_TERMS[kind].short
    n_tokens, _, direction = role.partition(" tokens ")
    return f"{'−' if direction == 'back' else '+'}{n_tokens}"
