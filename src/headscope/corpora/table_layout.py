"""Which column of a tab-separated table holds what: by its header, by its cells, or as the user says."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from headscope.errors import InputError

FIELDS = ("text", "pair", "target", "label")
Columns = Mapping[str, int | str]
Rows = Sequence[Sequence[str]]

_TEXTS = ("text", "sentence", "sentence1", "source", "premise", "question1", "question", "a")
_SECONDS = ("pair", "sentence2", "hypothesis", "question2", "b")
_TARGETS = ("target",)
_LABELS = ("label", "class", "category", "sentiment")
_KNOWN_NAMES = frozenset((*_TEXTS, *_SECONDS, *_TARGETS, *_LABELS))
# Names that mean the only text of a row, whatever other columns hold.
_ONLY_TEXTS = ("text", "sentence")
_FIELDS_OF_KIND = {"pairs": ("text", "pair"), "translation": ("text", "target"), "table": ("text",)}
_CONTENT = {"pairs": "the two sentences", "translation": "source and target", "table": "the text"}

_LONGEST_NAME = 20
_MOST_WORDS_OF_NAME = 3
_NUMBER = re.compile(r"[-+−]?\d+([.,]\d+)*%?")
_EDGE_SIGNS = re.compile(r"^\W+|\W+$")
# Scripts without spaces between words: two of their characters count as two words.
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")


@dataclass(frozen=True)
class TableLayout:
    """Which column holds which field, and whether the first line is a header."""

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


def layout_of(head: Rows, kind: str | None, columns: Columns | None) -> TableLayout:
    """The layout of a table from its first rows. `columns` and `kind` are what the user says.

    Without `columns`, a table is refused when its header does not name the texts and more (or fewer) columns hold
    sentences than the kind has.
    """
    if not head:
        raise InputError("there is nothing to read: the table has no line that can be read.")
    first = head[0]
    asks_names = columns is not None and any(isinstance(column, str) for column in columns.values())
    names = tuple(first) if asks_names or _is_header(head) else ()
    if columns is not None:
        return TableLayout(kind or _kind_of_fields(columns), _places(columns, first), names)
    rows = head[1:] if names else head
    if kind is None:
        kind = _kind(names, rows, len(first))
    places = _by_name(names, kind, rows, len(first))
    if places is None:
        texts = text_columns(rows, len(first), n_wanted=len(_FIELDS_OF_KIND[kind]))
        if len(texts) != len(_FIELDS_OF_KIND[kind]):
            raise InputError(_ambiguity(kind, names, rows, len(first)))
        places = dict(zip(_FIELDS_OF_KIND[kind], texts, strict=True))
    label = _place_of(names, _LABELS)
    if label is not None and label not in places.values():
        places["label"] = label
    return TableLayout(kind, places, names)


def text_columns(rows: Rows, n_columns: int, *, n_wanted: int) -> list[int]:
    """The columns in which most cells are of two words or more.

    In a table of two columns of which both are wanted, single words count too, unless they repeat as labels do.
    """
    cells_by_column = [_cells(rows, column) for column in range(n_columns)]
    texts = [column for column, cells in enumerate(cells_by_column) if _most(map(_has_words, cells))]
    if n_columns == 2 and n_wanted == 2:
        texts = [column for column in range(2) if column in texts or _are_words(cells_by_column[column])]
    if n_columns == 1 and n_wanted == 1:
        texts = [0]
    return texts


def _is_header(head: Rows) -> bool:
    """A first line of names: known ones, short lower-case ones above other cells, or short words above numbers."""
    if not all(0 < len(cell) <= _LONGEST_NAME for cell in head[0]):
        return False
    names, rows = head[0], head[1:]
    if any(_NUMBER.fullmatch(name) for name in names):
        return False
    are_identifiers = all(name.isidentifier() for name in names)
    if are_identifiers and any(name.lower() in _KNOWN_NAMES for name in names):
        return True
    if len(names) < 2:
        return False
    if are_identifiers and all(name.islower() for name in names):
        are_all_alike = all(cell.isidentifier() and cell.islower() for row in rows for cell in row)
        return not are_all_alike or _are_languages(names)
    is_short = all(len(name.split()) <= _MOST_WORDS_OF_NAME for name in names)
    columns = [_cells(rows, column) for column in range(len(names))]
    return is_short and any(cells and all(map(_NUMBER.fullmatch, cells)) for cells in columns)


def _kind_of_fields(columns: Columns) -> str:
    return "pairs" if "pair" in columns else "translation" if "target" in columns else "table"


def _kind(names: Sequence[str], rows: Rows, n_columns: int) -> str:
    """What the header names, else what the number of text columns means."""
    if _place_of(names, _TEXTS) is not None:
        if _place_of(names, _SECONDS) is not None:
            return "pairs"
        if _place_of(names, _TARGETS) is not None:
            return "translation"
        if _place_of(names, _ONLY_TEXTS) is not None:
            return "table"
    texts = text_columns(rows, n_columns, n_wanted=2)
    if names and _are_languages([names[column] for column in texts] or names):
        return "translation"
    return "table" if len(texts) == 1 or n_columns == 1 else "pairs"


def _by_name(names: Sequence[str], kind: str, rows: Rows, n_columns: int) -> dict[str, int] | None:
    """The columns that the header names as we would; None where it does not say enough."""
    if kind == "table" and _place_of(names, _ONLY_TEXTS) is None:
        text = _place_of(names, _TEXTS)
        others = [column for column in text_columns(rows, n_columns, n_wanted=1) if column != text]
        return None if text is None or others else {"text": text}
    known_names = {"text": _ONLY_TEXTS if kind == "table" else _TEXTS, "pair": _SECONDS, "target": _TARGETS}
    places = {field: _place_of(names, known_names[field]) for field in _FIELDS_OF_KIND[kind]}
    if any(place is None for place in places.values()):
        return None
    return {field: place for field, place in places.items() if place is not None}


def _place_of(names: Sequence[str], known: Sequence[str]) -> int | None:
    return next((place for place, name in enumerate(names) if name.lower() in known), None)


def _places(columns: Columns, first: Sequence[str]) -> dict[str, int]:
    """The columns that the user names, checked against the first line."""
    unknown = [field for field in columns if field not in FIELDS]
    if unknown or not columns:
        raise InputError(f"there is no field {unknown[0] if unknown else ''!r}: columns are given for {FIELDS}.")
    lower_names = [name.lower() for name in first]
    places: dict[str, int] = {}
    for field, column in columns.items():
        if isinstance(column, str):
            if column.lower() not in lower_names:
                raise InputError(f"there is no column {column!r}: the first line has {', '.join(map(repr, first))}.")
            places[field] = first.index(column) if column in first else lower_names.index(column.lower())
        elif 0 <= column < len(first):
            places[field] = column
        else:
            raise InputError(
                f"there is no column {column} for {field!r}: the first line has {len(first)} (counted from 0)."
            )
    return places


def _ambiguity(kind: str, names: Sequence[str], rows: Rows, n_columns: int) -> str:
    """Why no layout was chosen, what the columns are, and how to name them."""
    samples = [next(iter(_cells(rows, column)), "") for column in range(n_columns)]
    described = [
        f"{column}{f' {names[column]!r}' if names else ''} (as {_shortened(sample)!r})"
        for column, sample in enumerate(samples)
    ]
    texts = text_columns(rows, n_columns, n_wanted=1)
    places = [*texts, *(column for column in range(n_columns) if column not in texts)]
    example = dict(zip(_FIELDS_OF_KIND[kind], places, strict=False))
    in_python = ", ".join(f'"{field}": {column}' for field, column in example.items())
    on_command_line = ",".join(f"{field}={column}" for field, column in example.items())
    which = f"which of {n_columns} columns hold {_CONTENT[kind]}" if n_columns > 1 else f"where {_CONTENT[kind]} are"
    columns_are = f"They are: {'; '.join(described)}" if n_columns > 1 else f"The only column is: {described[0]}"
    return (
        f"{which} cannot be told. {columns_are}. Name them, for example: columns={{{in_python}}}, on the command line "
        f"--columns {on_command_line}."
    )


def _cells(rows: Rows, column: int) -> list[str]:
    return [row[column] for row in rows if column < len(row) and row[column]]


def _has_words(cell: str) -> bool:
    n_words = sum(any(character.isalpha() for character in word) for word in cell.split())
    return n_words >= 2 or len(_UNSPACED.findall(cell)) >= 2


def _are_words(cells: Sequence[str]) -> bool:
    """Words or sentences that seldom repeat, unlike labels; identifiers with digits or signs are no words."""
    is_word = (_has_words(cell) or _EDGE_SIGNS.sub("", cell).isalpha() for cell in cells)
    return _most(is_word) and 2 * len(set(cells)) > len(cells)


def _most(conditions: Iterable[bool]) -> bool:
    values = list(conditions)
    return 2 * sum(values) > len(values)


def _are_languages(names: Sequence[str]) -> bool:
    """Two language codes: en, ru."""
    return len(names) == 2 and all(len(name) == 2 and name.isalpha() for name in names)


def _shortened(text: str) -> str:
    return text if len(text) <= 30 else f"{text[:29]}…"
