"""`headscope serve` as people use it: a process, its printed address, and Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
import tiny_models
import transformers

# A shell that starts the tests in the background has them ignore Control-C, and their children with them.
SCRIPT = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from headscope.cli import app
app()
"""


# It takes about a second; a forward that was not stopped would take longer than this, even where others work too.
ENOUGH = 15


@pytest.fixture(scope="module")
def long_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that takes its time over a long text."""
    folder = tmp_path_factory.mktemp("model")
    config = transformers.GPT2Config(**(tiny_models.GPT | {"n_positions": 8192, "n_layer": 48}))
    tiny_models.tiny(transformers.GPT2LMHeadModel, config).save_pretrained(folder)  # type: ignore[operator]
    tiny_models.tiny_tokenizer().save_pretrained(folder)
    return folder


class Process:
    """A started server, once it has said where it is."""

    def __init__(self, static: Path, *arguments: str):
        environment = os.environ | {"HEADSCOPE_STATIC": str(static), "COLUMNS": "200"}
        command = [sys.executable, "-c", SCRIPT, "serve", "--port", "0", "--no-browser", *arguments]
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(command, env=environment, **pipes)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        self.address, _, self.token = line.removeprefix("Headscope is at ").strip().partition("?token=")
        assert self.token, line + (self.process.communicate(timeout=10)[1] if not line else "")

    def stop(self, number: signal.Signals) -> tuple[float, int, str, str]:
        """Send a signal: how long it took, the exit code, and all that was printed."""
        begun = time.monotonic()
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=20)
        return time.monotonic() - begun, self.process.returncode, out, err


@pytest.fixture
def static(tmp_path: Path) -> Path:
    for name in ("headscope.js", "headscope.css"):
        (tmp_path / name).write_text("")
    return tmp_path


def test_control_c_stops_a_run_and_the_server_at_once(static: Path, long_model: Path) -> None:
    server = Process(static, str(long_model))
    lines: list[dict[str, Any]] = []
    with httpx.Client(base_url=server.address, follow_redirects=False, timeout=30) as client:
        assert client.get("/", params={"token": server.token}).status_code == 303
        wanted = {"model": str(long_model), "text": "the cat sat on the mat " * 1000, "truncate": True}

        def listen() -> None:
            with client.stream("POST", "/api/runs", json=wanted) as answer:
                for line in answer.iter_lines():
                    lines.append(json.loads(line))

        thread = threading.Thread(target=listen)
        thread.start()
        begun = time.monotonic()
        while not any(event["layer"] for event in lines):
            assert time.monotonic() - begun < 60, lines
            time.sleep(0.02)
        seconds, code, out, err = server.stop(signal.SIGINT)
        thread.join(5)
    assert lines[-1]["state"] == "cancelled" and 0 < lines[-2]["layer"] < 48
    assert seconds < ENOUGH and code == 0
    assert "Traceback" not in err and "Error" not in err and "Stopped." in err
    assert server.token not in err and server.token not in out


def test_a_server_on_the_built_in_models_answers_and_ends_when_told_to(static: Path) -> None:
    server = Process(static)
    header = {"Authorization": f"Bearer {server.token}"}
    with httpx.Client(base_url=server.address, headers=header, timeout=60) as client:
        settings = client.get("/api/settings").json()
        assert settings["default_model"] == "builtin:gpt"
        kinds = {model_props["name"]: model_props["kinds"] for model_props in settings["models"]}
        assert kinds == {
            "builtin:gpt": ["text"],
            "builtin:bert": ["text", "pair"],
            "builtin:translate": ["source-target"],
            "builtin:vit": ["image"],
        }
        assert all(
            model_props["is_loaded"] and model_props["presets"] and model_props["about"]
            for model_props in settings["models"]
        )
        for model, preset in (
            (model_props["name"], model_props["presets"][0]) for model_props in settings["models"][:3]
        ):
            wanted = {name: preset[name] for name in ("text", "pair", "target")} | {"model": model}
            last = json.loads(client.post("/api/runs", json=wanted).text.splitlines()[-1])
            assert last["state"] == "done", last
            for key in ("trace", "maps", "scores"):
                assert client.get(f"/api/traces/{last['trace']}/{key}").status_code == 200
    seconds, code, _, err = server.stop(signal.SIGTERM)
    assert seconds < ENOUGH and code == 0
    assert "ran builtin:gpt on" in err and "doctor" not in err and "Traceback" not in err
