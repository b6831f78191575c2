"""Nothing heavy runs in the event loop: while one request is worked on, the others are answered."""

import asyncio
from collections.abc import Callable
from typing import Any

import made_media
import pytest
from pydantic import ValidationError
from starlette.testclient import TestClient

from headscope.server import api, catalogue, edits, exports, media, page, runs, workbench
from headscope.server.tasks.find import FindOptions
from headscope.server.tasks.queue import _adapter

JSON = {"Content-Type": "application/json"}


class Watch:
    """Which functions were called, and which of them in the thread of an event loop."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.monkeypatch, self.called, self.in_loop = monkeypatch, set[str](), set[str]()

    def __call__(self, owner: Any, name: str) -> None:
        plain: Callable = getattr(owner, name)

        def call(*arguments: Any, **options: Any) -> Any:
            self.called.add(name)
            try:
                asyncio.get_running_loop()
                self.in_loop.add(name)
            except RuntimeError:
                pass
            return plain(*arguments, **options)

        self.monkeypatch.setattr(owner, name, call)


HEAVY = [
    (edits, "canonical"),
    (edits, "calls_in"),
    (catalogue.Catalogue, "resolve"),
    (media, "preset"),
    (media.MediaStore, "read"),
    (api, "place_for"),
    (api, "static_file"),
    (api, "saved_page"),
    (api, "part"),
    (exports.TableQuery, "bytes"),
    (workbench.Workbench, "beside"),
    (runs.ServerRun, "summary"),
    (page.Path, "read_bytes"),
]


def test_no_request_is_worked_on_in_the_event_loop(start, run, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    client: TestClient = start(save_to=tmp_path)
    watch = Watch(monkeypatch)
    for owner, name in HEAVY:
        watch(owner, name)
    trace = run(client, edits=["silence('L0H1')"])[-1]["trace"]
    saved = client.get(f"/api/traces/{trace}/edits")
    client.post("/api/edits", json={"text": saved.text})
    upload = client.post("/api/media", content=made_media.png(made_media.picture()))
    assert upload.status_code == 200, upload.text
    for address in ("/static/headscope.js", "/api/openapi.json", "/api/traces", "/api/media/preset:digit 7"):
        assert client.get(address).status_code == 200, address
    for key in ("maps", "table?view=model"):
        assert client.get(f"/api/traces/{trace}/{key}").status_code == 200, key
    client.post(f"/api/traces/{trace}/page", json={"view": "model", "selection": {"site": "L0"}})
    client.post(f"/api/traces/{trace}/model", json={"name": "copy"})
    client.post("/api/models", json={"name": str(tmp_path)})
    run(client, text=None, media="preset:rising tone")
    assert watch.called == {name for _, name in HEAVY} and watch.in_loop == set()


def many(value: str, count: int) -> str:
    return ",".join([value] * count)


@pytest.mark.parametrize(
    "body",
    [
        '{"model": "m", "text": "t", "edits": [' + many("0", 600_000) + "]}",
        '{"model": "m", "chat": [' + many("{}", 300_000) + "]}",
        '{"model": "m", "chat": [' + many("[]", 300_000) + "]}",
        '{"model": "m", ' + ",".join(f'"{place}": 0' for place in range(100_000)) + "}",
    ],
)
def test_a_body_of_too_many_values_is_refused_before_it_is_read(client: TestClient, body: str) -> None:
    answer = client.post("/api/runs", content=body, headers=JSON)
    assert answer.status_code == 413 and "more than 300,000 values" in answer.json()["message"]


def test_a_text_of_commas_is_a_text(client: TestClient, run) -> None:
    assert run(client, text="," * 200_000, truncate=True)[-1]["state"] == "done"


@pytest.mark.parametrize(
    ("path", "body", "place"),
    [
        ("/api/runs", '{"model": "m", "edits": [' + many("0", 900) + "]}", "body.edits.0"),
        ("/api/runs", '{"model": "m", "chat": [' + many("{}", 900) + "]}", "body.chat.0.role"),
        ("/api/traces/x/page", '{"view": "head", "selection": {"heads": [' + many('""', 90_000) + "]}}", "heads.0"),
        ("/api/traces/x/page", '{"view": "head", "selection": {"hide": [' + many('""', 90_000) + "]}}", "hide.0"),
    ],
)
def test_of_a_list_the_first_wrong_element_is_told(client: TestClient, path: str, body: str, place: str) -> None:
    answer = client.post(path, content=body, headers=JSON)
    assert answer.status_code == 422 and place in answer.json()["message"]
    assert ".1" not in answer.json()["message"]


@pytest.mark.parametrize(
    "options",
    [
        {"cells": [0] * 40_000},
        {"cells": [[0, {}, {}]] * 20_000},
        {"cells": [[0, 0, 1]] * 51_000},
        {"source": [[]] * 40_000},
        {"lines": [0] * 40_000},
    ],
)
def test_options_of_a_task_are_checked_up_to_the_first_wrong_one(options: dict) -> None:
    with pytest.raises(ValidationError) as caught:
        _adapter(FindOptions).validate_python({"by": "painted"} | options)
    assert caught.value.error_count() <= 3  # a value that may be of several types is wrong in several ways


def test_a_head_that_is_named_many_times_is_saved_once(client: TestClient, run) -> None:
    trace = run(client)[-1]["trace"]
    selection = {"scale": "head", "site": "L0", "head": 1}
    pages = [
        client.post(f"/api/traces/{trace}/page", json={"view": "head", "selection": selection | {"heads": shown_heads}})
        for shown_heads in ([1, 0], [1, 0] * 40_000)
    ]
    assert pages[0].status_code == pages[1].status_code == 200 and pages[0].content == pages[1].content


def test_an_address_of_too_many_parameters_is_refused(client: TestClient) -> None:
    for address in ("/?" + "token=x&" * 200, "/api/traces/x/maps?" + "a=1&" * 200):
        answer = client.get(address)
        assert answer.status_code == 413 and "more than 100 parameters" in answer.json()["message"]


def test_a_file_of_edits_is_bounded_like_a_run(client: TestClient) -> None:
    answer = client.post("/api/edits", json={"text": " " * 400_001})
    assert answer.status_code == 413 and "400,000" in answer.json()["message"]
