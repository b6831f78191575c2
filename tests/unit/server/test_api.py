"""What the page asks for, and what it gets."""

import json
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
import torch
from starlette.testclient import TestClient

from headscope.models.model import Model
from headscope.views.wire import decode


def test_settings_tell_what_the_server_offers(start, models: Path) -> None:
    client = start(allow_hub=True, allow=(models,), limits={"characters": 123, "turns": 7})
    settings = client.get("/api/settings").json()
    assert settings["default_model"] == str(models / "gpt") and settings["allows_hub"] and settings["allows_folders"]
    assert settings["max_characters"] == 123 and settings["max_turns"] == 7
    assert [model["name"] for model in settings["models"]][1:] == [
        "builtin:bert",
        "builtin:gpt",
        "builtin:translate",
        "builtin:vit",
        str(models / "long"),
        str(models / "vit"),
    ]


def test_a_run_tells_where_it_stands_and_ends_with_its_trace(client: TestClient, run) -> None:
    events = run(client)
    assert [event["state"] for event in events] == ["queued", "loading", "running", "running", "running", "done"]
    assert [(event["layer"], event["n_layers"]) for event in events[2:]] == [(0, 2), (1, 2), (2, 2), (2, 2)]
    assert events[0]["ahead"] == 0
    id = events[-1]["trace"]
    trace = decode(client.get(f"/api/traces/{id}/trace").content)
    assert trace.props["id"] == id and trace.props["text"] == "the cat sat on the mat"


def test_the_same_request_finds_the_same_trace_at_once(client: TestClient, run) -> None:
    id = run(client)[-1]["trace"]
    assert run(client) == [run(client)[-1]] and run(client)[-1]["trace"] == id
    assert run(client, record="summary")[-1]["trace"] != id
    assert run(client, text="the dog")[-1]["trace"] != id


def test_a_trace_has_another_address_in_another_server(start, run) -> None:
    assert run(start())[-1]["trace"] != run(start())[-1]["trace"]


def test_the_history_is_newest_first(client: TestClient, run) -> None:
    first, second = run(client, text="one")[-1]["trace"], run(client, text="two")[-1]["trace"]
    history = client.get("/api/traces").json()
    assert [summary["id"] for summary in history] == [second, first]
    assert history[0]["request"]["text"] == "two" and history[0]["n_tokens"] > 0 and history[0]["when"] > 1e9


def test_parts_are_sent_as_bytes_that_browsers_may_keep(client: TestClient, run) -> None:
    id = run(client)[-1]["trace"]
    answer = client.get(f"/api/traces/{id}/layer/L1?what=pattern")
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["cache-control"] == "private, max-age=31536000, immutable"
    layer = decode(answer.content)
    assert layer.props["site"] == "L1" and layer.arrays["weights"].shape[0] == 4  # type: ignore[union-attr]


def test_what_a_trace_does_not_have_is_said(client: TestClient, run) -> None:
    id = run(client)[-1]["trace"]
    for key, status in (("layer/L9", 404), ("nothing", 422), ("layer/L0?what=magic", 422), ("row/L0?query=999", 404)):
        answer = client.get(f"/api/traces/{id}/{key}")
        assert answer.status_code == status and answer.json()["message"], key


def test_an_unknown_trace_says_to_run_again(client: TestClient) -> None:
    answer = client.get("/api/traces/0123/trace")
    assert answer.status_code == 404 and answer.json()["hint"] == "Run the input again."


def test_traces_beyond_the_memory_are_forgotten(start, run) -> None:
    client = start()
    first = run(client, text="one " * 20)[-1]["trace"]
    size = client.workbench.runs.cache.size
    client = start(limits={"memory": 3 * size})
    ids = [run(client, text=f"{word} " + "one " * 19)[-1]["trace"] for word in ("a", "b")]
    client.get(f"/api/traces/{ids[0]}/trace")
    third = run(client, text="c " + "one " * 19)[-1]["trace"]
    assert first not in ids
    assert [summary["id"] for summary in client.get("/api/traces").json()] == [third, ids[0]]
    assert client.get(f"/api/traces/{ids[1]}/trace").status_code == 404
    again = run(client, text="b " + "one " * 19)
    assert again[-1]["trace"] == ids[1] and client.get(f"/api/traces/{ids[1]}/trace").status_code == 200


def test_a_run_that_cannot_be_done_says_why(client: TestClient, run) -> None:
    last = run(client, text="word " * 3000)[-1]
    assert last["state"] == "failed" and last["error"] == "TooLongError"
    assert (
        "positions for 1,024" in last["message"] and last["hint"] == "Shorten the text, or run the first 1,024 tokens."
    )
    assert last["cut_to"] == "1,024 tokens"
    assert run(client, text="word " * 3000, truncate=True)[-1]["state"] == "done"


def test_a_run_that_would_not_fit_the_memory_says_how_to_give_more(start, run) -> None:
    last = run(start(limits={"memory": 10_000}), record="full")[-1]
    assert last["error"] == "BudgetError" and "--max-memory" in last["hint"]


def test_what_was_cut_off_is_told_with_the_trace(client: TestClient, run) -> None:
    id = run(client, text="word " * 3000, truncate=True)[-1]["trace"]
    props = decode(client.get(f"/api/traces/{id}/trace").content).props
    assert any("cut off" in warning for warning in props["warnings"])


def test_a_model_of_images_is_not_given_text_as_a_file_name(start, run, models: Path) -> None:
    client = start(models=(str(models / "vit"),))
    last = run(client, text="/etc/hostname")[-1]
    assert last["state"] == "failed" and "takes images, not text" in last["message"]


def test_a_model_that_fails_in_its_own_code_fails_alone(
    client: TestClient, run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Model, *inputs: object, **options: object) -> None:
        raise ZeroDivisionError("secret detail")

    with monkeypatch.context() as patched:
        patched.setattr(Model, "run", fail)
        last = run(client)[-1]
    assert last["state"] == "failed" and last["error"] == "Unexpected" and "secret" not in str(last)
    assert run(client)[-1]["state"] == "done"


@pytest.mark.parametrize(
    ("wanted", "status", "error_text"),
    [
        ({"text": "x" * 101}, 413, "101 characters long; this server takes up to 100"),
        ({"text": "x" * 60, "pair": "x" * 60}, 413, "120 characters"),
        ({"chat": [{"role": "user", "content": "x"}] * 4}, 413, "4 turns; this server takes up to 3"),
        ({"chat": [{"role": "user", "content": "x" * 101}]}, 413, "101 characters"),
        ({}, 422, "there is nothing to run"),
        ({"text": "x", "chat": []}, 422, "a text or a chat"),
        ({"text": 5}, 422, "body.text"),
        ({"text": "x", "record": "rows"}, 422, "body.record"),
        ({"text": "x", "model": "builtin:none"}, 404, "builtin:gpt"),
        ({"text": "x", "model": "/etc"}, 403, "loads no folders"),
        ({"text": "x", "model": "gpt2"}, 403, "the hub"),
    ],
)
def test_limits_and_permissions_are_told_before_anything_runs(
    start, wanted: dict, status: int, error_text: str
) -> None:
    client = start(limits={"characters": 100, "turns": 3})
    answer = client.post("/api/runs", json={"model": client.workbench.catalogue.default} | wanted)
    assert answer.status_code == status and error_text in answer.json()["message"]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"model": "\\ud800", "text": "a"}', b"[" * 100_000, b"\xff"])
def test_a_body_that_is_no_request_is_refused(client: TestClient, body: bytes) -> None:
    answer = client.post("/api/runs", content=body, headers={"Content-Type": "application/json"})
    assert 400 <= answer.status_code < 500 and answer.json()["message"]


def test_models_are_loaded_on_request(start, models: Path) -> None:
    client = start(allow=(models,))
    answer = client.post("/api/models", json={"name": str(models / "gpt")})
    assert answer.status_code == 200 and answer.json()["kinds"] == ["text"] and answer.json()["is_loaded"]
    assert client.post("/api/models", json={"name": str(models / "gpt")}).json() == answer.json()
    vit = client.post("/api/models", json={"name": str(models / "vit")}).json()
    assert vit["kinds"] == ["image"]
    assert vit in client.get("/api/settings").json()["models"]


def test_a_model_that_cannot_be_read_says_so(start, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    client = start(allow=(tmp_path,))
    answer = client.post("/api/models", json={"name": str(tmp_path / "empty")})
    assert answer.status_code == 422 and "config.json" in answer.json()["message"]
    assert client.post("/api/models", json={"name": str(tmp_path / "none")}).status_code == 422


@pytest.mark.parametrize("file", ["pytorch_model.bin", "code"])
def test_neither_pickle_nor_a_model_s_own_code_is_run(start, models: Path, tmp_path: Path, file: str) -> None:
    folder = shutil.copytree(models / "gpt", tmp_path / "model")
    if file == "code":
        config = json.loads((folder / "config.json").read_text())
        config |= {"model_type": "own", "auto_map": {"AutoConfig": "own.Own", "AutoModel": "own.Own"}}
        (folder / "config.json").write_text(json.dumps(config))
        (folder / "own.py").write_text("raise SystemExit('ran')")
    else:
        (folder / "model.safetensors").unlink()
        torch.save({}, folder / file)
    answer = start(allow=(tmp_path,)).post("/api/models", json={"name": str(folder)})
    assert answer.status_code == 422 and "safetensors only" in answer.json()["hint"]


def test_addresses_that_do_not_exist_are_problems_too(client: TestClient) -> None:
    for answer, status in (
        (client.get("/api/none"), 404),
        (client.get("/none"), 404),
        (client.delete("/api/traces"), 405),
        (client.get("/api/runs"), 405),
    ):
        assert answer.status_code == status and answer.json()["message"]


def test_the_description_names_every_address_and_how_one_is_let_in(client: TestClient) -> None:
    description = client.get("/api/openapi.json").json()
    assert set(description["paths"]) >= {
        "/api/settings",
        "/api/models",
        "/api/runs",
        "/api/traces",
        "/api/traces/{id}/{key}",
    }
    assert "application/x-ndjson" in description["paths"]["/api/runs"]["post"]["responses"]["200"]["content"]
    assert "429" in description["paths"]["/api/runs"]["post"]["responses"]
    assert description["components"]["securitySchemes"]["token"]["scheme"] == "bearer"


def test_32_clients_at_once_get_their_parts_without_an_error(listen, models: Path) -> None:
    workbench, address, header = listen(models=(str(models / "gpt"),))
    with httpx.Client(base_url=address, headers=header) as client:
        lines = client.post("/api/runs", json={"model": str(models / "gpt"), "text": "the cat " * 60}).text
    id = json.loads(lines.splitlines()[-1])["trace"]
    gate = threading.Barrier(32)

    def ask(number: int) -> list[int]:
        with httpx.Client(base_url=address, headers=header, timeout=30) as client:
            gate.wait()
            keys = (f"layer/L{number % 2}", f"row/L0?query={number}", f"window/L0H{number % 4}", "maps", "trace")
            return [client.get(f"/api/traces/{id}/{key}").status_code for key in keys]

    with ThreadPoolExecutor(32) as pool:
        assert [status for statuses in pool.map(ask, range(32)) for status in statuses] == [200] * 160
    assert not workbench.parts._going


def test_an_empty_pair_or_target_is_none(client: TestClient, run) -> None:
    assert run(client, pair="", target="")[-1]["trace"] == run(client)[-1]["trace"] != ""
