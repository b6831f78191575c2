"""Parts of traces for the page: computed beside the queue of runs, each once, and kept ready for a while."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from headscope.server.kept import Kept
from headscope.server.options import Limits
from headscope.server.problems import stopping

Place = tuple[str, str]


class Parts:
    """Bytes by what was asked. Requests for the same part share one computation."""

    def __init__(self, limits: Limits):
        self.kept: Kept[bytes] = Kept(limits.part_bytes)
        self._pool = ThreadPoolExecutor(limits.part_threads, "headscope-part")
        self._going: dict[Place, _Going] = {}
        self._is_closed = False

    async def get(self, id: str, key: str, compute: Callable[[], bytes]) -> bytes:
        """The bytes of one part, kept or computed in a thread."""
        place = id, key
        ready = self.kept.get(place)
        if ready is not None:
            return ready
        if self._is_closed:
            raise stopping()
        going = self._going.get(place)
        if going is None:
            going = self._going[place] = _Going(self._pool.submit(compute))
            going.shared.add_done_callback(lambda done: self._finished(place, done))
        going.n_waiting += 1
        try:
            return await asyncio.shield(going.shared)
        finally:
            going.n_waiting -= 1
            if not going.n_waiting:
                going.work.cancel()  # takes it off the pool's list; one that has begun is finished, and kept

    def close(self) -> bool:
        """Take no more work; whether the threads are free."""
        self._is_closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)
        return not self._going

    def _finished(self, place: Place, done: "asyncio.Future[bytes]") -> None:
        del self._going[place]
        if done.cancelled() or done.exception() is not None:
            return
        data = done.result()
        if len(data) <= self.kept.limit // 4:  # one large part must not push out all the others
            self.kept.put(place, data, len(data))


class _Going:
    """A computation in a thread, as the event loop sees it, and how many wait for it."""

    def __init__(self, work: Future[bytes]):
        self.work, self.n_waiting = work, 0
        self.shared: asyncio.Future[bytes] = asyncio.wrap_future(work)
