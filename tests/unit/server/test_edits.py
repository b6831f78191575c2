"""Edits that the page asks for: Python's own numbers, refused before the run, taken away as files and models."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

import headscope as hs
from headscope.interventions import store
from headscope.models import Model
from headscope.server.options import Options
from headscope.views.wire import decode

TEXT = "the cat sat on the mat"


def part(client: TestClient, id: str, key: str = "trace") -> Any:
    answer = client.get(f"/api/traces/{id}/{key}")
    assert answer.status_code == 200, answer.text
    return decode(answer.content)


def task(client: TestClient, trace: str, name: str, **options) -> Any:
    answer = client.post("/api/tasks", json={"name": name, "trace": trace, "options": options})
    last = json.loads(answer.text.splitlines()[-1])
    assert last["state"] == "done", last
    return decode(client.get(f"/api/results/{last['result']}").content)


def own(client: TestClient) -> hs.Model:
    catalogue = client.workbench.catalogue  # type: ignore[attr-defined]
    return catalogue.load(catalogue.default)


def test_an_edited_run_is_that_of_python(client: TestClient, run) -> None:
    id = run(client, edits=["silence('L0H1')", "hs.scale( 'L1H0',2 )"])[-1]["trace"]
    expected = own(client).run(TEXT, [hs.silence("L0H1"), hs.scale("L1H0", 2.0)])
    props = part(client, id).props
    assert props["edits"] == ["hs.silence('L0H1')", "hs.scale('L1H0', 2.0)"]
    logprobs = [candidate["logprob"] for candidate in props["answers"][0]["candidates"]]
    assert logprobs == [prediction.logprob for prediction in expected.predictions(10)]
    weights = part(client, id, "layer/L1?what=pattern").arrays["weights"]
    assert np.array_equal(np.asarray(weights, np.float32), expected.patterns("L1").numpy().astype(weights.dtype))


def test_the_same_edits_find_the_same_run_however_they_are_written(client: TestClient, run) -> None:
    first = run(client, edits=["silence('L0H1')"])[-1]["trace"]
    assert run(client, edits=['hs.silence("L0H1")'])[-1]["trace"] == first
    assert run(client, edits=[])[-1]["trace"] != first
    again = run(client, edits=["silence('L0H1')"])
    assert len(again) == 1 and again[0]["trace"] == first  # it was kept, so nothing ran


def test_edits_that_change_nothing_give_the_same_bytes(client: TestClient, run) -> None:
    plain = run(client)[-1]["trace"]
    same = run(client, edits=["scale('L0H1', 1.0)", "temperature('L1H0', 1)"])[-1]["trace"]
    for key in ("maps?size=96", "layer/L0?what=scores", "layer/L1?what=pattern"):
        assert client.get(f"/api/traces/{plain}/{key}").content == client.get(f"/api/traces/{same}/{key}").content
    assert part(client, plain).props["answers"] == part(client, same).props["answers"]
    assert not task(client, same, "effect").arrays["kl"].any()


@pytest.mark.parametrize(
    ("edits", "status", "error_text"),
    [
        (["__import__('os').system('true')"], 422, "not the call of an edit"),
        (["silence(open('/etc/passwd'))"], 422, "is not a literal"),
        (["scale('L0H0', 1e999)"], 422, "finite number"),
        (["silence('L0H0')"] * 65, 413, "up to 64"),
        (["silence('" + "x" * 30_000 + "')"], 422, "at most 20,000"),
        (["patch('L0H0', hs.interventions.payload('/etc/passwd'))"], 422, "is not a literal"),
        (["patch('L0H0', model.run('x', image='/etc/passwd'))"], 422, "not image"),
    ],
)
def test_what_is_no_edit_is_refused_at_once(client: TestClient, edits: list[str], status: int, error_text: str) -> None:
    model = client.workbench.catalogue.default  # type: ignore[attr-defined]
    answer = client.post("/api/runs", json={"model": model, "text": TEXT, "edits": edits})
    assert answer.status_code == status and error_text in answer.json()["message"]


@pytest.mark.parametrize(
    ("edit", "error_text"),
    [
        ("silence('L9H0')", "there is no L9H0: the heads are L0H0 to"),
        ("silence('encoder.L0H0')", "there is no encoder.L0H0"),
        ("block('L0H0', 0, 'dog')", "no token reads 'dog'"),
        ("set_weight('L0H0', 40, 0, 0.5)", "there is no token 40"),
        ("set_neuron('L0H0', 'key', 99, 1.0)", "coordinates, 0 to"),
        ("set_row('L0H0', 0, [1.0, 0.0])", "made for 2 keys, this input has 9: give a weight for every key, 0 where"),
        ("replace_token(0, 'no such thing as this')", "not one token"),
        ("patch('L0H0', model.run(''))", "empty"),
    ],
)
def test_what_does_not_fit_the_model_is_refused_before_the_run(
    client: TestClient, run, edit: str, error_text: str
) -> None:
    events = run(client, edits=["scale('L0H1', 0.5)", edit])
    assert events[-1]["state"] == "failed" and error_text in events[-1]["message"]
    assert not any(event["layer"] for event in events)  # no layer was computed


def test_the_edit_that_makes_the_output_nan_is_named(client: TestClient, run) -> None:
    edits = ["scale('L0H0', 0.5)", "set_neuron('L0', 'mlp', 1, 1e300)", "silence('L1H0')", "scale('L1H1', 2.0)"]
    last = run(client, edits=edits)[-1]
    assert last["state"] == "failed" and last["error"] == "InterventionError"
    assert last["message"].startswith("hs.set_neuron('L0', 'mlp', 1, 1e+300) makes the model's output NaN")


def test_a_head_is_patched_from_another_run(client: TestClient, run) -> None:
    model, other = own(client), "the dog sat on the mat"
    expected = model.run(TEXT, [hs.patch("L0H1", model.run(other))])
    edit = f"patch('L0H1', model.run({other!r}))"
    unknown = run(client, edits=[edit])[-1]["trace"]
    props = part(client, unknown).props
    assert props["edits"] == [f"hs.{edit}"]
    assert props["answers"][0]["candidates"][0]["logprob"] == expected.predictions(1)[0].logprob
    # What it prints as runs as pasted, with the model at hand.
    pasted = model.run(TEXT, [eval(props["edits"][0], {"hs": hs, "model": model})])
    assert pasted.predictions(1) == expected.predictions(1)


def test_a_run_that_an_edit_needs_can_be_stopped_and_is_bounded(client: TestClient, run, monkeypatch) -> None:
    calls = []
    real = Model.run

    def run_and_record(self, source=None, *rest, **options):
        calls.append((source, options.get("cancel"), options.get("budget")))
        return real(self, source, *rest, **options)

    monkeypatch.setattr(Model, "run", run_and_record)
    run(client, edits=["patch('L0H1', model.run('the dog sat on the mat'))"])
    assert calls[0][0] == "the dog sat on the mat"
    assert all(cancel is not None and budget for _, cancel, budget in calls)


def test_the_effect_is_that_of_python(client: TestClient, run) -> None:
    edits = [hs.silence("L0"), hs.replace_token(1)]
    id = run(client, edits=["silence('L0')", "replace_token(1)"])[-1]["trace"]
    part = task(client, id, "effect", k=3)
    expected = hs.effect(own(client), TEXT, edits, k=3)
    assert np.array_equal(part.arrays["kl"], expected.kl.float().numpy()) and part.arrays["kl"][-1] > 0
    assert part.props["mean_kl"] == float(expected.kl.mean()) and part.props["first"] == 0
    assert (part.props["loss_before"], part.props["loss_after"]) == expected.loss
    first = expected.predictions(1, answer=2)[0]
    assert part.props["texts"][part.arrays["candidates"][2, 0]] == first.text
    assert part.arrays["before"][2, 0] == np.float32(first.before)


def test_what_the_model_writes_with_and_without_is_that_of_python(client: TestClient, run) -> None:
    id = run(client, edits=["silence('L0')"])[-1]["trace"]
    props = task(client, id, "written", n=5).props
    model = own(client)
    assert props["before"] == model.generate(TEXT, max_new_tokens=5).text
    assert props["after"] == model.generate(TEXT, max_new_tokens=5, interventions=[hs.silence("L0")]).text


def test_edits_are_saved_as_python_reads_them_and_read_again(client: TestClient, run, tmp_path: Path) -> None:
    edits = ["silence('L0H1')", "block('L1H0', [3], range(0, 2))", "uniform(None, tokens=[2])"]
    id = run(client, edits=edits)[-1]["trace"]
    answer = client.get(f"/api/traces/{id}/edits")
    assert 'filename="edits.json"' in answer.headers["content-disposition"]
    (tmp_path / "edits.json").write_bytes(answer.content)
    loaded = hs.load_interventions(tmp_path / "edits.json")
    assert [repr(intervention) for intervention in loaded] == [f"hs.{edit}" for edit in edits]
    assert client.post("/api/edits", json={"text": answer.text}).json() == {"edits": edits}


def test_a_file_of_more_edits_than_a_run_takes_is_refused_before_any_is_read(client, tmp_path, monkeypatch) -> None:
    file = hs.save_interventions([hs.silence("L0H1")] * 65, tmp_path / "edits.json")
    monkeypatch.setattr(store, "_call", pytest.fail)
    answer = client.post("/api/edits", json={"text": file.read_text()})
    assert answer.status_code == 422 and "65 interventions; up to 64" in answer.json()["message"]


def test_edits_with_tensors_are_saved_with_them(client: TestClient, run, tmp_path: Path) -> None:
    edit = "patch('L0H1', model.run('the dog sat'))"
    id = run(client, edits=[edit])[-1]["trace"]
    answer = client.get(f"/api/traces/{id}/edits")
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        archive.extractall(tmp_path)
    [loaded] = hs.load_interventions(tmp_path / "edits.json")
    model = own(client)
    expected = model.run(TEXT, [hs.patch("L0H1", model.run("the dog sat"))])
    assert model.run(TEXT, [loaded]).predictions(1) == expected.predictions(1)
    again = client.post("/api/edits", json={"text": (tmp_path / "edits.json").read_text()})
    assert again.json() == {"edits": [edit]}


def test_a_file_that_says_one_thing_and_does_another_is_refused(client: TestClient, run) -> None:
    id = run(client, edits=["scale('L0H1', 0.5)"])[-1]["trace"]
    data = json.loads(client.get(f"/api/traces/{id}/edits").text)
    data["interventions"][0]["arguments"]["factor"] = 50.0
    answer = client.post("/api/edits", json={"text": json.dumps(data)})
    assert answer.status_code == 422 and "is not what its numbers say" in answer.json()["message"]
    for text in ("", "[]", "{", '{"format": "headscope-interventions", "version": 1, "interventions": [1]}'):
        assert client.post("/api/edits", json={"text": text}).status_code == 422


def test_a_model_is_written_where_the_server_was_started_to(start, run, tmp_path: Path) -> None:
    client = start(save_to=tmp_path / "saved")
    assert client.get("/api/settings").json()["saves_models"]
    id = run(client, edits=["silence('L0H1')", "scale('L1H0', 0.5)"])[-1]["trace"]
    answer = client.post(f"/api/traces/{id}/model", json={"name": "quiet"})
    assert answer.status_code == 200 and answer.json()["folder"] == str(tmp_path / "saved" / "quiet")
    baked = hs.load(tmp_path / "saved" / "quiet").run(TEXT)
    edited = own(client).run(TEXT, [hs.silence("L0H1"), hs.scale("L1H0", 0.5)])
    assert [prediction.text for prediction in baked.predictions(5)] == [
        prediction.text for prediction in edited.predictions(5)
    ]
    # What was written can be opened in the page.
    assert run(client, model=str(tmp_path / "saved" / "quiet"))[-1]["state"] == "done"
    again = client.post(f"/api/traces/{id}/model", json={"name": "quiet"})
    assert again.status_code == 409 and "already" in again.json()["message"]


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../out", "a/b", "/tmp/x", ".hidden", "a\\b", "a\0b", "x" * 81, "nul.", "ä"]
)
def test_no_name_leads_out_of_the_folder(start, run, tmp_path: Path, name: str) -> None:
    client = start(save_to=tmp_path / "saved")
    id = run(client, edits=["silence('L0H1')"])[-1]["trace"]
    answer = client.post(f"/api/traces/{id}/model", json={"name": name})
    assert answer.status_code == 422 and "name of a folder" in answer.json()["message"]
    assert not (tmp_path / "saved").exists()


def test_what_weights_cannot_express_is_refused_with_the_reason(start, run, tmp_path: Path) -> None:
    client = start(save_to=tmp_path)
    id = run(client, edits=["temperature('L0H1', 2.0)"])[-1]["trace"]
    answer = client.post(f"/api/traces/{id}/model", json={"name": "warm"})
    assert answer.status_code == 422 and "cannot be written into weights" in answer.json()["message"]
    assert not (tmp_path / "warm").exists()


def test_without_leave_nothing_is_written(client: TestClient, run) -> None:
    assert Options().save_to is None and not client.get("/api/settings").json()["saves_models"]
    id = run(client, edits=["silence('L0H1')"])[-1]["trace"]
    answer = client.post(f"/api/traces/{id}/model", json={"name": "quiet"})
    assert answer.status_code == 403 and "--save-to" in answer.json()["hint"]


def test_an_edited_translation_says_that_it_was_written_without_the_edits(client: TestClient, run) -> None:
    question = {"model": "builtin:translate", "text": "The doctor asked the nurse a question."}
    edits = [f"silence('{stack}L{layer}')" for stack in ("decoder.", "cross.") for layer in range(4)]
    original, edited, anew = (
        part(client, run(client, **question, **options)[-1]["trace"]).props
        for options in ({}, {"edits": edits}, {"edits": edits, "generate": 8})
    )
    # Silencing the decoder changes what it would write, not what it reads again: alone, that would look like no effect.
    texts, texts_again, texts_anew = (props["stacks"][1]["texts"] for props in (original, edited, anew))
    assert texts_again == texts and texts_anew[:9] != texts[:9]
    assert original["warnings"] == anew["warnings"] == []
    assert "what the model writes is that of the run without edits" in edited["warnings"][0]
