"""What a connection may take: the head of a request, bodies of all requests, pieces of answers."""

import asyncio
import http.client

import pytest
from starlette.types import Message, Receive, Scope, Send

from headscope.server.access import PIECE, Access, Guard
from headscope.server.options import Limits

HEADERS = [(b"host", b"localhost")]


def scope(method: str = "GET", headers: list[tuple[bytes, bytes]] | None = None) -> Scope:
    own = [*HEADERS, *(headers or [])]
    return {"type": "http", "method": method, "path": "/x", "query_string": b"", "headers": own}


async def nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


@pytest.mark.parametrize("size", [0, 1, PIECE, PIECE + 1, 3 * PIECE])
def test_an_answer_is_sent_in_pieces_that_are_not_copied_whole(size: int) -> None:
    body, sent = bytes(range(256)) * (size // 256) + bytes(size % 256), []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(Guard(app, Access(), Limits())(scope(), nothing, send))
    pieces = sent[1:]
    assert b"".join(piece["body"] for piece in pieces) == body
    assert all(len(piece["body"]) <= PIECE for piece in pieces)
    assert [piece.get("more_body", False) for piece in pieces] == [True] * (len(pieces) - 1) + [False]


def test_bodies_of_all_requests_share_an_eighth_of_the_memory() -> None:
    go_on, statuses = asyncio.Event(), []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await go_on.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    async def main() -> None:
        guard = Guard(app, Access(), Limits(memory=8_000))

        async def ask(size: int) -> None:
            async def receive() -> Message:
                return {"type": "http.request", "body": b"x" * size, "more_body": False}

            headers = [(b"content-length", str(size).encode())]
            await guard(scope("POST", headers) | {"path": "/api/none"}, receive, send)

        guard.access.check_secret = lambda headers: None  # type: ignore[method-assign]
        waiting = [asyncio.create_task(ask(400)) for _ in range(2)]
        await asyncio.sleep(0)
        await ask(400)
        assert statuses == [503]
        await ask(1_001)
        assert statuses == [503, 413]
        go_on.set()
        await asyncio.gather(*waiting)
        await ask(400)
        assert statuses == [503, 413, 200, 200, 200]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("path", "n_headers", "status"), [("/", 150, 200), ("/", 250, 400), ("/" + "%41" * 60_000, 1, 400)]
)
def test_the_head_of_a_request_is_bounded(listen, path: str, n_headers: int, status: int) -> None:
    _, address, _ = listen()
    connection = http.client.HTTPConnection(address.removeprefix("http://"))
    for _ in range(2):  # each request is counted by itself
        connection.putrequest("GET", path)
        for place in range(n_headers):
            connection.putheader(f"a{place}", "b")
        connection.endheaders()
        answer = connection.getresponse()
        answer.read()
        assert answer.status == status
    connection.close()
