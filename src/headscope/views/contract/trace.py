"""One run: its tokens, layers and answers; the models and inputs to run, and what a saved page holds."""

from dataclasses import dataclass, field
from typing import Literal

from headscope.choices import Theme

TokenKind = Literal["text", "patches", "frames"]


@dataclass(frozen=True)
class StackProps:
    """The tokens of one stack, column by column. `special` lists positions; `words` and `sentences` hold null there.

    `spaces` lists the positions before which the text has white space: what words and sentences are joined with.
    `looks` says what there is to look at: the part `image/NAME` or `sound/NAME`. `replaced` lists the positions whose
    token an edit put there. Of an image within a text, `boxes` are where its tokens lie in the picture (left, top,
    right and bottom, as shares of its width and height), null for other tokens; empty where no token has a place.
    `answer` is the first and the last token of the span that the model answers with.
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
    replaced: list[int] = field(default_factory=list)
    boxes: list[tuple[float, float, float, float] | None] = field(default_factory=list)
    answer: tuple[int, int] | None = None


@dataclass(frozen=True)
class SiteProps:
    """One attention layer. Where scores, contributions or exact weights are missing, the reason is said.

    `no_token_edits` says why edits cannot choose its tokens. `window` is how many keys a query sees to one side, itself
    included (0: no window), apart from `global_tokens`, which see all and are seen by all.
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
    no_token_edits: str = ""
    grid: tuple[int, int] | None = None
    places: list[int] = field(default_factory=list)
    window: int = 0
    global_tokens: list[int] = field(default_factory=list)
    n_experts: int = 0
    """Of a mixture of experts: how many there are; 0 where no router was observed."""


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
class EditedWeightsProps:
    """The weights of a head that an edit of single tokens set: of `queries` on `keys`; no keys stand for all."""

    head: str
    queries: list[int]
    keys: list[int]


@dataclass(frozen=True)
class EditedLayerProps:
    """A layer whose MLP neurons or residual stream an edit changed: no single head of it was."""

    stack: str
    layer: int
    part: Literal["mlp", "residual"]


@dataclass(frozen=True)
class TraceProps:
    """One run: what was read, what was edited, what there is to see, what the model answered.

    `edits` are the Python that makes them; `edited_heads`, `edited_layers` and `edited_weights` are what they act on.
    """

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
    edited_heads: list[str] = field(default_factory=list)
    edited_weights: list[EditedWeightsProps] = field(default_factory=list)
    edited_layers: list[EditedLayerProps] = field(default_factory=list)
    pruned_heads: list[str] = field(default_factory=list)
    """Heads that are pruned in the model's weights: they attend, and add nothing to the output."""


@dataclass(frozen=True)
class PresetProps:
    """An input to start from; `sort` is the measure that ranks heads for it, where one does. The page opens on such an
    input, if the model has one."""

    name: str
    look_for: str
    text: str | None = None
    pair: str | None = None
    target: str | None = None
    media: str | None = None
    sort: str = ""


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
    languages: list[str] = field(default_factory=list)
    """The languages that a speech model can be told to hear, as codes; empty for others."""
    tasks: list[str] = field(default_factory=list)
    """What a speech model can be told to write: `transcribe`, `translate`; empty for others."""


@dataclass(frozen=True)
class SavedProps:
    """What a saved page holds, as its part `saved`: which view, the selection it opens with, what was left out."""

    view: str
    selection: dict[str, object]
    notes: list[str]
    theme: Theme = "system"
