"""Training a stack of models: whole epochs, the best of each model on dev, and checkpoints to resume from."""

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from headscope import files
from headscope.errors import HeadscopeError, InputError
from headscope.faithfulness.studies.stack_parts import Parameters
from headscope.progress import Cancel, OnProgress, Steps
from headscope.tasks.fit_folder import FitFolder
from headscope.tasks.optimizer_state import optimizer_tensors, restore_optimizer

Rows = list[dict[str, float]]
# Losses are looked at once in so many steps: a GPU would wait for each look.
_STEPS_BETWEEN_LOOKS = 50
# A checkpoint is written after the first epoch that ends so long after the one before, and after the last.
CHECKPOINT_SECONDS = 10.0


class StackTask(Protocol):
    """What a stack of models learns. `losses` gives one loss for each model, `dev_scores` one row of figures for each
    model, whose `score` (higher is better) chooses the epoch.
    """

    def batches(self, epoch: int) -> Sequence[Any]:
        """The batches of an epoch."""
        ...

    def losses(self, parameters: Parameters, batch: Any, generator: torch.Generator) -> Tensor:
        """The loss of each model [model], with its gradient."""
        ...

    def dev_scores(self, parameters: Parameters) -> Rows:
        """How well each model does on dev, without dropout."""
        ...


@dataclass(frozen=True)
class StackOptions:
    """How a stack is trained. `rate_factor` turns the step, from 1, into a factor of the optimizer's rates."""

    epochs: int
    seed: int
    optimizer: Callable[[dict[str, Tensor]], torch.optim.Optimizer]
    rate_factor: Callable[[int], float] = lambda _step: 1.0
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What decides the numbers, in words and figures: a checkpoint of other settings is refused."""


@dataclass(frozen=True, eq=False)
class TrainedStack:
    """The best parameters of each model, those of the last epoch, and the dev figures of each epoch [epoch][model]."""

    names: tuple[str, ...]
    best: dict[str, Tensor]
    last: dict[str, Tensor]
    best_epochs: tuple[int, ...]
    history: tuple[Rows, ...]


class StackTraining:
    """A stack while it trains."""

    def __init__(
        self, names: Sequence[str], parameters: dict[str, Tensor], task: StackTask, options: StackOptions, folder: Path
    ):
        self.names, self.parameters, self.task, self.options = tuple(names), parameters, task, options
        self.folder = FitFolder(folder)
        self.optimizer = options.optimizer(parameters)
        self.rates = [group["lr"] for group in self.optimizer.param_groups]
        device = next(iter(parameters.values())).device
        self.generator = torch.Generator(device).manual_seed(options.seed)
        self.epoch, self.step = 0, 0
        self.history: list[Rows] = []
        self.best_epochs = [0] * len(self.names)
        self.best_scores = [-math.inf] * len(self.names)
        self.best = {name: tensor.detach().clone() for name, tensor in parameters.items()}
        settings = {"names": self.names, "epochs": options.epochs, "seed": options.seed, **options.settings}
        self.settings = json.loads(json.dumps(settings))  # as the checkpoint has them

    def run(self, progress: OnProgress | None = None, cancel: Cancel | None = None) -> TrainedStack:
        """Train to the last epoch; begins after the epoch of the folder's checkpoint."""
        self.folder.prepare()
        with files.lock(self.folder.path, wait=False):
            if self.folder.has_fit:
                self._resume()
            saved_at = time.monotonic()
            while self.epoch < self.options.epochs:
                self._train_epoch(progress, cancel)
                self._evaluate()
                if self.epoch == self.options.epochs or time.monotonic() - saved_at >= CHECKPOINT_SECONDS:
                    self._save()
                    saved_at = time.monotonic()
        last = {name: tensor.detach().clone() for name, tensor in self.parameters.items()}
        return TrainedStack(self.names, self.best, last, tuple(self.best_epochs), tuple(self.history))

    def _train_epoch(self, progress: OnProgress | None, cancel: Cancel | None) -> None:
        batches = self.task.batches(self.epoch)
        first, *others = self.names
        what = f"{first} and {len(others)} more" if others else first
        note, steps = "", Steps(f"training {what}", self.options.epochs * len(batches), progress, cancel)
        steps.done = self.epoch * len(batches)
        recent: list[Tensor] = []
        for batch in batches:
            steps.next()
            self.step += 1
            for group, rate in zip(self.optimizer.param_groups, self.rates, strict=True):
                group["lr"] = rate * self.options.rate_factor(self.step)
            losses = self.task.losses(self.parameters, batch, self.generator)
            self.optimizer.zero_grad(set_to_none=True)
            losses.sum().backward()
            self.optimizer.step()
            recent.append(losses.detach())
            if len(recent) == _STEPS_BETWEEN_LOOKS or batch is batches[-1]:
                self._check_finite(torch.stack(recent))
                note = f"loss {float(recent[-1].mean()):.3f}"
                recent = []
        steps.add(0, note)
        self.epoch += 1

    def _check_finite(self, losses: Tensor) -> None:
        """The losses [step, model] of the last steps."""
        if not bool(torch.isfinite(losses).all()):
            step, model = torch.isfinite(losses).logical_not().nonzero()[0].tolist()
            raise HeadscopeError(
                f"the loss of {self.names[model]} is {float(losses[step, model])} at step "
                f"{self.step - len(losses) + 1 + step}. The folder has the checkpoint of epoch {self.epoch}. Lower the "
                "rate or λ."
            )

    def _evaluate(self) -> None:
        with torch.no_grad():
            rows = self.task.dev_scores(self.parameters)
        self.history.append(rows)
        for model, row in enumerate(rows):
            if row["score"] > self.best_scores[model]:
                self.best_scores[model], self.best_epochs[model] = row["score"], self.epoch
                for name, tensor in self.parameters.items():
                    self.best[name][model] = tensor.detach()[model]

    # Checkpoints

    def _save(self) -> None:
        state = {f"model/{name}": tensor for name, tensor in self.parameters.items()}
        state |= optimizer_tensors(self.optimizer, self.parameters) | {"random": self.generator.get_state()}
        written = {
            "state": self.folder.write_tensors("state", self.epoch, state),
            "best": self.folder.write_tensors("best", self.epoch, self.best),
        }
        position = {"epoch": self.epoch, "step": self.step, "best_epochs": self.best_epochs}
        about = {"best_scores": self.best_scores, "history": self.history, "files": written}
        self.folder.write({"settings": self.settings, **position, **about})

    def _resume(self) -> None:
        index = self.folder.read()
        before = index["settings"]
        changed = [name for name in {**before, **self.settings} if before.get(name) != self.settings.get(name)]
        if changed:
            raise InputError(
                f"{self.folder.path} was trained with other settings ({', '.join(sorted(changed))}): resume it with "
                "the same, or choose another folder."
            )
        state = self.folder.tensors(index, "state")
        with torch.no_grad():
            for name, tensor in self.parameters.items():
                tensor.copy_(state[f"model/{name}"])
        restore_optimizer(self.optimizer, self.parameters, state)
        self.generator.set_state(state["random"])
        self.best = {
            name: tensor.to(self.parameters[name].device) for name, tensor in self.folder.tensors(index, "best").items()
        }
        self.epoch, self.step, self.history = index["epoch"], index["step"], index["history"]
        self.best_epochs, self.best_scores = index["best_epochs"], index["best_scores"]


def train_stack(
    names: Sequence[str],
    parameters: dict[str, Tensor],
    task: StackTask,
    options: StackOptions,
    folder: Path,
    *,
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> TrainedStack:
    """Train a stack of models, or go on where the folder stands; a finished stack is read from it."""
    return StackTraining(names, parameters, task, options, folder).run(progress, cancel)
