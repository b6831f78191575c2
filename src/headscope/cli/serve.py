"""`headscope serve`: the workbench in a browser, on this machine."""

import importlib
import re
from pathlib import Path
from typing import Annotated

import typer

from headscope.cli.console import print_json, print_note, print_text, working
from headscope.cli.shared_options import Debug, Json
from headscope.errors import InputError, LoadError, MissingExtraError

EXAMPLE = "Example: headscope serve builtin:bert --port 8765"
UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def serve(
    models: Annotated[
        list[str] | None, typer.Argument(help="Models to offer beside the built-in ones: folders or hub ids.")
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; the next free one if taken, 0 for any.")] = 8765,
    host: Annotated[str, typer.Option(help="Address to listen at. Others than this machine's own are a risk.")] = (
        "127.0.0.1"
    ),
    allow_hub: Annotated[bool, typer.Option("--allow-hub", help="Let the page load models from the hub.")] = False,
    allow: Annotated[list[Path] | None, typer.Option(help="Let the page load models under this folder.")] = None,
    save_to: Annotated[Path | None, typer.Option(help="Let the page write edited models under this folder.")] = None,
    report: Annotated[
        list[Path] | None, typer.Option(help="A folder that `headscope heads` wrote: its scores and roles are shown.")
    ] = None,
    trust_host: Annotated[list[str] | None, typer.Option(help="A host name to answer to, beside localhost.")] = None,
    corpus: Annotated[
        Path | None,
        typer.Option(help="Texts to start from, and to take examples of heads and neurons from: a file, or a folder."),
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address only.")] = False,
    max_memory: Annotated[str, typer.Option(help="Memory for traces that are kept, as in 500MB or 4GB.")] = "2GB",
    queue: Annotated[int, typer.Option(min=1, max=1000, help="Runs that may wait.")] = 8,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Open the workbench: all heads of a model on one page, in your browser."""
    size = bytes_of(max_memory)
    if corpus is not None and not corpus.exists():
        raise LoadError(f"--corpus {corpus}: there is no such file or folder.")
    with working("Starting the workbench"):
        # By name: the command line and the server do not know each other, and most commands need no server.
        try:
            start = importlib.import_module("headscope.server.run_server")
        except ImportError as error:
            if error.name is None or error.name.partition(".")[0] not in ("fastapi", "uvicorn", "starlette"):
                raise
            raise MissingExtraError(
                "the workbench needs FastAPI and uvicorn: pip install 'headscope[serve]'."
            ) from error
    own = importlib.import_module("headscope.server.options")
    options = own.Options(
        models=tuple(models or ()),
        host=host,
        port=port,
        allow_hub=allow_hub,
        allow=tuple(allow or ()),
        save_to=save_to,
        corpus=corpus,
        trusted_hosts=tuple(trust_host or ()),
        reports=tuple(report or ()),
        limits=own.Limits(waiting=queue, memory=size),
    )

    def announce(address: str) -> None:
        if json:
            print_json({"address": address})
        else:
            print_text(f"Headscope is at {address}", "Ctrl-C stops it.")

    start.serve(options, say=print_note, announce=announce, opens_browser=not no_browser, debug=debug)


def bytes_of(text: str) -> int:
    """A size in bytes: 500MB, 4GB, 1.5G."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)B?", text.strip().upper())
    size = int(float(match.group(1)) * UNITS[match.group(2)]) if match else 0
    if size < 10**6:
        raise InputError(f"{text!r} is not a memory size: give at least a megabyte, as in 500MB or 4GB.")
    return size
