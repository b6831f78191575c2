"""How far something is that takes its time, and how to stop it: the same for runs, generation, corpora and analyses."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headscope.errors import Cancelled

if TYPE_CHECKING:
    from rich.console import Console

# An event that stops the work when it is set, from any thread: it raises `Cancelled` at its next step.
Cancel = threading.Event


@dataclass(frozen=True)
class Progress:
    """`done` of `total` steps of a stage, as "layers", "tokens" or "examples"; `note` says how the work is going."""

    stage: str
    done: int
    total: int
    note: str = ""


OnProgress = Callable[[Progress], None]


def stop_if(cancel: Cancel | None) -> None:
    """Raise `Cancelled` if the event is set."""
    if cancel is not None and cancel.is_set():
        raise Cancelled("it was stopped on request.")


class Steps:
    """Counts the steps of a stage: `next()` before each, or `add()` after some."""

    def __init__(self, stage: str, total: int, progress: OnProgress | None, cancel: Cancel | None = None):
        self.stage, self.total, self.done = stage, total, 0
        self.progress, self.cancel = progress, cancel

    def next(self) -> None:
        """Stop if that was asked for; report how many steps are done, and begin another."""
        stop_if(self.cancel)
        self._report()
        self.done += 1

    def add(self, n: int = 1, note: str = "") -> None:
        """Report so many more steps as done, and how the work is going, as "loss 1.21"."""
        self.done += n
        self._report(note)

    def _report(self, note: str = "") -> None:
        if self.progress is not None:
            self.progress(Progress(self.stage, self.done, self.total, note))


@contextlib.contextmanager
def progress_bars(*, console: "Console | None" = None) -> Iterator[OnProgress]:
    """A bar for each stage, with rate and time left: `with hs.progress_bars() as bars: hs.heads(…, progress=bars)`.

    Notes are lines below the bars. Nothing is drawn where the console is neither a terminal nor a notebook.
    """
    from rich.console import Console

    from headscope.progress_display import BarsWithNotes

    console = Console(highlight=False) if console is None else console
    is_hidden = not (console.is_terminal or console.is_jupyter)
    with BarsWithNotes(console=console, disable=is_hidden) as bars:
        tasks: dict[str, Any] = {}

        def report(progress: Progress) -> None:
            stage = progress.stage
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=progress.total, completed=progress.done, rate="", note="")
            if progress.done < bars.tasks[tasks[stage]].completed:  # the stage begins anew
                bars.reset(tasks[stage], total=progress.total)
            bars.update(tasks[stage], completed=progress.done, total=progress.total)
            speed = bars.tasks[tasks[stage]].speed
            bars.update(tasks[stage], rate="" if speed is None else f"{speed:.1f}/s", note=progress.note)

        yield report
