"""Numbers of heads: measures, searches, use cases, where a head is strongest, and the report over a corpus."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class MethodProps:
    """One measure: its name, what it says, what chance would give, and the range its bar is drawn in."""

    name: str
    about: str
    baseline: float | None
    low: float
    high: float


@dataclass(frozen=True)
class ScoresProps:
    """Measures of every head; `heads` gives the order."""

    heads: list[str]
    methods: list[MethodProps]


@dataclass(frozen=True)
class FoundProps:
    """Heads that were looked for. Arrays [head]: `values`, `baselines`, `low`, `high`, NaN where there is none; and
    `measure`, which `method` is about: what heads are coloured and sorted by, above their own baselines where they have
    such. `order` says what comes first: what is furthest above its baseline, or what is largest either way.
    """

    heads: list[str]
    method: MethodProps
    order: Literal["above", "size"]
    n_inputs: int
    notes: list[str]
    python: str


@dataclass(frozen=True)
class ColumnProps:
    """One column of a table: texts and names of heads are here, numbers are in the array `TABLE/COLUMN`."""

    name: str
    kind: Literal["text", "number", "heads"]
    texts: list[str]


@dataclass(frozen=True)
class TableProps:
    """A table of evidence, and how to read it."""

    title: str
    about: str
    columns: list[ColumnProps]
    n_rows: int


@dataclass(frozen=True)
class EvidenceProps:
    """What a use case found on a model: sentences, tables, and (array `measure` [head]) what heads are ranked by.

    `text` and `pair` are an input on which those heads can be looked at.
    """

    name: str
    title: str
    model: str
    sentences: list[str]
    tables: list[TableProps]
    heads: list[str]
    method: MethodProps
    python: str
    text: str
    pair: str | None


@dataclass(frozen=True)
class FindingProps:
    """One role of a head, with its evidence over a corpus."""

    role: str
    kind: str
    measure: str
    score: float
    baseline: float | None
    low: float | None
    high: float | None
    n: int
    criterion: str
    source: str


@dataclass(frozen=True)
class CaseProps:
    """A sentence in which a head does what it does: tokens, where white space comes before one, and the strongest
    pairs as (query, key, weight). `queries` are there where they are other tokens than the keys."""

    id: str
    about: str
    tokens: list[str]
    spaces: list[int]
    pairs: list[tuple[int, int, float]]
    queries: list[str] | None = None
    query_spaces: list[int] | None = None


@dataclass(frozen=True)
class RoleProps:
    """The verdict on one head; without a role, what came nearest."""

    head: str
    role: str
    findings: list[FindingProps]
    nearest: FindingProps | None
    cases: list[CaseProps]


@dataclass(frozen=True)
class ReportProps:
    """What a report over a corpus says of the heads of this model. Without a report `corpus` is empty.

    Arrays: one per method, by its name [head]; where known `low/NAME`, `high/NAME`, `baseline/NAME` likewise.
    """

    corpus: str
    n: int
    heads: list[str]
    methods: list[MethodProps]
    roles: list[RoleProps]


@dataclass(frozen=True)
class ExampleProps:
    """A stretch of one text: its tokens, the one that stands out (−1: it is of another text), and how strong it is."""

    id: str
    tokens: list[str]
    token: int
    value: float
    label: str
    """What stands out, in words."""


@dataclass(frozen=True)
class ExamplesProps:
    """Where in a corpus a head, a coordinate or a neuron is strongest; `values` holds all tokens one after another."""

    place: str
    corpus: str
    n_examples: int
    lowest: bool
    examples: list[ExampleProps]
