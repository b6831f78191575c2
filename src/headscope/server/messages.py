"""What the page sends to run a model, and what it hears while that runs."""

from dataclasses import dataclass, field
from typing import Literal

from headscope.views.contract import ModelProps


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
    default_model: str = ""


MESSAGES = (RunRequest, RunEvent, Problem, Settings)
