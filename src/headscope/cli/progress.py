"""What commands that take their time show meanwhile, and say when they are stopped."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from headscope.cli.console import print_note
from headscope.errors import Cancelled


@contextlib.contextmanager
def progress_bars() -> Iterator[Callable[[str, int, int], None]]:
    """A bar for each thing that takes its time, with rate and time left; nothing where no one looks."""
    console = Console(stderr=True, highlight=False)
    columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TaskProgressColumn(show_speed=True)]
    with Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal) as bars:
        tasks: dict[str, Any] = {}

        def report(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done, total=total)

        yield report


@contextlib.contextmanager
def note_what_is_kept(output: Path) -> Iterator[None]:
    """When stopped, say that what was finished is kept."""
    try:
        yield
    except (KeyboardInterrupt, Cancelled) as stop:
        print_note(f"What was finished is kept in {output}: the same command goes on from there.")
        raise Cancelled(str(stop)) from stop
