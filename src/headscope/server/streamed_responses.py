"""Answers that end when the client leaves."""

import asyncio
import json
from collections.abc import Awaitable
from dataclasses import asdict
from typing import TypeVar

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from headscope.server.jobs import Job, Jobs
from headscope.server.messages import RunEvent

Answer = TypeVar("Answer")

NDJSON = "application/x-ndjson"


class Left(Exception):
    """The client closed the connection: nobody reads the answer."""


async def while_connected(receive: Receive, work: Awaitable[Answer]) -> Answer:
    """The work's result; the work is cancelled, and `Left` raised, if the client leaves before."""
    doing, leaving = asyncio.ensure_future(work), asyncio.ensure_future(_disconnect(receive))
    try:
        await asyncio.wait((doing, leaving), return_when=asyncio.FIRST_COMPLETED)
        if doing.done():
            return doing.result()
        raise Left
    finally:
        for future in (doing, leaving):
            future.cancel()
        await asyncio.gather(doing, leaving, return_exceptions=True)


class RunStream(Response):
    """The events of a job, a line each; leaving stops the job, unless others listen too."""

    media_type = NDJSON

    def __init__(self, jobs: Jobs, job: Job):
        super().__init__(headers={"X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self.jobs, self.job = jobs, job

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the job is over or the client gone."""
        try:
            await while_connected(receive, self._send(send))
        except (Left, OSError):
            pass
        finally:
            self.jobs.leave(self.job)

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async for event in self.job.listen():
            await send({"type": "http.response.body", "body": line(event), "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def line(event: RunEvent) -> bytes:
    """One event of the stream."""
    return json.dumps(asdict(event), ensure_ascii=False).encode() + b"\n"


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
