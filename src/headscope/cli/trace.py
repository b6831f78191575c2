"""`headscope trace`: run a model on one input, show what its heads did, and keep the trace."""

import os
import time
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from headscope.cli.console import print_json, print_text, read_text, shown, working
from headscope.cli.edit_options import read_edits
from headscope.cli.load_model import Loading
from headscope.cli.shared_options import Given, ModelName, TextGiven, Told
from headscope.cli.trace_summary import HeadFigures, answer_lines, answers, head_figures, head_table
from headscope.errors import InputError, LoadError

if TYPE_CHECKING:
    from headscope.models import Model
    from headscope.traces import Trace

EXAMPLE = "Example: headscope trace builtin:gpt 'The doctor asked the nurse. She' -o run --edit 'silence(\"L3H2\")'"
TOKENS_SHOWN = 60


class Record(StrEnum):
    """How much of a run to keep."""

    rows = "rows"
    summary = "summary"
    heads = "heads"
    full = "full"


def trace(
    model: ModelName,
    text: TextGiven = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Keep the trace in this folder.")] = None,
    record: Annotated[Record | None, typer.Option(help="How much to keep; heads, unless that does not fit.")] = None,
    edit: Annotated[list[str] | None, typer.Option(help="An edit, as 'silence(\"L3H2\")'; may be repeated.")] = None,
    edits: Annotated[Path | None, typer.Option(help="A file of edits, as hs.save_interventions writes it.")] = None,
    generate: Annotated[int | None, typer.Option(help="Let the model write up to so many tokens first.")] = None,
    top: Annotated[int, typer.Option(min=1, help="How many heads and predictions to show.")] = 8,
    force: Annotated[bool, typer.Option("--force", help="Replace a trace that is in the folder.")] = False,
    *,
    given: Given,
    loading: Loading,
    told: Told,
) -> None:
    """Run a model on one input and show what its heads did; -o keeps the trace, --edit changes the run."""
    if output is not None:
        check_output(output, force)
    if generate is not None and (given.pair or given.target):
        raise InputError("--generate takes a text (or image, or sound) alone: leave out --pair and --target.")
    source = read_text(text)
    with working("Reading edits" if edit or edits else "Starting"):
        chosen = read_edits(edit or [], edits)
    loaded = loading.model(model)
    options = {"record": _named(record), "truncate": given.truncate, **given.inputs()}
    started = time.perf_counter()
    written = None
    with working(f"Running {model}"):
        if generate is not None:
            made = loaded.generate(source, max_new_tokens=generate, interventions=chosen, **options)
            found, written = made.trace, made.text
        else:
            found = loaded.run(source, chosen, **options)
    seconds = time.perf_counter() - started
    figures = head_figures(found, loaded)
    if output is not None:
        with working(f"Saving {output}"):
            found.save(output)
    if told.json:
        print_json(document(loaded, found, figures, top, written, output, seconds))
    else:
        _show(loaded, found, figures, top, written, output, seconds)


def check_output(folder: Path, force: bool) -> None:
    """Refuse a folder that cannot take the trace, before anything is loaded or run."""
    from headscope.traces.store import check_trace_folder

    check_trace_folder(folder)
    if (folder / "trace.json").exists() and not force:
        raise LoadError(f"{folder} holds a trace already: choose another folder, or replace it with --force.")
    parent = next(one for one in (folder, *folder.absolute().parents) if one.is_dir())
    if not os.access(parent, os.W_OK):
        raise LoadError(f"cannot save a trace at {folder}: {parent} is not writable.")


def document(
    model: "Model",
    found: "Trace",
    figures: list[HeadFigures],
    top: int,
    written: str | None,
    output: Path | None,
    seconds: float,
) -> dict[str, Any]:
    """The trace as a JSON document: all heads, the `top` predictions."""
    return {
        "model": found.model,
        "class": type(model.module).__name__,
        "coverage": model.coverage,
        "record": found.record,
        "bytes": found.nbytes(),
        "seconds": round(seconds, 4),
        "edits": list(found.edits),
        "tokens": {stack: {"kind": one.kind, "texts": one.texts} for stack, one in found.tokens.items()},
        "written": written,
        "predictions": answers(found, top),
        "heads": [asdict(one) for one in figures],
        "warnings": list(dict.fromkeys([*model.warnings, *found.warnings])),
        "saved": None if output is None else str(output),
    }


def _show(
    model: "Model",
    found: "Trace",
    figures: list[HeadFigures],
    top: int,
    written: str | None,
    output: Path | None,
    seconds: float,
) -> None:
    print_text(Text.assemble(("model ", "bold"), f"{found.model} ({type(model.module).__name__}): {model.coverage}"))
    for stack, tokens in found.tokens.items():
        print_text(token_line(stack, tokens))
    for one in found.edits:
        print_text(Text.assemble(("edit ", "bold"), shown(one)))
    if written is not None:
        print_text(Text.assemble(("written ", "bold"), shown(written)))
    print_text(*answer_lines(found, top))
    count = min(top, len(figures))
    print_text(head_table(figures[:top], f"The {count} sharpest of {len(figures)} heads (means over queries)"))
    size = found.nbytes() / 1e6
    print_text(f"record {found.record}, {size:.1f} MB, run in {seconds:.2f} s")
    if output is not None:
        print_text(
            Text.assemble(("saved ", "bold"), f"{shown(str(output))}; in Python: hs.load_trace({str(output)!r})")
        )


def token_line(stack: str, tokens: Any) -> Text:
    """How many tokens, and the first of them."""
    name = "tokens " if stack == "main" else f"{stack} tokens "
    texts = [shown(one) for one in tokens.texts[:TOKENS_SHOWN]]
    if tokens.kind != "text":
        grid = f" in {tokens.grid[0]}×{tokens.grid[1]}" if tokens.grid else ""
        return Text.assemble((name, "bold"), f"{len(tokens)} ({tokens.kind}{grid})")
    more = f" … {len(tokens) - TOKENS_SHOWN} more" if len(tokens) > TOKENS_SHOWN else ""
    return Text.assemble((name, "bold"), f"{len(tokens)}: {' '.join(texts)}{more}")


def _named(record: Record | None) -> Any:
    return None if record is None else record.value
