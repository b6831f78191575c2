"""Starting and stopping the server: a port, a printed address, a browser, and Ctrl-C."""

import asyncio
import errno
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import replace

import uvicorn

from headscope.errors import HeadscopeError, LoadError
from headscope.server import log
from headscope.server.access import TICKET_SECONDS, Access, is_everywhere, is_loopback
from headscope.server.api import application
from headscope.server.browser_file import BrowserFile
from headscope.server.encryption import bound_handshakes
from headscope.server.http_limits import ACCEPTED_AT_ONCE, HEAD_BYTES, BoundedProtocol, connections_that_fit
from headscope.server.options import Options
from headscope.server.page import check_static
from headscope.server.workbench import Workbench

TRIES = 50
WAITING = 128
"""Connections that the system holds until we accept them."""


def serve(
    options: Options,
    *,
    say: Callable[[str], None],
    announce: Callable[[str], None],
    opens_browser: bool = True,
    debug: bool = False,
) -> None:
    """Serve until the process is told to stop; `say` prints for people, `announce` is given the address to open."""
    check_static(options.static)
    if options.certificate:
        options.certificate.check()
    log.set_up(debug=debug)
    listener = listening_socket(options.host, options.port)
    try:
        port = listener.getsockname()[1]
        if options.port and port != options.port:
            say(f"Port {options.port} is taken; using {port}.")
        is_encrypted = options.certificate is not None
        access = Access.of(options.host, port, options.trusted_hosts, is_encrypted=is_encrypted)
        workbench = Workbench(replace(options, port=port), access)
        for name in workbench.catalogue.startup_models:
            say(f"Loading {name}")
            workbench.catalogue.load(name)
        workbench.reports.check()
        _warn_of_network(options, say)
        address = address_of(options.host, port, options.trusted_hosts, is_encrypted=is_encrypted)
        announce(f"{address}?token={access.token}")
        log.silence_warnings()
        BoundedProtocol.most_connections = connections_that_fit()
        server = _Server(server_config(workbench), workbench)
        if opens_browser:
            server.browser_file = BrowserFile(f"{address}?token={access.ticket()}", TICKET_SECONDS)
        _run(server, listener)
    finally:
        listener.close()
    say("Stopped.")
    if not server.is_free:
        # A thread is busy with what cannot be interrupted (a model being loaded); Python would wait for it.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def server_config(workbench: Workbench) -> uvicorn.Config:
    """How uvicorn runs the application."""
    certificate = workbench.options.certificate
    return uvicorn.Config(
        application(workbench),
        log_config=None,
        access_log=False,
        server_header=False,
        ws="none",
        http=BoundedProtocol,
        backlog=ACCEPTED_AT_ONCE,
        h11_max_incomplete_event_size=HEAD_BYTES,
        timeout_graceful_shutdown=1,
        ssl_certfile=certificate and certificate.certfile,
        ssl_keyfile=certificate and certificate.keyfile,
    )


class _Server(uvicorn.Server):
    """Uvicorn, which ends our runs first when it is told to stop: their streams then end by themselves."""

    def __init__(self, config: uvicorn.Config, workbench: Workbench):
        super().__init__(config)
        self.workbench, self.is_free = workbench, True
        self.browser_file: BrowserFile | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if self.config.is_ssl:
            bound_handshakes(asyncio.get_running_loop())
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(WAITING)  # asyncio has set it to as many as it accepts at once
        if self.browser_file is not None:
            self.browser_file.open()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self.browser_file is not None:
            self.browser_file.remove()
        self.is_free = self.workbench.close()
        logging.getLogger("uvicorn").disabled = True
        logging.getLogger("uvicorn.error").disabled = True  # requests that are cut off now are no news
        await super().shutdown(sockets)


def listening_socket(host: str, port: int) -> socket.socket:
    """A listening socket at this port, or at the next free one; any free one for port 0."""
    for tried in range(port, min(port + TRIES, 65536) if port else 1):
        try:
            family, kind, protocol, _, place = socket.getaddrinfo(host, tried, type=socket.SOCK_STREAM)[0]
        except (socket.gaierror, UnicodeError) as error:
            raise LoadError(
                f"there is no address {host!r} to listen at: give an IP address of this machine."
            ) from error
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(place)
            listener.listen(WAITING)
            return listener
        except OSError as error:
            listener.close()
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise LoadError(f"cannot listen at {host} port {tried}: {error.strerror}.") from error
    raise LoadError(f"ports {port} to {port + TRIES - 1} are all taken: choose one with --port, or 0 for any.")


def address_of(host: str, port: int, trusted: tuple[str, ...] = (), *, is_encrypted: bool = False) -> str:
    """Where a browser finds the server. A certificate is made for a name, so the trusted one comes first then."""
    is_named = trusted and (is_encrypted or is_everywhere(host))
    name = trusted[0] if is_named else "127.0.0.1" if is_everywhere(host) else host
    place = f"[{name}]:{port}" if ":" in name else f"{name}:{port}"
    return f"{'https' if is_encrypted else 'http'}://{place}/"


def _warn_of_network(options: Options, say: Callable[[str], None]) -> None:
    if is_loopback(options.host):
        return
    unencrypted = "" if options.certificate else ", unencrypted (--certfile encrypts it)"
    say(
        f"WARNING: at {options.host} everyone on your network can reach this server{unencrypted}; whoever sees the "
        "address with its token can use it."
    )
    if is_everywhere(options.host) and not options.trusted_hosts:
        say("It answers to localhost only: name the host that browsers will use with --trust-host NAME.")


def _run(server: _Server, listener: socket.socket) -> None:
    """Until SIGINT or SIGTERM, which uvicorn raises again when it is done: by then they have been obeyed."""
    before = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        server.run(sockets=[listener])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if not server.started:
        raise HeadscopeError("the server could not be started: see above.")
