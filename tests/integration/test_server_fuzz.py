"""The API, asked for all that its own description allows and for much that it does not: it never breaks."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest
import requests
import schemathesis.openapi
import uvicorn
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from headscope.server.access import Access
from headscope.server.options import Limits, Options
from headscope.server.run_server import listening_socket, server_config
from headscope.server.workbench import Workbench

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
# What people would ask for, with values that fuzzing replaces one by one.
KEYS = ["trace", "maps", "layer/L3", "row/L3", "window/L3H2", "scores", "layer/L99", "layer/L3H2", "row"]
VALUES = [
    "pattern", "contribution", "scores", "tokens", "words", "sentences", "csv", "json", "parquet", "head", "L3H2", "L3",
    "0", "3", "-1", "9999", "99999999999999999999", "1e3", "nan", "0:4", "4:0", "0:9999", ":", "0:", "main:3", "0,1,2",
    "none:1", ",", "", " ", "0,1,2,3,4,5,6,7,8,9,10", "é", "\0", "<script>",
]  # fmt: skip
FUZZ = settings(
    max_examples=20,
    deadline=None,
    derandomize=True,
    database=None,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)


class Running:
    """A server at a real port, with a trace in it."""

    def __init__(self, workbench: Workbench, address: str):
        self.address = address
        self.session = requests.Session()
        self.session.headers["Authorization"] = f"Bearer {workbench.access.token}"
        wanted = {"model": "builtin:gpt", "text": "The doctor asked the nurse a question. She"}
        events = self.session.post(f"{address}/api/runs", json=wanted, timeout=60).text
        self.id = json.loads(events.splitlines()[-1])["trace"]
        self.schema = schemathesis.openapi.from_dict(self.session.get(f"{address}/api/openapi.json", timeout=60).json())

    def operations(self) -> list[Any]:
        return [operation.ok() for operation in self.schema.get_all_operations()]

    def check(self, case: Any) -> None:
        answer = case.call(base_url=self.address, session=self.session, timeout=30)
        case.validate_response(answer, checks=CHECKS)
        assert b"Traceback" not in answer.content


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    static = tmp_path_factory.mktemp("static")
    limits = Limits(body_bytes=20_000, characters=2_000, turns=5)
    workbench = Workbench(Options(static=static, allow=(static,), limits=limits), Access())
    with listening_socket("127.0.0.1", 0) as listener:
        running = uvicorn.Server(server_config(workbench))
        thread = threading.Thread(target=running.run, args=([listener],))
        thread.start()
        try:
            yield Running(workbench, f"http://127.0.0.1:{listener.getsockname()[1]}")
        finally:
            running.should_exit = True
            thread.join(10)


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_no_request_breaks_the_server(server: Running, mode: GenerationMode) -> None:
    for operation in server.operations():

        @FUZZ
        @hypothesis.given(case=operation.as_strategy(mode))
        def ask(case: Any) -> None:
            server.check(case)

        ask()


def test_no_input_of_a_real_model_breaks_the_server(server: Running) -> None:
    (operation,) = (operation for operation in server.operations() if operation.label == "POST /api/runs")
    models = st.sampled_from(["builtin:gpt", "builtin:bert", "builtin:vit"])

    @FUZZ
    @hypothesis.given(case=operation.as_strategy(GenerationMode.POSITIVE), model=models)
    def ask(case: Any, model: str) -> None:
        case.body["model"] = model
        server.check(case)

    ask()


def test_no_part_of_a_real_trace_breaks_the_server(server: Running) -> None:
    for operation in (operation for operation in server.operations() if "{id}" in operation.path):
        names = st.sampled_from([parameter.name for parameter in operation.query] or ["none"])

        @settings(FUZZ, max_examples=10 if operation.path.endswith("page") else 80)
        @hypothesis.given(
            case=operation.as_strategy(GenerationMode.POSITIVE),
            key=st.sampled_from(KEYS),
            query=st.dictionaries(names, st.sampled_from(VALUES), max_size=4),
        )
        def ask(case: Any, key: str, query: dict[str, str]) -> None:
            case.path_parameters["id"] = server.id
            if "key" in case.path_parameters:
                case.path_parameters["key"] = key
            case.query = query
            server.check(case)

        ask()


def test_the_description_is_the_one_that_was_fuzzed(server: Running) -> None:
    assert {operation.label for operation in server.operations()} >= {
        "GET /api/settings",
        "POST /api/models",
        "POST /api/runs",
        "GET /api/traces",
        "GET /api/traces/{id}/{key}",
    }
