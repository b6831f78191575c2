"""Evidence: what a use case found, as sentences and tables that a page, a terminal or a file can show."""

from dataclasses import dataclass, field
from typing import Any, Literal

from headscope.scores import Scores

Kind = Literal["text", "number", "heads"]
Cell = str | float | None


@dataclass(frozen=True)
class Column:
    """One column: numbers, texts, or names of heads (one, or several with commas between)."""

    name: str
    kind: Kind = "number"


@dataclass(frozen=True)
class EvidenceTable:
    """Rows under named columns, and how to read them."""

    title: str
    about: str
    columns: tuple[Column, ...]
    rows: list[tuple[Cell, ...]]

    def to_json(self) -> dict[str, Any]:
        """A list of rows by column names."""
        names = [column.name for column in self.columns]
        return {
            "title": self.title,
            "about": self.about,
            "rows": [dict(zip(names, row, strict=True)) for row in self.rows],
        }

    def markdown(self) -> str:
        """The table as Markdown, numbers as the page writes them."""
        lines = [[column.name for column in self.columns]]
        lines += [["---:" if column.kind == "number" else "---" for column in self.columns]]
        lines += [[format_cell(cell).replace("|", "\\|") for cell in row] for row in self.rows]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)


@dataclass(frozen=True, eq=False)
class Evidence:
    """What came out of a use case on one model.

    `findings` are sentences, `scores` the measure by which heads are ranked, `example` an input (text, and
    pair where it takes two) on which they can be looked at, `python` the lines that give the same.
    """

    name: str
    title: str
    model: str
    findings: list[str]
    tables: list[EvidenceTable]
    scores: Scores
    python: str
    example: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary."""
        return {
            "name": self.name,
            "model": self.model,
            "findings": self.findings,
            "tables": [table.to_json() for table in self.tables],
            "scores": self.scores.to_json(),
        }


def format_cell(value: Cell) -> str:
    """A cell in words: three digits, a minus that is one, a dash where there is nothing."""
    if value is None or (isinstance(value, float) and value != value):
        return "–"
    if isinstance(value, str):
        return value
    size = abs(value)
    digits = 4 if 0 < size < 0.001 else 3 if size < 10 else 1 if size < 1000 else 0
    return f"{value:,.{digits}f}".replace("-", "−")
