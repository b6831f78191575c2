"""Where in a corpus a head, a query, key or value coordinate, or an MLP neuron is strongest: for all of them at once.

One pass over the corpus keeps, for every coordinate of the model, the few examples where it is highest and lowest: a
table beside each shard of the run. Any question after that reads one row of those tables.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from headscope.analysis.search.example_tables import KEPT, TopExamples, read_row
from headscope.corpora import Corpus, Example, corpus
from headscope.errors import InputError, UnknownHeadError
from headscope.models import Model
from headscope.models.activations import neuron_values
from headscope.progress import Cancel, OnProgress
from headscope.runs.corpus_run import run
from headscope.runs.engine import Source, as_model
from headscope.runs.manifest import VERSION, identity
from headscope.sites import Head, Site, parse
from headscope.traces import Trace

# Tables lie beside shards: fewer and larger ones take less room.
SHARD = 1024
_TEXTS = (".txt", ".tsv", ".conll", ".conllu")
_PLACE = re.compile(r"(?P<place>.+?)(?:\.(?P<what>query|key|value|neurons)\[(?P<index>\d{1,9})\])?")


@dataclass(frozen=True)
class Place:
    """What examples are asked of: a head, one coordinate of its query, key or value, or an MLP neuron of a layer.

    >>> Place.parse("L3H2"), Place.parse("L3H2.query[5]"), Place.parse("L3.neurons[17]")
    (Place('L3H2'), Place('L3H2.query[5]'), Place('L3.neurons[17]'))
    """

    site: Site
    what: str
    head: int = 0
    index: int = 0

    @classmethod
    def parse(cls, text: str) -> "Place":
        """Read an address; whether the model has it is seen later."""
        match = _PLACE.fullmatch(text.strip()) if isinstance(text, str) else None
        at = parse(match["place"]) if match else None
        if match is not None and isinstance(at, Head) and match["what"] != "neurons":
            return cls(at.site, match["what"] or "head", at.index, int(match["index"] or 0))
        if match is not None and isinstance(at, Site) and match["what"] == "neurons":
            return cls(at, "neurons", 0, int(match["index"]))
        raise InputError(
            f"{text!r} is no place to ask examples of: write a head as 'L3H2', a coordinate as 'L3H2.query[5]' "
            "(query, key or value), an MLP neuron as 'L3.neurons[17]'."
        )

    def __str__(self) -> str:
        if self.what == "neurons":
            return f"{self.site}.neurons[{self.index}]"
        head = str(self.site.head(self.head))
        return head if self.what == "head" else f"{head}.{self.what}[{self.index}]"

    def __repr__(self) -> str:
        return f"Place({str(self)!r})"

    def row(self, model: Model) -> tuple[str, int]:
        """The table that it is in, and its row there; refused where the model has no such place."""
        if self.what == "neurons":
            at = Site(self.site.stack, self.site.layer, "neurons")
            width = model.layout.widths.get(at) if at in model.layout.neurons else None
            if width is None:
                known = ", ".join(str(site) for site in model.layout.neurons) or "none were found"
                raise InputError(f"{model.name} has no MLP neurons at {self.site}: those of {known}.")
            return f"neurons/{self.site}", _within(self, self.index, width, "neurons")
        layer = next((layer for layer in model.layout.layers if layer.site == self.site), None)
        if layer is None or self.head >= layer.n_heads:
            raise UnknownHeadError(f"{model.name} has no head {self.site.head(self.head)}: {_heads(model)}.")
        if self.what == "head":
            return f"head/{self.site}", self.head
        dim = layer.value_width if self.what == "value" else layer.head_dim
        _within(self, self.index, dim, "coordinates")
        # Values are shown head by head; keys group by group, as several heads share them.
        head = self.head * layer.n_groups // layer.n_heads if self.what == "key" else self.head
        return f"{self.what}/{self.site}", head * dim + self.index


@dataclass(frozen=True, eq=False)
class CorpusExample:
    """One text, the token where it is strongest there, and the number of every token: what a reader colours it by.

    Of a head the numbers are the weights of that token's row, and `key` is the token it looks at.
    """

    id: str
    tokens: list[str]
    token: int
    value: float
    values: np.ndarray
    key: int | None = None
    key_tokens: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        first, last = max(0, self.token - 12), min(len(self.tokens), self.token + 13)
        words = [f"«{text}»" if place == self.token else text for place, text in enumerate(self.tokens)][first:last]
        to = "" if self.key is None else f" → {self.key_tokens[self.key]}"
        line = " ".join(" ".join(words).split())
        return f"{self.value:8.3f}  {'… ' if first else ''}{line}{' …' if last < len(self.tokens) else ''}{to}"


@dataclass(frozen=True, eq=False)
class Examples:
    """The examples of one place, the strongest first."""

    place: Place
    model: str
    corpus: str
    n_examples: int
    lowest: bool
    items: tuple[CorpusExample, ...]

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[CorpusExample]:
        return iter(self.items)

    def __getitem__(self, index: int) -> CorpusExample:
        return self.items[index]

    def __repr__(self) -> str:
        end = "lowest" if self.lowest else "strongest"
        title = f"{self.place} of {self.model}, {end} in {self.n_examples} examples of {self.corpus}"
        return "\n".join([title, *map(str, self.items)])


def examples(
    model: Source,
    source: Any,
    place: str,
    *,
    k: int = 10,
    lowest: bool = False,
    folder: str | Path | None = None,
    truncate: bool = False,
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> Examples:
    """The examples of a corpus where a place is strongest; with `lowest`, where it is most negative.

    A place is a head ("L3H2": where its attention is strongest, the first and special tokens apart), a coordinate of
    its query, key or value ("L3H2.query[5]"), or an MLP neuron ("L3.neurons[17]"). The first question goes through the
    corpus once, for every place of the model, and keeps the result in `folder` (by default one of its own in the user's
    cache); those that follow read it there. Stopped, the same call goes on. `truncate` cuts texts that are
    too long for the model, which are otherwise an error.

    >>> import headscope as hs, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     hs.examples("builtin:gpt", ["The doctor asked the nurse a question. She"], "L3.neurons[17]", folder=folder)
    L3.neurons[17] of builtin:gpt, strongest in 1 examples of list
      -0.028  <|endoftext|> The doctor asked the «nurse» a question . She
    """
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= KEPT:
        raise InputError(f"k={k!r} is not a whole number from 1 to {KEPT}: so many examples of each place are kept.")
    address, loaded = Place.parse(place), as_model(model)
    if lowest and address.what == "head":
        raise InputError("weights have no lowest end: leave lowest out for a head.")
    if not loaded.has_layout:
        raise InputError("this module was not probed yet: run it once before.")
    table, row = address.row(loaded)
    stream = stream_of(source)
    folder = Path(folder) if folder is not None else cache_folder(loaded, stream, truncate=truncate)
    measure = TopExamples(str(folder))
    done = run(loaded, stream, [measure], folder, shard_size=SHARD, truncate=truncate, progress=progress, cancel=cancel)
    occurrences = read_row(done, table, row, lowest=lowest)[:k]
    texts = _texts(stream, {occurrence.number for occurrence in occurrences})
    items = [
        _corpus_example(loaded, address, texts[occurrence.number], occurrence.token, occurrence.value)
        for occurrence in occurrences
    ]
    return Examples(address, loaded.name, stream.name, done.manifest["corpus"]["n_examples"], lowest, tuple(items))


def stream_of(source: Any) -> Corpus:
    """A corpus of whatever `hs.corpus` takes; of a folder that holds texts, those of all its files."""
    if isinstance(source, Corpus):
        return source
    folder = Path(source).expanduser() if isinstance(source, str | Path) else None
    if folder is None or not folder.is_dir():
        return corpus(source)
    files = sorted(file for file in folder.rglob("*") if any(suffix in file.suffixes for suffix in _TEXTS))
    if not files:
        return corpus(folder)  # images, or it says that there is nothing
    parts = [corpus(file, on_error="skip") for file in files]

    def every() -> Iterator[Example]:
        return (example for part in parts for example in part)

    every.__name__ = folder.name
    return corpus(every)


def cache_folder(model: Model, stream: Corpus, *, truncate: bool = False) -> Path:
    """A folder in the user's cache for this model on this corpus, with this version of everything that counts."""
    packages = [version(name) for name in ("headscope", "torch", "transformers", "tokenizers", "numpy", "pyarrow")]
    contents = [
        identity(model),
        stream.survey(),
        stream.limit,
        truncate,
        stream.name,
        KEPT,
        torch.get_num_threads(),
        packages,
        VERSION,
    ]
    digest = hashlib.sha256(json.dumps(contents).encode()).hexdigest()[:16]
    home = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    return home / "headscope" / "examples" / digest


def _texts(stream: Corpus, wanted: set[int]) -> dict[int, Example]:
    """Examples by their number in the corpus."""
    if not wanted:
        return {}
    return {number: example for number, example in enumerate(islice(stream, max(wanted) + 1)) if number in wanted}


def _corpus_example(model: Model, place: Place, example: Example, token: int, value: float) -> CorpusExample:
    """The example run once more, for the numbers of all its tokens."""
    source = example.image if example.text is None else example.text
    record = "rows" if place.what == "neurons" else "heads"
    trace: Trace = model.run(source, pair=example.pair, target=example.target, truncate=True, record=record)
    keys = place.what in ("key", "value")
    layer = None if place.what == "neurons" else trace.layers[place.site]
    stack = layer.key_stack if layer is not None and keys else place.site.stack
    texts = trace.tokens[stack].texts
    if place.what == "neurons":
        assert trace.inputs is not None
        return CorpusExample(
            example.id, texts, token, value, neuron_values(model, trace.inputs, place.site, place.index)
        )
    head = place.site.head(place.head)
    if place.what == "head":
        weights = trace.pattern(head, rows=token)[0]
        key_texts = trace.key_tokens(head).texts
        allowed = weights * _plain_keys(trace, head)
        return CorpusExample(example.id, texts, token, value, weights, int(allowed.argmax()), key_texts)
    read: Callable[[Head], np.ndarray] = {"query": trace.query, "key": trace.key, "value": trace.value}[place.what]
    return CorpusExample(example.id, texts, token, value, read(head)[:, place.index])


def _plain_keys(trace: Trace, head: Head) -> np.ndarray:
    """Keys that count as something to look at: no special tokens, and not the first of the same text."""
    tokens = trace.key_tokens(head)
    counts_as_key = np.array([not token.special for token in tokens])
    if head.kind == "self":
        counts_as_key[0] = False
    return counts_as_key


def _within(place: Place, index: int, count: int, what: str) -> int:
    if index >= count:
        raise InputError(f"there is no {place}: there are {count} {what}, 0 to {count - 1}.")
    return index


def _heads(model: Model) -> str:
    heads = model.heads
    return f"the heads are {heads[0]} to {heads[-1]}"
