"""Corpora that are Python objects: lists, Hugging Face datasets, and functions that begin a stream anew."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from headscope.corpora.conll import join_words
from headscope.corpora.example import CorpusProblem, Example
from headscope.errors import InputError

# Names that columns of published datasets commonly have, by what they hold; the first that is there is taken.
_KNOWN = {
    "text": ("text", "sentence", "sentence1", "premise", "question1", "question", "content"),
    "pair": ("pair", "sentence2", "hypothesis", "question2"),
    "image": ("image", "img"),
    "label": ("label", "labels", "fine_label"),
    "words": ("tokens", "words"),
}


def read_items(make: Callable[[], Iterable[Any]], name: str) -> Iterator[Example | CorpusProblem]:
    """Texts, pairs of texts, or examples that are ready."""
    for number, source in enumerate(make()):
        where = f"{name}:{number}"
        if isinstance(source, Example):
            yield source
        elif isinstance(source, str):
            yield Example(where, text=source) if source.strip() else CorpusProblem(where, None, "the text is empty")
        elif isinstance(source, tuple) and len(source) == 2 and all(isinstance(text, str) for text in source):
            yield Example(where, text=source[0], pair=source[1])
        else:
            yield CorpusProblem(
                where, None, f"{type(source).__name__} is neither a text, a pair of texts nor an Example"
            )


def dataset_columns(dataset: Any, columns: Mapping[str, int | str] | None) -> dict[str, str]:
    """Which column of a dataset is what: as said, or by the names that such columns commonly have."""
    names = list(getattr(dataset, "column_names", None) or ())
    if not names:
        raise InputError("the dataset does not say which columns it has (`column_names`): it cannot be read.")
    if columns is not None:
        unknown = [str(column) for column in columns.values() if column not in names]
        if unknown:
            raise InputError(f"the dataset has no column {unknown[0]!r}: it has {', '.join(names)}.")
        return {field: str(column) for field, column in columns.items()}
    if "translation" in names:
        return {"translation": "translation"}
    column_by_field = {
        field: next((column for column in known if column in names), None) for field, known in _KNOWN.items()
    }
    taken = {field: name for field, name in column_by_field.items() if name is not None}
    if not taken.keys() & {"text", "image", "words"}:
        raise InputError(
            f"none of the dataset's columns is known to hold text, words or images: it has {', '.join(names)}. "
            "Say which is which: columns={'text': …}."
        )
    if "words" in taken:
        taken |= {name: name for name in names if name.endswith("_tags")}
    return taken


def read_dataset(dataset: Any, columns: Mapping[str, str], name: str) -> Iterator[Example | CorpusProblem]:
    """An example a row."""
    labels = {column: _label_names(dataset, column) for column in columns.values()}
    for number, row in enumerate(dataset):
        where = f"{name}:{number}"
        try:
            yield _example(where, row, columns, labels)
        except (KeyError, TypeError, ValueError, IndexError, RecursionError) as error:
            yield CorpusProblem(where, None, f"the row does not have what its columns promise ({error!r})")


def _example(where: str, row: Mapping[str, Any], columns: Mapping[str, str], labels: dict[str, list[str]]) -> Example:
    if "translation" in columns:
        source, target = list(row[columns["translation"]].values())[:2]
        return Example(where, text=source, target=target)
    fields: dict[str, Any] = {}
    tags = {}
    for field, column in columns.items():
        value, names = row[column], labels[column]
        if field == "words":
            fields["words"] = tuple(str(word) for word in value)
            fields["text"], fields["spans"] = join_words(fields["words"])
        elif field == "label":
            fields["label"] = names[value] if names and isinstance(value, int) else str(value)
        elif field in ("text", "pair", "target"):
            if not isinstance(value, str) or not value.strip():
                raise ValueError(f"{column!r} is {value!r}, not a text")
            fields[field] = value
        elif field == "image":
            fields["image"] = value
        else:
            tags[field.removesuffix("_tags")] = tuple(names[tag] if names else str(tag) for tag in value)
    if tags and any(len(column) != len(fields["words"]) for column in tags.values()):
        raise ValueError("there is not one tag for each word")
    return Example(where, **fields, tags=tags)


def _label_names(dataset: Any, column: str) -> list[str]:
    """The names of the classes that a column gives as numbers, if it does."""
    features = getattr(dataset, "features", None)
    feature = features.get(column) if isinstance(features, Mapping) else None
    feature = getattr(feature, "feature", feature)
    names: Sequence[str] | None = getattr(feature, "names", None)
    return list(names or ())
