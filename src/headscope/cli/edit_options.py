"""Edits as they are typed on the command line, `silence("L3H2")`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from headscope.errors import InterventionError

if TYPE_CHECKING:
    from headscope.interventions import Intervention


def read_edits(typed: Sequence[str], file: Path | None = None) -> "list[Intervention]":
    """The edits of a saved file, then those typed, in order."""
    saved: list[Intervention] = []
    if file is not None:
        from headscope.interventions import load_interventions

        saved = load_interventions(file)
    return [*saved, *(parse_edit(text) for text in typed)]


def parse_edit(text: str) -> "Intervention":
    """One edit; what cannot be read is refused in the words of the command line.

    >>> parse_edit('hs.silence("L3H2", tokens=[0, 1])')
    hs.silence('L3H2', tokens=[0, 1])
    """
    from headscope.interventions import parse

    try:
        return parse(text)
    except InterventionError as error:
        message = str(error).replace("cannot read the edit", "cannot read --edit", 1)
        problem, _, example = message.rpartition(" example ")
        raise InterventionError(f"{problem} example --edit '{example}'" if problem else example) from error
