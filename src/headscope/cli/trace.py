"""`headscope trace`: runs a model on one input, summarises its heads and saves the trace."""

import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from headscope.choices import Record
from headscope.cli.console import print_json, print_text, printable, read_text, working
from headscope.cli.edit_options import read_edits
from headscope.cli.load_model import Loading
from headscope.cli.shared_options import InputOptions, InputText, ModelName, PrintOptions
from headscope.cli.trace_summary import (
    HeadFigures,
    answer_lines,
    answers,
    expert_rows,
    expert_table,
    head_figures,
    head_table,
)
from headscope.errors import InputError, LoadError

if TYPE_CHECKING:
    from headscope.models import Model
    from headscope.traces import Trace

EXAMPLE = "Example: headscope trace builtin:gpt 'The doctor asked the nurse. She' -o run --edit 'silence(\"L3H2\")'"
TOKENS_SHOWN = 60


def trace(
    model: ModelName,
    text: InputText = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Save the trace in this folder.")] = None,
    record: Annotated[
        Record | None, typer.Option(help="What to record. Default: heads, or summary if heads do not fit in memory.")
    ] = None,
    edit: Annotated[list[str] | None, typer.Option(help="Edit the run, as 'silence(\"L3H2\")'. Repeatable.")] = None,
    edits: Annotated[Path | None, typer.Option(help="JSON file of edits from hs.save_interventions.")] = None,
    generate: Annotated[int | None, typer.Option(help="Generate up to N tokens before tracing.")] = None,
    top: Annotated[int, typer.Option(min=1, help="Number of heads and predictions to show.")] = 8,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the trace in the folder.")] = False,
    *,
    input_options: InputOptions,
    loading: Loading,
    print_options: PrintOptions,
) -> None:
    """Run a model on one input and summarise its heads. -o saves the trace, --edit changes the run."""
    if output is not None:
        check_output(output, force)
    if generate is not None and (input_options.pair or input_options.target):
        raise InputError("--generate takes a text (or image, or sound) alone: leave out --pair and --target.")
    source = read_text(text)
    with working("Reading edits" if edit or edits else "Starting"):
        chosen = read_edits(edit or [], edits)
    loaded = loading.model(model)
    options = {"record": record, "truncate": input_options.truncate, **input_options.inputs()}
    started = time.perf_counter()
    with working(f"Running {model}"):
        trace, written = _run(loaded, source, chosen, generate, options)
    seconds = time.perf_counter() - started
    figures = head_figures(trace)
    if output is not None:
        with working(f"Saving {output}"):
            trace.save(output)
    if print_options.json:
        print_json(document(loaded, trace, figures, top, written, output, seconds))
    else:
        _show(loaded, trace, figures, top, written, output, seconds)


def _run(
    model: "Model", source: str | None, edits: Any, generate: int | None, options: dict[str, Any]
) -> tuple["Trace", str | None]:
    """The trace, and the text that was generated before it."""
    if generate is None:
        return model.run(source, edits, **options), None
    generated = model.generate(source, max_new_tokens=generate, interventions=edits, **options)
    return generated.trace, generated.text


def check_output(folder: Path, force: bool) -> None:
    """Refuse a folder that cannot take the trace, before anything is loaded or run."""
    from headscope.traces.store import check_trace_folder

    check_trace_folder(folder)
    if (folder / "trace.json").exists() and not force:
        raise LoadError(f"{folder} holds a trace already: choose another folder, or replace it with --force.")
    parent = next(parent for parent in (folder, *folder.absolute().parents) if parent.is_dir())
    if not os.access(parent, os.W_OK):
        raise LoadError(f"cannot save a trace at {folder}: {parent} is not writable.")


def document(
    model: "Model",
    trace: "Trace",
    figures: list[HeadFigures],
    top: int,
    written: str | None,
    output: Path | None,
    seconds: float,
) -> dict[str, Any]:
    """The trace as a JSON document: all heads, the `top` predictions."""
    return {
        "model": trace.model,
        "class": type(model.module).__name__,
        "coverage": model.coverage,
        "record": trace.record,
        "bytes": trace.nbytes(),
        "seconds": round(seconds, 4),
        "edits": list(trace.edits),
        "tokens": {stack: {"kind": tokens.kind, "texts": tokens.texts} for stack, tokens in trace.tokens.items()},
        "written": written,
        "predictions": answers(trace, top),
        "heads": [asdict(head) for head in figures],
        "experts": expert_rows(trace),
        "warnings": list(dict.fromkeys([*model.warnings, *trace.warnings])),
        "saved": None if output is None else str(output),
    }


def _show(
    model: "Model",
    trace: "Trace",
    figures: list[HeadFigures],
    top: int,
    written: str | None,
    output: Path | None,
    seconds: float,
) -> None:
    print_text(Text.assemble(("model ", "bold"), f"{trace.model} ({type(model.module).__name__}): {model.coverage}"))
    for stack, tokens in trace.tokens.items():
        print_text(token_line(stack, tokens))
    for edit in trace.edits:
        print_text(Text.assemble(("edit ", "bold"), printable(edit)))
    if written is not None:
        print_text(Text.assemble(("written ", "bold"), printable(written)))
    print_text(*answer_lines(trace, top))
    count = min(top, len(figures))
    print_text(head_table(figures[:top], f"The {count} sharpest of {len(figures)} heads (means over queries)"))
    if trace.expert_choices:
        print_text(expert_table(trace, top))
    size = trace.nbytes() / 1e6
    print_text(f"record {trace.record}, {size:.1f} MB, run in {seconds:.2f} s")
    if output is not None:
        print_text(
            Text.assemble(("saved ", "bold"), f"{printable(str(output))}; in Python: hs.load_trace({str(output)!r})")
        )


def token_line(stack: str, tokens: Any) -> Text:
    """How many tokens, and the first of them."""
    name = "tokens " if stack == "main" else f"{stack} tokens "
    words = [token for token in tokens if token.patch is None]
    texts = [printable(token.text) for token in words[:TOKENS_SHOWN]]
    if tokens.kind != "text":
        grid = f" in {tokens.grid[0]}×{tokens.grid[1]}" if tokens.grid else ""
        return Text.assemble((name, "bold"), f"{len(tokens)} ({tokens.kind}{grid})")
    more = f" … {len(words) - TOKENS_SHOWN} more" if len(words) > TOKENS_SHOWN else ""
    of_picture = f" ({len(tokens) - len(words)} of a picture)" if len(words) < len(tokens) else ""
    return Text.assemble((name, "bold"), f"{len(tokens)}{of_picture}: {' '.join(texts)}{more}")
