"""Who is let in, who is not, and what every answer carries."""

import logging
import re
import time

import pytest
from starlette.testclient import TestClient

from headscope.server.access import TICKET_SECONDS, Access, is_everywhere, is_loopback

JSON = {"Content-Type": "application/json"}


@pytest.fixture
def stranger(client: TestClient) -> TestClient:
    """A client that was told nothing."""
    del client.headers["Authorization"]
    return client


def test_the_token_is_exchanged_for_a_cookie_and_leaves_the_address(stranger: TestClient) -> None:
    access: Access = stranger.workbench.access  # type: ignore[attr-defined]
    answer = stranger.get("/", params={"token": access.token, "view": "head"})
    assert answer.status_code == 303
    assert answer.headers["location"] == "/?view=head"
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("headscope-8765=")
    assert "HttpOnly" in cookie and "samesite=strict" in cookie.lower() and access.token not in cookie
    assert stranger.get("/api/settings").status_code == 200


def test_the_page_holds_no_secret(client: TestClient) -> None:
    access: Access = client.workbench.access  # type: ignore[attr-defined]
    for path in ("/", "/static/headscope.js", "/api/settings", "/api/openapi.json"):
        text = client.get(path).text
        assert access.token not in text and access.cookie not in text


def test_a_ticket_lets_in_once(stranger: TestClient) -> None:
    ticket = stranger.workbench.access.ticket()  # type: ignore[attr-defined]
    assert stranger.get(f"/?token={ticket}").status_code == 303
    stranger.cookies.clear()
    assert "set-cookie" not in stranger.get(f"/?token={ticket}").headers
    assert stranger.get("/api/settings").status_code == 401


def test_a_ticket_expires(stranger: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    ticket = stranger.workbench.access.ticket()  # type: ignore[attr-defined]
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + TICKET_SECONDS + 1)
    assert "set-cookie" not in stranger.get(f"/?token={ticket}").headers


def test_a_wrong_token_leads_to_the_page_which_asks_for_it(stranger: TestClient) -> None:
    answer = stranger.get("/?token=old&view=head")
    assert answer.status_code == 303 and answer.headers["location"] == "/?view=head"
    assert "set-cookie" not in answer.headers


def test_the_page_signs_in_by_the_token(stranger: TestClient) -> None:
    access: Access = stranger.workbench.access  # type: ignore[attr-defined]
    for body, status in (("wrong", 401), ("", 401), ("x" * 2_000, 413), (b"\xff\xfe", 401)):
        answer = stranger.post("/api/sign-in", content=body)
        assert answer.status_code == status and "set-cookie" not in answer.headers
    foreign = stranger.post("/api/sign-in", content=access.token, headers={"Origin": "http://evil.example"})
    assert foreign.status_code == 403
    assert stranger.post("/api/sign-in", content=f" {access.token}\n").status_code == 204
    assert stranger.get("/api/settings").status_code == 200


def test_a_browser_that_is_in_already_may_come_with_an_old_token(stranger: TestClient) -> None:
    stranger.get("/", params={"token": stranger.workbench.access.token})  # type: ignore[attr-defined]
    assert stranger.get("/?token=old").status_code == 303


@pytest.mark.parametrize("path", ["/api/settings", "/api/traces", "/api/openapi.json", "/api/none", "/api"])
def test_without_a_token_there_is_no_answer(stranger: TestClient, path: str) -> None:
    answer = stranger.get(path)
    assert answer.status_code == 401
    assert answer.json()["error"] == "NotSignedIn" and "headscope serve" in answer.json()["hint"]


@pytest.mark.parametrize("header", ["Bearer wrong", "Bearer ", "Bearer", "Basic abc", "Bearer é\udce9"])
def test_a_wrong_token_is_no_token(stranger: TestClient, header: str) -> None:
    sent = header.encode("utf-8", "surrogateescape")
    assert stranger.get("/api/settings", headers={"Authorization": sent}).status_code == 401  # type: ignore[dict-item]


@pytest.mark.parametrize(
    "header",
    [
        '{"a": 1}=x; headscope-8765=OURS',
        'a[b]=1; {"x":1}; headscope-8765=OURS',
        "headscope-8765=OURS; a[b]=1; é",
        "headscope-8765=of-another; headscope-8765=OURS; headscope-8765=",
        ';;=; ="; a="unclosed; headscope-8765=OURS;',
        "  a ,b= c;\theadscope-8765 = OURS ; $Version=1; expires=Thu, 01 Jan",
        "headscope-9000=another-port; headscope-8765=OURS",
        "a=headscope-8765=x; headscope-8765=OURS",
    ],
)
def test_cookies_of_other_applications_lock_nobody_out(stranger: TestClient, header: str) -> None:
    cookie = stranger.workbench.access.cookie  # type: ignore[attr-defined]
    sent = header.replace("OURS", cookie).encode("latin-1")
    assert stranger.get("/api/settings", headers={"Cookie": sent}).status_code == 200  # type: ignore[dict-item]
    cut = header.replace("OURS", cookie[:-1]).encode("latin-1")
    assert stranger.get("/api/settings", headers={"Cookie": cut}).status_code == 401  # type: ignore[dict-item]


def test_our_cookie_is_found_in_any_of_several_headers(stranger: TestClient) -> None:
    access: Access = stranger.workbench.access  # type: ignore[attr-defined]
    headers = [("Cookie", "a[b]=1"), ("Cookie", f"{access.cookie_name}={access.cookie}"), ("Cookie", "c")]
    assert stranger.get("/api/settings", headers=headers).status_code == 200


@pytest.mark.parametrize("cookie", ["headscope-8765=wrong", "headscope=x", ";;;=", 'headscope-8765="a\\"', "é=1"])
def test_a_wrong_cookie_is_no_cookie(stranger: TestClient, cookie: str) -> None:
    answer = stranger.get("/api/settings", headers={"Cookie": cookie.encode()})  # type: ignore[dict-item]
    assert answer.status_code == 401


def test_requests_are_logged_without_the_token(client: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    token = client.workbench.access.token  # type: ignore[attr-defined]
    with caplog.at_level(logging.DEBUG):
        client.get(f"/?token={token}")
        client.get("/api/settings", headers={"Authorization": f"Bearer {token}"})
    ours = [record.getMessage() for record in caplog.records if record.name == "headscope.server"]
    assert any(line.startswith("GET /: 303 in") for line in ours) and token not in "".join(ours)


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "", "[::1", "a@b"])
@pytest.mark.parametrize("path", ["/", "/api/settings", "/static/headscope.js"])
def test_a_foreign_host_is_refused(client: TestClient, host: str, path: str) -> None:
    answer = client.get(path, headers={"Host": host})
    assert answer.status_code == 403
    assert answer.json()["error"] == "ForeignHost" and "--trust-host" in answer.json()["hint"]


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9000", "127.0.0.1:8765", "[::1]:8765"])
def test_this_machine_is_answered_by_any_of_its_names_and_through_any_port(client: TestClient, host: str) -> None:
    assert client.get("/", headers={"Host": host}).status_code == 200


def test_a_trusted_host_is_answered() -> None:
    access = Access.of("0.0.0.0", 80, ("Lab.Example",))
    assert access.hosts >= {"lab.example", "localhost"} and "0.0.0.0" not in access.hosts
    assert "10.0.0.7" in Access.of("10.0.0.7", 80).hosts


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:3000"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_requests_of_other_pages_are_refused(client: TestClient, headers: dict[str, str]) -> None:
    for answer in (
        client.post("/api/runs", json={"model": "builtin:gpt", "text": "a"}, headers=headers),
        client.post("/", headers=headers),
        client.get("/api/settings", headers=headers),
    ):
        assert answer.status_code == 403 and answer.json()["error"] == "ForeignOrigin"


@pytest.mark.parametrize(
    "headers", [{"Origin": "http://127.0.0.1:8765", "Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}, {}]
)
def test_our_own_page_is_answered(client: TestClient, headers: dict[str, str]) -> None:
    assert client.get("/api/settings", headers=headers).status_code == 200


def test_a_body_that_is_too_large_is_refused_before_it_is_read(start) -> None:
    client = start(limits={"body_bytes": 1000})
    answer = client.post("/api/runs", content=b"x" * 1001, headers=JSON)
    assert answer.status_code == 413 and "1,000 bytes" in answer.json()["message"]


def test_a_body_of_unknown_length_is_read_up_to_the_limit(start) -> None:
    client = start(limits={"body_bytes": 1000})
    answer = client.post("/api/runs", content=(b"x" * 400 for _ in range(3)), headers=JSON)
    assert answer.status_code == 413
    assert client.post("/api/runs", content=(b"x" for _ in range(3)), headers=JSON).status_code == 422


def test_every_answer_carries_the_security_headers(client: TestClient) -> None:
    for path in ("/", "/static/headscope.js", "/api/settings", "/none", "/?token=wrong"):
        headers = client.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in headers


def test_an_unexpected_error_is_located_in_the_terminal_and_told_nowhere(
    start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    client = start()

    def fail() -> None:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(client.workbench, "settings", fail)
    with caplog.at_level(logging.INFO, "headscope.server"):
        answer = client.get("/api/settings")
    assert answer.status_code == 500 and answer.json()["error"] == "Unexpected"
    assert "GET /api/settings failed: ZeroDivisionError at server/test_access.py:" in caplog.text
    assert "secret" not in answer.text + caplog.text
    (id,) = re.findall(r"under the id (\w{8})", answer.json()["hint"])
    assert f"(id {id})" in caplog.text
    assert "content-security-policy" in answer.headers


def test_addresses_are_told_apart() -> None:
    assert is_everywhere("0.0.0.0") and is_everywhere("::") and not is_everywhere("127.0.0.1")
    assert is_loopback("127.0.0.1") and is_loopback("localhost") and is_loopback("::1")
    assert not is_loopback("0.0.0.0") and not is_loopback("lab.example")
