"""Tab-separated columns: pairs of sentences, source and target, or one text. Quotes mean nothing."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headscope.corpora.example import CorpusProblem, Example
from headscope.corpora.table_layout import TableLayout
from headscope.corpora.text_lines import lines


def rows_of(head: list[str]) -> list[list[str]]:
    """The cells of lines."""
    return [_cells(line) for line in head]


def read_table(path: Path, layout: TableLayout, *, max_line: int) -> Iterator[Example | CorpusProblem]:
    """An example a line; a line with too few columns, or with nothing in one that is read, is a problem."""
    needed = max(layout.columns.values()) + 1
    is_first = bool(layout.names)
    for line in lines(path, max_line=max_line):
        if isinstance(line, CorpusProblem):
            yield line
        elif not line.text.strip():
            continue
        elif is_first:
            is_first = False
        else:
            cells = _cells(line.text)
            if len(cells) < needed:
                yield CorpusProblem(path.name, line.number, f"{len(cells)} columns where {needed} are needed")
                continue
            values: dict[str, Any] = {field: cells[at] for field, at in layout.columns.items()}
            empty = [field for field, value in values.items() if not value]
            if empty:
                yield CorpusProblem(path.name, line.number, f"the {empty[0]} is empty")
            else:
                yield Example(f"{path.name}:{line.number}", **values)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("\t")]
