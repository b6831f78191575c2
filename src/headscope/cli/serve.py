"""`headscope serve`: the workbench in a browser, on this machine."""

import importlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headscope.cli.console import print_json, print_note, print_text, working
from headscope.cli.corpus_options import CorpusFormat, note_first_example
from headscope.cli.shared_options import PrintOptions
from headscope.errors import InputError, LoadError, MissingExtraError

if TYPE_CHECKING:
    from headscope.corpora import Corpus

EXAMPLE = "Example: headscope serve builtin:bert --port 8765"
UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


@dataclass(frozen=True)
class Listening:
    """Where the server listens."""

    port: Annotated[
        int,
        typer.Option(min=0, max=65535, help="Port. If it is taken, the next free one is used; 0 picks any free port."),
    ] = 8765
    host: Annotated[
        str, typer.Option(help="Address to listen on. Others than 127.0.0.1 expose the server to your network.")
    ] = "127.0.0.1"
    trust_host: Annotated[list[str] | None, typer.Option(help="Host name to accept beside localhost. Repeatable.")] = (
        None
    )
    certfile: Annotated[
        Path | None, typer.Option(help="Certificate in PEM format: browsers then speak https with the server.")
    ] = None
    keyfile: Annotated[
        Path | None, typer.Option(help="Its private key, without a password. Default: in the same file.")
    ] = None
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address without opening a browser.")] = (
        False
    )


@dataclass(frozen=True)
class Permissions:
    """What the page may load and save."""

    allow_hub: Annotated[
        bool, typer.Option("--allow-hub", help="Allow the page to load models from the Hugging Face Hub.")
    ] = False
    allow: Annotated[
        list[Path] | None, typer.Option(help="Allow the page to load models from this folder. Repeatable.")
    ] = None
    save_to: Annotated[Path | None, typer.Option(help="Allow the page to save edited models in this folder.")] = None


@dataclass(frozen=True)
class Resources:
    """What the server offers beside models, and how much it takes."""

    report: Annotated[
        list[Path] | None,
        typer.Option(help="Folder written by `headscope heads`, whose scores and roles to show. Repeatable."),
    ] = None
    sweep: Annotated[
        list[Path] | None,
        typer.Option(help="Folder written by `headscope prune`, whose pruned models to offer on a slider. Repeatable."),
    ] = None
    atlas: Annotated[
        list[Path] | None,
        typer.Option(help="Folder written by `headscope atlas`, to open at the scale Atlas. Repeatable."),
    ] = None
    corpus: Annotated[
        Path | None,
        typer.Option(help="File or folder of texts: inputs to start from, and examples. Default: built-in sentences."),
    ] = None
    max_memory: Annotated[
        str, typer.Option(help="Memory limit for cached traces and running requests, at least 1MB.")
    ] = "2GB"
    queue: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of queued runs.")] = 8


def serve(
    models: Annotated[
        list[str] | None,
        typer.Argument(help="Models to offer beside the built-in ones: folders or hub ids. The first one opens."),
    ] = None,
    *,
    listening: Listening,
    permissions: Permissions,
    resources: Resources,
    corpus_format: CorpusFormat,
    print_options: PrintOptions,
) -> None:
    """Start the workbench and open it in your browser: all heads of a model on one page."""
    size = bytes_of(resources.max_memory)
    if listening.keyfile and not listening.certfile:
        raise InputError("--keyfile goes with a certificate: add --certfile FILE.")
    if resources.corpus is not None and not resources.corpus.exists():
        raise LoadError(f"--corpus {resources.corpus}: there is no such file or folder.")
    corpus = _corpus(resources.corpus, corpus_format)
    with working("Starting the workbench"):
        server = _server_module()
    server_options = importlib.import_module("headscope.server.options")
    options = server_options.Options(
        models=tuple(models or ()),
        host=listening.host,
        port=listening.port,
        allow_hub=permissions.allow_hub,
        allow=tuple(permissions.allow or ()),
        save_to=permissions.save_to,
        corpus=corpus,
        trusted_hosts=tuple(listening.trust_host or ()),
        certificate=listening.certfile and server_options.Certificate(listening.certfile, listening.keyfile),
        reports=tuple(resources.report or ()),
        sweeps=tuple(resources.sweep or ()),
        atlases=tuple(resources.atlas or ()),
        limits=server_options.Limits(waiting=resources.queue, memory=size),
    )

    def announce(address: str) -> None:
        if print_options.json:
            print_json({"address": address})
        else:
            print_text(f"Headscope is at {address}", "Ctrl-C stops it.")

    opens_browser, debug = not listening.no_browser, print_options.debug
    server.serve(options, say=print_note, announce=announce, opens_browser=opens_browser, debug=debug)


def serve_defaults() -> None:
    """The same without any option."""
    serve(
        listening=Listening(),
        permissions=Permissions(),
        resources=Resources(),
        corpus_format=CorpusFormat(),
        print_options=PrintOptions(),
    )


def _corpus(path: Path | None, corpus_format: CorpusFormat) -> "Path | Corpus | None":
    """The corpus in the format that the user says; where nothing is said, the server detects it."""
    if corpus_format == CorpusFormat():
        return path
    if path is None:
        raise InputError("--kind and --columns say how to read a corpus: add --corpus FILE.")
    examples = corpus_format.corpus(path)
    note_first_example(examples)
    return examples


def _server_module() -> Any:
    """The server, by name: the command line and the server do not know each other, and most commands need none."""
    try:
        return importlib.import_module("headscope.server.run_server")
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] not in ("fastapi", "uvicorn", "starlette"):
            raise
        raise MissingExtraError("the workbench needs FastAPI and uvicorn: pip install 'headscope[serve]'.") from error


def bytes_of(text: str) -> int:
    """A size in bytes: 500MB, 4GB, 1.5G."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)B?", text.strip().upper())
    size = int(float(match.group(1)) * UNITS[match.group(2)]) if match else 0
    if size < 10**6:
        raise InputError(f"{text!r} is not a memory size: give at least a megabyte, as in 500MB or 4GB.")
    return size
