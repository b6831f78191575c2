"""What the terminal shows of failures: types, places and ids, and none of the user's text."""

import asyncio
import gc
import json
import logging
import warnings

import pytest
from starlette.testclient import TestClient

from headscope.errors import HeadscopeWarning
from headscope.models.model import Model
from headscope.server import log

SECRET = "my secret diary"


def fail(*inputs: object, **options: object) -> None:
    raise ValueError(f"cannot read {SECRET!r}")


def cause_every_failure(client: TestClient, run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests that are refused, runs that fail, and tasks that fail, each with an error that quotes the text."""
    trace = run(client, text=SECRET)[-1]["trace"]
    model = client.workbench.catalogue.default  # type: ignore[attr-defined]
    for edit in (SECRET, f"silence('{SECRET}')", f"block('L0H0', '{SECRET}', 'cat')"):
        client.post("/api/runs", json={"model": model, "text": SECRET, "edits": [edit]})
    run(client, text=f"{SECRET} " * 3000)
    client.post("/api/edits", json={"text": json.dumps([SECRET])})
    client.post("/api/runs", json={"model": SECRET, "text": [SECRET]})
    client.post("/api/runs", content=SECRET, headers={"Content-Type": "application/json"})
    client.post("/api/media", content=SECRET.encode())
    client.get(f"/api/traces/{trace}/{SECRET}")
    client.get(f"/{SECRET}")
    find = {"by": "example", "source": SECRET, "target": SECRET}
    client.post("/api/tasks", json={"name": "find", "trace": trace, "options": find})
    with monkeypatch.context() as patched:
        patched.setattr(Model, "run", fail)
        assert run(client, text=f"{SECRET} again")[-1]["error"] == "Unexpected"
    with monkeypatch.context() as patched:
        patched.setattr("headscope.server.api.part", fail)
        assert client.get(f"/api/traces/{trace}/maps?size=7").status_code == 500


def test_no_line_of_the_log_holds_what_was_typed(
    start, run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    client = start()
    with caplog.at_level(logging.INFO):
        cause_every_failure(client, run, monkeypatch)
    lines = [record.getMessage() for record in caplog.records if record.name == "headscope.server"]
    assert any("InterventionError" in line for line in lines) and any("ValueError" in line for line in lines)
    assert SECRET not in caplog.text


@pytest.mark.parametrize("debug", [False, True])
def test_only_debug_shows_messages_and_tracebacks(
    start, run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, debug: bool
) -> None:
    log.set_up(debug=debug)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    log.silence_warnings()
    client = start()
    cause_every_failure(client, run, monkeypatch)
    warnings.showwarning(f"{SECRET} was cut off", HeadscopeWarning, "inputs.py", 1)
    lines = capsys.readouterr().err
    assert "a run failed: ValueError at server/test_log.py:" in lines
    assert (SECRET in lines) == ("Traceback" in lines) == ("was cut off" in lines) == debug


@pytest.mark.parametrize("debug", [False, True])
def test_what_other_packages_log_is_shown_as_type_and_place(capsys: pytest.CaptureFixture, debug: bool) -> None:
    log.set_up(debug=debug)

    async def main() -> None:
        asyncio.get_running_loop().run_in_executor(None, fail)
        await asyncio.sleep(0.05)

    asyncio.run(main())
    gc.collect()  # asyncio logs the exceptions of futures that nobody asked for when they are collected
    logging.getLogger("PIL.TiffImagePlugin").warning("metadata: %s", SECRET)
    lines = capsys.readouterr().err
    assert (SECRET in lines) == debug
    if not debug:
        assert "ERROR of asyncio: ValueError at server/test_log.py:" in lines
        assert "WARNING of PIL.TiffImagePlugin" in lines
