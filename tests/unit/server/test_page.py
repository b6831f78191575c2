from pathlib import Path

import pytest
from starlette.testclient import TestClient

from headscope.errors import LoadError
from headscope.server.page import check_static


def test_the_page_is_never_kept_and_mounts_the_workbench(client: TestClient) -> None:
    answer = client.get("/")
    assert answer.headers["cache-control"] == "no-store"
    assert '<div data-headscope="page">' in answer.text and "/static/headscope.js" in answer.text
    assert "http:" not in answer.text and "https:" not in answer.text and "style=" not in answer.text


def test_a_file_is_sent_once_and_then_confirmed(client: TestClient, static: Path) -> None:
    first = client.get("/static/headscope.js")
    assert first.headers["content-type"].startswith("text/javascript") and first.headers["cache-control"] == "no-cache"
    tag = first.headers["etag"]
    again = client.get("/static/headscope.js", headers={"If-None-Match": tag})
    assert again.status_code == 304 and again.content == b""
    assert client.get("/static/headscope.js", headers={"If-None-Match": '"other"'}).status_code == 200
    assert client.get("/static/headscope.css").headers["content-type"].startswith("text/css")


@pytest.mark.parametrize("name", ["none.js", "..%2f..%2fetc%2fpasswd", "../x", ".hidden", "%00", "a%5cb", "%C3%A9"])
def test_nothing_else_is_sent(client: TestClient, name: str, static: Path) -> None:
    (static / ".hidden").write_text("no")
    assert client.get(f"/static/{name}").status_code == 404


def test_a_missing_page_says_how_to_build_it(tmp_path: Path, static: Path) -> None:
    check_static(static)
    with pytest.raises(LoadError, match=r"headscope\.js is missing.*scripts/web"):
        check_static(tmp_path)
