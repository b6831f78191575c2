"""What the terminal shows: what ran, how long it took, and where it failed; never what was typed or uploaded.

The message of an exception often quotes an input, a token, an edit or a file. So a failure is logged as the type of the
exception, the place in the code and an id that the answer names too. `--debug` adds messages and tracebacks.
"""

import logging
import sys
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

logger = logging.getLogger("headscope.server")


class Lines(logging.Formatter):
    """One short line per record; with `debug` everything that the record holds.

    What other packages log (asyncio, uvicorn, Pillow) can quote anything, so only its source and level are shown.
    """

    def __init__(self, *, debug: bool):
        super().__init__("%(asctime)s  %(message)s", "%H:%M:%S")
        self.debug = debug

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        if self.debug:
            return super().format(record)
        text = record.getMessage() if record.name == logger.name else f"{record.levelname} of {record.name}"
        error = record.exc_info[1] if record.exc_info else None
        failure = f": {type_and_place(error)}" if error else ""
        left_out = getattr(record, "left_out", 0)
        before = f" ({left_out:,} earlier lines left out)" if left_out else ""
        return f"{self.formatTime(record, self.datefmt)}  {text}{failure}{before}"


class FewOfEach(logging.Filter):
    """Lets through `most` records of a place in the code in `seconds`: what repeats does not fill the disk.

    The first record after that says how many were left out.
    """

    def __init__(self, most: int = 10, seconds: float = 10.0):
        super().__init__()
        self.most, self.seconds = most, seconds
        self._counts: Counter[tuple[str, int]] = Counter()
        self._begun = 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is written."""
        if record.created - self._begun >= self.seconds:
            record.left_out = sum(max(0, count - self.most) for count in self._counts.values())
            self._counts, self._begun = Counter(), record.created
        place = record.pathname, record.lineno
        self._counts[place] += 1
        return self._counts[place] <= self.most


def set_up(*, debug: bool) -> None:
    """Write the log of the whole process to stderr. Addresses of requests are not logged: they may hold a token."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines(debug=debug))
    if not debug:
        handler.addFilter(FewOfEach())
    logging.getLogger().addHandler(handler)
    logger.setLevel(logging.DEBUG if debug else logging.INFO)
    logging.getLogger("uvicorn").setLevel(logging.INFO if debug else logging.WARNING)


def silence_warnings() -> None:
    """Show warnings with `--debug` only: those about an input reach the page with its run."""

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        logger.debug("%s: %s", category.__name__, message)

    warnings.showwarning = show


def log_failure(what: str, error: BaseException, id: str) -> None:
    """Log an exception that nobody expected."""
    logger.error("%s failed: %s (id %s)", what, type_and_place(error), id)
    logger.debug("id %s:", id, exc_info=error)


def type_and_place(error: BaseException) -> str:
    """The type of an exception, and where it was raised: `ValueError at server/edits.py:56`."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{type(error).__name__} at {_place(frames[-1])}" if frames else type(error).__name__


def _place(frame: traceback.FrameSummary) -> str:
    return f"{'/'.join(Path(frame.filename).parts[-2:])}:{frame.lineno}"
