"""A server that speaks TLS: answers whoever knows its certificate, and starts with a good one only."""

import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
import uvicorn

from headscope.errors import LoadError
from headscope.server import encryption
from headscope.server.access import Access
from headscope.server.encryption import Certificate
from headscope.server.options import Options
from headscope.server.run_server import _Server, address_of, listening_socket, server_config
from headscope.server.workbench import Workbench

TLS = Path(__file__).parents[2] / "fixtures" / "tls"
CERTIFICATE = Certificate(TLS / "certificate.pem", TLS / "key.pem")


@pytest.fixture
def server(static: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Access, int]]:
    monkeypatch.setattr(encryption, "HANDSHAKE_SECONDS", 0.5)
    with listening_socket("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        access = Access.of("127.0.0.1", port, is_encrypted=True)
        workbench = Workbench(Options(port=port, static=static, certificate=CERTIFICATE), access)
        running: uvicorn.Server = _Server(server_config(workbench), workbench)
        thread = threading.Thread(target=running.run, args=([listener],))
        thread.start()
        try:
            yield access, port
        finally:
            running.should_exit = True
            thread.join(10)


def test_it_answers_whoever_knows_its_certificate(server: tuple[Access, int]) -> None:
    access, port = server
    # Who cannot agree on a key comes first: what asyncio closes of it in later steps is closed before the server ends.
    address = address_of("localhost", port, is_encrypted=True)
    with pytest.raises(requests.exceptions.SSLError):
        requests.get(address, timeout=30)
    with pytest.raises(requests.exceptions.ConnectionError):
        requests.get(address.replace("https", "http"), timeout=30)
    with requests.Session() as browser:
        browser.trust_env, browser.verify = False, str(TLS / "certificate.pem")
        answer = browser.get(f"{address}?token={access.token}", timeout=30)
        assert answer.status_code == 200 and answer.url == address
        (cookie,) = browser.cookies
        assert cookie.secure and browser.get(f"{address}api/traces", timeout=30).status_code == 200


def test_who_agrees_on_no_key_is_not_waited_for(server: tuple[Access, int]) -> None:
    with socket.create_connection(("127.0.0.1", server[1]), timeout=20) as silent:
        assert silent.recv(1) == b""


@pytest.mark.parametrize(
    ("certfile", "keyfile", "error_text"),
    [
        ("none.pem", None, "none.pem: No such file"),
        ("certificate.pem", "none.pem", "none.pem: No such file"),
        ("certificate.pem", None, "not a certificate and its private key"),
        ("key.pem", "key.pem", "not a certificate and its private key"),
        ("certificate.pem", "locked.pem", "has a password"),
        ("certificate.pem", "other.pem", "not a certificate and its private key"),
    ],
)
def test_a_certificate_that_is_none_is_refused_at_the_start(certfile, keyfile, error_text, tmp_path) -> None:
    shutil.copytree(TLS, tmp_path, dirs_exist_ok=True)
    (tmp_path / "other.pem").write_text("no key")
    with pytest.raises(LoadError, match=error_text):
        Certificate(tmp_path / certfile, tmp_path / keyfile if keyfile else None).check()
    CERTIFICATE.check()


def test_a_certificate_is_for_the_name_that_is_printed() -> None:
    assert address_of("10.0.0.7", 80, ("lab.example",), is_encrypted=True) == "https://lab.example:80/"
    assert address_of("10.0.0.7", 80, ("lab.example",)) == "http://10.0.0.7:80/"
