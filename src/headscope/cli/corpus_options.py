"""Options of commands that run over a corpus: which examples, and where to run."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headscope.arguments import parsed_number
from headscope.choices import Engine, OnError
from headscope.cli.console import print_note, printable
from headscope.cli.load_model import Loading
from headscope.cli.shared_options import Truncate
from headscope.errors import InputError

if TYPE_CHECKING:
    from headscope.corpora import Corpus

# Kinds of which it is detected, or said, what each column holds.
_KINDS_WITH_COLUMNS = ("pairs", "translation", "table")
_LONGEST_SHOWN = 80

CorpusName = Annotated[
    Path,
    typer.Argument(
        help="Corpus: a file of texts, pairs, CoNLL-2000 or CoNLL-U, a folder of images, or a Hugging Face dataset "
        "(hf:NAME:CONFIG:SPLIT)."
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        help="Columns by index (from 0) or name, as text=0,target=1. Fields: text, pair, target, label. For --kind "
        "conll2000: the names of the tag columns, as pos,chunk,ner. Default: detected; refused where it cannot be told."
    ),
]
ReportFolder = Annotated[
    Path, typer.Option("--output", "-o", help="Output folder. Rerun with the same folder to resume.")
]


@dataclass(frozen=True)
class CorpusFormat:
    """How to read the file of a corpus."""

    kind: Annotated[
        str | None,
        typer.Option(
            help="Corpus format: text, pairs, translation, table, conll2000, conllu, images, or a task such as "
            "glue/mrpc or superglue/boolq. Default: detected."
        ),
    ] = None
    columns: Columns = None

    def corpus(self, path: Path, on_error: OnError = "fail") -> "Corpus":
        """The corpus in this format."""
        from headscope.corpora import corpus

        return corpus(path, kind=self.kind, columns=parse_columns(self.columns, self.kind), on_error=on_error)


@dataclass(frozen=True)
class CorpusOptions:
    """Which examples of a corpus to use, and where to run."""

    limit: Annotated[int | None, typer.Option(help="Maximum number of examples. Default: all.", min=1)] = None
    every: Annotated[int, typer.Option(help="Use every Nth example (useful when the file is sorted).", min=1)] = 1
    on_error: Annotated[
        OnError, typer.Option(help="Stop at unreadable lines and inputs that the model cannot take, or skip them.")
    ] = "fail"
    truncate: Truncate = False
    engine: Annotated[Engine, typer.Option(help="Run on this machine or on a Ray cluster.")] = "local"
    address: Annotated[
        str | None, typer.Option(help="Address of the Ray cluster. Default: a new cluster on this machine.")
    ] = None

    def corpus(self, path: Path, corpus_format: CorpusFormat) -> "Corpus":
        """The corpus with these options. `limit` and `every` are applied by the run."""
        return corpus_format.corpus(path, self.on_error)

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
        return {"limit": self.limit, "every": self.every, "truncate": self.truncate, "engine": self.engine_or_address()}

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


def note_first_example(examples: "Corpus") -> None:
    """Show which columns of a table are read, with its first example, so that a wrong guess is seen before a long run.

    Formats with fixed columns say nothing.
    """
    if examples.kind not in _KINDS_WITH_COLUMNS:
        return
    example = next(iter(examples), None)
    if example is not None:
        values = {field: getattr(example, field) for field in ("text", "pair", "target", "label")}
        fields = "; ".join(f"{field} {_shortened(value)!r}" for field, value in values.items() if value is not None)
        print_note(printable(f"{examples.name}: {examples.about}. First example: {fields}."))


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
        number = parsed_number(column.strip())
        column_of[name.strip()] = column.strip() if number is None else number
    return column_of


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 1]}…"
