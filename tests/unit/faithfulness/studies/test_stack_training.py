"""Training of stacks: models learn apart, the best epoch is kept, and a killed run goes on with the same numbers."""

from dataclasses import replace

import pytest
import torch

from headscope.errors import Cancelled, HeadscopeError, InputError, LoadError
from headscope.faithfulness.studies import stack_training
from headscope.faithfulness.studies.stack_parts import stack
from headscope.faithfulness.studies.stack_training import StackOptions, StackTraining, train_stack
from headscope.faithfulness.studies.stacked_tagger import TaggerShape, draw_tagger
from headscope.faithfulness.studies.tagger_tasks import GoldTags, TaggerOptions
from headscope.progress import Cancel

SHAPE = TaggerShape(8, 16, 4, 8)
NAMES = ("first", "second")


@pytest.fixture
def task(data) -> GoldTags:
    return GoldTags(data, TaggerOptions(batch_size=8, width=16, warmup=5))


def fresh() -> dict[str, torch.Tensor]:
    return stack([draw_tagger(SHAPE, seed) for seed in (1, 2)])


def options(task: GoldTags, epochs: int = 3) -> StackOptions:
    return task.options.stack_options(epochs, 5, 0, {"of": "a test"})


def test_models_learn_and_the_best_epoch_of_each_is_kept(task, tmp_path) -> None:
    trained = train_stack(NAMES, fresh(), task, options(task, 8), tmp_path / "x")
    assert trained.history[-1][0]["nll"] < trained.history[0][0]["nll"] - 0.1
    for model, epoch in enumerate(trained.best_epochs):
        scores = [rows[model]["score"] for rows in trained.history]
        assert scores[epoch - 1] == max(scores) == task.dev_scores(trained.best)[model]["score"]


def test_a_killed_run_goes_on_with_the_same_numbers(task, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(stack_training, "CHECKPOINT_SECONDS", 0.0)
    whole = train_stack(NAMES, fresh(), task, options(task), tmp_path / "whole")
    cancel = Cancel()

    def stop(progress) -> None:
        if progress.done == 7:  # within the second epoch
            cancel.set()

    with pytest.raises(Cancelled):
        train_stack(NAMES, fresh(), task, options(task), tmp_path / "parts", progress=stop, cancel=cancel)
    (tmp_path / "parts" / ".headscope-0123.partial").write_bytes(b"half a file")
    places: list[int] = []
    resumed = train_stack(
        NAMES, fresh(), task, options(task), tmp_path / "parts", progress=lambda progress: places.append(progress.done)
    )
    assert places[0] == 5  # after the first epoch
    assert resumed.history == whole.history and resumed.best_epochs == whole.best_epochs
    assert all(torch.equal(resumed.best[name], whole.best[name]) for name in whole.best)
    again = train_stack(NAMES, fresh(), task, options(task), tmp_path / "parts")
    assert all(torch.equal(again.last[name], whole.last[name]) for name in whole.last)


def test_other_settings_and_damage_are_refused(task, tmp_path) -> None:
    train_stack(NAMES, fresh(), task, options(task, 1), tmp_path / "x")
    with pytest.raises(InputError, match="other settings \\(of\\)"):
        train_stack(NAMES, fresh(), task, replace(options(task, 1), settings={"of": "another"}), tmp_path / "x")
    state = next((tmp_path / "x").glob("state-*"))
    state.write_bytes(state.read_bytes()[:-1] + bytes([state.read_bytes()[-1] ^ 1]))
    with pytest.raises(LoadError, match="does not match its checksum"):
        train_stack(NAMES, fresh(), task, options(task, 1), tmp_path / "x")


def test_a_loss_that_is_not_finite_names_its_model(task, tmp_path) -> None:
    parameters = fresh()
    with torch.no_grad():
        parameters["value.weight"][1] = torch.nan
    with pytest.raises(HeadscopeError, match="the loss of second is nan at step 1"):
        StackTraining(NAMES, parameters, task, options(task), tmp_path / "x").run()


def test_models_of_a_stack_do_not_touch_each_other(task, data, tmp_path) -> None:
    batch, generator = data.batch(data.train, [0, 1]), torch.Generator().manual_seed(0)
    parameters = fresh()
    task.losses(parameters, batch, generator)[0].backward()
    gradients = {name: parameter.grad for name, parameter in parameters.items() if parameter.grad is not None}
    assert all(not gradient[1].any() for gradient in gradients.values())
    assert gradients["value.weight"][0].any()


def test_the_rate_rises_falls_and_cools_down() -> None:
    factor = TaggerOptions(warmup=10, cooldown=0.5).stack_options(10, 10, 0, {}).rate_factor
    assert factor(5) == pytest.approx(0.5 * factor(10)) and factor(40) == pytest.approx(0.5 * factor(10))
    assert factor(75) == pytest.approx(75**-0.5 / 2) and factor(100) == 0.0
