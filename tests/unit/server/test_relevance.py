"""Relevance as a task: the numbers of Python, for a class and for a token; refused in words."""

import json
from typing import Any

import numpy as np
import pytest
import tiny_models
from starlette.testclient import TestClient

import headscope as hs
from headscope.errors import InputError
from headscope.server.tasks.relevance import check_size
from headscope.views.wire import decode


def ask_relevance(client: TestClient, trace: str, **options) -> dict:
    answer = client.post("/api/tasks", json={"name": "relevance", "trace": trace, "options": options})
    assert answer.status_code == 200, answer.text
    return json.loads(answer.text.splitlines()[-1])


def got(client: TestClient, last: dict) -> tuple[Any, dict[str, np.ndarray]]:
    """The part of a finished task, and its arrays as numbers."""
    part = decode(client.get(f"/api/results/{last['result']}").content)
    return part, {name: np.asarray(array) for name, array in part.arrays.items()}


@pytest.mark.parametrize("options", [{}, {"rule": "attn"}, {"other": 3}])
def test_the_relevance_of_tokens_and_heads_is_that_of_python(client: TestClient, run, options: dict) -> None:
    trace = run(client)[-1]["trace"]
    last = ask_relevance(client, trace, target=5, position=2, **options)
    assert last["state"] == "done", last
    part, arrays = got(client, last)
    workbench = client.workbench  # type: ignore[attr-defined]
    model, run_trace = workbench.catalogue.load(workbench.catalogue.default), workbench.runs.find(trace).trace
    target = (5, options["other"]) if "other" in options else 5
    expected = hs.relevance(model, run_trace.inputs, target=target, position=2, rule=options.get("rule", "cp"))
    np.testing.assert_allclose(arrays["tokens/main"], expected.token_relevance(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        arrays["share"], [expected.heads[head] for head in run_trace.heads], rtol=1e-4, atol=1e-6
    )
    np.testing.assert_allclose(arrays["raw"], [expected.raw[head] for head in run_trace.heads], rtol=1e-4, atol=1e-6)
    props = part.props
    assert props["logit"] == pytest.approx(expected.logit) and props["bias_share"] == pytest.approx(expected.bias_share)
    assert props["carried"] == pytest.approx(float(arrays["tokens/main"].sum()), abs=1e-4)
    assert props["heads"] == [str(head) for head in run_trace.heads] and props["position"] == 2
    assert (props["other"] is None) == ("other" not in options)


@pytest.mark.parametrize(
    ("options", "error_text"),
    [({"target": 5, "position": 99}, "no token 99"), ({"target": 10**6, "position": 1}, "no answer 1000000")],
)
def test_what_there_is_not_is_said(client: TestClient, run, options: dict, error_text: str) -> None:
    trace = run(client)[-1]["trace"]
    last = ask_relevance(client, trace, **options)
    assert last["state"] == "failed" and error_text in last["message"]


def test_a_rule_that_there_is_not_is_refused_at_once(client: TestClient, run) -> None:
    trace = run(client)[-1]["trace"]
    wanted = {"name": "relevance", "trace": trace, "options": {"target": 1, "rule": "magic"}}
    answer = client.post("/api/tasks", json=wanted)
    assert answer.status_code == 422 and "relevance: rule" in answer.json()["message"]


def test_an_input_too_long_to_hold_whole_is_refused_beforehand(client: TestClient, run) -> None:
    trace = client.workbench.runs.find(run(client)[-1]["trace"]).trace  # type: ignore[attr-defined]
    check_size(trace, 10**9)
    with pytest.raises(InputError, match="explain a shorter input"):
        check_size(trace, 1000)


def test_an_edited_run_is_explained_as_edited(client: TestClient, run) -> None:
    trace = run(client, edits=["silence('L0H0')"])[-1]["trace"]
    last = ask_relevance(client, trace, target=5, position=2)
    part, arrays = got(client, last)
    assert arrays["raw"][part.props["heads"].index("L0H0")] == 0.0
    _, plain = got(client, ask_relevance(client, run(client)[-1]["trace"], target=5, position=2))
    assert plain["raw"][0] != 0.0


def test_a_model_without_rules_is_refused_with_its_reason(start, run, tmp_path) -> None:
    tiny_models.FAMILIES["mixtral"].build().save_pretrained(tmp_path)  # type: ignore[operator]
    tiny_models.tiny_tokenizer().save_pretrained(tmp_path)
    client = start(models=(str(tmp_path),))
    trace = run(client)[-1]["trace"]
    last = ask_relevance(client, trace, target=5, position=2)
    assert last["state"] == "failed" and last["error"] == "CaptureError", last
    assert "router" in last["message"] and "no rule" in last["message"]
