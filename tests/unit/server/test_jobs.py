"""The queue: one job at a time, joined by those who ask for the same, stopped when nobody listens."""

import asyncio
import threading

import pytest

from headscope.errors import Cancelled, InputError
from headscope.server.errors import Refused
from headscope.server.jobs import Job, Jobs
from headscope.server.messages import RunEvent


class Slow:
    """Work that goes on until it is told to end, or cancelled."""

    def __init__(self) -> None:
        self.may_end = threading.Event()
        self.n_begun = 0
        self.saw_cancel = False

    def __call__(self, job: Job) -> RunEvent:
        self.n_begun += 1
        while not self.may_end.wait(0.005):
            if job.cancel.is_set():
                self.saw_cancel = True
                raise Cancelled("the run was cancelled.")
        return RunEvent("done", trace=job.key)


def quick(job: Job) -> RunEvent:
    return RunEvent("done", trace=job.key)


async def heard(job: Job) -> list[tuple[str, int]]:
    return [(event.state, event.ahead) async for event in job.listen()]


def test_those_who_wait_hear_how_many_are_ahead() -> None:
    async def main() -> None:
        jobs, slow = Jobs(5), Slow()
        running = jobs.submit("a", slow)
        waiting = [jobs.submit(key, quick) for key in "bc"]
        listening = [asyncio.create_task(heard(job)) for job in (running, *waiting)]
        await asyncio.sleep(0.02)
        slow.may_end.set()
        assert await asyncio.gather(*listening) == [
            [("queued", 0), ("done", 0)],
            [("queued", 1), ("done", 0)],
            [("queued", 2), ("queued", 1), ("done", 0)],
        ]
        jobs.close()

    asyncio.run(main())


def test_the_same_job_is_joined_and_goes_on_while_one_listens() -> None:
    async def main() -> None:
        jobs, slow = Jobs(5), Slow()
        job = jobs.submit("a", slow)
        assert jobs.submit("a", slow) is job
        jobs.leave(job)
        await asyncio.sleep(0.05)
        assert not job.cancel.is_set()
        slow.may_end.set()
        assert (await job.end()).trace == "a" and slow.n_begun == 1
        assert jobs.submit("a", slow) is not job
        jobs.close()

    asyncio.run(main())


def test_the_last_one_to_leave_stops_the_job_and_the_next_begins() -> None:
    async def main() -> None:
        jobs, slow = Jobs(5), Slow()
        job, after = jobs.submit("a", slow), jobs.submit("b", quick)
        await asyncio.sleep(0.02)
        jobs.leave(job)
        assert jobs.submit("a", Slow()) is not job  # one that is being stopped is not joined
        assert (await job.end()).state == "cancelled" and slow.saw_cancel
        assert (await after.end()).state == "done"
        jobs.close()

    asyncio.run(main())


def test_leaving_the_queue_makes_room() -> None:
    async def main() -> None:
        jobs, slow, never = Jobs(1), Slow(), Slow()
        jobs.submit("a", slow)
        waiting = jobs.submit("b", never)
        with pytest.raises(Refused) as caught:
            jobs.submit("c", quick)
        assert caught.value.status == 429 and int(caught.value.headers["Retry-After"]) >= 1  # type: ignore[index]
        jobs.leave(waiting)
        assert (await waiting.end()).state == "cancelled"
        last = jobs.submit("c", quick)
        slow.may_end.set()
        assert (await last.end()).state == "done" and never.n_begun == 0
        jobs.close()

    asyncio.run(main())


def test_failures_are_told_in_words() -> None:
    def wrong(job: Job) -> RunEvent:
        raise InputError("the text is empty.")

    def broken(job: Job) -> RunEvent:
        raise ZeroDivisionError("secret")

    def too_large(job: Job) -> RunEvent:
        raise MemoryError

    async def main() -> None:
        jobs = Jobs(5)
        ended_jobs = [await jobs.submit(str(work), work).end() for work in (wrong, broken, too_large)]
        assert [job.state for job in ended_jobs] == ["failed"] * 3
        assert [job.error for job in ended_jobs] == ["InputError", "Unexpected", "HeadscopeError"]
        assert (
            ended_jobs[0].message == "the text is empty." and "secret" not in ended_jobs[1].message + ended_jobs[1].hint
        )
        jobs.close()

    asyncio.run(main())


def test_closing_ends_everything_at_once() -> None:
    def stubborn(job: Job) -> RunEvent:
        free.wait(5)
        return RunEvent("done")

    async def main() -> None:
        jobs = Jobs(5)
        running, waiting = jobs.submit("a", stubborn), jobs.submit("b", quick)
        await asyncio.sleep(0.02)
        assert not jobs.close()
        assert (await running.end()).state == (await waiting.end()).state == "cancelled"
        with pytest.raises(Refused, match="being stopped"):
            jobs.submit("c", quick)
        free.set()
        await asyncio.sleep(0.05)
        assert Jobs(1).close()

    free = threading.Event()
    asyncio.run(main())
