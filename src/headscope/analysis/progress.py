"""Steps of something that takes its time: told as they are done, and a place to stop between them."""

import threading
from collections.abc import Callable

from headscope.errors import Cancelled

Progress = Callable[[int, int], None]


class Steps:
    """Counts `total` steps; `next()` is called before each."""

    def __init__(self, total: int, progress: Progress | None, cancel: threading.Event | None):
        self.total, self.done, self.progress, self.cancel = total, 0, progress, cancel

    def next(self) -> None:
        """Tell how many are done, and stop if that was asked for."""
        if self.cancel is not None and self.cancel.is_set():
            raise Cancelled("it was stopped on request.")
        if self.progress is not None:
            self.progress(self.done, self.total)
        self.done += 1
