"""HTTP/1.1 as uvicorn speaks it, with limits to the head of a request, to the time it takes, and to connections.

All of it is read in the event loop before anybody is asked who sends it: 200,000 short headers take a second, and 500
requests of which only half was sent would stay open for ever.
"""

import asyncio
from pathlib import Path

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_BYTES = 2**19
"""Of the address and all headers together: an address may name every token of a long input."""
MOST_HEADERS = 200
MOST_ESCAPES = 50_000
"""Characters of the address that are written as `%2C`."""
HEAD_SECONDS = 10.0
"""Time to send the address and all headers."""
MOST_CONNECTIONS = 512
ACCEPTED_AT_ONCE = 8
"""Connections that asyncio accepts in a step: it takes some steps until the first is counted, or closed."""
SPARE_FILES = 64
"""Open files that are left for models, uploads and saved pages, and for connections that are being opened or closed."""


class BoundedProtocol(H11Protocol):
    """Refuses requests with too many headers or escapes in their address; ends connections that take too long."""

    most_connections = MOST_CONNECTIONS
    _n_lines = _n_escapes = 0
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection, make room where there are too many, and wait for a request for so long only."""
        super().connection_made(transport)
        self._await_head()
        self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timer with the connection."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count what belongs to the head of a request, and hand everything on."""
        if self.conn.their_state is h11.IDLE:
            self._await_head()
            head = data.partition(b"\r\n\r\n")[0]
            self._n_lines += head.count(b"\n")
            self._n_escapes += head.count(b"%")
            if self._n_lines > MOST_HEADERS or self._n_escapes > MOST_ESCAPES:
                self.send_400_response(f"At most {MOST_HEADERS} headers and {MOST_ESCAPES} escapes are read.")
                return
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
            self._n_lines = self._n_escapes = 0

    def _await_head(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _make_room(self) -> None:
        """With too many connections, close the one whose request has been awaited longest: this one, if it is alone."""
        opened = [other for other in self.connections if not other.transport.is_closing()]
        if len(opened) > self.most_connections:
            deadlines = {
                other: other._head_timer.when()
                for other in opened
                if isinstance(other, BoundedProtocol) and other._head_timer is not None
            }
            min(deadlines, key=deadlines.__getitem__).transport.abort()


def connections_that_fit() -> int:
    """As many connections as this process may hold open beside its files, `MOST_CONNECTIONS` at most."""
    try:
        import resource
    except ImportError:  # not on Windows
        return MOST_CONNECTIONS
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    descriptors = Path("/dev/fd")
    n_open = len(list(descriptors.iterdir())) if descriptors.is_dir() else SPARE_FILES
    return max(8, min(MOST_CONNECTIONS, limit - n_open - SPARE_FILES))
