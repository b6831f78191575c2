"""Finding heads over the API: the numbers of Python, ranked by the page; and what cannot be found, in words."""

import json

import numpy as np
import pytest
from starlette.testclient import TestClient

import headscope as hs
from headscope.views.view import View
from headscope.views.wire import Part, decode

TEXT = "the cat sat on the mat"


@pytest.fixture
def trace(client: TestClient, run) -> str:
    return run(client, TEXT)[-1]["trace"]


@pytest.fixture
def find(client: TestClient, trace: str):
    """Look for heads in the run: the part, or the last event where that failed."""

    def find(**options) -> Part | dict:
        answer = client.post("/api/tasks", json={"name": "find", "trace": trace, "options": options})
        assert answer.status_code == 200, answer.text
        last = json.loads(answer.text.splitlines()[-1])
        if last["state"] != "done":
            return last
        return decode(client.get(f"/api/results/{last['result']}").content)

    return find


def model_and_trace(client: TestClient, id: str):
    workbench = client.workbench  # type: ignore[attr-defined]
    stored_run = workbench.runs.find(id)
    return workbench.catalogue.load(stored_run.request.model), stored_run.trace


def values(part: Part, name: str = "values") -> dict[str, float]:
    return dict(zip(part.props["heads"], np.asarray(part.arrays[name]).tolist(), strict=True))


def approx_values(scores) -> dict:
    return {str(head): pytest.approx(value, abs=1e-6) for head, value in scores.items()}


def python_values(part: Part, client: TestClient, id: str) -> dict:
    """What the Python of a part gives when it is run after the run it goes on from."""
    model, trace = model_and_trace(client, id)
    names = {"hs": hs, "model": model, "trace": trace}
    exec(part.props["python"], names)
    return {str(head): pytest.approx(value, abs=1e-6) for head, value in names["scores"].items()}


def test_an_example_gives_the_numbers_of_python(client, trace, find):
    part = find(by="example", source="sat", target="cat")
    scores = hs.find_heads(model_and_trace(client, trace)[1], example=("sat", "cat"))
    assert part.kind == "found" and part.props["order"] == "above"
    assert part.props["method"]["name"] == "sat → cat"
    assert values(part) == approx_values(scores) == python_values(part, client, trace)
    assert values(part, "baselines") == {
        str(h): pytest.approx(value, abs=1e-6) for h, value in scores.baselines.items()
    }


def test_positions_name_tokens_too(client, trace, find):
    first, other = find(by="example", source=[3], target=[2], site="L0"), find(by="example", source=[3], target=[2])
    assert values(first) == values(other)
    texts = model_and_trace(client, trace)[1].tokens["main"].texts
    assert first.props["method"]["name"] == f"{texts[3]} → {texts[2]}"


def test_several_inputs_are_averaged_and_those_without_the_words_left_out(client, trace, find):
    lines = [TEXT, "the cat sat", "on the mat"]
    part = find(by="example", source="sat", target="cat", over="lines", lines=lines)
    assert part.props["n_inputs"] == 2 and "1 of 3 inputs lack the words" in part.props["notes"][0]
    assert not np.isnan(np.asarray(part.arrays["low"])).any()
    assert values(part) == approx_values(
        hs.find_heads([model_and_trace(client, trace)[0].run(line) for line in lines[:2]], example=("sat", "cat"))
    )


def test_the_python_of_several_inputs_runs_as_pasted(client, trace, find):
    lines = [TEXT, "the cat sat", "on the mat"]  # the last lacks the words
    for options in ({"by": "example", "source": "sat", "target": "cat"}, {"by": "effect", "token": "the"}):
        part = find(**options, over="lines", lines=lines)
        assert values(part) == python_values(part, client, trace)


def test_the_python_of_an_effect_has_the_edits_of_the_run(client, run):
    id = run(client, TEXT, edits=["silence('L0H1')"])[-1]["trace"]
    token = model_and_trace(client, id)[1].predictions()[0].text
    options = {"by": "effect", "token": token}
    answer = client.post("/api/tasks", json={"name": "find", "trace": id, "options": options})
    part = decode(client.get(f"/api/results/{json.loads(answer.text.splitlines()[-1])['result']}").content)
    assert "interventions=[hs.silence('L0H1')]" in part.props["python"]
    assert values(part) == python_values(part, client, id)


def test_a_pattern_is_the_measure_of_that_name_and_can_be_asked_of_other_inputs(client, trace, find):
    part = find(by="pattern", pattern="previous_token")
    assert (
        values(part)
        == approx_values(hs.measure("previous_token", model_and_trace(client, trace)[1]))
        == python_values(part, client, trace)
    )
    part = find(by="pattern", pattern="induction", over="repeated")
    assert part.props["n_inputs"] == 8 and values(part) == python_values(part, client, trace)


def test_painted_cells_are_looked_for(client, trace, find):
    n_tokens = len(model_and_trace(client, trace)[1].tokens["main"])
    part = find(by="painted", site="L0", cells=[[3, 0, 2], [4, 4, 5]])
    painted = np.zeros((n_tokens, n_tokens))
    painted[3, 0:2] = painted[4, 4] = 1
    assert values(part) == approx_values(hs.find_heads(model_and_trace(client, trace)[1], pattern=painted))
    assert values(part) == python_values(part, client, trace)
    assert part.props["method"]["name"] == "painted, 3 cells"


@pytest.mark.parametrize("by", ["zero", "mean"])
def test_an_effect_is_what_taking_each_head_out_does_to_a_prediction(client, trace, find, by):
    model, run = model_and_trace(client, trace)
    token = run.predictions()[0].text
    part = find(by="effect", token=token, position=2, ablate=by)
    assert part.props["order"] == "size"
    assert values(part) == approx_values(hs.analysis.ablation(model, run.inputs, by=by, target=token, position=2))
    assert values(part) == python_values(part, client, trace)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"by": "example", "source": "sat", "target": "dog"}, "'dog' is not a word of this text: its words are"),
        ({"by": "example", "source": "sat", "target": ""}, "no word was given"),
        ({"by": "example", "source": "sat", "target": "dog", "over": "lines", "lines": ["a", "b"]}, "in none of 2"),
        ({"by": "example", "source": [1], "target": [0], "over": "lines", "lines": ["a"]}, "type the words"),
        ({"by": "pattern", "pattern": "dance"}, "there is no pattern 'dance'"),
        ({"by": "pattern", "pattern": "a_to_b"}, "not a pair of sentences A and B"),
        ({"by": "pattern", "pattern": "induction", "over": "lines", "lines": []}, "write one a line"),
        ({"by": "pattern", "pattern": "induction", "over": "lines", "lines": ["a ||| b"]}, "reads one"),
        ({"by": "pattern", "pattern": "induction", "over": "lines", "lines": ["a"] * 201}, "up to 200 lines"),
        ({"by": "painted", "site": "L0"}, "paint at least one cell"),
        ({"by": "painted", "site": "L9", "cells": [[0, 0, 1]]}, "there is no layer 'L9'"),
        ({"by": "painted", "site": "L0", "cells": [[99, 0, 1]]}, "are not in"),
        ({"by": "painted", "site": "L0", "cells": [[0, 3, 2]]}, "are not in"),
        ({"by": "effect"}, "which prediction counts"),
        ({"by": "effect", "token": "the cat sat on"}, "is not one token"),
        ({"by": "effect", "token": "the", "position": 99}, "there is no token 99"),
        ({"by": "effect", "token": "the", "over": "repeated"}, "predict nothing"),
    ],
)
def test_what_cannot_be_found_is_said(find, options, words):
    last = find(**options)
    assert last["state"] == "failed" and words in last["message"], last


@pytest.mark.parametrize(
    "options", [{}, {"by": "magic"}, {"by": "painted", "cells": [[1, 2]]}, {"by": "effect", "position": "x"}]
)
def test_options_that_cannot_be_read_are_refused(client, trace, options):
    answer = client.post("/api/tasks", json={"name": "find", "trace": trace, "options": options})
    assert answer.status_code == 422 and answer.json()["message"].startswith("find:")


def test_the_page_is_told_which_patterns_and_use_cases_there_are(client):
    settings = client.get("/api/settings").json()
    names = [pattern["name"] for pattern in settings["patterns"]]
    assert {"previous_token", "induction", "same_word_across", "paired_marks"} <= set(names)
    assert all(pattern["about"] and pattern["needs"] for pattern in settings["patterns"])
    assert [use_case["name"] for use_case in settings["use_cases"]] == ["bias", "antecedents", "between", "decay"]


def test_a_saved_page_holds_the_heads_that_were_found(client, trace, find, monkeypatch):
    views = []
    monkeypatch.setattr(View, "html", lambda view: views.append(view) or "")
    name = find(by="example", source="sat", target="cat").props["method"]["name"]
    selection = {"scale": "model", "colour": name, "find": '{"from":{"text":"sat","at":null}}'}
    answer = client.post(f"/api/traces/{trace}/page", json={"view": "model", "selection": selection})
    assert answer.status_code == 200, answer.text
    view = views.pop()
    assert view.parts["found"].props["method"]["name"] == view.selection.colour == name
    # What is not shown is not held, and a colour by it is refused.
    answer = client.post(f"/api/traces/{trace}/page", json={"view": "model", "selection": {"colour": name}})
    assert answer.status_code == 422 and "is no measure of this trace" in answer.json()["message"]


def test_a_use_case_that_does_not_fit_the_model_says_why(client):
    model = client.workbench.catalogue.default
    answer = client.post("/api/tasks", json={"name": "use_case", "model": model, "options": {"name": "between"}})
    last = json.loads(answer.text.splitlines()[-1])
    assert last["state"] == "failed" and "builtin:bert" in last["message"]
    answer = client.post("/api/tasks", json={"name": "use_case", "model": model, "options": {"name": "dance"}})
    assert "there are bias, antecedents" in json.loads(answer.text.splitlines()[-1])["message"]
