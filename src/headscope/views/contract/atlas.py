"""Parts of an atlas: its heads, tokens, maps and numbers. An atlas is of a model, not of an input: a source of its own.

Points of a head are the tokens of its clouds, cloud by cloud; rows are those of a stack's table of tokens.
"""

from dataclasses import dataclass, field
from typing import Literal

from headscope.choices import AtlasSpace, Coordinates, MapMethod
from headscope.views.contract.trace import TokenKind

CloudRole = Literal["query", "key", "value", "mixed", "residual"]


@dataclass(frozen=True)
class AtlasCloudProps:
    """The tokens of a stack in one role."""

    role: CloudRole
    stack: str


@dataclass(frozen=True)
class AtlasPlaceProps:
    """A head, or a depth of the residual stream (then `head` is null), and its clouds in the order of its points."""

    address: str
    site: str
    layer: int
    head: int | None
    is_causal: bool
    clouds: list[AtlasCloudProps]


@dataclass(frozen=True)
class AtlasStackProps:
    """The tokens of a stack: how many, what they are, and the columns that have values."""

    name: str
    kind: TokenKind
    n_tokens: int
    columns: list[str]


@dataclass(frozen=True)
class AtlasMapProps:
    """A kind of map, and of how many heads it is made."""

    method: MapMethod
    dims: int
    coordinates: Coordinates
    n_heads: int


@dataclass(frozen=True)
class AtlasCorpusProps:
    """What the atlas was made from: `n_sampled` of `n_examples` examples."""

    name: str
    kind: str
    about: str
    n_examples: int
    n_sampled: int


@dataclass(frozen=True)
class AtlasProps:
    """An atlas: what can be drawn, of which tokens, and what is made already.

    `absent` are layers that cannot be drawn, with the reason. `lacks` says what an atlas without queries and keys
    cannot answer; empty where it has them. `images` says whether examples can be looked at.
    """

    id: str
    name: str
    title: str
    model: str
    """The model as the server offers it; empty where it does not, so nothing can be run."""
    model_name: str
    space: AtlasSpace
    corpus: AtlasCorpusProps
    has_vectors: bool
    has_scores: bool
    lacks: str
    places: list[AtlasPlaceProps]
    stacks: list[AtlasStackProps]
    maps: list[AtlasMapProps]
    absent: dict[str, str]
    images: bool = False


@dataclass(frozen=True)
class AtlasExamplesProps:
    """The examples of an atlas: identifiers, texts by stack (from their tokens), and labels where there are some.

    Array `starts:STACK` [example + 1]: the first row of each.
    """

    ids: list[str]
    texts: dict[str, list[str]]
    labels: list[str | None]


@dataclass(frozen=True)
class AtlasTokensProps:
    """The tokens of a stack, as columns: arrays by name. Texts and tags are codes into `texts` and `tables`."""

    stack: str
    n_tokens: int
    texts: list[str]
    tables: dict[str, list[str]]


@dataclass(frozen=True)
class AtlasMapsProps:
    """A map of every head that has it, of a sample of rows (arrays `rows:STACK`).

    An array per head, uint16 [point, dimension]: x = `low` + `step` · u, with `low` [head, dimension], `step` [head].
    """

    method: MapMethod
    dims: int
    coordinates: Coordinates
    heads: list[str]


@dataclass(frozen=True)
class AtlasHeadMapProps:
    """All points of one head: `points` [point, dimension] uint16, `low` [dimension], `step` [1]."""

    head: str
    method: MapMethod
    dims: int
    coordinates: Coordinates


@dataclass(frozen=True)
class AtlasColumnsProps:
    """Numbers of points: all columns of one `head`, or the column `name` of every head for the sample of rows."""

    head: str = ""
    name: str = ""


@dataclass(frozen=True)
class AtlasScoresProps:
    """Numbers of the heads: arrays [head] by name (`ATLAS_SCORE_TERMS`), NaN where a number does not exist."""

    heads: list[str]


@dataclass(frozen=True)
class AtlasAnomalyProps:
    """A head that stands out, by which number, and from where on a head does."""

    head: str
    kind: str
    label: str
    value: float
    threshold: float


@dataclass(frozen=True)
class AtlasAnomaliesProps:
    """Heads to look at first, kind by kind, the strongest first."""

    rows: list[AtlasAnomalyProps]


@dataclass(frozen=True)
class AtlasLinesProps:
    """The strongest keys of every query of a head: `keys` [query, top] (−1 for none) and `weights`, from the stored
    queries and keys. `note` says what of the logits they leave out."""

    head: str
    note: str


@dataclass(frozen=True)
class AtlasDistancesProps:
    """A sample of pairs: `distance` in the full space and `logit`, rows `query` and `key`; correlations of these."""

    head: str
    coordinates: Coordinates
    n_pairs: int
    pearson: float | None
    spearman: float | None


@dataclass(frozen=True)
class AtlasAggregateProps:
    """The pattern averaged by positions: `weights` [i, j], rows renormalised; `counts` [i, j] of examples."""

    head: str
    n_examples: int
    note: str


@dataclass(frozen=True)
class AtlasPatternProps:
    """The pattern of one example: `weights` [query, key], and where known `value_norm` [key]."""

    head: str
    example: int
    query_stack: str
    key_stack: str
    first_query: int
    first_key: int
    note: str


@dataclass(frozen=True)
class GatheringProps:
    """How a head gathers hits: their mean distance over that of random tokens, with its interval and corrected p."""

    head: str
    ratio: float
    low: float
    high: float
    p: float
    n_clusters: int


@dataclass(frozen=True)
class AtlasSearchProps:
    """What a search hit (arrays `hits:STACK`), and the heads, those that gather the hits most first."""

    text: str
    n_hits: int
    note: str = ""
    heads: list[GatheringProps] = field(default_factory=list)


@dataclass(frozen=True)
class NearPointProps:
    """A point near another, and how far away in the full space."""

    role: CloudRole
    stack: str
    row: int
    text: str
    example: int
    position: int
    distance: float


@dataclass(frozen=True)
class AtlasNeighboursProps:
    """The nearest points of a point, the nearest first."""

    head: str
    points: list[NearPointProps]
