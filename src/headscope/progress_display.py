"""Bars of progress with notes below them, so that a narrow terminal shows both."""

from collections.abc import Iterable
from typing import Any

from rich.console import RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text


class BarsWithNotes(Progress):
    """A bar with its rate and the time left for each stage, and a line for each stage that has a note."""

    def __init__(self, **options: Any):
        rate = TextColumn("{task.fields[rate]}")
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), rate, TimeRemainingColumn())
        super().__init__(*columns, **options)

    def get_renderables(self) -> Iterable[RenderableType]:
        """The bars, then the notes."""
        yield from super().get_renderables()
        for stage in self.tasks:
            if stage.fields["note"]:
                yield Text(f"{stage.description}: {stage.fields['note']}")
