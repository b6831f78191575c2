"""`headscope bias`, `antecedents`, `between`, `decay`: the published use cases, with evidence, on any model."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from headscope.cli.console import print_json, print_text, printable
from headscope.cli.load_model import Loading
from headscope.cli.progress import progress_bars
from headscope.cli.shared_options import ModelName, PrintOptions
from headscope.errors import InputError

if TYPE_CHECKING:
    from headscope.reports.evidence import Evidence


@dataclass(frozen=True)
class Command:
    """A command and the example that its help ends with."""

    run: Callable[..., None]
    example: str


Schemas = Annotated[
    Path | None, typer.Argument(help="Winogender's templates.tsv; sentences that are built in, unless given.")
]
Pairs = Annotated[
    Path | None, typer.Argument(help="Pairs of sentences, two columns; three hundred built-in ones, unless given.")
]
Texts = Annotated[
    Path | None, typer.Argument(help="Texts of 30 tokens or more, one a line; built-in ones, unless given.")
]


def bias(model: ModelName, file: Schemas = None, *, loading: Loading, print_options: PrintOptions) -> None:
    """Do heads look at occupations differently from she and from he, and what does silencing them change?"""
    _run("bias", model, file, loading, print_options)


def antecedents(model: ModelName, file: Schemas = None, *, loading: Loading, print_options: PrintOptions) -> None:
    """Which heads lead from a pronoun to the person it means, against the nearest noun?"""
    _run("antecedents", model, file, loading, print_options)


def between(model: ModelName, file: Pairs = None, *, loading: Loading, print_options: PrintOptions) -> None:
    """Which heads link two sentences that belong together, against shuffled pairs?"""
    _run("between", model, _pairs(file), loading, print_options)


def decay(model: ModelName, file: Texts = None, *, loading: Loading, print_options: PrintOptions) -> None:
    """Which head looks less the further away a token is, and which of its neurons make it so?"""
    _run("decay", model, _texts(file), loading, print_options)


COMMANDS = (
    Command(bias, "Example: headscope bias builtin:gpt"),
    Command(antecedents, "Example: headscope antecedents builtin:bert"),
    Command(between, "Example: headscope between builtin:bert"),
    Command(decay, "Example: headscope decay builtin:gpt"),
)


def _run(name: str, model: str, data: Any, loading: Loading, print_options: PrintOptions) -> None:
    loaded = loading.model(model)
    from headscope.reports.usecases import USE_CASES, use_case

    with progress_bars() as progress:
        evidence = use_case(name, loaded, data, progress=lambda done, of: progress(USE_CASES[name].title, done, of))
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


def _pairs(file: Path | None) -> Any:
    if file is None:
        return None
    from headscope.corpora import corpus

    pairs = [(example.text, example.pair) for example in corpus(file, kind="pairs")]
    return [(text, pair) for text, pair in pairs if text and pair]


def _texts(file: Path | None) -> Any:
    if file is None:
        return None
    from headscope.corpora import corpus

    texts = [example.text for example in corpus(file, kind="text") if example.text]
    if not texts:
        raise InputError(f"{file} has no texts.")
    return texts
