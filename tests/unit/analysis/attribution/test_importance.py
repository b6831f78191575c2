"""Importance: gate gradients against finite differences, ablation against silencing, ranks on paper."""

import threading
from functools import cache

import numpy as np
import pytest
import torch
from tiny_models import FAMILIES, tokens
from torch import Tensor

import headscope as hs
from headscope.analysis.attribution.importance import ablation, gate_importance
from headscope.analysis.statistics import mean_scores, per_layer, rank_correlation
from headscope.errors import Cancelled, CaptureError, HeadscopeError, InputError
from headscope.models import Model
from headscope.progress import Progress
from headscope.sites import Head
from headscope.traces import Inputs


@cache
def build_model(name: str) -> Model:
    return Model(FAMILIES[name].build().double())


def sources(name: str) -> list[Inputs]:
    """Two inputs, of different lengths where the model takes text."""
    rows = [{key: tensor[row] for key, tensor in FAMILIES[name].inputs().items()} for row in (0, 1)]
    if "input_ids" in rows[1]:
        rows[1]["input_ids"] = rows[1]["input_ids"][:7]
    return [build_model(name).read(inputs=row) for row in rows]


def batch_of(model: Model, inputs: Inputs) -> dict[str, Tensor]:
    """What the module's forward takes."""
    return {name: model.to_device(tensor[None]) for name, tensor in inputs.model_inputs.items()}


def loss(model: Model, inputs: Inputs, edits, how) -> float:
    """−log p, written out."""
    with model.session(edits):
        logits = model.module(**batch_of(model, inputs)).logits[0]
    rows, ids = how(inputs, logits)
    logits = logits if logits.ndim == 2 else logits[None]
    return -float(logits.log_softmax(-1)[rows, ids].mean())


def next_tokens(inputs, logits):
    ids = inputs.model_inputs.get("decoder_input_ids", inputs.model_inputs.get("input_ids"))
    return list(range(len(ids) - 1)), ids[1:]


def target_logit(row, token):
    return lambda inputs, logits: ([row], torch.tensor([token]))


CASES = [
    ("gpt2", {}, next_tokens),
    ("bart", {}, next_tokens),
    ("bert", {"position": 3, "target": 17}, target_logit(3, 17)),
    ("vit", {"target": 1}, target_logit(0, 1)),
    ("swin", {"target": 1}, target_logit(0, 1)),
    ("deberta_v2", {"position": 3, "target": 17}, target_logit(3, 17)),
]


@pytest.mark.parametrize(("name", "options", "how"), CASES)
def test_gate_importance_equals_finite_differences(name, options, how):
    model, step = build_model(name), 1e-5
    importance = gate_importance(model, sources(name), **options)
    assert set(importance) == set(model.heads) and importance.n_samples == 2
    for head in (model.heads[0], model.heads[-1], importance.top(1)[0][0]):
        slopes = []
        for inputs in sources(name):
            more, less = (loss(model, inputs, [hs.scale(head, 1 + sign * step)], how) for sign in (1, -1))
            slopes.append(abs(more - less) / (2 * step))
        assert importance[head] == pytest.approx(np.mean(slopes), rel=1e-3, abs=1e-9)
        assert slopes[0] > 0


@pytest.mark.parametrize(("name", "options", "how"), CASES)
def test_ablation_equals_silencing(name, options, how):
    model = build_model(name)
    heads = [model.heads[0], model.heads[5], model.heads[-1]]
    loss_increase = ablation(model, sources(name), heads=heads, batch_size=4, **options)
    assert set(loss_increase) == set(heads)
    for head in heads:
        gains = [
            loss(model, inputs, [hs.silence(head)], how) - loss(model, inputs, [], how) for inputs in sources(name)
        ]
        assert loss_increase[head] == pytest.approx(np.mean(gains), abs=1e-6)
        assert gains[0] != 0


def test_ablation_by_the_mean_equals_mean_ablation():
    model, how = build_model("bert"), target_logit(3, 17)
    loss_increase = ablation(model, sources("bert"), by="mean", position=3, target=17, heads=["L1"])
    for head in loss_increase:
        gains = [
            loss(model, inputs, [hs.mean_ablate(head)], how) - loss(model, inputs, [], how)
            for inputs in sources("bert")
        ]
        assert loss_increase[head] == pytest.approx(np.mean(gains), abs=1e-6)


def test_edits_are_part_of_what_is_measured():
    model = build_model("gpt2")
    silent = [hs.silence("L1")]
    assert ablation(model, sources("gpt2"), heads=["L1H0"], interventions=silent)["L1H0"] == 0
    assert gate_importance(model, sources("gpt2"), interventions=silent)["L1H0"] == 0


def test_the_models_own_answer_is_the_target_where_nothing_says_what_is_right():
    model = build_model("vit")
    inputs = sources("vit")[0]
    with model.session():
        top = int(model.module(**batch_of(model, inputs)).logits[0].argmax())
    assert list(ablation(model, inputs).values()) == list(ablation(model, inputs, target=top).values())


def test_each_input_may_have_its_own_target():
    model, targets = build_model("bert"), [17, 23]
    importance = gate_importance(model, sources("bert"), position=3, target=targets)
    alone = [
        gate_importance(model, inputs, position=3, target=target)
        for inputs, target in zip(sources("bert"), targets, strict=True)
    ]
    head = model.heads[2]
    assert importance[head] == pytest.approx(np.mean([importance_alone[head] for importance_alone in alone]), rel=1e-6)
    with pytest.raises(InputError, match="2 inputs but 1 targets"):
        ablation(model, sources("bert"), position=3, target=[17])


def test_layers_can_be_brought_to_unit_length():
    importance = gate_importance(build_model("gpt2"), sources("gpt2")[0], normalised=True)
    for layer in (0, 1):
        assert np.square([importance[f"L{layer}H{index}"] for index in range(4)]).sum() == pytest.approx(1)


def test_progress_is_told_and_a_cancelled_run_stops():
    model, progress_calls, stop = build_model("gpt2"), [], threading.Event()

    def progress(state):
        progress_calls.append(state)
        stop.set()

    with pytest.raises(Cancelled):
        ablation(model, sources("gpt2"), batch_size=3, progress=progress, cancel=stop)
    assert progress_calls == [Progress("ablation", 3, 16)]


def test_what_cannot_be_measured_is_told():
    model = build_model("gpt2")
    with pytest.raises(InputError, match="'zero' or 'mean'"):
        ablation(model, sources("gpt2"), by="noise")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="one target"):
        gate_importance(model, sources("gpt2"), target=(1, 2))
    with pytest.raises(InputError, match="one token"):
        gate_importance(model, model.read(inputs={"input_ids": tokens()[:1, :1]}))
    with pytest.raises(CaptureError, match="windows"):
        ablation(build_model("swin"), sources("swin"), by="mean", target=1)
    with pytest.raises(HeadscopeError, match="no inputs"):
        mean_scores("relevance", [], {})


def test_ranks_on_paper():
    heads = [Head("main", layer, index) for layer in (0, 1) for index in range(3)]
    scores = dict(zip(heads, (1, 2, 3, 4, 5, 6), strict=True))
    assert rank_correlation(scores, {head: -value for head, value in scores.items()}) == pytest.approx(-1)
    assert rank_correlation(scores, {head: value**3 for head, value in scores.items()}) == pytest.approx(1)
    # Ties share the mean of their ranks: 1.5, 1.5, 3 against 1, 2, 3 gives √3/2.
    tied = dict(zip(heads[:3], (5, 5, 9), strict=True))
    assert rank_correlation(scores, tied) == pytest.approx(np.sqrt(3) / 2)
    # Layers in opposite order, heads in the same.
    turned = dict(zip(heads, (4, 5, 6, 1, 2, 3), strict=True))
    assert rank_correlation(scores, turned) < 0
    assert rank_correlation(scores, turned, within_layers=True) == pytest.approx(1)
    assert np.isnan(rank_correlation(scores, dict.fromkeys(heads, 1.0)))


def test_shares_of_a_layer_add_up_by_absolute_values():
    values = {Head("main", 0, 0): np.array([1.0, 0.0]), Head("main", 0, 1): np.array([-3.0, 0.0])}
    shares = per_layer(values)
    assert shares[Head("main", 0, 0)].tolist() == [0.25, 0.0]
    assert shares[Head("main", 0, 1)].tolist() == [-0.75, 0.0]
