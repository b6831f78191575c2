"""Tasks: worked out once, in the queue of runs; refused in words; stopped when nobody waits."""

import base64
import gzip
import json
import re
import threading
from dataclasses import dataclass

import numpy as np
import pytest
from starlette.testclient import TestClient

from headscope.errors import Cancelled
from headscope.models import Model
from headscope.progress import Progress
from headscope.server.tasks import Desk, Task
from headscope.traces import compare
from headscope.views.contract import RowProps
from headscope.views.wire import Part, decode


def post_task(client: TestClient, **wanted) -> list[dict]:
    answer = client.post("/api/tasks", json=wanted)
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


def test_the_activations_of_a_run_are_those_of_python(client: TestClient, run) -> None:
    trace = run(client)[-1]["trace"]
    last = post_task(client, name="activations", trace=trace, options={"k": 2, "first": 1, "count": 3})[-1]
    assert last["state"] == "done"
    part = decode(client.get(f"/api/results/{last['result']}").content)
    workbench = client.workbench  # type: ignore[attr-defined]
    stored_run = workbench.runs.find(trace)
    model = workbench.catalogue.load(stored_run.request.model)
    expected = model.lens(model.run(stored_run.trace.inputs, record="full"), 2)
    assert (part.props["first"], part.props["count"]) == (1, 3)
    lens = np.asarray(part.arrays["lens"])
    for place, layer in enumerate(expected):
        for token in range(3):
            texts = [part.props["texts"][text_id] for text_id in lens[place, token]]
            assert texts == [prediction.text for prediction in layer[token + 1]]
    assert np.asarray(part.arrays["norm"]).shape[1] == len(stored_run.trace.tokens["main"])


def test_activations_follow_the_edits_of_their_run(client: TestClient, run) -> None:
    norms = []
    for edits in ([], ["silence('L0H1')"]):
        trace = run(client, edits=edits)[-1]["trace"]
        last = post_task(client, name="activations", trace=trace)[-1]
        norms.append(np.asarray(decode(client.get(f"/api/results/{last['result']}").content).arrays["norm"]))
    assert np.allclose(norms[0][0], norms[1][0]) and not np.allclose(norms[0][-1], norms[1][-1])


def test_activations_of_two_runs_are_those_of_python(client: TestClient, run) -> None:
    traces = [run(client, edits=edits)[-1]["trace"] for edits in (["silence('L0H1')"], [])]
    options = {"k": 2, "first": 1, "count": 3, "minus": traces[1]}
    last = post_task(client, name="activations", trace=traces[0], options=options)[-1]
    assert last["state"] == "done", last
    part = decode(client.get(f"/api/results/{last['result']}").content)
    workbench = client.workbench  # type: ignore[attr-defined]
    first, other = (workbench.runs.find(trace) for trace in traces)
    model = workbench.catalogue.load(first.request.model)
    difference = model.activations_difference(compare(first.trace, other.trace), tokens=range(1, 4), k=2)
    for side, own in (("a", difference.a), ("b", difference.b)):
        assert np.asarray(part.arrays[f"{side}:norm"]) == pytest.approx(own.norms, abs=1e-5)
        assert np.asarray(part.arrays[f"{side}:value"]) == pytest.approx(own.values, abs=1e-5)
    assert (part.props["first"], part.props["count"]) == (1, 3)
    itself = post_task(client, name="activations", trace=traces[0], options={"minus": traces[0]})[-1]["result"]
    arrays = decode(client.get(f"/api/results/{itself}").content).arrays
    assert all((np.asarray(arrays[f"a:{name}"]) == arrays[f"b:{name}"]).all() for name in ("norm", "value"))


def test_a_page_holds_the_activations_of_what_it_shows(client: TestClient, run) -> None:
    edited, other = (run(client, edits=edits)[-1]["trace"] for edits in (["silence('L0H1')"], []))
    wanted = {"view": "activations", "selection": {"scale": "activations", "site": "L1", "heads": [0]}}
    post_task(client, name="activations", trace=edited)
    refused = client.post(f"/api/traces/{edited}/page", json=wanted | {"minus": other})
    assert refused.status_code == 422 and "not read yet" in refused.json()["message"]
    for first, count in ((3, 512), (0, 3)):
        post_task(client, name="activations", trace=edited, options={"minus": other, "first": first, "count": count})
    pages = [client.post(f"/api/traces/{edited}/page", json=wanted | more).text for more in ({}, {"minus": other})]
    parts = [re.findall(r'data-key="activations/main">([^<]+)<', page) for page in pages]
    plain, joined = (decode(gzip.decompress(base64.b64decode(part))) for (part,) in parts)
    assert "norm" in plain.arrays and "a:norm" not in plain.arrays
    # What was read some tokens at a time is there as if it had been read at once.
    once = post_task(client, name="activations", trace=edited, options={"minus": other})[-1]["result"]
    whole = decode(client.get(f"/api/results/{once}").content)
    assert joined.props["count"] == whole.props["count"] and set(joined.arrays) == set(whole.arrays)
    for name in ("a:norm", "a:answer", "b:rank", "a:value", "b:heads/L1"):
        assert np.asarray(joined.arrays[name]) == pytest.approx(np.asarray(whole.arrays[name]), abs=1e-4), name
    texts = [np.array([*part.props["texts"], ""], object)[part.arrays["predicted"]] for part in (joined, whole)]
    assert (texts[0] == texts[1]).all()


def test_runs_that_cannot_be_subtracted_say_why(client: TestClient, run) -> None:
    trace, other = run(client)[-1]["trace"], run(client, text="zebras")[-1]["trace"]
    last = post_task(client, name="activations", trace=trace, options={"minus": other})[-1]
    assert last["state"] == "failed" and "no token in common" in last["message"]
    answer = client.post("/api/tasks", json={"name": "activations", "trace": trace, "options": {"minus": "nothing"}})
    assert answer.status_code == 404
    last = post_task(client, name="activations", trace=trace, options={"minus": trace, "first": 99})[-1]
    assert last["state"] == "failed" and "in both runs" in last["message"]


def test_a_run_is_repeated_once_for_all_its_tokens(client: TestClient, run, monkeypatch) -> None:
    from headscope.server.tasks import activations

    calls = []
    watch = activations.watch
    monkeypatch.setattr(activations, "watch", lambda *a, **b: calls.append(1) or watch(*a, **b))
    trace = run(client)[-1]["trace"]
    for first in (0, 2, 4):
        post_task(client, name="activations", trace=trace, options={"first": first, "count": 2})
    assert len(calls) == 1


def test_a_page_of_activations_holds_what_was_read(client: TestClient, run) -> None:
    trace = run(client)[-1]["trace"]
    wanted = {"view": "activations", "selection": {"scale": "activations", "site": "L1", "heads": [0]}}
    refused = client.post(f"/api/traces/{trace}/page", json=wanted)
    assert refused.status_code == 422 and "not read yet" in refused.json()["message"]
    post_task(client, name="activations", trace=trace)
    page = client.post(f"/api/traces/{trace}/page", json=wanted)
    assert page.status_code == 200 and 'data-key="activations/main"' in page.text


def test_a_page_holds_the_tokens_that_were_read_last(client: TestClient, run) -> None:
    trace = run(client)[-1]["trace"]
    wanted = {"view": "activations", "selection": {"scale": "activations", "site": "L1", "heads": [0]}}
    pages = []
    for first in (0, 3, 0):
        post_task(client, name="activations", trace=trace, options={"first": first, "count": 2})
        pages.append(client.post(f"/api/traces/{trace}/page", json=wanted).text)
    assert pages[0] == pages[2] != pages[1]


def test_a_page_holds_all_that_was_read_some_tokens_at_a_time(client: TestClient, run) -> None:
    trace = run(client)[-1]["trace"]
    wanted = {"view": "activations", "selection": {"scale": "activations", "site": "L1", "heads": [0]}}
    whole = post_task(client, name="activations", trace=trace)[-1]["result"]
    expected = decode(client.get(f"/api/results/{whole}").content)
    length, other = expected.props["count"], run(client, edits=["silence('L0H1')"])[-1]["trace"]
    for first in (4, 0, 2):
        options = {"first": first, "count": 2 if first < 4 else 512}
        post_task(client, name="activations", trace=other, options=options | {"k": 2})
        post_task(client, name="activations", trace=other, options=options)
    page = client.post(f"/api/traces/{other}/page", json=wanted).text
    (packed,) = re.findall(r'data-key="activations/main">([^<]+)<', page)
    saved_part = decode(gzip.decompress(base64.b64decode(packed)))
    assert (saved_part.props["first"], saved_part.props["count"]) == (0, length)
    once = post_task(client, name="activations", trace=other)[-1]["result"]
    at_once = decode(client.get(f"/api/results/{once}").content)
    assert set(saved_part.arrays) == set(at_once.arrays) == set(expected.arrays)
    for name, values in at_once.arrays.items():
        if name != "lens":
            assert np.allclose(saved_part.arrays[name], values, atol=1e-5), name
    texts = [np.array(part.props["texts"], object)[part.arrays["lens"]] for part in (saved_part, at_once)]
    assert (texts[0] == texts[1]).all()


def test_streams_that_are_kept_do_not_keep_the_model(client: TestClient, run) -> None:
    trace = run(client)[-1]["trace"]
    post_task(client, name="activations", trace=trace)
    (result,) = client.workbench.tasks._aside.newest_first()  # type: ignore[attr-defined]
    assert not any(isinstance(value, Model) for value in vars(result).values())


def test_a_result_is_worked_out_once(client: TestClient, run) -> None:
    calls = []

    @dataclass(frozen=True)
    class Options:
        n: int = 1

    def work(desk: Desk, options: Options) -> Part:
        calls.append(options.n)
        desk.progress(Progress("halves", 1, 2))
        return Part("row", RowProps("L0", "query", 0))

    client.workbench.tasks.known = {"count": Task("count", Options, work)}  # type: ignore[attr-defined]
    trace = run(client)[-1]["trace"]
    first = post_task(client, name="count", trace=trace, options={"n": 3})
    assert [(event["done"], event["of"]) for event in first if event["of"]] == [(1, 2)]
    assert post_task(client, name="count", trace=trace, options={"n": 3})[-1]["result"] == first[-1]["result"]
    assert post_task(client, name="count", trace=trace, options={"n": 4})[-1]["result"] != first[-1]["result"]
    assert calls == [3, 4]


@pytest.mark.parametrize(
    ("wanted", "status", "error_text"),
    [
        ({"name": "dance"}, 404, "the tasks are activations"),
        ({"name": "activations", "trace": "nothing"}, 404, "no trace"),
        ({"name": "activations", "options": {"height": 3}}, 422, "no option 'height': it takes stack, first"),
        ({"name": "activations", "options": {"k": "many"}}, 422, "activations: k"),
    ],
)
def test_what_cannot_be_done_is_said(client: TestClient, wanted: dict, status: int, error_text: str) -> None:
    answer = client.post("/api/tasks", json=wanted)
    assert answer.status_code == status and error_text in answer.json()["message"]


@pytest.mark.parametrize(
    ("options", "error_text"),
    [({"first": 99}, "no token 99"), ({"count": 0}, "count is 1"), ({"stack": "moon"}, "there are main")],
)
def test_what_fails_in_the_work_is_said(client: TestClient, run, options: dict, error_text: str) -> None:
    trace = run(client, record="summary")[-1]["trace"]
    last = post_task(client, name="activations", trace=trace, options=options)[-1]
    assert last["state"] == "failed" and error_text in last["message"]


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
    assert post_task(client, name="wait", trace=trace)[-1]["state"] == "cancelled"
    stopper.join()


def test_examples_come_from_the_corpus_of_the_server(start, run, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "texts.txt").write_text("the cat sat on the mat\nshe gave her sister the book\nit was tired\n")
    client = start(corpus=tmp_path / "texts.txt")
    assert client.get("/api/settings").json()["corpus"] == "texts.txt"
    trace = run(client)[-1]["trace"]
    last = post_task(client, name="examples", trace=trace, options={"place": "L1.neurons[3]", "k": 2})[-1]
    part = decode(client.get(f"/api/results/{last['result']}").content)
    assert part.props["n_examples"] == 3 and len(part.props["examples"]) == 2
    values, first = np.asarray(part.arrays["values"]), part.props["examples"][0]
    assert values[first["token"]] == pytest.approx(first["value"], abs=1e-4)
    failed = post_task(client, name="examples", trace=trace, options={"place": "L1.neurons[99999]"})[-1]
    assert failed["state"] == "failed" and "0 to" in failed["message"]


def test_without_a_corpus_examples_come_from_the_builtin_sentences(
    client: TestClient, run, tmp_path, monkeypatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    settings = client.get("/api/settings").json()
    assert (settings["corpus"], settings["is_corpus_builtin"], settings["samples"]) == ("built-in sentences", True, [])
    trace = run(client)[-1]["trace"]
    last = post_task(client, name="examples", trace=trace, options={"place": "L0H0", "k": 3})[-1]
    part = decode(client.get(f"/api/results/{last['result']}").content)
    assert part.props["corpus"] == "built-in sentences" and part.props["n_examples"] == 80
    assert len(part.props["examples"]) == 3


@pytest.mark.parametrize(
    "wanted", [{"generate": 201}, {"generate": -1}, {"generate": 5, "target": "a"}, {"generate": 5, "pair": "a"}]
)
def test_how_much_is_written_is_bounded(client: TestClient, wanted: dict) -> None:
    default = client.workbench.catalogue.default  # type: ignore[attr-defined]
    answer = client.post("/api/runs", json={"model": default, "text": "the cat"} | wanted)
    assert answer.status_code == 422 and answer.json()["error"] == "InputError"


def test_writing_tells_how_far_it_is(client: TestClient, run) -> None:
    events = run(client, generate=4)
    assert [(event["done"], event["of"]) for event in events if event["of"]][-1][1] == 4
    props = decode(client.get(f"/api/traces/{events[-1]['trace']}/trace").content).props
    assert [step for step in props["steps"] if step is not None] == [0, 1, 2, 3]
    assert len(props["answers"]) == 5
