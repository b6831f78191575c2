"""A workbench on tiny models: asked in this process, or over a real socket where connections matter."""

import json
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import tiny_models
import transformers
import uvicorn
from starlette.testclient import TestClient

from headscope.server.access import Access
from headscope.server.api import application
from headscope.server.catalogue import Catalogue
from headscope.server.options import Limits, Options
from headscope.server.run_server import listening_socket, server_config
from headscope.server.workbench import Workbench

HOME = "http://127.0.0.1:8765"


@pytest.fixture(autouse=True)
def no_builtin_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading the real ones at each start would take longer than the tests."""
    monkeypatch.setattr(Catalogue, "load_builtin", lambda self: None)


@pytest.fixture(autouse=True)
def untouched_log() -> Iterator[None]:
    """A server that starts sets up its log; the next test finds it as it was."""
    logs = [logging.getLogger(name) for name in (None, "headscope.server", "uvicorn")]
    before = [(list(log.handlers), log.propagate, log.level) for log in logs]
    yield
    for log, (handlers, propagate, level) in zip(logs, before, strict=True):
        log.handlers, log.propagate, log.level = handlers, propagate, level


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders: gpt (2 layers, short), long (24 layers, long texts), vit (images)."""
    root = tmp_path_factory.mktemp("models")
    for name, settings in (("gpt", {"n_positions": 1024}), ("long", {"n_positions": 8192, "n_layer": 24})):
        config = transformers.GPT2Config(**(tiny_models.GPT | settings))
        tiny_models.tiny(transformers.GPT2LMHeadModel, config).save_pretrained(root / name)  # type: ignore[operator]
        tiny_models.tiny_tokenizer().save_pretrained(root / name)
    tiny_models.FAMILIES["vit"].build().save_pretrained(root / "vit")  # type: ignore[operator]
    size = {"height": tiny_models.IMAGE_SIZE, "width": tiny_models.IMAGE_SIZE}
    processor_config = json.dumps({"image_processor_type": "ViTImageProcessor", "size": size})
    (root / "vit" / "preprocessor_config.json").write_text(processor_config)
    return root


@pytest.fixture(scope="session")
def static(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page that does nothing."""
    folder = tmp_path_factory.mktemp("static")
    (folder / "headscope.js").write_text("export {};")
    (folder / "headscope.css").write_text("body {}")
    return folder


@pytest.fixture
def start(models: Path, static: Path) -> Iterator[Callable[..., TestClient]]:
    """Start a workbench with options and limits: a client that has been let in, with `.workbench`."""
    started: list[TestClient] = []

    def start(*, limits: dict[str, Any] | None = None, **options: Any) -> TestClient:
        settings = {"models": (str(models / "gpt"),), "static": static} | options
        workbench = Workbench(Options(**settings, limits=Limits(**(limits or {}))), Access.of("127.0.0.1", 8765))
        client = TestClient(application(workbench), base_url=HOME, follow_redirects=False)
        client.headers["Authorization"] = f"Bearer {workbench.access.token}"
        client.workbench = workbench  # type: ignore[attr-defined]
        started.append(client.__enter__())
        return client

    yield start
    for client in started:
        client.__exit__(None, None, None)


@pytest.fixture
def client(start) -> TestClient:
    return start()


@contextmanager
def listening(workbench: Workbench) -> Iterator[str]:
    """The workbench at a real port: its address."""
    server, listener = uvicorn.Server(server_config(workbench)), listening_socket("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()


@pytest.fixture
def listen(static: Path) -> Iterator[Callable[..., tuple[Workbench, str, dict[str, str]]]]:
    """Start a workbench at a real port: it, its address, and the header that lets one in."""
    with ExitStack() as stack:

        def listen(*, limits: dict[str, Any] | None = None, **options: Any):
            workbench = Workbench(Options(static=static, **options, limits=Limits(**(limits or {}))), Access())
            address = stack.enter_context(listening(workbench))
            return workbench, address, {"Authorization": f"Bearer {workbench.access.token}"}

        yield listen


@pytest.fixture
def run() -> Callable[..., list[dict[str, Any]]]:
    """Run an input of a client's own model, and read the answer: its events."""

    def run(client: TestClient, text: str = "the cat sat on the mat", **wanted: Any) -> list[dict[str, Any]]:
        default = client.workbench.catalogue.default  # type: ignore[attr-defined]
        answer = client.post("/api/runs", json={"model": default, "text": text} | wanted)
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == "application/x-ndjson"
        return [json.loads(line) for line in answer.text.splitlines()]

    return run
