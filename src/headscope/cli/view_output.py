"""What the commands of `headscope view` share: from options to a trace, from a view to a file or a table."""

import math
import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from headscope.cli.console import print_json, print_text, read_text, shown, working
from headscope.cli.load_model import Loading
from headscope.cli.shared_options import Given, Told
from headscope.errors import InputError

if TYPE_CHECKING:
    from headscope.traces import Trace
    from headscope.views import View

ROWS_SHOWN = 20
NEURONS_SHOWN = 6
# Of a model view, what tells heads apart at a glance; a terminal has no room for all measures.
MEASURES_SHOWN = ("confidence", "previous_token", "first_token", "distance")


def is_saved(model: str) -> bool:
    """Whether this is a folder that `headscope trace -o` wrote, rather than a model."""
    return (Path(model) / "trace.json").is_file()


def trace_of(model: str, text: str | None, output: Path | None, loading: Loading, given: Given) -> "Trace":
    """The trace that is looked at: of a run, or one that was saved."""
    if output is not None:
        from headscope.views.save import check_path

        check_path(output)
    if is_saved(model):
        if text is not None or given.inputs():
            raise InputError(f"{model} holds a trace, whose input is known: leave out the text and its options.")
        from headscope.traces import load_trace

        with working(f"Reading {model}"):
            return load_trace(model)
    source = read_text(text)
    loaded = loading.model(model)
    with working(f"Running {model}"):
        return loaded.run(source, truncate=given.truncate, **given.inputs())


@dataclass(frozen=True)
class Against:
    """A second run, which is subtracted from the first: of another text, of another model, or one that was saved."""

    against: Annotated[
        str | None,
        typer.Option(help="Show what this text does less: the first text minus this one, on the tokens of both."),
    ] = None
    against_model: Annotated[
        str | None,
        typer.Option(help="Compare with another model (a checkpoint, say), or a folder that `trace -o` wrote."),
    ] = None

    def minus(self, trace: "Trace", model: str, loading: Loading, given: Given) -> "Trace":
        """The difference to the other run, where one is named."""
        if self.against is None and self.against_model is None:
            return trace
        from headscope.traces import compare

        other, text = self.against_model or model, self.against
        if is_saved(other):
            second = trace_of(other, text, None, loading, Given())
        else:
            text = text if text is not None or trace.inputs is None else trace.inputs.text
            second = trace_of(other, text, None, loading, given)
        return compare(trace, second).difference()


class Theme(StrEnum):
    """Light or dark, or as the reader's system has it."""

    system = "system"
    light = "light"
    dark = "dark"


@dataclass(frozen=True)
class Look:
    """How a page or a picture looks."""

    theme: Annotated[Theme, typer.Option(help="Light or dark page; as the reader's system has it, unless said.")] = (
        Theme.system
    )
    width: Annotated[
        str | None, typer.Option(help="Of a picture for a paper: column (3.33 in), page (6.9 in), or inches.")
    ] = None


def finish(view: "View", output: Path | None, look: Look, told: Told) -> None:
    """Save the view, or print its numbers where no file is named."""
    from headscope.views.save import save
    from headscope.views.table import about

    if output is None:
        if look.width is not None:
            raise InputError("--width is that of a picture: say where to with -o, as in -o head.pdf.")
        with working("Reading the numbers"):
            table = view.table()
        if told.json:
            # JSON knows no infinity, which is what a masked score is.
            rows = [
                [None if isinstance(one, float) and not math.isfinite(one) else one for one in row]
                for row in table.rows()
            ]
            print_json(about(view) | {"columns": list(table.columns), "rows": rows})
        else:
            _show(view, table)
        return
    with working(f"Writing {output}"):
        notes = save(view, output, _width(look.width))
    size = output.stat().st_size
    if told.json:
        print_json(about(view) | {"saved": str(output), "bytes": size, "notes": notes})
        return
    print_text(Text.assemble(("saved ", "bold"), f"{shown(str(output))} ({size / 1e6:.2f} MB): {shown(view.title)}"))
    for note in notes:
        print_text(Text.assemble(("to keep it small: ", "bold"), note))


def _width(given: str | None) -> Any:
    """A width as `figure` takes it: a name, or a number."""
    try:
        return None if given is None else float(given)
    except ValueError:
        return given


def _show(view: "View", table: Any) -> None:
    names = list(table.columns)
    if view.kind == "model":
        names = _measures_shown(view, names)
    elif view.kind == "neuron":
        # Neurons by the dozen have no room in a terminal: of vectors the first, in the order asked for.
        neurons = [name for name in names if re.search(r" \d+$", name)]
        names = [name for name in names if name not in neurons]
        names = names[3:] if view.selection.every is None else names[1:] + neurons[:NEURONS_SHOWN]
    drawn = Table(title=Text(shown(view.title)), title_justify="left", title_style="bold")
    for name in names:
        drawn.add_column(name)
    for row in zip(*(table.columns[name][:ROWS_SHOWN].tolist() for name in names), strict=True):
        drawn.add_row(*(Text(_cell(one)) for one in row))
    print_text(drawn)
    if len(table) > ROWS_SHOWN:
        which = "first" if view.kind == "activations" else "strongest"  # which are in the order of layers
        print_text(f"(the {which} {ROWS_SHOWN} of {len(table):,}; -o x.csv saves all)")
    if left := len(table.columns) - len(names):
        choose = ", --sort and --colour choose" if view.kind == "model" else ""
        print_text(f"({left} more columns: -o x.csv saves them, --json prints them{choose})")


def _measures_shown(view: "View", columns: list[str]) -> list[str]:
    """The head, and the measures asked for; where none are, the one that orders the heads and others like it."""
    measures = columns[3:]  # after head, layer, index
    chosen = [one for one in (view.selection.sort, view.selection.colour) if one]
    if not view.selection.sort:
        chosen.insert(0, measures[0])  # which orders them
    if not view.selection.sort and not view.selection.colour:
        chosen += [one for one in (*MEASURES_SHOWN, *measures) if one in measures and one != measures[0]]
    return ["head", *list(dict.fromkeys(chosen))[: len(MEASURES_SHOWN)]]


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "–" if math.isnan(value) else f"{value:.3f}"
    return shown(str(value))
