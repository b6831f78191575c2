"""Hugging Face datasets by name: `hf:NAME`, `hf:NAME:CONFIG`, `hf:NAME:CONFIG:SPLIT`."""

from pathlib import Path
from typing import Any

from headscope.corpora.benchmark_tasks import GLUE
from headscope.errors import InputError, LoadError, MissingExtraError

PREFIX = "hf:"


def is_hub_name(source: Any) -> bool:
    """Whether a source names a dataset rather than a file."""
    return isinstance(source, str | Path) and str(source).startswith(PREFIX)


def load_hub_dataset(source: str) -> tuple[Any, dict[str, int | str] | None]:
    """The dataset, read as a stream, and the columns of its texts where it is a task of GLUE.

    The split is "train" by default. No code of the dataset's own is run.
    """
    name, config, split = _parts(source)
    try:
        from datasets import load_dataset  # type: ignore[import-not-found]
    except ImportError as error:
        raise MissingExtraError(f"{source!r} is read by the package datasets: pip install datasets.") from error
    try:
        dataset = load_dataset(name, config, split=split or "train", streaming=True)
    except Exception as error:  # the package raises errors of many kinds: no network, no such name, no such split
        message = " ".join(str(error).split())[:300]
        raise LoadError(
            f"could not get the dataset {source!r}: {type(error).__name__}: {message} Names are hf:NAME, "
            "hf:NAME:CONFIG or hf:NAME:CONFIG:SPLIT, with an empty CONFIG where it has none."
        ) from error
    is_glue = name.rpartition("/")[2] == "glue" and config in GLUE
    return dataset, _glue_columns(config or "") if is_glue else None


def _parts(source: str) -> tuple[str, str | None, str | None]:
    parts = source.removeprefix(PREFIX).split(":")
    if len(parts) > 3 or not parts[0].strip():
        raise InputError(
            f"{source!r} names no dataset: write hf:NAME, hf:NAME:CONFIG or hf:NAME:CONFIG:SPLIT, as in "
            "hf:nyu-mll/glue:mrpc:validation."
        )
    name, config, split = (*parts, "", "")[:3]
    return name, config or None, split or None


def _glue_columns(task: str) -> dict[str, int | str]:
    """The hub names the columns of some tasks otherwise than the published files."""
    renamed = {
        "mrpc": {"text": "sentence1", "pair": "sentence2"},
        "qqp": {"text": "question1", "pair": "question2"},
        "mnli": {"text": "premise", "pair": "hypothesis"},
    }
    columns = renamed.get(task) or {field: column for field, column in GLUE[task].items() if field != "label"}
    return {**columns, "label": "label"}
