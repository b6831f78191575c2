"""Parts of traces for the page: computed beside the queue of runs, each once, and cached."""

import asyncio
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor

from headscope.server.errors import stopping
from headscope.server.memory import Address, Cache, Memory
from headscope.server.options import Limits
from headscope.traces import Trace
from headscope.views.layers import DENSE_CELLS
from headscope.views.measures import MEASURED_CELLS
from headscope.views.table import MOST_ROWS

Place = tuple[str, str]

SHARE = 1 / 8
"""Of the server's memory for parts: they are quickly computed again, unlike the traces that would make way."""
# Bytes per weight or row that a part works with: measured with GPT-2 small at 128 to 2,048 tokens, and rounded up.
_DENSE, _MEASURED, _ROLLOUT, _ROW = 10, 10, 24, 400


class Parts:
    """Bytes by what was asked. Requests for the same part share one computation."""

    def __init__(self, memory: Memory, limits: Limits):
        self.memory, self.cache = memory, Cache[bytes](memory, "parts", SHARE)
        self._pool = ThreadPoolExecutor(limits.part_threads, "headscope-part")
        self._going: dict[Place, _Going] = {}
        self._is_closed = False

    async def get(
        self, id: str, key: str, compute: Callable[[], bytes], *, size: int = 0, reads: Collection[Address] = ()
    ) -> bytes:
        """The bytes of one part, cached or computed in a thread, which works with up to `size` bytes and `reads`."""
        place = id, key
        ready = self.cache.get(place)
        if ready is not None:
            return ready
        if self._is_closed:
            raise stopping()
        going = self._going.get(place)
        if going is None:
            work = self._pool.submit(self._compute, place, compute, size, reads)
            going = self._going[place] = started = _Going(work)
            going.shared.add_done_callback(lambda _: self._finish(place, started))
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
            # part from now on starts another. One that has begun is finished, cached, and can be joined.
            if not going.n_waiting and going.work.cancel():
                self._forget(place, going)

    def close(self) -> bool:
        """Take no more work; whether the threads are free."""
        self._is_closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)
        return not self._going

    def _compute(self, place: Place, compute: Callable[[], bytes], size: int, reads: Collection[Address]) -> bytes:
        with self.memory.reserve(size, "this view", reads=reads) as room:
            data = compute()
            if len(data) <= self.cache.limit // 4:  # one large part must not push out all the others
                self.cache.put(place, data, len(data), room)
            return data

    def _finish(self, place: Place, going: "_Going") -> None:
        self._forget(place, going)
        if not going.shared.cancelled():
            going.shared.exception()  # asked for, in case that everybody has left: asyncio would log it

    def _forget(self, place: Place, going: "_Going") -> None:
        """Let nobody join it any more; a later computation of the same part stays."""
        if self._going.get(place) is going:
            del self._going[place]


class _Going:
    """A computation in a thread, as the event loop sees it, and how many wait for it."""

    def __init__(self, work: Future[bytes]):
        self.work, self.n_waiting = work, 0
        self.shared: asyncio.Future[bytes] = asyncio.wrap_future(work)


def working_bytes(trace: Trace, kind: str, *, is_difference: bool = False) -> int:
    """The most memory that a part of a trace takes while it is computed; `kind` is what its key begins with."""
    cells = [layer.n_heads * layer.n_queries * layer.n_keys for layer in trace.layers.values()]
    largest = max(cells, default=0)
    size = _DENSE * min(largest, DENSE_CELLS)
    if kind in ("scores", "table", "page") and sum(cells) <= MEASURED_CELLS:
        size += _MEASURED * sum(cells)
    if kind == "table":
        size += _ROW * min(largest, MOST_ROWS)
    if kind == "rollout":
        size += _ROLLOUT * largest
    return size * (2 if is_difference else 1)
