"""What commands that take their time show meanwhile, and say when they are stopped."""

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from rich.console import Console

from headscope import progress
from headscope.cli.console import print_note
from headscope.errors import Cancelled
from headscope.progress import OnProgress


def progress_bars() -> AbstractContextManager[OnProgress]:
    """Bars on the terminal's error stream; nothing where no one looks."""
    return progress.progress_bars(console=Console(stderr=True, highlight=False))


@contextlib.contextmanager
def note_what_is_kept(output: Path) -> Iterator[None]:
    """When stopped, say that what was finished is kept."""
    try:
        yield
    except (KeyboardInterrupt, Cancelled) as stop:
        print_note(f"What was finished is kept in {output}: the same command goes on from there.")
        raise Cancelled(str(stop)) from stop
