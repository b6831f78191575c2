"""The data of a task: a corpus from a local file, Python objects, or a Hugging Face dataset by name."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headscope.corpora import Corpus, corpus
from headscope.errors import InputError, LoadError, MissingExtraError

# Names of datasets begin with this, so that a mistyped file is not taken for one: "dataset:ag_news:train".
PREFIX = "dataset:"
Columns = Mapping[str, int | str]


def open_data(source: Any, *, kind: str | None = None, columns: Columns | None = None) -> Corpus:
    """The corpus of a split. A string that begins with `dataset:` names a dataset, its configuration if it has several,
    and a split: `dataset:ag_news:train`, `dataset:nyu-mll/glue:sst2:validation`.
    """
    if isinstance(source, Corpus):
        return source
    if isinstance(source, str) and source.startswith(PREFIX):
        return corpus(_load_dataset(source), columns=columns)
    is_file = isinstance(source, str | Path) and Path(source).expanduser().is_file()
    return corpus(source, kind=kind if is_file else None, columns=columns)


def _load_dataset(source: str) -> Any:
    parts = source.removeprefix(PREFIX).split(":")
    if len(parts) not in (2, 3) or not all(parts):
        raise InputError(
            f"{source!r} does not name a split of a dataset: write 'dataset:NAME:SPLIT', or "
            "'dataset:NAME:CONFIGURATION:SPLIT'."
        )
    try:
        import datasets  # type: ignore[import-not-found]
    except ImportError as error:
        raise MissingExtraError(
            f"{source!r} needs the package datasets: pip install datasets. Or give a local file."
        ) from error
    try:
        return datasets.load_dataset(*parts[:-1], split=parts[-1])
    except (OSError, ValueError) as error:  # not there, no such split, no network
        raise LoadError(f"could not load {source!r}: {error}") from error
