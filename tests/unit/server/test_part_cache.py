"""Parts are computed once, however many ask, and not at all when all have left."""

import asyncio
import contextlib
import threading

import pytest

from headscope.server.errors import Refused
from headscope.server.memory import Memory
from headscope.server.options import Limits
from headscope.server.part_cache import Parts


class Counted:
    def __init__(self, data: bytes = b"data") -> None:
        self.data, self.count, self.gate = data, 0, threading.Event()

    def __call__(self) -> bytes:
        self.count += 1
        self.gate.wait(5)
        return self.data


def test_requests_for_the_same_part_share_one_computation() -> None:
    async def main() -> None:
        parts, compute = Parts(Memory(10**9), Limits()), Counted()
        requests = [asyncio.create_task(parts.get("id", "key", compute)) for _ in range(5)]
        await asyncio.sleep(0.02)
        requests[0].cancel()
        compute.gate.set()
        assert await asyncio.gather(*requests[1:]) == [b"data"] * 4
        assert await parts.get("id", "key", compute) == b"data"
        assert compute.count == 1 and parts.close()
        with pytest.raises(Refused, match="being stopped"):
            await parts.get("id", "other", compute)

    asyncio.run(main())


def test_a_part_that_nobody_waits_for_any_more_is_not_begun() -> None:
    async def main() -> None:
        parts, first, second = Parts(Memory(10**9), Limits(part_threads=1)), Counted(), Counted()
        busy = asyncio.create_task(parts.get("id", "a", first))
        await asyncio.sleep(0.02)
        left = asyncio.create_task(parts.get("id", "b", second))
        await asyncio.sleep(0.02)
        left.cancel()
        await asyncio.gather(left, return_exceptions=True)
        first.gate.set()
        await busy
        assert second.count == 0
        second.gate.set()
        assert await parts.get("id", "b", second) == b"data"
        assert parts.close()

    asyncio.run(main())


def test_leaving_and_asking_again_at_once_gives_the_part() -> None:
    async def main() -> None:
        parts, busy, wanted = Parts(Memory(10**9), Limits(part_threads=1)), Counted(), Counted()
        wanted.gate.set()

        async def leave_and_ask_again() -> bytes:
            with contextlib.suppress(asyncio.CancelledError):
                await parts.get("id", "b", wanted)
            return await parts.get("id", "b", wanted)  # in the same step of the event loop as the leaving

        occupied = asyncio.create_task(parts.get("id", "a", busy))
        asking = asyncio.create_task(leave_and_ask_again())
        await asyncio.sleep(0.02)
        asking.cancel()
        await asyncio.sleep(0.02)
        joined = asyncio.create_task(parts.get("id", "b", wanted))
        await asyncio.sleep(0)
        busy.gate.set()
        assert await asyncio.gather(asking, joined, return_exceptions=True) == [b"data", b"data"]
        assert await occupied == b"data" and wanted.count == 1 and parts.close()

    asyncio.run(main())


def test_a_part_that_waits_while_the_server_stops_is_refused_in_words() -> None:
    async def main() -> None:
        parts, busy = Parts(Memory(10**9), Limits(part_threads=1)), Counted()
        occupied = asyncio.create_task(parts.get("id", "a", busy))
        waiting = asyncio.create_task(parts.get("id", "b", Counted()))
        await asyncio.sleep(0.02)
        assert not parts.close()
        with pytest.raises(Refused, match="being stopped"):
            await waiting
        busy.gate.set()
        assert await occupied == b"data"

    asyncio.run(main())


def test_an_error_reaches_all_and_is_not_kept() -> None:
    def fail() -> bytes:
        raise ValueError("no")

    async def main() -> None:
        parts = Parts(Memory(10**9), Limits())
        for _ in range(2):
            with pytest.raises(ValueError, match="no"):
                await parts.get("id", "key", fail)
        assert len(parts.cache) == 0 and parts.close()

    asyncio.run(main())


def test_one_large_part_does_not_push_out_the_others() -> None:
    async def main() -> None:
        parts, large = Parts(Memory(800), Limits()), Counted(b"x" * 60)
        large.gate.set()
        await parts.get("id", "small", lambda: b"x" * 20)
        assert await parts.get("id", "large", large) == b"x" * 60
        assert parts.cache.get(("id", "small")) and parts.cache.get(("id", "large")) is None
        assert parts.close()

    asyncio.run(main())
