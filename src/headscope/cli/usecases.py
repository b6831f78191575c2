"""`headscope bias`, `antecedents`, `between`, `decay`: the published use cases, with evidence, on any model."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from headscope.cli.console import print_json, print_text, printable
from headscope.cli.corpus_options import Columns, CorpusFormat, note_first_example
from headscope.cli.load_model import Loading
from headscope.cli.progress import progress_bars
from headscope.cli.shared_options import ModelName, PrintOptions
from headscope.errors import InputError

if TYPE_CHECKING:
    from headscope.corpora import Corpus
    from headscope.reports.evidence import Evidence


@dataclass(frozen=True)
class Command:
    """A command and the example that its help ends with."""

    run: Callable[..., None]
    example: str


Schemas = Annotated[
    Path | None,
    typer.Argument(
        help="Coreference file: Winogender's templates.tsv, WinoBias's sentences or GAP's table. "
        "Default: built-in sentences."
    ),
]
Pairs = Annotated[Path | None, typer.Argument(help="Tab-separated sentence pairs. Default: 300 built-in pairs.")]
Texts = Annotated[
    Path | None, typer.Argument(help="Texts of at least 30 tokens, one per line. Default: built-in texts.")
]


def bias(model: ModelName, file: Schemas = None, *, loading: Loading, print_options: PrintOptions) -> None:
    """Measure whether heads attend to occupations differently from 'she' and 'he', and what silencing them changes."""
    _run("bias", model, file, loading, print_options)


def antecedents(model: ModelName, file: Schemas = None, *, loading: Loading, print_options: PrintOptions) -> None:
    """Find heads that attend from a pronoun to its antecedent rather than to the nearest noun."""
    _run("antecedents", model, file, loading, print_options)


def between(
    model: ModelName, file: Pairs = None, columns: Columns = None, *, loading: Loading, print_options: PrintOptions
) -> None:
    """Find heads that link the two sentences of a pair, compared with shuffled pairs."""
    _run("between", model, _pairs(file, columns), loading, print_options)


def decay(
    model: ModelName, file: Texts = None, columns: Columns = None, *, loading: Loading, print_options: PrintOptions
) -> None:
    """Find the head whose attention decays most with distance, and the neurons responsible."""
    _run("decay", model, _texts(file, columns), loading, print_options)


COMMANDS = (
    Command(bias, "Example: headscope bias builtin:gpt"),
    Command(antecedents, "Example: headscope antecedents builtin:bert"),
    Command(between, "Example: headscope between builtin:bert"),
    Command(decay, "Example: headscope decay builtin:gpt"),
)


def _run(name: str, model: str, data: Any, loading: Loading, print_options: PrintOptions) -> None:
    loaded = loading.model(model)
    from headscope.reports.usecases import use_case

    with progress_bars() as progress:
        evidence = use_case(name, loaded, data, progress=progress)
    if print_options.json:
        print_json(evidence.to_json())
    else:
        _show(evidence)


def _show(evidence: "Evidence") -> None:
    from headscope.reports.evidence import format_cell

    print_text(Text(f"{evidence.title}: {printable(evidence.model)}", "bold"))
    for line in evidence.findings:
        print_text(f"- {printable(line)}")
    for section in evidence.tables:
        print_text("", Text(section.title, "bold"), Text(section.about))
        table = Table()
        for column in section.columns:
            table.add_column(Text(column.name), justify="right" if column.kind == "number" else "left")
        for row in section.rows:
            table.add_row(*(Text(printable(format_cell(cell))) for cell in row))
        print_text(table)


def _pairs(file: Path | None, columns: str | None) -> list[tuple[str, str]] | None:
    examples = _corpus(file, "pairs", columns)
    if examples is None:
        return None
    pairs = [(example.text, example.pair) for example in examples]
    return [(text, pair) for text, pair in pairs if text and pair]


def _texts(file: Path | None, columns: str | None) -> list[str] | None:
    examples = _corpus(file, "text" if columns is None else "table", columns)
    if examples is None:
        return None
    texts = [example.text for example in examples if example.text]
    if not texts:
        raise InputError(f"{file} has no texts.")
    return texts


def _corpus(file: Path | None, kind: str, columns: str | None) -> "Corpus | None":
    if file is None:
        if columns is not None:
            raise InputError(f"--columns {columns} says what the columns of a file are: give the file too.")
        return None
    examples = CorpusFormat(kind, columns).corpus(file)
    note_first_example(examples)
    return examples
