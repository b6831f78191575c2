"""How many examples of a run are done: those of whole shards, and of the shard that is under way."""

from headscope.progress import OnProgress, Progress


class Counter:
    """Counts the examples of a run and reports them, those that were there before included."""

    def __init__(self, progress: OnProgress | None, n_examples: int, n_before: int):
        self.progress, self.n_examples, self.n_done = progress, n_examples, n_before
        self._partly = 0
        self._report()

    def batch(self, n: int) -> None:
        """So many examples of the current shard are done."""
        self._partly += n
        self._report()

    def shard(self, n: int) -> None:
        """A shard of so many examples is done and kept."""
        self.n_done, self._partly = self.n_done + n, 0
        self._report()

    def _report(self) -> None:
        if self.progress is not None:
            done = min(self.n_done + self._partly, self.n_examples)
            self.progress(Progress("examples", done, self.n_examples))
