"""Clients that never finish: half-sent requests, bodies in drips, more connections than the server may hold."""

import http.client
import logging
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from headscope.server import access, http_limits, log
from headscope.server.http_limits import BoundedProtocol, connections_that_fit

HALF = b"GET / HTTP/1.1\r\nHost: localhost\r\n"


Connect = Callable[[str], socket.socket]


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Connections that are closed after the test."""
    with ExitStack() as stack:

        def connect(address: str) -> socket.socket:
            host, port = address.removeprefix("http://").split(":")
            return stack.enter_context(socket.create_connection((host, int(port)), timeout=20))

        yield connect


def ends_within(connection: socket.socket, seconds: float) -> bool:
    """Whether the server ends a connection in time."""
    connection.settimeout(seconds)
    try:
        while connection.recv(4096):
            continue
    except TimeoutError:
        return False
    except ConnectionError:
        return True
    return True


def test_a_head_that_is_not_finished_in_time_ends_the_connection(listen, connect: Connect, monkeypatch) -> None:
    monkeypatch.setattr(http_limits, "HEAD_SECONDS", 0.5)
    _, address, _ = listen()
    silent, half = connect(address), connect(address)
    half.sendall(HALF)
    begun = time.monotonic()
    while time.monotonic() - begun < 0.3:
        half.sendall(b"A: b\r\n")  # drips do not prolong it
        time.sleep(0.05)
    assert ends_within(silent, 5) and ends_within(half, 5)
    assert time.monotonic() - begun < 5


def test_a_request_after_a_pause_has_its_own_time(listen, connect: Connect, monkeypatch) -> None:
    monkeypatch.setattr(http_limits, "HEAD_SECONDS", 1.0)
    _, address, _ = listen()
    connection = connect(address)
    for _ in range(3):
        connection.sendall(HALF + b"\r\n")
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        assert answer.status == 200 and answer.read()
        time.sleep(0.6)


def test_a_body_in_drips_is_refused(listen, connect: Connect, monkeypatch) -> None:
    monkeypatch.setattr(access, "BODY_SECONDS", 0.5)
    _, address, sign_in = listen()
    head = (
        f"POST /api/runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: {sign_in['Authorization']}\r\n"
        "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
    )
    connection = connect(address)
    connection.sendall(head.encode())
    begun = time.monotonic()
    answer = http.client.HTTPResponse(connection)
    answer.begin()
    assert answer.status == 408 and b"TooSlow" in answer.read()
    assert time.monotonic() - begun < 5


def test_half_sent_requests_do_not_lock_users_out(listen, connect: Connect, monkeypatch) -> None:
    """At the cap, the connection that has waited longest for its request is closed for a new one."""
    monkeypatch.setattr(BoundedProtocol, "most_connections", 16)
    _, address, _ = listen()
    waiting = []
    for _ in range(60):
        connection = connect(address)
        connection.sendall(HALF)
        waiting.append(connection)
    with urllib.request.urlopen(address, timeout=5) as answer:
        assert answer.status == 200
    assert ends_within(waiting[0], 5) and not ends_within(waiting[-1], 0.2)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit to open files")
def test_connections_leave_files_for_the_rest() -> None:
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128));"
        "from headscope.server.http_limits import connections_that_fit; print(connections_that_fit())"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 8 <= int(answer.stdout) <= 96
    assert 8 <= connections_that_fit() <= http_limits.MOST_CONNECTIONS


def test_a_failure_that_repeats_is_logged_a_few_times(capsys) -> None:
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(log.Lines(debug=False))
    handler.addFilter(log.FewOfEach(most=3, seconds=60))
    now = time.time()

    def write(created: float) -> None:
        record = logging.LogRecord("headscope.server", logging.ERROR, "a.py", 7, "it failed", (), None)
        record.created = created
        handler.handle(record)

    for _ in range(1000):
        write(now)
    write(now + 61)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert lines[-1].endswith("it failed (997 earlier lines left out)")


SERVER = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
from pathlib import Path
from headscope.server.options import Options
from headscope.server.run_server import serve
say = lambda line: print(line, flush=True)
serve(Options(static=Path(sys.argv[1]), port=0), say=say, announce=say, opens_browser=False)
"""


def test_500_half_sent_requests_fill_neither_the_log_nor_the_server(static: Path, connect: Connect) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(static)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None and process.stderr is not None
        line = process.stdout.readline()
        address = re.match(r"http://[\d.:]+", line)
        assert address, line
        waiting = []
        for _ in range(500):
            connection = connect(address[0])
            connection.sendall(HALF)
            waiting.append(connection)
        with urllib.request.urlopen(address[0], timeout=10) as answer:
            assert answer.status == 200
    finally:
        process.terminate()
        _, errors = process.communicate(timeout=20)
    assert len(errors) < 10_000, errors[:2000]


def test_an_origin_that_cannot_be_read_is_refused_by_name(listen) -> None:
    _, address, sign_in = listen()
    for headers in ({}, sign_in):
        request = urllib.request.Request(f"{address}/api/settings", headers={**headers, "Origin": "http://["})
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=5)
        assert refused.value.code == 403 and b"ForeignOrigin" in refused.value.read()
