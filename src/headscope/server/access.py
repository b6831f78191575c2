"""Who may ask: this machine, with the token, from our own page. Every request passes here first.

Checked in order: the Host header (a foreign name that points to this machine: DNS rebinding), where the request comes
from (other pages in the same browser), the cookie or token, the size of the body. Written as plain ASGI, so that a
client's leaving reaches whoever waits for it.
"""

import hmac
import ipaddress
import secrets
import time
from dataclasses import asdict, dataclass, field
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headscope.server.log import log_failure, logger
from headscope.server.problems import Refused, unexpected

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
LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass
class Access:
    """The secrets of one server, and the names it answers to."""

    hosts: frozenset[str] = frozenset(LOOPBACK)
    cookie_name: str = "headscope"
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    cookie: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    tickets: set[str] = field(default_factory=set, repr=False)

    @classmethod
    def of(cls, host: str, port: int, trusted: tuple[str, ...] = ()) -> "Access":
        """For a server at this address. Cookies do not tell ports apart, so the name does."""
        own = () if is_everywhere(host) else (host,)
        return cls(frozenset(one.lower() for one in (*LOOPBACK, *own, *trusted)), f"headscope-{port}")

    def ticket(self) -> str:
        """A token for one use: the address a browser is started with can be read in the list of processes."""
        new = secrets.token_urlsafe(24)
        self.tickets.add(new)
        return new

    def lets_in(self, given: str) -> bool:
        """Whether this is the token, or a ticket that was not used before."""
        ticket = next((one for one in self.tickets if _same(one, given)), None)
        if ticket is not None:
            self.tickets.discard(ticket)
            return True
        return _same(self.token, given)

    def check_host(self, headers: Headers) -> None:
        """Refuse names that are not ours."""
        name = _host_name(headers.get("host", ""))
        if name is None or name not in self.hosts:
            raise Refused(
                403,
                "ForeignHost",
                f"this server does not answer to the name {name or '(none)'!r}.",
                "Open the address that was printed; to use another name, start it with --trust-host NAME.",
            )

    def check_origin(self, headers: Headers) -> None:
        """Refuse requests that another page makes in the user's browser."""
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "same-origin")
        is_ours = origin is None or urlsplit(origin).netloc.lower() == headers.get("host", "").lower()
        if not is_ours or site not in ("same-origin", "none"):
            raise Refused(
                403, "ForeignOrigin", "this request was made by another page.", "Use the workbench's own page."
            )

    def check_secret(self, headers: Headers) -> None:
        """Refuse whoever has neither the cookie nor the token."""
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and _same(self.token, given.strip()):
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
        pairs = (part.partition("=") for header in headers.getlist("cookie") for part in header.split(";"))
        return any(name.strip() == self.cookie_name and _same(self.cookie, value.strip()) for name, _, value in pairs)


class Guard:
    """The application behind its checks."""

    def __init__(self, app: ASGIApp, access: Access, *, body_bytes: int, larger: dict[str, int] | None = None):
        """`larger` gives paths that take longer bodies, and how long."""
        self.app, self.access, self.body_bytes, self.larger = app, access, body_bytes, larger or {}

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
            await send(message)

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
        if scope["path"] == "/" and scope["method"] == "GET" and b"token=" in scope["query_string"]:
            await self._let_in(scope, headers)(scope, receive, send)
            return
        if scope["path"].startswith("/api"):
            self.access.check_origin(headers)
            self.access.check_secret(headers)
        elif scope["method"] not in ("GET", "HEAD"):
            self.access.check_origin(headers)
        limit = self.larger.get(scope["path"], self.body_bytes)
        await self.app(scope, await self._bounded(headers, receive, limit), send)

    def _let_in(self, scope: Scope, headers: Headers) -> Response:
        """Exchange the token for a cookie, and take it out of the address."""
        given = parse_qsl(scope["query_string"].decode("latin-1"))
        tokens = [value for name, value in given if name == "token"]
        if not any(self.access.lets_in(one) for one in tokens) and not self.access.knows(headers):
            return PlainTextResponse(
                "This is not the token of this server. Open the address that it printed last.", 401
            )
        rest = urlencode([(name, value) for name, value in given if name != "token"])
        answer = RedirectResponse(f"/?{rest}" if rest else "/", 303, {"Cache-Control": "no-store"})
        answer.set_cookie(self.access.cookie_name, self.access.cookie, httponly=True, samesite="strict")
        return answer

    async def _bounded(self, headers: Headers, receive: Receive, limit: int) -> Receive:
        """The body, read up to the limit; then the client's own messages again."""
        told = headers.get("content-length", "")
        if told.isdigit() and int(told) > limit:
            raise _too_large(limit)
        if not told and "transfer-encoding" not in headers:
            return receive
        body, more = bytearray(), True  # (bytes would be copied whole at every piece)
        while more:
            message = await receive()
            if message["type"] != "http.request":
                break
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > limit:
                raise _too_large(limit)
        waiting: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

        async def again() -> Message:
            return waiting.pop() if waiting else await receive()

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
    told = f"the request is larger than {limit:,} bytes, the most this server takes."
    return Refused(413, "TooLarge", told, "Send a shorter text or a smaller file.", {"Connection": "close"})


def _host_name(host: str) -> str | None:
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


def _same(secret: str, given: str) -> bool:
    """Compared in constant time: how long it takes tells nothing."""
    return hmac.compare_digest(secret.encode(), given.encode("utf-8", "surrogateescape"))
