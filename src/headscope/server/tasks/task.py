"""What a task is: something for the page that needs the model, so it waits in the queue of runs like a run does."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headscope.corpora import Corpus
from headscope.models import Model
from headscope.progress import Cancel, OnProgress
from headscope.server.memory import Cache, Reservation
from headscope.server.runs import ServerRun
from headscope.views.wire import Part


@dataclass(frozen=True)
class Desk:
    """What a task works with. `run` is None where the task is about the model alone."""

    model: Model
    run: ServerRun | None
    cancel: Cancel
    progress: OnProgress
    cache: Cache[Any]
    """What tasks leave for those that come after."""
    room: Reservation
    """The memory that was reserved for this task."""
    corpus: Path | Corpus | None = None
    """The corpus that the server was started with; None where the built-in sentences serve."""
    other: tuple[Model, ServerRun] | None = None
    """The run that is subtracted, with its model, where the options name one."""


@dataclass(frozen=True)
class Task:
    """A name, the dataclass of its options, and the work itself, which gives one part.

    `of_trace` says whether it needs a run; one that can be of two has an option `minus`, the id of the second. The work
    looks at `cancel` (or hands it on) and raises `Cancelled`.
    """

    name: str
    options: type
    work: Callable[[Desk, Any], Part]
    of_trace: bool = True
    working_bytes: Callable[[Model, ServerRun], int] | None = None
    """The most memory that it works with, of a run. By default a task is given a quarter of the server's."""
