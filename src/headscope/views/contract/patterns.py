"""Weights and vectors of heads: maps, layers, rows, windows, neurons; and what patterns lie over."""

from dataclasses import dataclass, field
from typing import Literal

from headscope.choices import By, Vectors, What


@dataclass(frozen=True)
class MapsProps:
    """Thumbnails of all heads; `cells` tells how many queries and keys one cell of a layer's maps stands for.

    `note` says where they are less than exact.
    """

    size: int
    cells: dict[str, tuple[int, int]]
    note: str = ""


@dataclass(frozen=True)
class LayerProps:
    """All heads of one layer, whole (`dense`) or the strongest keys of each query (`sparse`, `n_kept` of them).

    `queries` and `keys` name the tokens where they are read otherwise than one by one; empty when they are the trace's.
    """

    site: str
    what: What
    form: Literal["dense", "sparse"]
    by: By
    n_kept: int
    queries: list[str]
    keys: list[str]


@dataclass(frozen=True)
class RowProps:
    """Exact numbers of one token in one layer: from a query to all keys, or to a key from all queries."""

    site: str
    side: Literal["query", "key"]
    index: int


@dataclass(frozen=True)
class WindowProps:
    """A rectangle of one head's pattern, max-pooled by `cell` queries and keys."""

    head: str
    rows: tuple[int, int]
    columns: tuple[int, int]
    cell: tuple[int, int]


@dataclass(frozen=True)
class NeuronProps:
    """How one head's weights come about from queries first to last (not included), term by term.

    `scaling` is null, and `no_terms` says why, where the weights do not follow from queries and keys alone.
    `key_head` is the one of `n_key_heads` that this head shares with others. `bias` is the form of what is added to
    the scores, `largest` the size from which each kind of vector is drawn in full colour.
    """

    head: str
    queries: tuple[int, int]
    dim: int
    value_dim: int
    scaling: float | None
    softcap: float | None
    key_head: int
    n_key_heads: int
    bias: Literal["", "key", "offset", "dense", "windows"]
    sink: float | None
    no_terms: str
    notes: list[str]
    largest: dict[str, float]
    is_output_edited: bool = False
    """Whether the output is other than the sum of weight × value."""


@dataclass(frozen=True)
class VectorsProps:
    """Queries, keys, values or outputs (`mixed`) of one head, of tokens first to last (not included)."""

    head: str
    of: Vectors
    rows: tuple[int, int]
    n_tokens: int
    largest: float


@dataclass(frozen=True)
class ImageAreaProps:
    """A copy of a picture that a model reads beside another: its name, its box as shares of all that is sent, and what
    it shows of the picture as it was given, in that one's pixels."""

    name: str
    box: tuple[float, float, float, float]
    source: tuple[float, float, float, float]


@dataclass(frozen=True)
class ImageProps:
    """A picture as the model saw it, of `size` (height, width); a patch is so many of the pixels sent.

    What lies outside of `areas` is no picture; without any, all of it is.
    """

    stack: str
    size: tuple[int, int]
    patch: tuple[float, float]
    note: str
    areas: list[ImageAreaProps] = field(default_factory=list)


@dataclass(frozen=True)
class SoundProps:
    """A sound of `heard` seconds; the model's frames span `seconds`."""

    stack: str
    seconds: float
    heard: float
    note: str


@dataclass(frozen=True)
class ExpertsProps:
    """The experts that each token of a layer took (mixture of experts)."""

    site: str
    n_experts: int


@dataclass(frozen=True)
class RolloutProps:
    """Attention followed from a layer through all below it (Abnar & Zuidema, 2020)."""

    site: str
