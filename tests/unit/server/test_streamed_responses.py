"""Clients that leave: over real connections, since only those can be closed."""

import http.client
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from headscope.errors import Cancelled
from headscope.models.model import Model
from headscope.progress import Progress
from headscope.server.runs import Runs

TEXT = "the cat sat on the mat " * 250


class Watched:
    """What became of each forward pass: how many layers were done, and whether it was cancelled."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.layers: list[int] = []
        self.cancelled: list[int] = []
        self.over = threading.Event()
        run = Model.run

        def watch_run(model: Model, *inputs: Any, progress: Any, **options: Any) -> Any:
            def report_layer(state: Progress) -> None:
                self.layers.append(state.done)
                progress(state)

            try:
                return run(model, *inputs, progress=report_layer, **options)
            except Cancelled:
                self.cancelled.append(self.layers[-1] if self.layers else 0)
                raise
            finally:
                self.over.set()

        monkeypatch.setattr(Model, "run", watch_run)


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(monkeypatch)


def wait_for(what: Any, seconds: float = 10) -> None:
    begun = time.monotonic()
    while not what():
        assert time.monotonic() - begun < seconds
        time.sleep(0.01)


def until_first_layer(answer: httpx.Response) -> Iterator[str]:
    """Read until the model has done its first layer; gives the rest, whose end would close the connection."""
    lines = answer.iter_lines()
    while not json.loads(next(lines))["layer"]:
        pass
    return lines


def test_a_client_that_leaves_stops_its_run_in_the_middle_of_the_pass(listen, models: Path, watch: Watched) -> None:
    workbench, address, header = listen(models=(str(models / "long"),))
    wanted = {"model": str(models / "long"), "text": TEXT}
    with httpx.stream("POST", f"{address}/api/runs", json=wanted, headers=header, timeout=30) as answer:
        _rest = until_first_layer(answer)
    assert watch.over.wait(10)
    assert len(watch.cancelled) == 1 and 0 < watch.cancelled[0] < 24
    wait_for(lambda: workbench.jobs._running is None)
    assert not workbench.jobs._known and len(workbench.runs.cache) == 0


def test_runs_wait_their_turn_and_tiles_do_not(listen, models: Path, watch: Watched) -> None:
    workbench, address, header = listen(models=(str(models / "long"), str(models / "gpt")), limits={"waiting": 1})
    small, long = ({"model": str(models / name), "text": text} for name, text in (("gpt", "the cat"), ("long", TEXT)))
    with httpx.Client(base_url=address, headers=header, timeout=30) as client:
        done = json.loads(client.post("/api/runs", json=small).text.splitlines()[-1])
        with client.stream("POST", "/api/runs", json=long) as running:
            _rest = until_first_layer(running)
            with client.stream("POST", "/api/runs", json=small | {"text": "the dog"}) as waiting:
                lines = waiting.iter_lines()
                event = json.loads(next(lines))
                assert (event["state"], event["ahead"]) == ("queued", 1)
                busy = client.post("/api/runs", json=small | {"text": "the bird"})
                assert busy.status_code == 429 and int(busy.headers["retry-after"]) >= 1
                assert "the queue is full: 1 waiting" in busy.json()["message"]
                assert client.get(f"/api/traces/{done['trace']}/layer/L0").status_code == 200
                assert json.loads(client.post("/api/runs", json=small).text)["trace"] == done["trace"]
                assert workbench.jobs._running is not None and not watch.cancelled  # all that while the model ran
            wait_for(lambda: not workbench.jobs._waiting)
            assert not watch.cancelled
    wait_for(lambda: watch.cancelled)


def test_a_second_listener_keeps_a_run_going(listen, models: Path, watch: Watched) -> None:
    _, address, header = listen(models=(str(models / "long"),))
    wanted = {"model": str(models / "long"), "text": TEXT}
    with (
        httpx.Client(base_url=address, headers=header, timeout=30) as client,
        client.stream("POST", "/api/runs", json=wanted) as second,
    ):
        with client.stream("POST", "/api/runs", json=wanted) as first:
            _rest = until_first_layer(first)
        assert json.loads(list(second.iter_lines())[-1])["state"] == "done"
    assert not watch.cancelled and max(watch.layers) == 24


def test_a_client_that_leaves_while_a_part_is_computed_leaves_nothing_behind(
    listen, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    workbench, address, header = listen(models=(str(models / "gpt"),))
    monkeypatch.setattr("headscope.server.api.part", lambda *arguments, **more: gate.wait(10))
    monkeypatch.setattr("headscope.server.api.working_bytes", lambda *arguments, **more: 0)
    monkeypatch.setattr(Runs, "find", lambda self, id: type("Run", (), {"trace": None, "gold": None}))
    with httpx.Client(base_url=address, headers=header) as client, pytest.raises(httpx.ReadTimeout):
        client.get("/api/traces/a/trace", timeout=0.2)
    with httpx.Client(base_url=address, headers=header) as client:
        begun = time.monotonic()
        assert client.get("/api/traces").status_code == 200 and time.monotonic() - begun < 2
    gate.set()
    wait_for(lambda: not workbench.parts._going)


def test_a_key_may_name_every_token_of_a_long_input(listen) -> None:
    _, address, header = listen()
    hidden = ",".join(map(str, range(60_000)))
    connection = http.client.HTTPConnection(address.removeprefix("http://"))  # httpx refuses such addresses itself
    connection.request("GET", f"/api/traces/none/layer/L0?hide={hidden}", headers=header)
    answer = connection.getresponse()
    assert answer.status == 404 and json.loads(answer.read())["error"] == "UnknownTrace"
    connection.close()
