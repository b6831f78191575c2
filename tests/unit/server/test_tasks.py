"""Tasks: worked out once, in the queue of runs; refused in words; stopped when nobody waits."""

import json
import threading
from dataclasses import dataclass

import pytest
from starlette.testclient import TestClient

from headscope.errors import Cancelled
from headscope.server.tasks import Desk, Task
from headscope.views.contract import LensProps
from headscope.views.wire import Part, decode


def asked(client: TestClient, **wanted) -> list[dict]:
    answer = client.post("/api/tasks", json=wanted)
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


def test_the_lens_of_a_run_is_that_of_python(client: TestClient, run) -> None:
    trace = run(client, record="full")[-1]["trace"]
    last = asked(client, name="lens", trace=trace, options={"k": 2})[-1]
    assert last["state"] == "done"
    layers = decode(client.get(f"/api/results/{last['result']}").content).props["layers"]
    workbench = client.workbench  # type: ignore[attr-defined]
    found = workbench.runs.find(trace)
    expected = workbench.catalogue.load(found.request.model).lens(found.trace, 2)
    assert [[[one["text"] for one in place] for place in layer] for layer in layers] == [
        [[one.text for one in place] for place in layer] for layer in expected
    ]


def test_a_result_is_worked_out_once(client: TestClient, run) -> None:
    calls = []

    @dataclass(frozen=True)
    class Options:
        n: int = 1

    def work(desk: Desk, options: Options) -> Part:
        calls.append(options.n)
        desk.progress(1, 2)
        return Part("lens", LensProps([]))

    client.workbench.tasks.known = {"count": Task("count", Options, work)}  # type: ignore[attr-defined]
    trace = run(client)[-1]["trace"]
    first = asked(client, name="count", trace=trace, options={"n": 3})
    assert [(one["done"], one["of"]) for one in first if one["of"]] == [(1, 2)]
    assert asked(client, name="count", trace=trace, options={"n": 3})[-1]["result"] == first[-1]["result"]
    assert asked(client, name="count", trace=trace, options={"n": 4})[-1]["result"] != first[-1]["result"]
    assert calls == [3, 4]


@pytest.mark.parametrize(
    ("wanted", "status", "told"),
    [
        ({"name": "dance"}, 404, "the tasks are lens"),
        ({"name": "lens", "trace": "nothing"}, 404, "no trace"),
        ({"name": "lens", "trace": "nothing", "options": {"height": 3}}, 422, "no option 'height': it takes k"),
        ({"name": "lens", "trace": "nothing", "options": {"k": "many"}}, 422, "lens: k"),
    ],
)
def test_what_cannot_be_done_is_said(client: TestClient, wanted: dict, status: int, told: str) -> None:
    answer = client.post("/api/tasks", json=wanted)
    assert answer.status_code == status and told in answer.json()["message"]


def test_what_fails_in_the_work_is_said(client: TestClient, run) -> None:
    trace = run(client, record="summary")[-1]["trace"]
    last = asked(client, name="lens", trace=trace)[-1]
    assert last["state"] == "failed" and "record='full'" in last["message"]


def test_a_task_can_be_stopped(client: TestClient, run) -> None:
    begun = threading.Event()

    @dataclass(frozen=True)
    class Options:
        pass

    def work(desk: Desk, options: Options) -> Part:
        begun.set()
        assert desk.cancel.wait(10)
        raise Cancelled

    workbench = client.workbench  # type: ignore[attr-defined]
    workbench.tasks.known = {"wait": Task("wait", Options, work)}
    trace = run(client)[-1]["trace"]
    stopper = threading.Thread(target=lambda: (begun.wait(10), workbench.jobs._running.cancel.set()))
    stopper.start()
    assert asked(client, name="wait", trace=trace)[-1]["state"] == "cancelled"
    stopper.join()
