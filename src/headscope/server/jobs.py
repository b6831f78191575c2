"""One thing after another: models run in a single thread, in the order they were asked for, and can be stopped.

Everything but `_do` happens in the event loop, so nothing here needs a lock.
"""

import asyncio
import secrets
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor

from headscope.errors import Cancelled, HeadscopeError
from headscope.progress import Progress
from headscope.server.errors import Refused, problem_of, stopping, unexpected
from headscope.server.log import log_failure, logger, type_and_place
from headscope.server.messages import RunEvent

ENDS = ("done", "failed", "cancelled")
Tell = Callable[[RunEvent], None]


class Job:
    """Something to be done, and what happened to it so far. `work` is called with a way to tell how it goes."""

    def __init__(self, key: str, work: Callable[["Job"], RunEvent]):
        self.key, self.work = key, work
        self.cancel = threading.Event()
        self.events: list[RunEvent] = []
        self.n_listeners = 0
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()

    @property
    def is_over(self) -> bool:
        """Whether its last word was said."""
        return bool(self.events) and self.events[-1].state in ENDS

    def tell(self, event: RunEvent) -> None:
        """Say where it stands, in the event loop; after the last word there is no other."""
        if self.is_over:
            return
        self.events.append(event)
        self._changed.set()
        self._changed = asyncio.Event()

    def tell_from_thread(self, event: RunEvent) -> None:
        """The same from the thread that does the work."""
        self.in_loop(lambda: self.tell(event))

    def report(self, progress: Progress) -> None:
        """Tell from the thread how far the work is."""
        self.tell_from_thread(RunEvent("running", done=progress.done, of=progress.total, stage=progress.stage))

    def in_loop(self, do: Callable[[], None]) -> None:
        """Have the event loop do something, in the order of asking; nothing, once it is closed."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(do)

    async def listen(self) -> AsyncIterator[RunEvent]:
        """Where it stands now, and every change until it is over."""
        place = max(len(self.events) - 1, 0)
        while True:
            while place < len(self.events):
                yield self.events[place]
                place += 1
            if self.is_over:
                return
            await self._changed.wait()

    async def end(self) -> RunEvent:
        """Its last word."""
        while not self.is_over:
            await self._changed.wait()
        return self.events[-1]


class Jobs:
    """The queue, and the thread that works it off."""

    def __init__(self, limit: int):
        self.limit = limit
        self._waiting: deque[Job] = deque()
        self._known: dict[str, Job] = {}
        self._running: Job | None = None
        self._pool = ThreadPoolExecutor(1, "headscope-run")
        self._begun, self._usual = 0.0, 1.0
        self._is_closed = False

    def submit(self, key: str, work: Callable[[Job], RunEvent], *, is_ours: bool = False) -> Job:
        """Join the job of this key if there is one that goes on, else queue it; refused when the queue is full."""
        known = self._known.get(key)
        if known is not None and not known.cancel.is_set():
            known.n_listeners += 1
            return known
        if self._is_closed:
            raise stopping()
        if len(self._waiting) >= self.limit and not is_ours:
            self._refuse()
        job = Job(key, work)
        job.n_listeners = 1
        self._known[key] = job
        self._waiting.append(job)
        job.tell(RunEvent("queued", ahead=self._ahead(len(self._waiting) - 1)))
        self._next()
        return job

    def leave(self, job: Job) -> None:
        """One listener less; the last one to leave stops the job."""
        job.n_listeners -= 1
        if job.n_listeners <= 0 and not job.is_over:
            self._stop(job)

    def close(self) -> bool:
        """Stop everything now; whether the thread is free (loading a model cannot be interrupted)."""
        self._is_closed, is_free = True, self._running is None
        for job in [*self._waiting, *([self._running] if self._running else [])]:
            self._stop(job)
            job.tell(RunEvent("cancelled", message="the server was stopped."))
        self._pool.shutdown(wait=False, cancel_futures=True)
        return is_free

    def _stop(self, job: Job) -> None:
        job.cancel.set()
        if job in self._waiting:
            self._waiting.remove(job)
            job.tell(RunEvent("cancelled"))
            self._forget(job)
            self._tell_places()

    def _ahead(self, place: int) -> int:
        return place + (self._running is not None)

    def _tell_places(self) -> None:
        for place, job in enumerate(self._waiting):
            if job.events[-1].ahead != self._ahead(place):
                job.tell(RunEvent("queued", ahead=self._ahead(place)))

    def _next(self) -> None:
        if self._running is not None or not self._waiting:
            return
        self._running = self._waiting.popleft()
        self._begun = time.monotonic()
        future = asyncio.get_running_loop().run_in_executor(self._pool, _do, self._running)
        future.add_done_callback(self._finish)

    def _finish(self, future: "asyncio.Future[RunEvent]") -> None:
        job, self._running = self._running, None
        assert job is not None
        self._forget(job)
        job.tell(RunEvent("cancelled") if future.cancelled() else future.result())
        self._usual = 0.7 * self._usual + 0.3 * (time.monotonic() - self._begun)
        self._next()
        self._tell_places()

    def _forget(self, job: Job) -> None:
        if self._known.get(job.key) is job:
            del self._known[job.key]

    def _refuse(self) -> None:
        seconds = max(1, round(self._usual * (len(self._waiting) + 1)))
        raise Refused(
            429,
            "Busy",
            f"the queue is full: {len(self._waiting)} waiting, as many as this server lets wait.",
            f"Try again in about {seconds} s.",
            {"Retry-After": str(seconds)},
        )


def _do(job: Job) -> RunEvent:
    """Work, in the thread; gives the last word."""
    try:
        if job.cancel.is_set():
            return RunEvent("cancelled")
        return job.work(job)
    except Cancelled:
        return RunEvent("cancelled")
    except Refused as error:
        problem = error.problem
        logger.info("not done: %s", type_and_place(error))
    except HeadscopeError as error:
        problem = problem_of(error)
        logger.info("not done: %s", type_and_place(error))
    except MemoryError as error:
        problem = problem_of(HeadscopeError("the memory ran out: shorten the input, or choose the record 'summary'."))
        logger.info("not done: %s", type_and_place(error))
    except Exception as error:  # a model is other people's code and raises anything; the server goes on
        problem = unexpected(id := secrets.token_hex(4))
        log_failure("a run", error, id)
    return RunEvent("failed", error=problem.error, message=problem.message, hint=problem.hint, cut_to=problem.cut_to)
