"""Options of commands that go through a corpus: which examples of it, and where the work is done."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headscope.cli.load_model import Loading
from headscope.errors import InputError

if TYPE_CHECKING:
    from headscope.corpora import Corpus


class EngineName(StrEnum):
    """Where a run is done."""

    local = "local"
    ray = "ray"


class OnError(StrEnum):
    """What becomes of a line that cannot be read, or an example that the model cannot take."""

    fail = "fail"
    skip = "skip"


CorpusName = Annotated[Path, typer.Argument(help="A file of text, pairs, CoNLL-2000 or CoNLL-U; a folder of images.")]
KindName = Annotated[str | None, typer.Option(help="text, pairs, translation, table, conll2000, conllu or images.")]
Columns = Annotated[
    str | None,
    typer.Option(
        help="Which column is what, from 0 or by name: text=0,target=1 (text, pair, target, label). Of --kind "
        "conll2000, the tags after the word: pos,chunk,ner."
    ),
]
ReportFolder = Annotated[
    Path, typer.Option("--output", "-o", help="The folder to write to; a stopped run goes on there.")
]


@dataclass(frozen=True)
class CorpusOptions:
    """Which examples of a corpus are gone through, and where."""

    limit: Annotated[int | None, typer.Option(help="At most so many examples.", min=1)] = None
    every: Annotated[int, typer.Option(help="Only every so many examples: for files that are sorted.", min=1)] = 1
    on_error: Annotated[OnError, typer.Option(help="Stop at what cannot be read, or pass over it.")] = OnError.fail
    engine: Annotated[EngineName, typer.Option(help="Here, or on a Ray cluster.")] = EngineName.local
    address: Annotated[
        str | None, typer.Option(help="The address of the Ray cluster; one is started here unless said.")
    ] = None

    def corpus(self, path: Path, kind: str | None = None, columns: str | None = None) -> "Corpus":
        """The corpus that the options describe; `limit` and `every` are for whoever goes through it."""
        from headscope.corpora import corpus

        return corpus(path, kind=kind, columns=columns_of(columns, kind), on_error=self.on_error.value)

    def works_at(self) -> Any:
        """The engine that the options name."""
        if self.engine == EngineName.local:
            if self.address is not None:
                raise InputError("--address names a Ray cluster: add --engine ray.")
            return "local"
        from headscope.runs import Ray

        return "ray" if self.address is None else Ray(self.address)

    def model(self, name: str, loading: Loading) -> Any:
        """The model, or only its name for workers that load it themselves."""
        if self.engine == EngineName.local:
            return loading.model(name)
        chosen = [option for option, value in loading.options().items() if value]
        if chosen:
            raise InputError(
                f"with --engine ray the workers load the model: --{chosen[0].replace('_', '-')} cannot be given."
            )
        return name


def columns_of(text: str | None, kind: str | None = None) -> dict[str, int | str] | list[str] | None:
    """Which column is what, as it is typed: `text=0,target=1`; of words with tags, `pos,chunk,ner`."""
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
