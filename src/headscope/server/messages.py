"""What the page sends to run a model, and what it hears while that runs."""

from dataclasses import dataclass, field
from typing import Literal

from headscope.choices import AtlasSpace, Coordinates, MapMethod, Scale
from headscope.views.atlas_selection import AtlasSelection
from headscope.views.contract import ModelProps, PresetProps
from headscope.views.selection import Selection


@dataclass(frozen=True)
class ChatMessage:
    """One turn of a conversation."""

    role: str
    content: str


@dataclass(frozen=True)
class RunRequest:
    """Run a model on one input. The same request finds the same run again while the server remembers it."""

    model: str
    text: str | None = None
    pair: str | None = None
    target: str | None = None
    chat: list[ChatMessage] | None = None
    truncate: bool = False
    record: Literal["summary", "heads", "full"] | None = None
    edits: list[str] = field(default_factory=list)
    """Interventions, each as the Python that makes it: `silence('L3H2')`."""
    generate: int = 0
    """How many tokens the model writes after the text."""
    media: str | None = None
    """An image or a sound: the id that its upload was given, or `preset:NAME`."""
    language: str | None = None
    """The language of a sound, as `ModelProps.languages` has it. Default: the model detects it."""
    task: str | None = None
    """What a speech model writes: one of `ModelProps.tasks`. Default: the model's, which is to transcribe."""


@dataclass(frozen=True)
class MediaProps:
    """A picture or a sound that was uploaded: its id for `RunRequest.media`, what it is, what is done to it."""

    id: str
    kind: Literal["image", "audio"]
    about: str
    notes: list[str]


@dataclass(frozen=True)
class RunEvent:
    """One line of the answer to a run or a task: where it stands. The last line is done, failed, cancelled or absent.

    A run counts layers; a task counts what is done of how many things, and ends with the id of its result. `stage` says
    what is counted, where that changes on the way.
    Absent is the answer to `only_kept`: the server holds no result of this request, and has computed none.
    """

    state: Literal["queued", "loading", "running", "done", "failed", "cancelled", "absent"]
    ahead: int = 0
    layer: int = 0
    n_layers: int = 0
    done: int = 0
    of: int = 0
    stage: str = ""
    trace: str = ""
    result: str = ""
    error: str = ""
    message: str = ""
    hint: str = ""
    cut_to: str = ""


@dataclass(frozen=True)
class TaskRequest:
    """Have something worked out that needs more than a trace: of a run, or (without one) of a model."""

    name: str
    trace: str = ""
    model: str = ""
    options: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class LoadRequest:
    """Load a model, to learn what it takes: a built-in name, a folder or a hub id, as far as the server may."""

    name: str


@dataclass(frozen=True)
class PageRequest:
    """Save what is on screen as one HTML file: a view, and the selection it opens with."""

    view: Scale
    selection: Selection = field(default_factory=Selection)
    minus: str = ""
    """The id of a run that is subtracted from the one that is saved."""


@dataclass(frozen=True)
class Remembered:
    """A run that the server still has: its trace's id, what was asked, when (seconds since 1970), how long it is."""

    id: str
    request: RunRequest
    when: float
    n_tokens: int


@dataclass(frozen=True)
class Problem:
    """What went wrong, for people: what was asked, what exists, what to do.

    `cut_to` is what an input that is too long can be cut to, `512 tokens`; empty where that is not the problem.
    """

    error: str
    message: str
    hint: str = ""
    cut_to: str = ""


@dataclass(frozen=True)
class PatternOffer:
    """A pattern that heads can be looked for by, what an input needs for it, and a text (or pair) that has that.

    `kinds` are the kinds of input of which the model must take one, empty for any. A pattern that `looks_ahead` cannot
    occur in a causal model.
    """

    name: str
    about: str
    needs: str
    text: str = ""
    pair: str | None = None
    kinds: list[str] = field(default_factory=list)
    looks_ahead: bool = False


@dataclass(frozen=True)
class UseCaseOffer:
    """A use case that can be run on a model."""

    name: str
    title: str
    about: str
    needs_pairs: bool


@dataclass(frozen=True)
class PointOffer:
    """A point of a sweep: the name of its model, how its heads were chosen, how many it keeps, and its score."""

    model: str
    about: str
    n_kept: int
    score: str


@dataclass(frozen=True)
class SweepOffer:
    """A sweep of pruned heads: its points, the untouched model first, then fewer and fewer heads of `total`."""

    name: str
    model: str
    total: int
    points: list[PointOffer]


@dataclass(frozen=True)
class AtlasOffer:
    """An atlas: the id of its parts, its name in links, what it was made from, and the model to run.

    `model` is empty where this server does not offer the model, whose name is `model_name`.
    """

    id: str
    name: str
    title: str
    model: str
    model_name: str
    n_heads: int
    n_points: int
    space: AtlasSpace
    has_vectors: bool


@dataclass(frozen=True)
class AtlasTaskRequest:
    """Have the map of all heads made, or the scores."""

    task: Literal["map", "scores"]
    method: MapMethod = "pca"
    dims: int = 2
    coordinates: Coordinates = "scaled"


@dataclass(frozen=True)
class AtlasBuildRequest:
    """Make an atlas of a model: of texts, one an example, or of a corpus that the server has."""

    model: str
    corpus: Literal["texts", "server", "builtin"] = "texts"
    texts: list[str] = field(default_factory=list)
    points: int = 4000
    title: str = ""


@dataclass(frozen=True)
class AtlasPageRequest:
    """Save an atlas as one HTML file: these heads, or the one in view, or all, as far as there is room."""

    selection: AtlasSelection = field(default_factory=AtlasSelection)
    heads: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Settings:
    """What this server offers, and its limits."""

    version: str
    models: list[ModelProps] = field(default_factory=list)
    allows_hub: bool = False
    allows_folders: bool = False
    saves_models: bool = False
    max_characters: int = 0
    max_turns: int = 0
    default_model: str = ""
    patterns: list[PatternOffer] = field(default_factory=list)
    use_cases: list[UseCaseOffer] = field(default_factory=list)
    max_media_bytes: int = 0
    corpus: str = ""
    """The name of the corpus that examples are taken from."""
    is_corpus_builtin: bool = False
    """Whether that is the built-in sentences, as the server was started without a corpus."""
    samples: list[PresetProps] = field(default_factory=list)
    """Sentences of that corpus to start from; one with its tree is CoNLL-U."""
    sweeps: list[SweepOffer] = field(default_factory=list)
    atlases: list[AtlasOffer] = field(default_factory=list)
    max_atlas_points: int = 0


MESSAGES = (
    RunRequest,
    MediaProps,
    RunEvent,
    TaskRequest,
    LoadRequest,
    PageRequest,
    Remembered,
    Problem,
    AtlasTaskRequest,
    AtlasBuildRequest,
    AtlasPageRequest,
    Settings,
)
