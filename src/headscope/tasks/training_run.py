"""Training: steps, evaluation on dev, checkpoints that a killed run resumes from with the same numbers."""

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from headscope import files
from headscope.errors import HeadscopeError, HeadscopeWarning, InputError, LoadError
from headscope.interventions import Intervention
from headscope.models import Model
from headscope.progress import Cancel, OnProgress, Steps, stop_if
from headscope.tasks.fit_folder import FitFolder
from headscope.tasks.fit_options import FitOptions
from headscope.tasks.learning_task import LearningTask
from headscope.tasks.optimizer_state import make_optimizer, optimizer_tensors, restore_optimizer
from headscope.tasks.score import Score
from headscope.tasks.trained_parameters import (
    Choice,
    ParameterGroup,
    choose_parameters,
    draw_anew,
    frozen_checksum,
    named,
    state_buffers,
    training_only,
)
from headscope.tasks.training_data import TrainingData, data_checksum

# Interventions of every pass; a function is called anew for each batch (True: training) and for each evaluation.
Edits = Sequence[Intervention] | Callable[[bool], Sequence[Intervention]]
_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


@dataclass(frozen=True)
class Fit:
    """What training did: the score of every evaluation (`history`), and the `best` on dev, at `best_step`.

    A row of the history has `step`, `value` (of the metric), `loss` (the mean over the training steps since the row
    before) and `rate`.
    """

    folder: Path
    best: Score
    best_step: int
    step: int
    history: tuple[dict[str, Any], ...]
    is_finished: bool

    def parameters(self) -> dict[str, Tensor]:
        """The best values of the parameters that were trained, by name."""
        folder = FitFolder(self.folder)
        return _below("parameter", folder.tensors(folder.read(), "best"))

    def load_into(self, model: Model) -> None:
        """Give a model the best weights."""
        own = dict(model.module.named_parameters()) | state_buffers(model.module)
        folder = FitFolder(self.folder)
        tensors = folder.tensors(folder.read(), "best")
        trained = {name: tensor for role in ("parameter", "buffer") for name, tensor in _below(role, tensors).items()}
        unknown = next(
            (name for name, tensor in trained.items() if name not in own or own[name].shape != tensor.shape), None
        )
        if unknown is not None:
            raise InputError(f"{model.name} has no parameter {unknown!r} of this shape: the fit is of another model.")
        _copy(trained, own)


def fit(
    model: Model,
    task: LearningTask,
    options: FitOptions | None = None,
    *,
    folder: Path | str,
    parameters: Choice = "all",
    interventions: Edits = (),
    penalty: Callable[[int], Tensor] | None = None,
    observe: Callable[[], Mapping[str, Any]] | None = None,
    cancel: Cancel | None = None,
    progress: OnProgress | None = None,
) -> Fit:
    """Train the model, in place, and give it the weights that were best on dev (or the last: `options.select`).

    `parameters`: "all", "encoder" (the decoder stays as it is), names, tensors (gates, say) or `ParameterGroup`s.
    `interventions` act in every pass. A function is called before each pass, with `training` True or False, and returns
    them.
    `penalty`, a function of the step (the first is 0), is added to the loss. What `observe` returns at each evaluation
    is written into the history. Run again with the same folder to resume, or to read a finished fit. Whatever ends
    the run (`cancel`, Ctrl-C, a NaN), the model has the best weights so far, and the folder the last checkpoint.
    """
    groups = choose_parameters(model, parameters)
    run = TrainingRun(model, task, options or FitOptions(), FitFolder(folder), groups, interventions, penalty, observe)
    return run.run(cancel, progress)


def read_fit(folder: Path | str) -> Fit:
    """What a fit has done so far, finished or not, from its folder."""
    place = FitFolder(folder)
    return _fit_of(place, place.read())


class TrainingRun:
    """A fit while it runs."""

    def __init__(
        self,
        model: Model,
        task: LearningTask,
        options: FitOptions,
        folder: FitFolder,
        groups: Sequence[ParameterGroup],
        interventions: Edits = (),
        penalty: Callable[[int], Tensor] | None = None,
        observe: Callable[[], Mapping[str, Any]] | None = None,
    ):
        self.model, self.task, self.options, self.folder = model, task, options, folder
        self.interventions, self.penalty, self.observe = interventions, penalty, observe
        self.trained = named(groups)
        self._check()
        self.optimizer = make_optimizer(groups, options)
        self.scaler = torch.amp.GradScaler(model.device.type, enabled=options.precision == "fp16")
        self.step, self.epoch, self.place = 0, 0, 0
        self.loss_sum, self.n_losses = 0.0, 0
        self.history: list[dict[str, Any]] = []
        self.best: Score | None = None
        self.best_step = 0
        self.best_tensors: dict[str, Tensor] = {}
        self.files: dict[str, dict[str, str]] = {}
        self.settings: dict[str, Any] = {}

    def run(self, cancel: Cancel | None = None, progress: OnProgress | None = None) -> Fit:
        """Begin, or resume; train to the last step."""
        self.cancel, self.progress = cancel, progress
        self.folder.prepare()
        with files.lock(self.folder.path, wait=False), training_only(self.model.module, self.trained), self._seeded():
            try:
                self._begin()
                steps = Steps("training", self.options.steps, progress, cancel)
                steps.add(self.step)
                while self.step < self.options.steps:
                    self._train_step()
                    steps.add(note=self._note())
                    if self.step % self.options.evaluate_every == 0 or self.step == self.options.steps:
                        self._evaluate()
            finally:
                _copy(self.best_tensors, self._state_tensors())
        return _fit_of(self.folder, self.folder.read())

    # Beginning

    def _check(self) -> None:
        self.task.check(self.model)
        self.task.data("train")
        self.task.data("dev")

    @contextmanager
    def _seeded(self) -> Iterator[None]:
        """Random numbers of the fit's own; those of the caller go on afterwards as if nothing had been drawn."""
        device = self.model.device
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(self.options.seed)
            yield

    def _begin(self) -> None:
        self.task.prepare_model(self.model)
        self.data = TrainingData(self.model, self.task, self.options)
        self.settings = self._describe()
        if self.folder.has_fit:
            self._resume(self.folder.read())
            return
        if self.options.start == "scratch":
            draw_anew(self.model, self.trained, self.options.seed)
        self._evaluate()

    def _describe(self) -> dict[str, Any]:
        """All that decides the numbers, as far as it can be written down."""
        task = self.task
        return {
            "model": type(self.model.module).__name__,
            "task": [task.name, task.metric, task.label_smoothing],
            "options": self.options.to_json(),
            "parameters": list(self.trained),
            "frozen weights": frozen_checksum(self.model.module, self.trained),
            "train data": data_checksum(task.data("train")),
            "dev data": data_checksum(task.data("dev")),
        }

    def _resume(self, index: Mapping[str, Any]) -> None:
        before = index["settings"]
        changed = [name for name in self.settings if before.get(name) != self.settings[name]]
        if changed:
            old, new = before.get("options", {}), self.settings["options"]
            changes = [f"{name} was {old.get(name)}, now {new[name]}" for name in new if old.get(name) != new[name]]
            reason = "; ".join([*changes, *(name for name in changed if name != "options")])
            raise InputError(
                f"{self.folder.path} holds a fit with other settings ({reason}): resume it with the same, or choose "
                "another folder."
            )
        if index["step"] < self.options.steps:
            self._warn_of_other_processor(index.get("processor"))
        state = self.folder.tensors(index, "state")
        _copy(_below("model", state), self._state_tensors())
        restore_optimizer(self.optimizer, self.trained, state)
        self.scaler.load_state_dict(index["scaler"])
        self.step, self.epoch, self.place = index["step"], index["epoch"], index["place"]
        self.history, self.files = index["history"], index["files"]
        self.best, self.best_step = Score(**index["best"]), index["best_step"]
        best = self.folder.tensors(index, "best")
        self.best_tensors = {**_below("parameter", best), **_below("buffer", best)}
        torch.set_rng_state(state["random/cpu"])
        if "random/cuda" in state and self.model.device.type == "cuda":
            torch.cuda.set_rng_state(state["random/cuda"], self.model.device)

    def _processor(self) -> str:
        """What sums are split by: with another number of threads, or on a GPU, they end in other digits."""
        kind = self.model.device.type
        return f"{kind}, {torch.get_num_threads()} threads" if kind == "cpu" else kind

    def _warn_of_other_processor(self, before: str | None) -> None:
        now = self._processor()
        if before is not None and before != now:
            warnings.warn(
                f"the fit in {self.folder.path} was computed on {before} and goes on on {now}: the last digits of its "
                "numbers will differ from those of a fit that was not interrupted. The environment variable "
                "OMP_NUM_THREADS sets the number of threads.",
                HeadscopeWarning,
                stacklevel=2,
            )

    # Going on

    def _train_step(self) -> None:
        stop_if(self.cancel)
        if self.place >= len(self.data.order(self.epoch)):
            self.epoch, self.place = self.epoch + 1, 0
        for group in self.optimizer.param_groups:
            group["lr"] = group["peak"] * self.options.rate_factor(self.step)
        loss = self._loss()
        objective = loss if self.penalty is None else loss + self.penalty(self.step)
        self._check_finite("loss", objective)
        self.scaler.scale(objective).backward()
        self.scaler.unscale_(self.optimizer)
        norm = torch.nn.utils.clip_grad_norm_(self.trained.values(), self.options.clip)
        if not self.scaler.is_enabled():  # the scaler passes over steps whose gradients overflow
            self._check_finite("gradient", norm)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        self.step, self.place = self.step + 1, self.place + 1
        self.loss_sum, self.n_losses = self.loss_sum + float(loss.detach()), self.n_losses + 1

    def _note(self) -> str:
        """The mean loss since the last evaluation, and the score of that, for the bar of progress."""
        loss = f"loss {self.loss_sum / self.n_losses:.3f}"
        return f"{loss}, dev {self.task.metric} {self.history[-1]['value']:.4g}" if self.history else loss

    def _loss(self) -> Tensor:
        dtype = _DTYPES.get(self.options.precision)
        within = None if dtype is None else torch.autocast(self.model.device.type, dtype=dtype)
        batch = self.data.batch(self.epoch, self.place)
        return self.task.loss(self.model, batch, self._edits(True), within=within, cancel=self.cancel)

    def _edits(self, training: bool) -> Sequence[Intervention]:
        return self.interventions(training) if callable(self.interventions) else self.interventions

    def _check_finite(self, what: str, value: Tensor) -> None:
        if not bool(torch.isfinite(value)):
            last = self.history[-1]["step"] if self.history else 0
            number = float(value.detach())
            raise HeadscopeError(
                f"the {what} is {number} at step {self.step + 1}. The model has the best weights so far, and "
                f"{self.folder.path} the checkpoint of step {last}. Lower the rate or change the precision, in another "
                "folder."
            )

    def _evaluate(self) -> None:
        """The score on dev; the best weights so far; a checkpoint."""
        options = {"batch_size": self.options.batch_size, "cancel": self.cancel, "progress": self.progress}
        with torch.no_grad():
            score = self.task.evaluate(self.model, "dev", self._edits(False), **options)
        loss = self.loss_sum / self.n_losses if self.n_losses else None
        rate = self.options.rate * self.options.rate_factor(max(0, self.step - 1))
        observed = {} if self.observe is None else self.observe()
        self.history.append({"step": self.step, "value": score.value, "loss": loss, "rate": rate, **observed})
        self.loss_sum, self.n_losses = 0.0, 0
        is_last = self.options.select == "last"
        if is_last or self.best is None or math.isnan(self.best.value) or score.is_better_than(self.best.value):
            self.best = score
            self.best_tensors = {name: tensor.detach().clone() for name, tensor in self._state_tensors().items()}
            self._save(is_best=True)
        else:
            self._save(is_best=False)

    # Checkpoints

    def _state_tensors(self) -> dict[str, Tensor]:
        return self.trained | state_buffers(self.model.module)

    def _save(self, *, is_best: bool) -> None:
        assert self.best is not None
        state = {f"model/{name}": tensor for name, tensor in self._state_tensors().items()}
        state |= optimizer_tensors(self.optimizer, self.trained) | {"random/cpu": torch.get_rng_state()}
        if self.model.device.type == "cuda":
            state["random/cuda"] = torch.cuda.get_rng_state(self.model.device)
        position = {"step": self.step, "epoch": self.epoch, "place": self.place, "scaler": self.scaler.state_dict()}
        best_step = self.step if is_best else self.best_step
        best = {"metric": self.best.metric, "value": self.best.value, "n": self.best.n}
        try:
            written = {"state": self.folder.write_tensors("state", self.step, state)}
            if is_best:
                buffers = state_buffers(self.model.module)
                tensors = {f"parameter/{name}": tensor for name, tensor in self.trained.items()}
                tensors |= {f"buffer/{name}": tensor for name, tensor in buffers.items()}
                written["best"] = self.folder.write_tensors("best", self.step, tensors)
            named_files = self.files | written
            about = {"best": best, "best_step": best_step, "history": self.history, "files": named_files}
            self.folder.write({"settings": self.settings, "processor": self._processor(), **position, **about})
        except LoadError as error:
            last = self.history[-2]["step"] if len(self.history) > 1 else None
            remains = (
                "" if last is None else f" The checkpoint of step {last} is whole: make room, and run again to resume."
            )
            raise LoadError(f"no checkpoint could be written at step {self.step}: {error}{remains}") from error
        self.files, self.best_step = named_files, best_step


def _fit_of(folder: FitFolder, index: Mapping[str, Any]) -> Fit:
    is_finished = index["step"] >= index["settings"]["options"]["steps"]
    history, best = tuple(index["history"]), Score(**index["best"])
    return Fit(folder.path, best, index["best_step"], index["step"], history, is_finished)


def _below(role: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose names begin with a role, by the rest of their names."""
    return {name.removeprefix(f"{role}/"): tensor for name, tensor in tensors.items() if name.startswith(f"{role}/")}


def _copy(sources: Mapping[str, Tensor], targets: Mapping[str, Tensor]) -> None:
    """Copy tensors into those of the same names."""
    with torch.no_grad():
        for name, source in sources.items():
            targets[name].copy_(source)
