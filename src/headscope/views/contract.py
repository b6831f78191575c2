"""What the page is told, in types: the properties of every part. `web/src/contract.ts` is written from these.

A **part** is one thing that the page asks for by its key. The keys are the same in the workbench (the tail of a URL),
in a saved page (a dictionary) and in a notebook (a message):

| key | props | arrays |
|---|---|---|
| `trace` | TraceProps | – |
| `maps?size=96` | MapsProps | one per layer, by its site (`L0`): [head, row, column], sqrt bytes, max-pooled |
| `layer/L3?what=pattern` | LayerProps | dense: `weights` [head, query, key]; sparse: `keys`, `weights` […, rank] |
| `layer/L3?what=scores` | LayerProps | dense: `weights` [head, query, key] holds scores, −inf where masked |
| `row/L3?query=5`, `row/L3?key=5` | RowProps | `weights` [head, key] or [head, query]; `scores` likewise where known |
| `window/L3H2?rows=0:512&columns=0:512&size=512` | WindowProps | `weights` [row, column], max-pooled |
| `neuron/L3H2?query=5` | NeuronProps | `query` [query, dim], `dots`, `weights` [query, key], … (`neurons.py`) |
| `vectors/L3H2?of=key&rows=0:512` | VectorsProps | `vectors` [token, dim]; `mean` and `spread` [dim] over all tokens |
| `image/main` | ImageProps | `pixels` [height, width, 1 or 3]: bytes, as the model saw them |
| `sound/encoder` | SoundProps | `envelope` [stretch, 2]: lowest and highest sample; `spectrogram` [band, time]: bytes |
| `rollout/L5` | RolloutProps | `weights` [token, token]: attention followed down to the input, through L5 |
| `scores` | ScoresProps | one per method: [head], in the order of the trace's heads; NaN where it says nothing |
| `alignment?minus=ID&by=words` | AlignmentProps | `a:main`, `b:main`: the pair of every token, −1 for none |
| `relation?source=4&target=1&minus=ID` | RelationProps | `a`, `b`: [head, (weight, baseline, depth)] |
| `activations/main` | ActivationsProps | norms, lens, neurons; in saved pages (a server has a task `activations`) |
| `gold` | GoldProps | – |
| `tree/L3H2?way=A` | TreeProps | – |
| `report` | ReportProps | one per method: [head]; where known also `low/NAME`, `high/NAME`, `baseline/NAME` |

`layer`, `row` and `window` also take `by=words|sentences` and `hide=` (positions, comma-separated, `stack:position`
where there are several stacks), for inputs too long for the page to do that itself. All but the last two take
`minus=ID`, another run: then they are of the first run minus that one, on the tokens that both have, with signs.
"""

from dataclasses import dataclass, field
from typing import Literal

from headscope.choices import By, Theme, Vectors, Way, What

TokenKind = Literal["text", "patches", "frames"]


@dataclass(frozen=True)
class StackProps:
    """The tokens of one stack, column by column. `special` lists positions; `words` and `sentences` hold null there.

    `spaces` lists the positions before which the text has white space: what words and sentences are joined with.
    `looks` says what there is to look at: the part `image/NAME` or `sound/NAME`.
    """

    name: str
    kind: TokenKind
    grid: tuple[int, int] | None
    texts: list[str]
    ids: list[int | None]
    special: list[int]
    words: list[int | None]
    sentences: list[int | None]
    segments: list[str]
    spaces: list[int] = field(default_factory=list)
    looks: Literal["", "image", "sound"] = ""


@dataclass(frozen=True)
class SiteProps:
    """One attention layer. Where scores, contributions or exact weights are missing, the reason is said.

    `grid` is that of the patches which its keys are (after special tokens), null where they are none; `places` numbers
    them in it where they are not taken row by row, −1 for what is no patch.
    """

    site: str
    stack: str
    kind: Literal["self", "cross"]
    layer: int
    n_heads: int
    n_queries: int
    n_keys: int
    key_stack: str
    is_causal: bool
    no_weights: str
    no_scores: str
    no_contributions: str
    no_neurons: str = ""
    grid: tuple[int, int] | None = None
    places: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class OtherLayerProps:
    """A layer without softmax attention, and the class of the module that mixes its tokens."""

    stack: str
    layer: int
    mixer: str


@dataclass(frozen=True)
class CandidateProps:
    """One thing the model might answer."""

    text: str
    logprob: float
    id: int = -1


@dataclass(frozen=True)
class AnswerProps:
    """The likeliest answers at one position of a stack; position −1 for a classifier, which answers once."""

    stack: str
    position: int
    candidates: list[CandidateProps]


@dataclass(frozen=True)
class DifferenceProps:
    """The two runs of which a trace is the difference, by name, and how far they correspond, in words."""

    a: str
    b: str
    line: str


@dataclass(frozen=True)
class TraceProps:
    """One run: what was read, what there is to see, what the model answered."""

    id: str
    model: str
    record: str
    input_kind: str
    text: str | None
    pair: str | None
    target: str | None
    edits: list[str]
    warnings: list[str]
    stacks: list[StackProps]
    layers: list[SiteProps]
    answers: list[AnswerProps]
    no_answers: str
    steps: list[int | None] | None
    difference: DifferenceProps | None = None
    other_layers: list[OtherLayerProps] = field(default_factory=list)


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
    """All heads of one layer, whole (`dense`) or the strongest keys of each query (`sparse`, `kept` of them).

    `queries` and `keys` name the tokens where they are read otherwise than one by one; empty when they are the trace's.
    """

    site: str
    what: What
    form: Literal["dense", "sparse"]
    by: By
    kept: int
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


@dataclass(frozen=True)
class VectorsProps:
    """Queries, keys, values or outputs (`mixed`) of one head, of tokens first to last (not included)."""

    head: str
    of: Vectors
    rows: tuple[int, int]
    n_tokens: int
    largest: float


@dataclass(frozen=True)
class ImageProps:
    """A picture as the model saw it, of `size` (height, width); a patch is so many of the pixels sent."""

    stack: str
    size: tuple[int, int]
    patch: tuple[float, float]
    note: str


@dataclass(frozen=True)
class SoundProps:
    """A sound of `heard` seconds; the model's frames span `seconds`."""

    stack: str
    seconds: float
    heard: float
    note: str


@dataclass(frozen=True)
class RolloutProps:
    """Attention followed from a layer through all below it (Abnar & Zuidema, 2020)."""

    site: str


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
class PairedStackProps:
    """A stack of the first run and its partner in the second; `texts` names their pairs, `same` those that agree."""

    stack: str
    other: str
    texts: list[str]
    same: list[bool]
    is_whole: bool


@dataclass(frozen=True)
class AlignmentProps:
    """Which tokens of two runs stand for the same. `no_difference` says why they cannot be subtracted."""

    by: By
    line: str
    no_difference: str
    stacks: list[PairedStackProps]


@dataclass(frozen=True)
class RankingProps:
    """The heads of one model, the best for a relation first; `note` says why none is, if none is."""

    model: str
    heads: list[str]
    n_layers: int
    note: str


@dataclass(frozen=True)
class RelationProps:
    """From one word to another, in two runs."""

    source: str
    target: str
    a: RankingProps
    b: RankingProps


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
class PresetProps:
    """An input to start from."""

    name: str
    look_for: str
    text: str | None = None
    pair: str | None = None
    target: str | None = None
    media: str | None = None


@dataclass(frozen=True)
class ModelProps:
    """A model that can be chosen; what is only known once it is loaded is empty before."""

    name: str
    about: str
    is_loaded: bool
    kinds: list[str]
    shape: str
    covers: str
    """How much of it can be seen, for everybody; `coverage` says how."""
    coverage: str
    max_tokens: int | None
    presets: list[PresetProps] = field(default_factory=list)
    writes: bool = False
    """Whether it can be asked to write text."""


@dataclass(frozen=True)
class SavedProps:
    """What a saved page holds, as its part `saved`: which view, the selection it opens with, what was left out."""

    view: str
    selection: dict[str, object]
    notes: list[str]
    theme: Theme = "system"


@dataclass(frozen=True)
class ActivationsProps:
    """One stack, layer by layer. `places` name where the residual stream is read; `texts` what `lens` counts in.

    Arrays: `norm`, `cosine` [place, token]; `attention`, `cross`, `mlp` [layer, token], norms of what was written; of
    the tokens from `first` on: `lens`, `logprob` [place, token, k], `rank`, `answer` [place, token], `neuron`, `value`,
    `share` [layer, token, k], and by attention layer (`heads/L3`) what its heads wrote [head, token]. Of two runs there
    are `a:norm` and `b:norm`, and so on: `activation_differences.py` lists them.
    """

    stack: str
    places: list[str]
    layers: list[str]
    first: int
    count: int
    texts: list[str]
    n_neurons: int
    is_sum: bool
    no_lens: str
    no_neurons: str
    no_written: str


@dataclass(frozen=True)
class EffectProps:
    """What edits did to the output at positions of a stack, from `first` on (−1: a classifier, which answers once).

    Arrays: `kl` [position], `candidates` [position, rank] (places in `texts`, −1 for none), `before` and `after` their
    log-probabilities. The losses are those of the text itself, where the model predicts it.
    """

    stack: str
    first: int
    texts: list[str]
    mean_kl: float
    loss_before: float | None
    loss_after: float | None


@dataclass(frozen=True)
class WrittenProps:
    """What the model writes without the edits and with them, up to so many tokens."""

    n: int
    before: str
    after: str


@dataclass(frozen=True)
class GoldProps:
    """The words of the sentence: the positions of their tokens in `stack`, and where its tree is known the head of each
    (−1: the root) with the relation. Empty where the input comes without words."""

    stack: str
    words: list[list[int]]
    forms: list[str]
    heads: list[int]
    relations: list[str]


@dataclass(frozen=True)
class TreeProps:
    """The tree that a head's attention induces over those words: the head of each (−1: the root, −2: without tokens).

    Beside the gold tree: which words look most at their own head, how many words have their head in the tree, out of
    how many, as a share, and what branching would give. `no_tree` says why there is none.
    """

    head: str
    way: Way
    heads: list[int]
    agrees: list[bool]
    uas: float | None
    baselines: dict[str, float]
    n_words: int
    n_right: int
    no_tree: str = ""


@dataclass(frozen=True)
class RelevanceProps:
    """Where one logit came from: the answer `text` at `position` (−1: the whole input), less `other` where it is a
    contrast. The tokens of `stacks` carry `carried` of it together; `bias_share` is the share that no input carries.

    Arrays: `tokens/STACK` [token]; of the heads, `share` of their layer and `raw` in units of the logit [head].
    """

    rule: Literal["cp", "attn"]
    position: int
    text: str
    other: str | None
    logit: float
    carried: float
    bias_share: float | None
    heads: list[str]
    stacks: list[str]


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


PARTS = (
    TraceProps,
    MapsProps,
    LayerProps,
    RowProps,
    WindowProps,
    ScoresProps,
    AlignmentProps,
    RelationProps,
    FoundProps,
    EvidenceProps,
    ReportProps,
    ModelProps,
    SavedProps,
    ActivationsProps,
    ExamplesProps,
    EffectProps,
    WrittenProps,
    NeuronProps,
    VectorsProps,
    ImageProps,
    SoundProps,
    RolloutProps,
    RelevanceProps,
    GoldProps,
    TreeProps,
)
