"""The tokens and examples of an atlas for the page, as columns."""

from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.views.contract.atlas import AtlasExamplesProps, AtlasStackProps, AtlasTokensProps
from headscope.views.contract.trace import TokenKind
from headscope.views.wire import Part

if TYPE_CHECKING:
    from headscope.atlases import Atlas

_NUMBERS = ("position", "example", "length", "word", "frequency", "start", "end", "patch_row", "patch_column")
_ALWAYS = ("position", "example", "length", "frequency")
_SHARES = ("hue", "brightness")
_SPECIAL, _PUNCTUATION = 1, 2
# What begins a piece of a word that goes on, where texts show it.
_JOINER = "##"
# How texts of tokens show a blank within.
_BLANK = "␣"


def stack_props(atlas: "Atlas", stack: str) -> AtlasStackProps:
    """What a stack has."""
    table = atlas.tokens(stack)
    columns = ["text", "flags", *(name for name in (*_NUMBERS, *_SHARES, *_coded(table)) if _has_values(table, name))]
    return AtlasStackProps(stack, _kind(table), len(table), columns)


def tokens_part(atlas: "Atlas", stack: str) -> Part:
    """`tokens?stack=main`: a row per token; what is coded has its texts in the props."""
    table = atlas.tokens(stack or None)
    name = stack or next(iter(atlas.n_tokens))
    codes, texts = _dictionary(table.column("text"))
    arrays: dict[str, Any] = {"text": codes, "flags": _flags(table)}
    tables: dict[str, list[str]] = {}
    for column in _NUMBERS:
        if _has_values(table, column):
            arrays[column] = table.column(column).fill_null(-1).to_numpy().astype(np.int32)
    for column in _SHARES:
        if _has_values(table, column):
            arrays[column] = table.column(column).fill_null(float("nan")).to_numpy().astype(np.float32)
    for column in _coded(table):
        if _has_values(table, column):
            arrays[column], tables[column] = _dictionary(table.column(column))
    return Part("tokens", AtlasTokensProps(name, len(table), texts, tables), arrays)


def examples_part(atlas: "Atlas") -> Part:
    """`examples`: what the atlas was made from."""
    n_examples = atlas.index["corpus"]["n_sampled"]
    first, texts, arrays = next(iter(atlas.n_tokens)), {}, {}
    for stack in atlas.n_tokens:
        starts, table = atlas.starts(stack), atlas.tokens(stack)
        arrays[f"starts:{stack}"] = starts.astype(np.int32)
        rows = table.select(["text", "start", "end", "special"]).to_pylist()
        is_text = _kind(table) == "text"
        texts[stack] = [
            _text(rows[starts[example] : starts[example + 1]]) if is_text else "" for example in range(n_examples)
        ]
    starts, table = atlas.starts(first), atlas.tokens(first)
    about = [table.slice(int(start), 1).select(["example_id", "label"]).to_pylist() for start in starts[:-1]]
    ids = [rows[0]["example_id"] if rows else "" for rows in about]
    labels = [rows[0]["label"] if rows else None for rows in about]
    return Part("examples", AtlasExamplesProps(ids, texts, labels), arrays)


def _text(rows: list[dict[str, Any]]) -> str:
    """The text of an example, put together again from its tokens: one blank where the text had something else."""
    parts: list[str] = []
    end = 0
    for row in rows:
        if row["special"]:
            continue
        text = str(row["text"]).replace(_BLANK, " ").strip()
        plain = text.removeprefix(_JOINER)
        start = -1 if row["start"] is None else row["start"]
        is_placed = start >= 0
        goes_on = start <= end if is_placed else text != plain
        parts.append(plain if goes_on else f" {plain}")
        end = row["end"] if is_placed else end
    return "".join(parts).strip()


def _kind(table: Any) -> TokenKind:
    """Patches have places in a picture; all else that a corpus holds is text."""
    return "patches" if _has_values(table, "patch_row") else "text"


def _coded(table: Any) -> list[str]:
    return ["label", "predicted", "segment", *(name for name in table.column_names if name.startswith("tag_"))]


def _has_values(table: Any, name: str) -> bool:
    """Whether a column is not empty; a segment counts where there is more than one."""
    if name in _ALWAYS:
        return True
    if name not in table.column_names:  # an atlas from before there was this column
        return False
    column = table.column(name)
    if name == "segment":
        return len(column.unique()) > 1
    return column.null_count < len(column)


def _flags(table: Any) -> np.ndarray:
    special, punctuation = (
        table.column(name).fill_null(False).to_numpy(zero_copy_only=False).astype(np.uint8)
        for name in ("special", "punctuation")
    )
    return special * _SPECIAL + punctuation * _PUNCTUATION


def _dictionary(column: Any) -> tuple[np.ndarray, list[str]]:
    """Codes into a table of texts, −1 for none."""
    encoded = column.combine_chunks().dictionary_encode()
    if not len(encoded):
        return np.zeros(0, np.int32), []
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)
    # What is no Unicode (half of a pair) cannot be sent.
    return codes, [str(text).encode("utf-8", "replace").decode() for text in encoded.dictionary.to_pylist()]
