"""Ports, addresses, and what is said at the start."""

import html
import os
import queue
import socket

import pytest

from headscope.errors import LoadError
from headscope.server.browser_file import BrowserFile
from headscope.server.options import Options
from headscope.server.run_server import _warn_of_network, address_of, listening_socket, serve


def test_the_next_free_port_is_taken() -> None:
    with listening_socket("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with listening_socket("127.0.0.1", port) as second:
            assert port < second.getsockname()[1] < port + 50


def test_an_address_that_is_not_ours_is_refused() -> None:
    for host in ("192.0.2.1", "no such host", "x" * 80):
        with pytest.raises(LoadError):
            listening_socket(host, 0)


@pytest.mark.parametrize(
    ("host", "trusted", "address"),
    [
        ("127.0.0.1", (), "http://127.0.0.1:80/"),
        ("::1", (), "http://[::1]:80/"),
        ("0.0.0.0", (), "http://127.0.0.1:80/"),
        ("0.0.0.0", ("lab.example",), "http://lab.example:80/"),
        ("10.0.0.7", (), "http://10.0.0.7:80/"),
    ],
)
def test_the_address_can_be_opened(host: str, trusted: tuple[str, ...], address: str) -> None:
    assert address_of(host, 80, trusted) == address


def test_a_server_for_the_network_warns() -> None:
    lines: list[str] = []
    _warn_of_network(Options(host="127.0.0.1"), lines.append)
    assert lines == []
    _warn_of_network(Options(host="0.0.0.0"), lines.append)
    assert lines[0].startswith("WARNING") and "--trust-host" in lines[1]


def test_without_a_page_it_does_not_start(tmp_path) -> None:
    with pytest.raises(LoadError, match="scripts/web"):
        serve(Options(static=tmp_path), say=lambda message: None, announce=lambda address: None)


def test_a_model_that_is_not_there_ends_the_start_and_frees_the_port(static, tmp_path) -> None:
    with listening_socket("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
    options = Options(models=(str(tmp_path / "none"),), port=port, static=static)
    with pytest.raises(LoadError, match="no folder"):
        serve(options, say=lambda message: None, announce=lambda address: None)
    with socket.socket() as again:
        again.bind(("127.0.0.1", port))


def test_the_browser_is_opened_by_a_private_file_that_goes_away(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    opened: queue.Queue[str] = queue.Queue()
    monkeypatch.setattr("webbrowser.open", opened.put)
    address = "http://127.0.0.1:1/?token=a&b='<\""
    file = BrowserFile(address, seconds=60)
    file.open()
    assert opened.get(timeout=5) == file.path.as_uri() and "token" not in file.path.as_uri()
    assert f'url={html.escape(address)}"' in file.path.read_text()
    if os.name == "posix":
        assert file.path.stat().st_mode & 0o077 == 0 and file.path.parent.stat().st_mode & 0o077 == 0
    file.remove()
    assert list(tmp_path.iterdir()) == []
    expired = BrowserFile(address, seconds=0.05)
    expired._timer.join(5)
    assert not expired.path.exists()
