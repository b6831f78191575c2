"""HTTP/1.1 as uvicorn speaks it, with a limit to what the headers of a request may hold.

They are read in the event loop before anybody is asked who sends them: 200,000 short headers take a second.
"""

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_BYTES = 2**19
"""Of the address and all headers together: an address may name every token of a long input."""
MOST_HEADERS = 200
MOST_ESCAPES = 50_000
"""Characters of the address that are written as `%2C`."""


class BoundedProtocol(H11Protocol):
    """Refuses requests with too many headers, or escapes in their address."""

    _n_lines = _n_escapes = 0

    def data_received(self, data: bytes) -> None:
        """Count what belongs to the head of a request, and hand everything on."""
        if self.conn.their_state is h11.IDLE:
            head = data.partition(b"\r\n\r\n")[0]
            self._n_lines += head.count(b"\n")
            self._n_escapes += head.count(b"%")
            if self._n_lines > MOST_HEADERS or self._n_escapes > MOST_ESCAPES:
                self.send_400_response(f"At most {MOST_HEADERS} headers and {MOST_ESCAPES} escapes are read.")
                return
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._n_lines = self._n_escapes = 0
