"""What the commands of `headscope view` share: from options to a trace, from a view to a file or a table."""

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from headscope.cli.console import print_json, print_text, shown, working
from headscope.cli.loading import load_model
from headscope.cli.trace import read_text
from headscope.errors import InputError

if TYPE_CHECKING:
    from headscope.models import Model
    from headscope.traces import Trace
    from headscope.views import View

ROWS_SHOWN = 20
# Of a model view, what tells heads apart at a glance; a terminal has no room for all measures.
MEASURES_SHOWN = ("confidence", "previous_token", "first_token", "distance")


class Loading:
    """How to load a model; one that was loaded is kept."""

    def __init__(self, device: str | None, dtype: str | None, allow_pickle: bool, trust_remote_code: bool):
        self.options: dict[str, Any] = {
            "device": device,
            "dtype": dtype,
            "allow_pickle": allow_pickle,
            "trust_remote_code": trust_remote_code,
        }
        self.loaded: dict[str, Model] = {}

    def model(self, name: str) -> "Model":
        """The model of this name."""
        if name not in self.loaded:
            self.loaded[name] = load_model(name, **self.options)
        return self.loaded[name]


def is_saved(model: str) -> bool:
    """Whether this is a folder that `headscope trace -o` wrote, rather than a model."""
    return (Path(model) / "trace.json").is_file()


def trace_of(
    model: str,
    text: str | None,
    output: Path | None,
    loading: Loading,
    pair: str | None,
    target: str | None,
    image: Path | None,
    audio: Path | None,
    truncate: bool,
) -> "Trace":
    """The trace that is looked at: of a run, or one that was saved."""
    if output is not None:
        from headscope.views.files import check_path

        check_path(output)
    given: dict[str, Any] = {"pair": pair, "target": target, "image": image, "audio": audio}
    given = {name: value for name, value in given.items() if value is not None}
    if is_saved(model):
        if text is not None or given:
            raise InputError(f"{model} holds a trace, whose input is known: leave out the text and its options.")
        from headscope.traces import load_trace

        with working(f"Reading {model}"):
            return load_trace(model)
    source = read_text(text)
    loaded = loading.model(model)
    with working(f"Running {model}"):
        return loaded.run(source, truncate=truncate, **given)


def minus(
    trace: "Trace", model: str, against: str | None, against_model: str | None, loading: Loading, pair: Any, *more: Any
) -> "Trace":
    """The difference to another run, where one is named: of another text, of another model, or one that was saved."""
    if against is None and against_model is None:
        return trace
    from headscope.traces import compare

    other = against_model or model
    text = against if against is not None or trace.inputs is None else trace.inputs.text
    if is_saved(other):
        other_run = trace_of(other, against, None, loading, None, None, None, None, False)
    else:
        other_run = trace_of(other, text, None, loading, pair, *more)
    return compare(trace, other_run).difference()


def finish(view: "View", output: Path | None, json: bool, width: str | None = None) -> None:
    """Save the view, or print its numbers where no file is named."""
    from headscope.views.files import save
    from headscope.views.numbers import about

    if output is None:
        if width is not None:
            raise InputError("--width is that of a picture: say where to with -o, as in -o head.pdf.")
        with working("Reading the numbers"):
            table = view.table()
        if json:
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
        notes = save(view, output, _width(width))
    size = output.stat().st_size
    if json:
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
        # Neurons by the dozen have no room in a terminal.
        names = [name for name in names if not re.search(r" \d+$", name)][3 if view.selection.every is None else 0 :]
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
