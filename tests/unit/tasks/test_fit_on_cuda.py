"""Training, resuming, scoring and pruning on a CUDA device: as on the CPU, and the same numbers after a resume."""

import threading
from pathlib import Path

import pytest
import torch

import headscope as hs
from headscope import tasks
from headscope.errors import Cancelled
from headscope.pruning import GateOptions, PruneOptions, prune
from headscope.pruning.sweep_folder import copy_model
from headscope.tasks import FitOptions, fit

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")

TEXTS = [f"The {noun} that the {other} saw {verb} in the {place}." for noun in ("cat", "dog", "bird", "child")
         for other in ("man", "girl") for verb, place in (("slept", "house"), ("ran", "garden"))]  # fmt: skip
PAIRS = [("I see a cat.", "Я вижу кошку."), ("She sleeps.", "Она спит."), ("We read books.", "Мы читаем книги."),
         ("Where is the house?", "Где дом?"), ("He is here.", "Он здесь."), ("It is cold.", "Холодно.")]  # fmt: skip


def gpt(device: str = "cuda") -> hs.Model:
    return hs.load("builtin:gpt", dtype=torch.float32, device=device)


def language_task() -> tasks.LearningTask:
    return tasks.language_modelling(TEXTS[:12], TEXTS[12:])


def options(precision: str) -> FitOptions:
    return FitOptions(steps=8, batch_size=4, rate=1e-3, evaluate_every=2, precision=precision, select="last")  # type: ignore[arg-type]


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_a_resumed_fit_has_the_numbers_of_one_that_ran_through(precision: str, tmp_path: Path) -> None:
    whole, stopped, task = gpt(), gpt(), language_task()
    assert whole.config.resid_pdrop > 0  # dropout draws from the device's random numbers
    through = fit(whole, task, options(precision), folder=tmp_path / "whole")
    stop = threading.Event()

    def stop_at_5(about: hs.Progress) -> None:
        if about.stage == "training" and about.done == 5:
            stop.set()

    with pytest.raises(Cancelled):
        fit(stopped, task, options(precision), folder=tmp_path / "stopped", cancel=stop, progress=stop_at_5)
    resumed = gpt()
    torch.cuda.manual_seed(99)
    again = fit(resumed, task, options(precision), folder=tmp_path / "stopped")
    assert again.history == through.history
    for name, parameter in resumed.module.named_parameters():
        assert torch.equal(parameter, dict(whole.module.named_parameters())[name]), name
    assert again.history[-1]["loss"] < again.history[1]["loss"]


def test_random_numbers_of_the_caller_go_on_as_if_nothing_had_been_drawn(tmp_path: Path) -> None:
    model = gpt()
    torch.cuda.manual_seed(5)
    expected = torch.rand(3, device="cuda")
    torch.cuda.manual_seed(5)
    fit(model, language_task(), options("bf16"), folder=tmp_path)
    assert torch.equal(torch.rand(3, device="cuda"), expected)


def test_a_fit_of_cuda_goes_on_on_the_cpu(tmp_path: Path) -> None:
    stop = threading.Event()

    def stop_at_3(about: hs.Progress) -> None:
        if about.stage == "training" and about.done == 3:
            stop.set()

    with pytest.raises(Cancelled):
        fit(gpt(), language_task(), options("fp32"), folder=tmp_path, cancel=stop, progress=stop_at_3)
    assert fit(gpt("cpu"), language_task(), options("fp32"), folder=tmp_path).is_finished


def test_scores_are_those_of_the_cpu() -> None:
    task = language_task()
    assert task.evaluate(gpt()).value == pytest.approx(task.evaluate(gpt("cpu")).value, rel=1e-3)
    translator = hs.load("builtin:translate", dtype=torch.float32, device="cuda")
    pairs = tasks.translation(PAIRS, PAIRS)
    on_cpu = pairs.translate(hs.load("builtin:translate", dtype=torch.float32, device="cpu"), "dev")
    assert pairs.translate(translator, "dev") == on_cpu
    assert pairs.evaluate(translator).metric == "bleu"


def test_pruning_writes_a_smaller_model_that_loads(tmp_path: Path) -> None:
    model = gpt()
    training = FitOptions(steps=6, batch_size=4, rate=1e-4, precision="bf16", evaluate_every=3)
    settings = PruneOptions(gates=GateOptions(rate=0.6), training=training, tuning=training, baselines=("importance",))
    before = copy_model(model)
    sweep = prune(model, language_task(), tmp_path / "sweep", lambdas=0.3, options=settings)
    point = sweep.chosen
    assert point is not None and 0 < point.total()[0] < 48
    assert all(parameter.device.type == "cuda" for parameter in sweep.load(model, point).module.parameters())
    for name, parameter in model.module.named_parameters():
        assert torch.equal(parameter, dict(before.module.named_parameters())[name]), name
    slim = hs.load(tmp_path / "sweep" / "slim", dtype=torch.float32, device="cuda")
    assert len(slim.heads) == point.total()[0]
    gated = sweep.load(model, point).run(TEXTS[0], point.mask.interventions()).logits
    torch.testing.assert_close(slim.run(TEXTS[0]).logits, gated, rtol=1e-3, atol=1e-3)


def test_only_the_gates_of_an_encoder_are_trained_beside_a_frozen_decoder(tmp_path: Path) -> None:
    model = hs.load("builtin:translate", dtype=torch.float32, device="cuda")
    training = FitOptions(steps=8, batch_size=3, rate=1e-4, precision="bf16", evaluate_every=4)
    settings = PruneOptions(gates=GateOptions(rate=0.8), training=training, tuning=None, parameters="encoder")
    task = tasks.translation(PAIRS, PAIRS, metric="loss")
    sweep = prune(model, task, tmp_path, lambdas=5.0, options=settings, smaller=False)
    counts = sweep.points[-1].counts()
    assert counts["encoder"][0] < 32 and counts["decoder"] == (32, 32) and counts["cross"] == (32, 32)
