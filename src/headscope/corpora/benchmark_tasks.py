"""Which columns and fields the tasks of GLUE and SuperGLUE keep their texts and labels in."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from headscope.corpora.example import CorpusProblem, Example
from headscope.corpora.text_lines import bare_suffix, lines
from headscope.errors import InputError

# Text, second text and label of the published files, by the names of their columns.
_PAIR = {"text": "sentence1", "pair": "sentence2", "label": "label"}
_PREMISE = {"text": "premise", "pair": "hypothesis", "label": "label"}
GLUE: dict[str, dict[str, str]] = {
    "cola": {"text": "sentence", "label": "label"},
    "sst2": {"text": "sentence", "label": "label"},
    "mrpc": {"text": "#1 String", "pair": "#2 String", "label": "Quality"},
    "qqp": {"text": "question1", "pair": "question2", "label": "is_duplicate"},
    "stsb": {"text": "sentence1", "pair": "sentence2", "label": "score"},
    "mnli": {"text": "sentence1", "pair": "sentence2", "label": "gold_label"},
    "qnli": {"text": "question", "pair": "sentence", "label": "label"},
    "rte": _PAIR,
    "wnli": _PAIR,
}
SUPERGLUE: dict[str, dict[str, str]] = {
    "boolq": {"text": "question", "pair": "passage", "label": "label"},
    "cb": _PREMISE,
    "rte": _PREMISE,
    "wic": _PAIR,
    "axb": _PAIR,
    "axg": _PREMISE,
    "wsc": {"text": "text", "label": "label"},
}
# The one file without a header: source, label, the author's star, sentence.
_COLA_WITHOUT_HEADER = {"text": 3, "label": 1}
TASK_KINDS = (*(f"glue/{task}" for task in GLUE), *(f"superglue/{task}" for task in SUPERGLUE))


def task_columns(kind: str, path: Path, header: list[str]) -> dict[str, int | str]:
    """The columns of a GLUE task's table, whose header is given; test files have no label."""
    benchmark, _, task = kind.partition("/")
    if benchmark != "glue":
        raise InputError(f"{path.name} is read as {kind!r}, which is one JSON object a line: give a .jsonl file.")
    columns = GLUE[task]
    if task == "cola" and len(header) == 4 and "sentence" not in header:
        return dict(_COLA_WITHOUT_HEADER)
    missing = [column for field, column in columns.items() if field != "label" and column not in header]
    if missing:
        raise InputError(
            f"{path.name} has no column {missing[0]!r}, which {kind} has: its first line is {', '.join(header)}. "
            "Say which column is what with columns= instead of the task."
        )
    return {field: column for field, column in columns.items() if column in header}


def task_fields(kind: str) -> dict[str, str]:
    """Where a task keeps its text, its second text and its label."""
    benchmark, _, task = kind.partition("/")
    return (SUPERGLUE if benchmark == "superglue" else GLUE)[task]


def is_json_lines(path: Path) -> bool:
    """Whether a file holds one JSON object a line, by its name."""
    return bare_suffix(path) in (".jsonl", ".ndjson")


def read_json_task(path: Path, kind: str, *, max_line: int) -> Iterator[Example | CorpusProblem]:
    """An example a line of a SuperGLUE task, or of a GLUE task that was saved this way."""
    fields = task_fields(kind)
    for line in lines(path, max_line=max_line):
        if isinstance(line, CorpusProblem):
            yield line
        elif line.text.strip():
            yield _json_example(f"{path.name}:{line.number}", path.name, line.number, line.text, fields)


def _json_example(where: str, name: str, number: int, text: str, fields: Mapping[str, str]) -> Example | CorpusProblem:
    try:
        row = json.loads(text)
    except (ValueError, RecursionError) as error:
        return CorpusProblem(name, number, f"not JSON ({error})")
    if not isinstance(row, dict):
        return CorpusProblem(name, number, "not a JSON object")
    texts = {field: row.get(column) for field, column in fields.items() if field != "label"}
    for field, value in texts.items():
        if not isinstance(value, str) or not value.strip():
            return CorpusProblem(name, number, f"no text in {fields[field]!r}")
    label = row.get(fields["label"])
    return Example(where, text=texts["text"], pair=texts.get("pair"), label=None if label is None else str(label))
