"""Tab-separated columns: pairs of sentences, source and target, or one text. Quotes mean nothing."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headscope.corpora.example import Example, Problem
from headscope.corpora.text_lines import lines
from headscope.errors import InputError

FIELDS = ("text", "pair", "target", "label")
Columns = Mapping[str, int | str]

_TEXTS = ("text", "sentence", "sentence1", "source", "premise", "question", "a")
_SECONDS = ("pair", "sentence2", "hypothesis", "b")
_LABELS = ("label", "class", "category", "sentiment")
_BY_PLACE: dict[str, Columns] = {
    "pairs": {"text": 0, "pair": 1},
    "translation": {"text": 0, "target": 1},
    "table": {"text": 0},
}


@dataclass(frozen=True)
class Layout:
    """Which column is what, and whether the first line names them."""

    kind: str
    columns: dict[str, int]
    names: tuple[str, ...] = ()

    @property
    def about(self) -> str:
        """The layout in words."""
        sources = ", ".join(
            f"{field} from {repr(self.names[at]) if self.names else f'column {at}'}"
            for field, at in self.columns.items()
        )
        kind = "columns" if self.kind == "table" else self.kind
        return f"tab-separated {kind} ({sources}{'; the first line names the columns' if self.names else ''})"


def layout_of(first: list[str], kind: str | None, columns: Columns | None) -> Layout:
    """The layout of a table from its first line, and from what was said of it."""
    asks_names = columns is not None and any(isinstance(column, str) for column in columns.values())
    names = tuple(first) if asks_names or _is_header(first) else ()
    kind = kind or _kind(names, columns)
    if columns is None:
        columns = _by_name(names, kind) or _BY_PLACE[kind]
    unknown = [field for field in columns if field not in FIELDS]
    if unknown or not columns:
        raise InputError(f"there is no field {unknown[0] if unknown else ''!r}: columns are given for {FIELDS}.")
    places: dict[str, int] = {}
    for field, column in columns.items():
        if isinstance(column, str) and column not in names:
            raise InputError(f"there is no column {column!r}: the first line has {', '.join(map(repr, first))}.")
        at = names.index(column) if isinstance(column, str) else column
        if not 0 <= at < len(first):
            raise InputError(
                f"there is no column {at} for {field!r}: the first line has {len(first)} (counted from 0)."
            )
        places[field] = at
    return Layout(kind, places, names)


def read_table(path: Path, layout: Layout, *, max_line: int) -> Iterator[Example | Problem]:
    """An example a line; a line with too few columns, or with nothing in one that is read, is a problem."""
    needed = max(layout.columns.values()) + 1
    is_first = bool(layout.names)
    for line in lines(path, max_line=max_line):
        if isinstance(line, Problem):
            yield line
        elif is_first:
            is_first = False
        elif line.text.strip():
            cells = [cell.strip() for cell in line.text.split("\t")]
            if len(cells) < needed:
                yield Problem(path.name, line.number, f"{len(cells)} columns where {needed} are needed")
                continue
            values: dict[str, Any] = {field: cells[at] for field, at in layout.columns.items()}
            empty = [field for field, value in values.items() if not value]
            if empty:
                yield Problem(path.name, line.number, f"the {empty[0]} is empty")
            else:
                yield Example(f"{path.name}:{line.number}", **values)


def _is_header(cells: list[str]) -> bool:
    """A line of short single words, as no line of sentences is."""
    return len(cells) > 1 and all(cell.isidentifier() and cell.islower() and len(cell) <= 20 for cell in cells)


def _kind(names: tuple[str, ...], columns: Columns | None) -> str:
    if columns is not None:
        return "pairs" if "pair" in columns else "translation" if "target" in columns else "table"
    if any(name in _TEXTS for name in names) and not any(name in (*_SECONDS, "target") for name in names):
        return "table"
    is_languages = len(names) == 2 and all(len(name) == 2 for name in names)  # en, ru: codes of languages
    return "translation" if is_languages or "target" in names else "pairs"


def _by_name(names: tuple[str, ...], kind: str) -> Columns:
    """Columns that the first line names as we would; empty where it does not say enough."""
    wanted: dict[str, tuple[str, ...]] = {"text": _TEXTS}
    wanted |= {"pair": _SECONDS} if kind == "pairs" else {"target": ("target",)} if kind == "translation" else {}
    wanted |= {"label": _LABELS}
    name_by_field = {field: next((name for name in names if name in known), None) for field, known in wanted.items()}
    if any(name_by_field[field] is None for field in wanted if field != "label"):
        return {}
    return {field: name for field, name in name_by_field.items() if name is not None}
