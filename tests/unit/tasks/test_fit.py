"""Training: what is trained, resuming, and everything that may end it early."""

import errno
import json
import os
import re
import signal
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest
import torch
from tiny_models import SENTENCES
from tiny_tasks import PAIRS, bert, gpt, language_task, marian
from torch import Tensor

import headscope as hs
from headscope import files, tasks
from headscope.errors import Cancelled, HeadscopeError, HeadscopeWarning, InputError, LoadError
from headscope.tasks import FitOptions, ParameterGroup, fit
from headscope.tasks.data_order import training_batches
from headscope.tasks.trained_parameters import draw_anew

OPTIONS = FitOptions(steps=12, batch_size=2, rate=3e-3, warmup=2, evaluate_every=4)


def weights(model: hs.Model) -> dict[str, Tensor]:
    return {name: parameter.detach().clone() for name, parameter in model.module.named_parameters()}


def differing(first: dict[str, Tensor], second: dict[str, Tensor]) -> set[str]:
    return {name for name in first if not torch.equal(first[name], second[name])}


class StopAt:
    """Cancels, raises, or fills the disk when training has done so many steps."""

    def __init__(self, step: int, action) -> None:
        self.step, self.action = step, action

    def __call__(self, progress: hs.Progress) -> None:
        if progress.stage == "training" and progress.done == self.step:
            self.action()


def test_training_lowers_the_loss_and_leaves_the_best_weights(tmp_path: Path) -> None:
    model, task = gpt(), language_task()
    notes: dict[str, list[str]] = {}
    random_before = torch.get_rng_state()
    before = task.evaluate(model).value
    result = fit(
        model, task, OPTIONS, folder=tmp_path, progress=lambda step: notes.setdefault(step.stage, []).append(step.note)
    )
    assert [row["step"] for row in result.history] == [0, 4, 8, 12]
    assert result.history[0]["value"] == pytest.approx(before) and result.history[0]["loss"] is None
    assert result.best.value < before and result.is_finished
    assert result.best.value == min(row["value"] for row in result.history)
    assert task.evaluate(model).value == pytest.approx(result.best.value, rel=1e-6)
    assert notes.keys() == {"training", "evaluating"}
    assert re.fullmatch(rf"loss \d\.\d+, dev bits_per_byte {before:.4g}", notes["training"][1])
    assert not model.module.training and all(parameter.requires_grad for parameter in model.module.parameters())
    assert torch.equal(torch.get_rng_state(), random_before)
    other = gpt(seed=1)
    tasks.read_fit(tmp_path).load_into(other)
    assert not differing(weights(model), weights(other))


def test_a_fit_that_was_stopped_goes_on_with_the_same_numbers(tmp_path: Path) -> None:
    model = gpt()
    whole = fit(model, language_task(), OPTIONS, folder=tmp_path / "whole")
    cancel = threading.Event()
    with pytest.raises(Cancelled):
        fit(gpt(), language_task(), OPTIONS, folder=tmp_path / "two", cancel=cancel, progress=StopAt(6, cancel.set))
    assert tasks.read_fit(tmp_path / "two").step == 4
    resumed = gpt()
    again = fit(resumed, language_task(), OPTIONS, folder=tmp_path / "two")
    assert again.history == whole.history and again.best == whole.best
    assert not differing(weights(model), weights(resumed))
    states = [files.checksum(next((tmp_path / name).glob("state-*.safetensors"))) for name in ("whole", "two")]
    assert states[0] == states[1]  # weights, optimizer and random numbers at the last step, to the last bit
    read = fit(gpt(), language_task(), OPTIONS, folder=tmp_path / "two")
    assert read.history == whole.history


def test_a_fit_that_was_killed_goes_on_with_the_same_numbers(tmp_path: Path) -> None:
    model = gpt()
    whole = fit(model, language_task(), OPTIONS, folder=tmp_path / "whole")
    program = f"""
import sys, time
sys.path[:0] = {[str(Path(__file__).parents[2])]!r}
import torch
from tiny_tasks import gpt, language_task
from headscope.tasks import FitOptions, fit
torch.set_num_threads({torch.get_num_threads()})  # sums are split by threads
def slow(progress):
    if progress.stage == "training" and progress.done >= 5:
        print("at step", progress.done, flush=True)
        time.sleep(60)
fit(gpt(), language_task(), FitOptions(**{OPTIONS.to_json()!r}), folder={str(tmp_path / "killed")!r}, progress=slow)
"""
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "at step 5\n"
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    process.stdout.close()
    (tmp_path / "killed" / ".headscope-0.partial").write_bytes(b"half a checkpoint")
    (tmp_path / "killed" / "state-00000008.safetensors").write_bytes(b"not named by the index")
    resumed = gpt()
    again = fit(resumed, language_task(), OPTIONS, folder=tmp_path / "killed")
    assert again.history == whole.history
    assert not differing(weights(model), weights(resumed))
    assert len(list((tmp_path / "killed").glob("*.safetensors"))) == 2


def test_a_resume_with_another_number_of_threads_says_so(tmp_path: Path) -> None:
    cancel, n_threads = threading.Event(), torch.get_num_threads()
    with pytest.raises(Cancelled):
        fit(gpt(), language_task(), OPTIONS, folder=tmp_path, cancel=cancel, progress=StopAt(6, cancel.set))
    torch.set_num_threads(n_threads + 1)
    try:
        with pytest.warns(HeadscopeWarning, match=f"on cpu, {n_threads} threads and goes on on cpu, {n_threads + 1}"):
            fit(gpt(), language_task(), OPTIONS, folder=tmp_path)
    finally:
        torch.set_num_threads(n_threads)
    with warnings.catch_warnings():
        warnings.simplefilter("error", HeadscopeWarning)
        fit(gpt(), language_task(), OPTIONS, folder=tmp_path)  # finished: nothing is computed


def test_a_nan_stops_names_the_step_and_leaves_the_best_weights(tmp_path: Path) -> None:
    model = gpt()
    steps = iter(range(100))

    def penalty(step: int) -> Tensor:
        return torch.tensor(float("nan") if next(steps) == 6 else 0.0)

    with pytest.raises(HeadscopeError, match=r"the loss is nan at step 7.*the checkpoint of step 4"):
        fit(model, language_task(), OPTIONS, folder=tmp_path, penalty=penalty)
    result = tasks.read_fit(tmp_path)
    assert result.step == 4 and not result.is_finished
    assert language_task().evaluate(model).value == pytest.approx(result.best.value, rel=1e-6)
    assert all(bool(torch.isfinite(tensor).all()) for tensor in weights(model).values())


def test_cancel_and_ctrl_c_leave_the_best_weights(tmp_path: Path) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    cancel = threading.Event()
    for name, error, action in (("cancel", Cancelled, cancel.set), ("ctrl-c", KeyboardInterrupt, interrupt)):
        model = gpt()
        with pytest.raises(error):
            fit(model, language_task(), OPTIONS, folder=tmp_path / name, cancel=cancel, progress=StopAt(7, action))
        cancel.clear()
        best = tasks.read_fit(tmp_path / name).parameters()
        assert not differing(best, weights(model)) and tasks.read_fit(tmp_path / name).best_step == 4


def test_a_full_disk_leaves_the_last_checkpoint(tmp_path: Path, monkeypatch) -> None:
    model, write = gpt(), files.write_file

    def full(path: Path, data: bytes) -> None:
        if "00000008" in path.name:
            raise LoadError(f"could not write {path}: {os.strerror(errno.ENOSPC)}.")
        write(path, data)

    monkeypatch.setattr(files, "write_file", full)
    with pytest.raises(LoadError, match=r"at step 8: could not write .*No space left.*checkpoint of step 4 is whole"):
        fit(model, language_task(), OPTIONS, folder=tmp_path)
    monkeypatch.undo()
    assert tasks.read_fit(tmp_path).step == 4
    resumed = fit(gpt(), language_task(), OPTIONS, folder=tmp_path)
    assert resumed.history == fit(gpt(), language_task(), OPTIONS, folder=tmp_path / "whole").history


def test_damaged_and_foreign_folders_are_refused(tmp_path: Path) -> None:
    fit(gpt(), language_task(), OPTIONS, folder=tmp_path / "fit")
    state = next((tmp_path / "fit").glob("state-*"))
    state.write_bytes(state.read_bytes()[:-1] + b"?")
    with pytest.raises(LoadError, match="does not match its checksum"):
        fit(gpt(), language_task(), OPTIONS, folder=tmp_path / "fit")
    (tmp_path / "fit" / "fit.json").write_text(json.dumps({"version": 1, "step": 3}))
    with pytest.raises(LoadError, match="damaged"):
        tasks.read_fit(tmp_path / "fit")
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(LoadError, match="is not empty and is not a fit"):
        fit(gpt(), language_task(), OPTIONS, folder=tmp_path)
    with pytest.raises(LoadError, match="there is no fit"):
        tasks.read_fit(tmp_path)


def test_other_settings_do_not_resume(tmp_path: Path) -> None:
    fit(gpt(), language_task(), OPTIONS, folder=tmp_path)
    options = FitOptions(**(OPTIONS.to_json() | {"rate": 1e-2}))
    with pytest.raises(InputError, match=r"rate was 0.003, now 0.01.*another folder"):
        fit(gpt(), language_task(), options, folder=tmp_path)
    with pytest.raises(InputError, match="train data"):
        fit(gpt(), tasks.language_modelling(train=["other"], dev=[*SENTENCES[:2]]), OPTIONS, folder=tmp_path)
    with pytest.raises(InputError, match="frozen weights"):
        fit(gpt(), language_task(), OPTIONS, folder=tmp_path, parameters="transformer.h.0")


def test_a_frozen_decoder_stays_as_it_is(tmp_path: Path) -> None:
    model = marian()
    task = tasks.translation(train=PAIRS, dev=PAIRS, metric="loss", label_smoothing=0.1)
    before = weights(model)
    result = fit(model, task, OPTIONS, folder=tmp_path, parameters="encoder")
    changed = differing(before, weights(model))
    assert changed == set(result.parameters()) == {name for name in before if name.startswith("model.encoder.layers.")}
    assert result.best.value < result.history[0]["value"]


def test_gates_alone_are_trained_with_a_rate_of_their_own(tmp_path: Path) -> None:
    model = gpt()
    before = weights(model)
    gates = torch.ones(2, requires_grad=True)
    training_calls: list[bool] = []

    def edits(training: bool) -> list[hs.Intervention]:
        training_calls.append(training)
        return [hs.gate("L0", gates)]

    groups = [ParameterGroup({"gates": gates}, rate=0.1)]
    options = FitOptions(steps=4, batch_size=2, evaluate_every=2, schedule="constant")
    settings = {"parameters": groups, "interventions": edits, "penalty": lambda step: 10 * gates.sum()}
    result = fit(model, language_task(metric="loss"), options, folder=tmp_path, **settings)
    assert not differing(before, weights(model))
    assert training_calls == [False, True, True, False, True, True, False]
    assert result.parameters().keys() == {"gates"}


def test_the_last_weights_count_where_chosen_and_the_history_has_what_was_observed(tmp_path: Path) -> None:
    options = FitOptions(**(OPTIONS.to_json() | {"rate": 1.0, "warmup": 0, "select": "last", "clip": 100.0}))
    model, penalised = gpt(), []

    def penalty(step: int) -> Tensor:
        penalised.append(step)
        return torch.tensor(0.0)

    settings = {"penalty": penalty, "observe": lambda: {"n_steps": len(penalised)}}
    result = fit(model, language_task(), options, folder=tmp_path, **settings)
    assert result.best_step == 12 and result.best.value > result.history[0]["value"]  # the rate is far too high
    assert language_task().evaluate(model).value == pytest.approx(result.best.value, rel=1e-6)
    assert penalised == list(range(12)) and [row["n_steps"] for row in result.history] == [0, 4, 8, 12]


def test_from_scratch_draws_the_weights_anew_from_the_seed(tmp_path: Path) -> None:
    options = FitOptions(**(OPTIONS.to_json() | {"start": "scratch", "steps": 1}))
    first, second = gpt(seed=0), gpt(seed=5)
    results = [
        fit(model, language_task(), options, folder=tmp_path / str(number))
        for number, model in enumerate((first, second))
    ]
    assert results[0].history == results[1].history
    assert not differing(weights(first), weights(second))
    with pytest.raises(InputError, match="start='scratch' needs a Transformers model"):
        draw_anew(hs.Model(torch.nn.Linear(2, 2)), {}, 0)


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_mixed_precision_trains_and_resumes(precision: str, tmp_path: Path) -> None:
    options = FitOptions(**(OPTIONS.to_json() | {"precision": precision, "steps": 8}))
    whole = fit(gpt(), language_task(), options, folder=tmp_path / "whole")
    assert whole.best.value < whole.history[0]["value"]
    cancel = threading.Event()
    with pytest.raises(Cancelled):
        fit(gpt(), language_task(), options, folder=tmp_path / "two", cancel=cancel, progress=StopAt(5, cancel.set))
    assert fit(gpt(), language_task(), options, folder=tmp_path / "two").history == whole.history


def test_half_precision_weights_and_missing_data_are_refused(tmp_path: Path) -> None:
    half = gpt()
    half.module.half()
    with pytest.raises(InputError, match=r"dtype='float32'"):
        fit(half, language_task(), folder=tmp_path)
    with pytest.raises(InputError, match="no dev data"):
        fit(gpt(), tasks.language_modelling(train=[*SENTENCES]), folder=tmp_path)
    with pytest.raises(InputError, match="no encoder beside a decoder"):
        fit(gpt(), language_task(), folder=tmp_path, parameters="encoder")
    with pytest.raises(InputError, match="no parameter 'layers'"):
        fit(gpt(), language_task(), folder=tmp_path, parameters=["layers"])
    with pytest.raises(InputError, match="Tasks that fit this model: masked_language_modelling"):
        fit(bert(), language_task(), folder=tmp_path)
    with pytest.raises(InputError, match="schedule is one of linear"):
        FitOptions(schedule="steep")  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_masked_language_modelling_resumes_with_the_same_masks(tmp_path: Path) -> None:
    task = tasks.masked_language_modelling(train=[*SENTENCES], dev=[*SENTENCES])
    whole = fit(bert(), task, OPTIONS, folder=tmp_path / "whole")
    cancel = threading.Event()
    with pytest.raises(Cancelled):
        fit(bert(), task, OPTIONS, folder=tmp_path / "two", cancel=cancel, progress=StopAt(9, cancel.set))
    assert fit(bert(), task, OPTIONS, folder=tmp_path / "two").history == whole.history


def test_every_example_is_seen_once_an_epoch_and_batches_are_bounded() -> None:
    lengths = [1 + (7 * number) % 23 for number in range(200)]
    settings = {"batch_size": 8, "batch_tokens": 60, "seed": 0}
    epochs = [training_batches([range(150), range(150, 200)], lengths, epoch=epoch, **settings) for epoch in (0, 1)]
    for batches in epochs:
        assert sorted(place for batch in batches for place in batch) == list(range(200))
        assert all(len(batch) <= 8 and len(batch) * max(lengths[place] for place in batch) <= 60 for batch in batches)
        assert all(len({place < 150 for place in batch}) == 1 for batch in batches)
    assert epochs[0] != epochs[1]


def test_rates_rise_and_fall() -> None:
    linear = FitOptions(steps=10, warmup=2)
    assert [linear.rate_factor(step) for step in (0, 1, 2, 6)] == [0.5, 1.0, 1.0, 0.5]
    cosine = FitOptions(steps=10, schedule="cosine")
    assert cosine.rate_factor(0) == 1.0 and cosine.rate_factor(5) == pytest.approx(0.5)
    noam = FitOptions(steps=100, warmup=4, schedule="inverse_sqrt")
    assert noam.rate_factor(3) == 1.0 and noam.rate_factor(15) == 0.5
    assert FitOptions(schedule="constant").rate_factor(900) == 1.0
