"""How far a run is, for whoever draws it."""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """Examples and shards done and in all; `n_before` were there when the run began, `seconds` have passed since."""

    n_done: int
    n_examples: int
    n_before: int
    n_shards_done: int
    n_shards: int
    seconds: float

    @property
    def rate(self) -> float:
        """Examples a second."""
        return (self.n_done - self.n_before) / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """How long the rest will take at this rate; None while there is none."""
        return (self.n_examples - self.n_done) / self.rate if self.rate > 0 else None


Report = Callable[[Progress], None]


class Counter:
    """Counts examples and shards, and reports."""

    def __init__(self, report: Report | None, n_examples: int, n_shards: int, n_before: int, n_shards_before: int):
        self.report, self.n_examples, self.n_shards = report, n_examples, n_shards
        self.n_before, self.n_done, self.n_shards_done = n_before, n_before, n_shards_before
        self._partly = 0
        self._start = time.monotonic()

    def batch(self, n: int) -> None:
        """So many examples of the current shard are done."""
        self._partly += n
        self._tell()

    def shard(self, n: int) -> None:
        """A shard of so many examples is done and kept."""
        self.n_done, self._partly = self.n_done + n, 0
        self.n_shards_done += 1
        self._tell()

    def _tell(self) -> None:
        if self.report is not None:
            done = min(self.n_done + self._partly, self.n_examples)
            seconds = time.monotonic() - self._start
            counts = (done, self.n_examples, self.n_before, self.n_shards_done, self.n_shards)
            self.report(Progress(*counts, seconds))


@contextlib.contextmanager
def drawn(title: str = "measuring", *, console=None) -> Iterator[Report]:
    """A progress bar with rate and time left: `with runs.drawn() as bar: runs.run(…, progress=bar)`."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}")]
    with Bars(*columns, TimeRemainingColumn(), console=console) as bars:
        task = bars.add_task(title, total=None, rate="")

        def report(progress: Progress) -> None:
            bars.update(
                task, completed=progress.n_done, total=progress.n_examples, rate=f"{progress.rate:.1f} examples/s"
            )

        yield report
