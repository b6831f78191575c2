"""`headscope bias`, `antecedents`, `between`, `decay`: the published use cases, with evidence, on any model."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from headscope.cli.console import print_json, print_text, shown
from headscope.cli.load_model import Loading
from headscope.cli.progress import drawn
from headscope.cli.shared_options import ModelName, Told
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


def bias(model: ModelName, file: Schemas = None, *, loading: Loading, told: Told) -> None:
    """Do heads look at occupations differently from she and from he, and what does silencing them change?"""
    _run("bias", model, file, loading, told)


def antecedents(model: ModelName, file: Schemas = None, *, loading: Loading, told: Told) -> None:
    """Which heads lead from a pronoun to the person it means, against the nearest noun?"""
    _run("antecedents", model, file, loading, told)


def between(model: ModelName, file: Pairs = None, *, loading: Loading, told: Told) -> None:
    """Which heads link two sentences that belong together, against shuffled pairs?"""
    _run("between", model, _pairs(file), loading, told)


def decay(model: ModelName, file: Texts = None, *, loading: Loading, told: Told) -> None:
    """Which head looks less the further away a token is, and which of its neurons make it so?"""
    _run("decay", model, _texts(file), loading, told)


COMMANDS = (
    Command(bias, "Example: headscope bias builtin:gpt"),
    Command(antecedents, "Example: headscope antecedents builtin:bert"),
    Command(between, "Example: headscope between builtin:bert"),
    Command(decay, "Example: headscope decay builtin:gpt"),
)


def _run(name: str, model: str, data: Any, loading: Loading, told: Told) -> None:
    loaded = loading.model(model)
    from headscope.reports.usecases import USE_CASES, use_case

    with drawn() as progress:
        found = use_case(name, loaded, data, progress=lambda done, of: progress(USE_CASES[name].title, done, of))
    if told.json:
        print_json(found.to_json())
    else:
        _show(found)


def _show(found: "Evidence") -> None:
    from headscope.reports.evidence import written

    print_text(Text(f"{found.title}: {shown(found.model)}", "bold"))
    for line in found.said:
        print_text(f"- {shown(line)}")
    for one in found.tables:
        print_text("", Text(one.title, "bold"), Text(one.about))
        table = Table()
        for column in one.columns:
            table.add_column(Text(column.name), justify="right" if column.kind == "number" else "left")
        for row in one.rows:
            table.add_row(*(Text(shown(written(cell))) for cell in row))
        print_text(table)


def _pairs(file: Path | None) -> Any:
    if file is None:
        return None
    from headscope.corpora import corpus

    found = [(one.text, one.pair) for one in corpus(file, kind="pairs")]
    return [(text, pair) for text, pair in found if text and pair]


def _texts(file: Path | None) -> Any:
    if file is None:
        return None
    from headscope.corpora import corpus

    texts = [one.text for one in corpus(file, kind="text") if one.text]
    if not texts:
        raise InputError(f"{file} has no texts.")
    return texts
