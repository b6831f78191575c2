"""The tokens of an atlas: a row each, as Parquet, with all that points can be coloured or searched by."""

import string
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from headscope.analysis.measures.patch_features import looks
from headscope.corpora import Example, align
from headscope.runs.shard import add_checksum, arrow, seal
from headscope.traces import Tokens

# Columns that every atlas has, and their types; the tags of a corpus come after them as `tag_upos`, ….
COLUMNS: dict[str, str] = {
    "stack": "string",
    "row": "int32",
    "example": "int32",
    "example_id": "string",
    "position": "int32",
    "length": "int32",
    "text": "string",
    "id": "int32",
    "special": "bool",
    "punctuation": "bool",
    "word": "int32",
    "segment": "string",
    "start": "int32",
    "end": "int32",
    "frequency": "int32",
    "label": "string",
    "predicted": "string",
    "patch_row": "int32",
    "patch_column": "int32",
    "hue": "float32",
    "brightness": "float32",
}


class TokenRows:
    """The rows of some examples, by their places; `row` and `frequency` are those of the whole atlas."""

    def __init__(self) -> None:
        self._rows: dict[int, list[dict[str, Any]]] = {}

    def __bool__(self) -> bool:
        return bool(self._rows)

    def add(
        self, place: int, example: Example, tokens_by_stack: Mapping[str, Tokens], predicted: str | None = None
    ) -> None:
        """Take in the tokens of one example, and the class that the model chose for it."""
        self._rows[place] = [
            {**row, "predicted": predicted}
            for stack, tokens in tokens_by_stack.items()
            for row in _rows_of(example, place, stack, tokens)
        ]

    def parquet(self) -> bytes:
        """The rows in the order of the examples."""
        return write_table([row for place in sorted(self._rows) for row in self._rows[place]])


def write_table(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Rows as Parquet that carries its own checksum."""
    pa, pq = arrow()
    tags = sorted({name for row in rows for name in row if name.startswith("tag_")})
    types = {**{name: getattr(pa, _ARROW.get(kind, kind))() for name, kind in COLUMNS.items()}}
    types |= {tag: pa.string() for tag in tags}
    table = pa.table({name: pa.array([row.get(name) for row in rows], kind) for name, kind in types.items()})
    return table_bytes(table, pa, pq)


def table_bytes(table: Any, pa: Any, pq: Any) -> bytes:
    """An Arrow table as Parquet that carries its own checksum."""
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema, compression="zstd") as writer:
        writer.write_table(table)
        add_checksum(writer)
    return seal(sink.getvalue().to_pybytes())


def joined_rows(parts: Sequence[Sequence[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The rows of all shards as those of the atlas: stack by stack, numbered, with how often each text occurs."""
    rows: list[dict[str, Any]] = []
    first_example = 0
    for part_rows in parts:
        places = sorted({row["example"] for row in part_rows})
        numbers = {place: first_example + number for number, place in enumerate(places)}
        rows += [{**row, "example": numbers[row["example"]]} for row in part_rows]
        first_example += len(places)
    frequencies = Counter((row["stack"], row["text"]) for row in rows)
    counts: Counter[str] = Counter()
    rows.sort(key=lambda row: row["stack"])  # stable: within a stack the order stays
    for row in rows:
        row["row"] = counts[row["stack"]]
        row["frequency"] = frequencies[row["stack"], row["text"]]
        counts[row["stack"]] += 1
    return rows


_ARROW = {"bool": "bool_"}


def _rows_of(example: Example, place: int, stack: str, tokens: Tokens) -> list[dict[str, Any]]:
    tags = _tags(example, tokens)
    patches = _patches(example, tokens)
    return [
        {
            "stack": stack,
            "example": place,
            "example_id": example.id,
            "position": position,
            "length": len(tokens),
            "text": token.text,
            "id": token.id,
            "special": token.special,
            "punctuation": not token.special and is_punctuation(token.text),
            "word": token.word,
            "segment": token.segment,
            "start": token.start,
            "end": token.end,
            "label": example.label,
            **tags[position],
            **patches[position],
        }
        for position, token in enumerate(tokens)
    ]


def is_punctuation(text: str) -> bool:
    """Whether a token consists of marks alone."""
    plain = text.strip()
    return bool(plain) and all(
        sign in string.punctuation or unicodedata.category(sign).startswith("P") for sign in plain
    )


def _tags(example: Example, tokens: Tokens) -> list[dict[str, str]]:
    """The tags of the word that each token is a piece of."""
    tags_by_position: list[dict[str, str]] = [{} for _ in tokens]
    if example.tags and example.spans and tokens.kind == "text":
        for word, positions in enumerate(align(tokens, example.spans)):
            for position in positions:
                tags_by_position[position] = {f"tag_{name}": tags[word] for name, tags in example.tags.items()}
    return tags_by_position


def _patches(example: Example, tokens: Tokens) -> list[dict[str, float | int]]:
    """Row, column, hue (radians; none for grey) and brightness of each patch; special tokens have none."""
    described: list[dict[str, float | int]] = [{} for _ in tokens]
    if tokens.kind != "patches" or tokens.grid is None:
        return described
    n_rows, n_columns = tokens.grid
    first = len(tokens) - n_rows * n_columns
    seen = None if example.image is None else looks(example.image, tokens.grid)
    for patch in range(n_rows * n_columns):
        values: dict[str, float | int] = {"patch_row": patch // n_columns, "patch_column": patch % n_columns}
        if seen is not None:
            values["brightness"] = float(seen.brightness[patch])
            if not np.isnan(seen.hue[patch]):
                values["hue"] = float(seen.hue[patch])
        described[first + patch] = values
    return described
