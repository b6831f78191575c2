"""`headscope heads`: what every head of a model does over a corpus, as a page, tables and JSON."""

import contextlib
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars
from rich.table import Table
from rich.text import Text

from headscope.cli.console import Debug, Json, print_json, print_note, print_text, shown
from headscope.cli.loading import AllowPickle, Device, Dtype, TrustRemoteCode, load_model
from headscope.cli.options import ModelName
from headscope.errors import Cancelled, InputError

if TYPE_CHECKING:
    from headscope.corpora import Corpus
    from headscope.reports import HeadsReport

EXAMPLE = "Example: headscope heads builtin:bert en_ewt-ud-dev.conllu -o report --limit 300"


class EngineName(StrEnum):
    """Where a run is done."""

    local = "local"
    ray = "ray"


class OnError(StrEnum):
    """What becomes of a line that cannot be read, or an example that the model cannot take."""

    fail = "fail"
    skip = "skip"


CorpusName = Annotated[Path, typer.Argument(help="A file of text, pairs, CoNLL-2000 or CoNLL-U; a folder of images.")]
Limit = Annotated[int | None, typer.Option(help="At most so many examples.", min=1)]
Every = Annotated[int, typer.Option(help="Only every so many examples: for files that are sorted.", min=1)]
KindName = Annotated[str | None, typer.Option(help="text, pairs, translation, table, conll2000, conllu or images.")]
Columns = Annotated[
    str | None,
    typer.Option(help="Which column is what, from 0 or by name: text=0,target=1 (text, pair, target, label)."),
]
OnErrorOption = Annotated[OnError, typer.Option(help="Stop at what cannot be read, or pass over it.")]
EngineOption = Annotated[EngineName, typer.Option(help="Here, or on a Ray cluster.")]
Address = Annotated[str | None, typer.Option(help="The address of the Ray cluster; one is started here unless said.")]


def heads(
    model: ModelName,
    corpus: CorpusName,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder to write to; a stopped run goes on there.")
    ],
    limit: Limit = None,
    every: Every = 1,
    kind: KindName = None,
    columns: Columns = None,
    on_error: OnErrorOption = OnError.fail,
    no_relevance: Annotated[bool, typer.Option("--no-relevance", help="Leave out layer-wise relevance.")] = False,
    no_importance: Annotated[
        bool, typer.Option("--no-importance", help="Leave out gate gradients and ablation, which take longest.")
    ] = False,
    sample: Annotated[int, typer.Option(help="Relevance and importance: on so many examples.", min=2)] = 16,
    engine: EngineOption = EngineName.local,
    address: Address = None,
    device: Device = None,
    dtype: Dtype = None,
    allow_pickle: AllowPickle = False,
    trust_remote_code: TrustRemoteCode = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """What every head does over a corpus, how sure it is and how much it matters: a page, Parquet and JSON."""
    works_at, examples = engine_of(engine, address), corpus_of(corpus, kind, columns, on_error)
    check_folder(output)
    loading: dict[str, Any] = {"device": device, "dtype": dtype, "allow_pickle": allow_pickle}
    loaded = _loaded(model, engine, loading | {"trust_remote_code": trust_remote_code})
    from headscope.reports import heads as report_of

    with told_apart(output), drawn() as progress:
        report = report_of(
            loaded,
            examples,
            output,
            limit=limit,
            every=every,
            relevance=not no_relevance,
            importance=not no_importance,
            sample=sample,
            engine=works_at,
            progress=progress,
        )
    if json:
        roles = {str(head): one.to_json() for head, one in report.roles.items()}
        outcome = [{"question": one.question, "answer": one.answer} for one in report.outcome]
        print_json(
            {**report.about, "folder": str(output), "page": str(report.page), "roles": roles, "outcome": outcome}
        )
    else:
        _show(report)


def engine_of(name: EngineName, address: str | None) -> Any:
    """The engine that the options name."""
    if name == EngineName.local:
        if address is not None:
            raise InputError("--address names a Ray cluster: add --engine ray.")
        return "local"
    from headscope.runs import Ray

    return "ray" if address is None else Ray(address)


def corpus_of(path: Path, kind: str | None, columns: str | None, on_error: OnError) -> "Corpus":
    """The corpus that the options describe."""
    from headscope.corpora import corpus

    return corpus(path, kind=kind, columns=_columns(columns), on_error=on_error.value)


def check_folder(path: Path) -> None:
    """Refuse an output that cannot be a folder, before anything takes its time."""
    if path.exists() and not path.is_dir():
        raise InputError(f"-o {path} is a file: give a folder.")


@contextlib.contextmanager
def told_apart(output: Path) -> Iterator[None]:
    """When stopped, say that what was finished is kept."""
    try:
        yield
    except (KeyboardInterrupt, Cancelled) as stop:
        print_note(f"What was finished is kept in {output}: the same command goes on from there.")
        raise Cancelled(str(stop)) from stop


@contextlib.contextmanager
def drawn() -> Iterator[Callable[[str, int, int], None]]:
    """A bar for each thing that takes its time, with rate and time left; nothing where no one looks."""
    console = Console(stderr=True, highlight=False)
    columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TaskProgressColumn(show_speed=True)]
    with Bars(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal) as bars:
        tasks: dict[str, Any] = {}

        def report(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done, total=total)

        yield report


def _loaded(model: str, engine: EngineName, options: dict[str, Any]) -> Any:
    """A model, or only its name for workers that load it themselves."""
    if engine == EngineName.ray:
        given = [name for name, value in options.items() if value]
        if given:
            raise InputError(
                f"with --engine ray the workers load the model: --{given[0].replace('_', '-')} cannot be given."
            )
        return model
    return load_model(model, **options)


def _columns(given: str | None) -> dict[str, int | str] | None:
    if given is None:
        return None
    found: dict[str, int | str] = {}
    for part in given.split(","):
        name, is_given, column = part.partition("=")
        if not is_given or not column:
            raise InputError(f"--columns {given} cannot be read: write text=0,target=1.")
        found[name.strip()] = int(column) if column.strip().isdecimal() else column.strip()
    return found


def _show(report: "HeadsReport") -> None:
    table = Table(
        title=Text(f"Heads of {shown(report.about['model'])} with a role"), title_justify="left", title_style="bold"
    )
    for name in ("head", "role", "score", "baseline", "95 % interval", "also"):
        table.add_column(name, justify="right" if name in ("score", "baseline") else "left")
    for head, verdict in report.roles.items():
        if verdict.findings:
            best, *others = verdict.findings
            interval = "" if best.low is None or best.high is None else f"{best.low:.2f} to {best.high:.2f}"
            also = ", ".join(f"{one.role} {one.score:.2f}" for one in others[:2]) + (" …" if len(others) > 2 else "")
            base = "" if best.baseline is None else f"{best.baseline:.2f}"
            table.add_row(str(head), Text(best.role), f"{best.score:.2f}", base, interval, Text(also))
    n_without = sum(not one.findings for one in report.roles.values())
    if n_without < len(report.roles):
        print_text(table)
    print_text(f"{n_without} of {len(report.roles)} heads have no clear role.")
    for one in report.outcome:
        print_text(Text.assemble((f"{one.question} ", "bold"), shown(one.answer)))
    for name in ("relevance", "gate_importance", "ablation"):
        if name in report.about["absent"]:
            print_text(f"No {name.replace('_', ' ')}: {shown(report.about['absent'][name])}")
    print_text(Text.assemble(("page: ", "bold"), str(report.page)))
