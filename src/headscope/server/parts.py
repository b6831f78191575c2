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
            going = self._going[place] = started = _Going(self._pool.submit(compute))
            going.shared.add_done_callback(lambda _: self._finished(place, started))
        going.n_waiting += 1
        try:
            return await asyncio.shield(going.shared)
        except asyncio.CancelledError:
            if self._is_closed and going.shared.cancelled():
                raise stopping() from None
            raise
        finally:
            going.n_waiting -= 1
            # A computation that has not begun is taken off the pool's list, and at once off ours: whoever asks for the
            # part from now on starts another. One that has begun is finished, kept, and can be joined.
            if not going.n_waiting and going.work.cancel():
                self._forget(place, going)

    def close(self) -> bool:
        """Take no more work; whether the threads are free."""
        self._is_closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)
        return not self._going

    def _finished(self, place: Place, going: "_Going") -> None:
        self._forget(place, going)
        if going.shared.cancelled() or going.shared.exception() is not None:
            return
        data = going.shared.result()
        if len(data) <= self.kept.limit // 4:  # one large part must not push out all the others
            self.kept.put(place, data, len(data))

    def _forget(self, place: Place, going: "_Going") -> None:
        """Let nobody join it any more; a later computation of the same part stays."""
        if self._going.get(place) is going:
            del self._going[place]


class _Going:
    """A computation in a thread, as the event loop sees it, and how many wait for it."""

    def __init__(self, work: Future[bytes]):
        self.work, self.n_waiting = work, 0
        self.shared: asyncio.Future[bytes] = asyncio.wrap_future(work)
