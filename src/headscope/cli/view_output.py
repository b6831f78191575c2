"""Shared by the commands of `headscope view`: from options to a trace, from a view to a file or a table."""

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from headscope.choices import Theme
from headscope.cli.console import print_json, print_text, printable, read_text, working
from headscope.cli.load_model import Loading
from headscope.cli.shared_options import InputOptions, PrintOptions
from headscope.errors import InputError

if TYPE_CHECKING:
    from headscope.traces import Trace
    from headscope.views import View

ROWS_SHOWN = 20
NEURONS_SHOWN = 6
# Of a model view, what tells heads apart at a glance; a terminal has no room for all measures.
MEASURES_SHOWN = ("confidence", "previous_token", "first_token", "distance")


def is_saved(model: str) -> bool:
    """Whether this is a trace folder rather than a model."""
    return (Path(model) / "trace.json").is_file()


def trace_of(
    model: str, text: str | None, output: Path | None, loading: Loading, input_options: InputOptions
) -> "Trace":
    """The trace to view: of a run, or a saved one."""
    if output is not None:
        from headscope.views.save import check_path

        check_path(output)
    if is_saved(model):
        if text is not None or input_options.inputs():
            raise InputError(f"{model} holds a trace, whose input is known: leave out the text and its options.")
        from headscope.traces import load_trace

        with working(f"Reading {model}"):
            return load_trace(model)
    source = read_text(text)
    loaded = loading.model(model)
    with working(f"Running {model}"):
        return loaded.run(source, truncate=input_options.truncate, **input_options.inputs())


@dataclass(frozen=True)
class ComparisonOptions:
    """A second run to subtract from the first: of another text, of another model, or a saved one."""

    against: Annotated[
        str | None,
        typer.Option(help="Subtract a run of this text, on the tokens that both texts have."),
    ] = None
    against_model: Annotated[
        str | None,
        typer.Option(help="Subtract a run of this model, or a trace folder."),
    ] = None

    def minus(self, trace: "Trace", model: str, loading: Loading, input_options: InputOptions) -> "Trace":
        """The first run minus the second, if one is named."""
        if self.against is None and self.against_model is None:
            return trace
        from headscope.traces import compare

        other, text = self.against_model or model, self.against
        if is_saved(other):
            second = trace_of(other, text, None, loading, InputOptions())
        else:
            text = text if text is not None or trace.inputs is None else trace.inputs.text
            second = trace_of(other, text, None, loading, input_options)
        return compare(trace, second).difference()


@dataclass(frozen=True)
class Appearance:
    """The theme of a page and the width of a picture."""

    theme: Annotated[Theme, typer.Option(help="Theme of the page; system follows the reader's settings.")] = "system"
    width: Annotated[
        str | None,
        typer.Option(
            help="Width of a picture: column (3.33 in), page (6.9 in) or a number of inches. Default: fits the content."
        ),
    ] = None


def finish(view: "View", output: Path | None, appearance: Appearance, print_options: PrintOptions) -> None:
    """Save the view, or print its numbers if no output file is named."""
    from headscope.views.save import save
    from headscope.views.table import about

    if output is None:
        if appearance.width is not None:
            raise InputError("--width is that of a picture: say where to with -o, as in -o head.pdf.")
        with working("Reading the numbers"):
            table = view.table()
        if print_options.json:
            # JSON knows no infinity, which is what a masked score is.
            rows = [
                [None if isinstance(cell, float) and not math.isfinite(cell) else cell for cell in row]
                for row in table.rows()
            ]
            print_json(about(view) | {"columns": list(table.columns), "rows": rows})
        else:
            _show(view, table)
        return
    with working(f"Writing {output}"):
        notes = save(view, output, _width(appearance.width))
    size = output.stat().st_size
    if print_options.json:
        print_json(about(view) | {"saved": str(output), "bytes": size, "notes": notes})
        return
    print_text(
        Text.assemble(("saved ", "bold"), f"{printable(str(output))} ({size / 1e6:.2f} MB): {printable(view.title)}")
    )
    for note in notes:
        print_text(Text.assemble(("to keep it small: ", "bold"), note))


def _width(width: str | None) -> Any:
    """A width as `figure` takes it: a name, or a number."""
    try:
        return None if width is None else float(width)
    except ValueError:
        return width


def _show(view: "View", numbers: Any) -> None:
    names = list(numbers.columns)
    if view.kind == "model":
        names = _measure_columns(view, names)
    elif view.kind == "neuron":
        # Neurons by the dozen have no room in a terminal: of vectors the first, in the order asked for.
        neurons = [name for name in names if re.search(r" \d+$", name)]
        names = [name for name in names if name not in neurons]
        names = names[3:] if view.selection.every is None else names[1:] + neurons[:NEURONS_SHOWN]
    table = Table(title=Text(printable(view.title)), title_justify="left", title_style="bold")
    for name in names:
        table.add_column(name)
    for row in zip(*(numbers.columns[name][:ROWS_SHOWN].tolist() for name in names), strict=True):
        table.add_row(*(Text(_cell(cell)) for cell in row))
    print_text(table)
    if len(numbers) > ROWS_SHOWN:
        which = "first" if view.kind == "activations" else "strongest"  # which are in the order of layers
        print_text(f"(the {which} {ROWS_SHOWN} of {len(numbers):,}; -o x.csv saves all)")
    if left := len(numbers.columns) - len(names):
        choose = ", --sort and --colour choose" if view.kind == "model" else ""
        print_text(f"({left} more columns: -o x.csv saves them, --json prints them{choose})")


def _measure_columns(view: "View", columns: list[str]) -> list[str]:
    """The head, and the measures asked for; where none are, the one that orders the heads and others like it."""
    measures = columns[3:]  # after head, layer, index
    chosen = [measure for measure in (view.selection.sort, view.selection.colour) if measure]
    if not view.selection.sort:
        chosen.insert(0, measures[0])  # which orders them
    if not view.selection.sort and not view.selection.colour:
        chosen += [name for name in (*MEASURES_SHOWN, *measures) if name in measures and name != measures[0]]
    return ["head", *list(dict.fromkeys(chosen))[: len(MEASURES_SHOWN)]]


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "–" if math.isnan(value) else f"{value:.3f}"
    return printable(str(value))
