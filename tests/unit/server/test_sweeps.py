"""Pruned models on the server: offered by name, run with the weights of their point, refused where they do not fit."""

import json
from pathlib import Path

import pytest
import torch
from made_sweep import add_points, begin, first_heads, made_point

import headscope as hs
from headscope.errors import LoadError
from headscope.pruning import HeadMask, Sweep
from headscope.sites import Head
from headscope.tasks.trained_parameters import frozen_checksum


@pytest.fixture
def sweep(models: Path, tmp_path: Path) -> Sweep:
    """Two points: one keeps a head and has other weights, one keeps three heads."""
    model = hs.load(str(models / "gpt"))
    sweep = begin(tmp_path / "pruned", model, task="language_modelling", metric="bits_per_byte", higher_is_better=False)
    with torch.no_grad():
        weights = {"transformer.ln_f.weight": dict(model.module.named_parameters())["transformer.ln_f.weight"] + 1.0}
    settings = {"metric": "bits_per_byte", "lambda_": {"self": 1.0}}
    little = HeadMask.of(model, [Head("main", 0, 1)])
    add_points(
        sweep,
        [
            made_point("none", HeadMask.full(model), 3.0, metric="bits_per_byte", method="none"),
            made_point("few", little, 3.5, **settings, **sweep.write_weights("few", weights)),
            made_point("some", first_heads(model, self=3), 3.2, **settings),
            made_point("drawn", little, 4.0, metric="bits_per_byte", method="random", like="few"),
        ],
    )
    return sweep


def run(client, model: str, **more) -> dict:
    response = client.post("/api/runs", json={"model": model, "text": "the cat sat", **more})
    return json.loads(response.text.splitlines()[-1])


def test_points_are_offered_from_most_heads_to_fewest(start, sweep: Sweep) -> None:
    (offer,) = start(sweeps=(sweep.folder,)).get("/api/settings").json()["sweeps"]
    assert offer["name"] == "pruned" and offer["total"] == offer["points"][0]["n_kept"]
    assert [(point["model"].rpartition("/")[2], point["n_kept"]) for point in offer["points"][1:]] == [
        ("some", 3),
        ("few", 1),
    ]
    assert offer["points"][2]["score"] == "bits per byte 3.500"


def test_a_point_runs_with_its_weights_and_without_the_pruned_heads(start, sweep: Sweep, models: Path) -> None:
    client = start(sweeps=(sweep.folder,))
    event = run(client, "sweep:pruned/few", record="full")
    assert event["state"] == "done", event
    trace = client.workbench.runs.find(event["trace"]).trace
    model, point = hs.load(str(models / "gpt")), sweep.point("few")
    expected = sweep.load(model, point).run("the cat sat", point.mask.interventions())
    assert trace.predictions()[0].logprob == pytest.approx(expected.predictions()[0].logprob, abs=1e-4)
    assert trace.pruned_heads == tuple(point.mask.heads_pruned()) and "L0H1" not in map(str, trace.pruned_heads)
    folder = trace.save(sweep.folder.parent / "trace")
    assert hs.load_trace(folder).pruned_heads == trace.pruned_heads
    # The original has none, and is offered too.
    whole = run(client, str(models / "gpt"))
    assert client.workbench.runs.find(whole["trace"]).trace.pruned_heads == ()


def test_only_a_few_pruned_models_are_kept(start, sweep: Sweep) -> None:
    client = start(sweeps=(sweep.folder,), limits={"other_models": 1})
    for name in ("sweep:pruned/few", "sweep:pruned/some"):
        assert run(client, name)["state"] == "done"
    catalogue = client.workbench.catalogue
    assert not catalogue.is_loaded("sweep:pruned/few") and catalogue.is_loaded("sweep:pruned/some")


def test_points_that_are_not_there_are_refused(start, sweep: Sweep) -> None:
    client = start(sweeps=(sweep.folder,))
    response = client.post("/api/runs", json={"model": "sweep:pruned/more", "text": "the cat"})
    assert response.status_code == 404 and "sweep:pruned/some" in response.json()["message"]


def test_a_sweep_of_other_weights_is_refused(start, sweep: Sweep, models: Path, tmp_path: Path) -> None:
    model = hs.load(str(models / "gpt"))
    other = Sweep.create(
        tmp_path / "other",
        model=model.name,
        model_class="GPT2LMHeadModel",
        task="language_modelling",
        metric="loss",
        higher_is_better=False,
        layers=sweep.layers,
        data={},
        options={"weights": "0" * len(frozen_checksum(model.module, {}))},
    )
    other.add(made_point("some", first_heads(model, self=3), 3.2, metric="loss", lambda_={"self": 1.0}))
    event = run(start(sweeps=(other.folder,)), "sweep:other/some")
    assert event["state"] == "failed" and "with other weights" in event["message"]


def test_a_sweep_without_points_is_refused_at_the_start(start, models: Path, tmp_path: Path) -> None:
    model = hs.load(str(models / "gpt"))
    empty = begin(tmp_path / "empty", model, task="language_modelling", metric="loss", higher_is_better=False)
    with pytest.raises(LoadError, match="no finished point with pruned heads"):
        start(sweeps=(empty.folder,))
