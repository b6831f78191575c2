"""Who may ask: this machine, with the token, from our own page. Every request passes here first.

Checked in order: the Host header (a foreign name that points to this machine: DNS rebinding), where the request comes
from (other pages in the same browser), the cookie or token, the size of the body. Answers are sent in pieces, so that
none is copied whole for a slow client. Written as plain ASGI, so that a client's leaving reaches whoever waits for it.
"""

import asyncio
import hmac
import ipaddress
import re
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headscope.arguments import parsed_number
from headscope.server.errors import Refused, unexpected
from headscope.server.log import log_failure, logger
from headscope.server.options import Limits
from headscope.server.request_bodies import MOST_VALUES, values_in

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
    "font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
MEDIA_PATH = "/api/media"
SIGN_IN_PATH = "/api/sign-in"
MOST_TOKEN_BYTES = 1_000
TICKET_SECONDS = 120.0
MOST_COOKIES = 100  # of our name
MOST_PARAMETERS = 100
PIECE = 2**18
"""Bytes of an answer that are handed over at once."""
BODY_SECONDS, BODY_RATE = 20.0, 20_000
"""A body has this many seconds, and another for each so many bytes that have come."""
LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass
class Access:
    """The secrets of one server, and the names it answers to."""

    hosts: frozenset[str] = frozenset(LOOPBACK)
    cookie_name: str = "headscope"
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    cookie: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    is_encrypted: bool = False
    tickets: dict[str, float] = field(default_factory=dict, repr=False)
    """Tickets, and when each expires."""

    @classmethod
    def of(cls, host: str, port: int, trusted: tuple[str, ...] = (), *, is_encrypted: bool = False) -> "Access":
        """For a server at this address. Cookies do not tell ports apart, so the name does."""
        names = (*LOOPBACK, *(() if is_everywhere(host) else (host,)), *trusted)
        return cls(frozenset(name.lower() for name in names), f"headscope-{port}", is_encrypted=is_encrypted)

    def ticket(self) -> str:
        """A token for one use, within `TICKET_SECONDS`: for the browser that we start."""
        new = secrets.token_urlsafe(24)
        self.tickets[new] = time.monotonic() + TICKET_SECONDS
        return new

    def lets_in(self, secret: str) -> bool:
        """Whether this is the token, or a ticket that was not used before."""
        ticket = next((ticket for ticket in self.tickets if _same(ticket, secret)), None)
        if ticket is not None:
            return time.monotonic() <= self.tickets.pop(ticket)
        return _same(self.token, secret)

    def check_host(self, headers: Headers) -> None:
        """Refuse names that are not ours."""
        name = _host_name(headers.get("host", ""))
        if name is None or name not in self.hosts:
            raise Refused(
                403,
                "ForeignHost",
                f"this server does not answer to the name {(name or '(none)')[:100]!r}.",
                "Open the address that was printed; to use another name, start it with --trust-host NAME.",
            )

    def check_origin(self, headers: Headers) -> None:
        """Refuse requests that another page makes in the user's browser."""
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "same-origin")
        is_ours = origin is None or _place(origin) == headers.get("host", "").lower()
        if not is_ours or site not in ("same-origin", "none"):
            raise Refused(
                403, "ForeignOrigin", "this request was made by another page.", "Use the workbench's own page."
            )

    def check_secret(self, headers: Headers) -> None:
        """Refuse whoever has neither the cookie nor the token."""
        kind, _, token = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and _same(self.token, token.strip()):
            return
        if not self.knows(headers):
            raise Refused(
                401,
                "NotSignedIn",
                "this browser has not been let in yet.",
                "Open the address with the token that `headscope serve` printed.",
                {"WWW-Authenticate": "Bearer"},
            )

    def knows(self, headers: Headers) -> bool:
        """Whether the request carries our cookie, whatever cookies of other applications stand around it.

        Browsers send the cookies of all ports of a host, and `http.cookies` gives up at the first that is malformed.
        """
        ours = re.compile(rf"{re.escape(self.cookie_name)}\s*=([^;]*)")
        values = (value for header in headers.getlist("cookie") for value in ours.findall(header)[:MOST_COOKIES])
        return any(_same(self.cookie, value.strip()) for value in values)


class Guard:
    """The application behind its checks."""

    def __init__(self, app: ASGIApp, access: Access, limits: Limits):
        self.app, self.access, self.limits = app, access, limits
        self._body_bytes = 0  # of all requests under way

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        has_begun, begun = False, time.monotonic()
        id = scope["id"] = secrets.token_hex(4)

        async def send_guarded(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                # Without what follows the path: it may be a token.
                seconds, status = time.monotonic() - begun, message["status"]
                logger.debug("%s %s: %d in %.3f s", scope["method"], quote(scope["path"]), status, seconds)
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            body = message.get("body", b"")
            if len(body) <= PIECE:
                await send(message)
                return
            view = memoryview(body)
            for start in range(0, len(body), PIECE):
                more = start + PIECE < len(body) or message.get("more_body", False)
                await send({"type": message["type"], "body": view[start : start + PIECE], "more_body": more})

        try:
            await self._answer(scope, receive, send_guarded)
        except Refused as refused:
            await refused.answer()(scope, receive, send_guarded)
        except Exception as error:  # FastAPI has answered, unless it was raised before it was asked
            log_failure(f"{scope['method']} {getattr(scope.get('route'), 'path', '')}".strip(), error, id)
            if not has_begun:
                await JSONResponse(asdict(unexpected(id)), 500)(scope, receive, send_guarded)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        self.access.check_host(headers)
        if scope["query_string"].count(b"&") > MOST_PARAMETERS:
            message = f"the address has more than {MOST_PARAMETERS} parameters, the most this server takes."
            raise Refused(413, "TooLarge", message, "Join values by commas.")
        if scope["path"] == "/" and scope["method"] == "GET" and b"token=" in scope["query_string"]:
            await self._let_in(scope, headers)(scope, receive, send)
            return
        if scope["path"].startswith("/api"):
            self.access.check_origin(headers)
            if scope["path"] == SIGN_IN_PATH and scope["method"] == "POST":
                await (await self._sign_in(receive))(scope, receive, send)
                return
            self.access.check_secret(headers)
        elif scope["method"] not in ("GET", "HEAD"):
            self.access.check_origin(headers)
        async with self._body(scope, headers, receive) as body:
            await self.app(scope, body, send)

    def _let_in(self, scope: Scope, headers: Headers) -> Response:
        """Exchange the token for a cookie, and take it out of the address. Without the right token the page asks."""
        parameters = parse_qsl(scope["query_string"].decode("latin-1"))
        tokens = [value for name, value in parameters if name == "token"]
        rest = urlencode([(name, value) for name, value in parameters if name != "token"])
        answer = RedirectResponse(f"/?{rest}" if rest else "/", 303, {"Cache-Control": "no-store"})
        is_let_in = any(self.access.lets_in(token) for token in tokens) or self.access.knows(headers)
        return self._with_cookie(answer) if is_let_in else answer

    async def _sign_in(self, receive: Receive) -> Response:
        """Exchange the token that somebody pasted into the page for a cookie. The body is the token alone."""
        body, token, is_whole = await _read(receive, MOST_TOKEN_BYTES, is_json=False), b"", False
        while not is_whole:
            message = await body()
            token, is_whole = token + message.get("body", b""), not message.get("more_body", False)
        if not self.access.lets_in(token.decode("utf-8", "replace").strip()):
            raise Refused(
                401,
                "WrongToken",
                "this is not the token of this server.",
                "Copy the address that `headscope serve` printed last, or what follows token= in it.",
            )
        return self._with_cookie(Response(status_code=204))

    def _with_cookie(self, answer: Response) -> Response:
        name, is_encrypted = self.access.cookie_name, self.access.is_encrypted
        answer.set_cookie(name, self.access.cookie, httponly=True, samesite="strict", secure=is_encrypted)
        return answer

    @asynccontextmanager
    async def _body(self, scope: Scope, headers: Headers, receive: Receive) -> AsyncIterator[Receive]:
        """The body, read up to its limit and counted until the request is answered; then the client's own messages."""
        most = self.limits.bodies
        limit = min(most, self.limits.media_bytes if scope["path"] == MEDIA_PATH else self.limits.body_bytes)
        length = parsed_number(headers.get("content-length", ""))
        size = length if length is not None else limit if "transfer-encoding" in headers else 0
        if size > limit:
            raise _too_large(limit)
        if self._body_bytes + size > most:
            message = "requests that are under way take all the memory that this server has for what is sent to it."
            raise Refused(503, "MemoryInUse", message, "Try again in a moment.", {"Retry-After": "1"})
        self._body_bytes += size
        try:
            is_json = scope["path"] != MEDIA_PATH
            yield await _read(receive, limit, is_json=is_json) if size else receive
        finally:
            self._body_bytes -= size


async def _read(receive: Receive, limit: int, *, is_json: bool) -> Receive:
    """Read the body now, piece by piece, and hand the pieces over when they are asked for."""
    pieces: deque[Message] = deque()
    size = n_values = 0
    begun = time.monotonic()
    while not pieces or pieces[-1].get("more_body", False):
        left = begun + BODY_SECONDS + size / BODY_RATE - time.monotonic()
        try:
            async with asyncio.timeout(left):
                pieces.append(await receive())
        except TimeoutError as error:
            message = f"the body of the request came too slowly: {size:,} bytes in {BODY_SECONDS:.0f} s or more."
            raise Refused(408, "TooSlow", message, "Send it again.", {"Connection": "close"}) from error
        body = pieces[-1].get("body", b"")
        size += len(body)
        n_values += values_in(body) if is_json else 0
        if size > limit:
            raise _too_large(limit)
        if n_values > MOST_VALUES:
            message = f"the request holds more than {MOST_VALUES:,} values, the most this server takes."
            raise Refused(413, "TooLarge", message, "Send shorter lists.", {"Connection": "close"})

    async def again() -> Message:
        return pieces.popleft() if pieces else await receive()

    return again


def is_everywhere(host: str) -> bool:
    """Whether this address means every network that the machine is on."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _too_large(limit: int) -> Refused:
    message = f"the request is larger than {limit:,} bytes, the most this server takes."
    return Refused(413, "TooLarge", message, "Send a shorter text or a smaller file.", {"Connection": "close"})


def _host_name(host: str) -> str | None:
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


def _place(origin: str) -> str | None:
    """Host and port of an origin; None where it is malformed."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


def _same(secret: str, candidate: str) -> bool:
    """Compared in constant time: how long it takes tells nothing."""
    return hmac.compare_digest(secret.encode(), candidate.encode("utf-8", "surrogateescape"))
