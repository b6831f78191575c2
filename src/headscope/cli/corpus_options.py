"""Options of commands that run over a corpus: which examples, and where to run."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headscope.choices import Engine, OnError
from headscope.cli.load_model import Loading
from headscope.errors import InputError

if TYPE_CHECKING:
    from headscope.corpora import Corpus


CorpusName = Annotated[
    Path, typer.Argument(help="Corpus: a file of texts, pairs, CoNLL-2000 or CoNLL-U, or a folder of images.")
]
KindName = Annotated[
    str | None,
    typer.Option(
        help="Corpus format: text, pairs, translation, table, conll2000, conllu or images. Default: detected."
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        help="Columns by index (from 0) or name, as text=0,target=1. Fields: text, pair, target, label. For --kind "
        "conll2000: the names of the tag columns, as pos,chunk,ner. Default: detected."
    ),
]
ReportFolder = Annotated[
    Path, typer.Option("--output", "-o", help="Output folder. Rerun with the same folder to resume.")
]


@dataclass(frozen=True)
class CorpusOptions:
    """Which examples of a corpus to use, and where to run."""

    limit: Annotated[int | None, typer.Option(help="Maximum number of examples. Default: all.", min=1)] = None
    every: Annotated[int, typer.Option(help="Use every Nth example (useful when the file is sorted).", min=1)] = 1
    on_error: Annotated[
        OnError, typer.Option(help="Stop at unreadable lines and inputs that the model cannot take, or skip them.")
    ] = "fail"
    engine: Annotated[Engine, typer.Option(help="Run on this machine or on a Ray cluster.")] = "local"
    address: Annotated[
        str | None, typer.Option(help="Address of the Ray cluster. Default: a new cluster on this machine.")
    ] = None

    def corpus(self, path: Path, kind: str | None = None, columns: str | None = None) -> "Corpus":
        """The corpus with these options. `limit` and `every` are applied by the run."""
        from headscope.corpora import corpus

        return corpus(path, kind=kind, columns=parse_columns(columns, kind), on_error=self.on_error)

    def engine_or_address(self) -> Any:
        """The engine to run on."""
        if self.engine == "local":
            if self.address is not None:
                raise InputError("--address names a Ray cluster: add --engine ray.")
            return "local"
        from headscope.runs import Ray

        return "ray" if self.address is None else Ray(self.address)

    def run_options(self) -> dict[str, Any]:
        """How much of the corpus to use and where to run, as keyword arguments of a run."""
        return {"limit": self.limit, "every": self.every, "engine": self.engine_or_address()}

    def model(self, name: str, loading: Loading) -> Any:
        """The model; with Ray only its name, since workers load it themselves."""
        if self.engine == "local":
            return loading.model(name)
        chosen = [option for option, value in loading.options().items() if value]
        if chosen:
            raise InputError(
                f"with --engine ray the workers load the model: --{chosen[0].replace('_', '-')} cannot be given."
            )
        return name


def parse_columns(text: str | None, kind: str | None = None) -> dict[str, int | str] | list[str] | None:
    """Parse `--columns`: `text=0,target=1`, or for words with tags `pos,chunk,ner`."""
    if text is None:
        return None
    if kind == "conll2000":
        return [column.strip() for column in text.split(",")]
    column_of: dict[str, int | str] = {}
    for part in text.split(","):
        name, is_given, column = part.partition("=")
        if not is_given or not column:
            raise InputError(f"--columns {text} cannot be read: write text=0,target=1.")
        column_of[name.strip()] = int(column) if column.strip().isdecimal() else column.strip()
    return column_of
