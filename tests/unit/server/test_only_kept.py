"""Asked with `only_kept`, the server answers from what it holds: it runs nothing and loads nothing."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from headscope.models import Model


def events(client: TestClient, path: str, **body: Any) -> list[dict[str, Any]]:
    answer = client.post(f"{path}?only_kept=true", json=body)
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


@pytest.fixture
def client(start, models: Path) -> TestClient:
    """A server that may load the models of a folder."""
    return start(allow=(models,))


def test_a_run_that_is_not_kept_is_not_started(client: TestClient, run, models: Path) -> None:
    wanted = {"model": str(models / "gpt"), "text": "the cat sat", "edits": ["silence('L0H1')"]}
    assert [event["state"] for event in events(client, "/api/runs", **wanted)] == ["absent"]
    assert client.get("/api/traces").json() == []
    trace = run(client, **wanted)[-1]["trace"]
    (event,) = events(client, "/api/runs", **wanted)
    assert (event["state"], event["trace"]) == ("done", trace)
    assert [row["id"] for row in client.get("/api/traces").json()] == [trace]


def test_a_model_that_is_not_loaded_stays_so(client: TestClient, models: Path) -> None:
    name = str(models / "long")
    assert events(client, "/api/runs", model=name, text="the cat")[0]["state"] == "absent"
    assert not client.workbench.catalogue.is_loaded(name)  # type: ignore[attr-defined]


def test_what_may_not_be_run_is_refused_all_the_same(start) -> None:
    body = {"model": "someone/model", "text": "x"}
    answer = start().post("/api/runs?only_kept=true", json=body)
    assert answer.status_code == 403 and answer.json()["error"] == "HubNotAllowed"


def test_a_run_that_is_under_way_is_not_joined(client: TestClient, run, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on, compute = threading.Event(), threading.Event(), Model.run

    def slow(self: Model, *arguments: Any, **options: Any) -> Any:
        begun.set()
        assert go_on.wait(30)
        return compute(self, *arguments, **options)

    monkeypatch.setattr(Model, "run", slow)
    model = client.workbench.catalogue.default  # type: ignore[attr-defined]
    with ThreadPoolExecutor(1) as others:
        first = others.submit(run, client, text="the dog")
        assert begun.wait(30)
        assert events(client, "/api/runs", model=model, text="the dog")[0]["state"] == "absent"
        go_on.set()
        assert first.result()[-1]["state"] == "done"


def test_a_task_that_is_not_kept_is_not_started(client: TestClient, run) -> None:
    wanted = {"name": "activations", "trace": run(client)[-1]["trace"], "options": {"k": 2}}
    assert [event["state"] for event in events(client, "/api/tasks", **wanted)] == ["absent"]
    done = json.loads(client.post("/api/tasks", json=wanted).text.splitlines()[-1])
    (event,) = events(client, "/api/tasks", **wanted)
    assert (event["state"], event["result"]) == ("done", done["result"])
