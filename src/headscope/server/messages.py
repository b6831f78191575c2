"""What the page sends to run a model, and what it hears while that runs."""

from dataclasses import dataclass, field
from typing import Literal

from headscope.views.contract import ModelProps
from headscope.views.selection import Scale, Selection


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


@dataclass(frozen=True)
class RunEvent:
    """One line of the answer to a RunRequest: where the run stands. The last line is done, failed or cancelled."""

    state: Literal["queued", "loading", "running", "done", "failed", "cancelled"]
    ahead: int = 0
    layer: int = 0
    n_layers: int = 0
    trace: str = ""
    error: str = ""
    message: str = ""
    hint: str = ""


@dataclass(frozen=True)
class LoadRequest:
    """Load a model, to learn what it takes: a built-in name, a folder or a hub id, as far as the server may."""

    name: str


@dataclass(frozen=True)
class PageRequest:
    """Save what is on screen as one HTML file: a view, and the selection it opens with."""

    view: Scale
    selection: Selection = field(default_factory=Selection)


@dataclass(frozen=True)
class Remembered:
    """A run that the server still has: its trace's id, what was asked, when (seconds since 1970), how long it is."""

    id: str
    request: RunRequest
    when: float
    n_tokens: int


@dataclass(frozen=True)
class Problem:
    """What went wrong, for people: what was asked, what exists, what to do."""

    error: str
    message: str
    hint: str = ""


@dataclass(frozen=True)
class Settings:
    """What this server offers, and its limits."""

    version: str
    models: list[ModelProps] = field(default_factory=list)
    allows_hub: bool = False
    allows_folders: bool = False
    max_characters: int = 0
    max_turns: int = 0
    default_model: str = ""


MESSAGES = (RunRequest, RunEvent, LoadRequest, PageRequest, Remembered, Problem, Settings)
