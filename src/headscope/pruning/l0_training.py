"""L0 training: gates learn which heads are open while the model learns to do without the rest; then fine-tuning."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from headscope.errors import InputError
from headscope.interventions import Intervention
from headscope.models import Model
from headscope.progress import Cancel, OnProgress, Progress
from headscope.pruning.attention_types import PrunableLayer, layers_of
from headscope.pruning.head_gates import HeadGates
from headscope.pruning.head_mask import HeadMask
from headscope.pruning.prune_options import PruneOptions
from headscope.sites import Site
from headscope.tasks.learning_task import LearningTask
from headscope.tasks.trained_parameters import ParameterGroup, choose_parameters
from headscope.tasks.training_run import Fit, fit

# The name of the gates among the trained parameters.
GATES = "head_gates.log_alpha"


@dataclass(frozen=True, eq=False)
class TrainedGates:
    """What L0 training chose: the hardened mask, the gates behind it, and how training went."""

    mask: HeadMask
    log_alpha: dict[Site, tuple[float, ...]]
    p_open: dict[Site, tuple[float, ...]]
    history: tuple[dict[str, Any], ...]


def gated_layers(model: Model, options: PruneOptions) -> list[PrunableLayer]:
    """The layers whose heads are pruned: of the chosen types; beside a frozen decoder those of the encoder."""
    layers = layers_of(model)
    there = list(dict.fromkeys(layer.type for layer in layers))
    types = options.types or (("encoder",) if options.parameters == "encoder" else tuple(there))
    unknown = [name for name in types if name not in there]
    if unknown:
        raise InputError(f"{model.name} has no attention of type {unknown[0]!r}: it has {', '.join(there)}.")
    return [layer for layer in layers if layer.type in types]


def train_gates(
    model: Model,
    task: LearningTask,
    lambda_by_type: Mapping[str, float],
    options: PruneOptions,
    *,
    folder: Path,
    seed: int,
    cancel: Cancel | None = None,
    progress: OnProgress | None = None,
) -> TrainedGates:
    """Train gates, and the weights that `options.parameters` names, of a model in place; resumes from its folder.

    Types of attention without a λ have no gates. The last gates count: the best score is that of all heads.
    """
    layers = [layer for layer in gated_layers(model, options) if layer.type in lambda_by_type]
    gates, whole = HeadGates(layers, options.gates, seed=seed, device=model.device), HeadMask.full(model)
    groups = [ParameterGroup({GATES: gates.log_alpha}, rate=options.gates.rate, weight_decay=0.0)]
    if options.parameters != "gates":
        groups += choose_parameters(model, options.parameters)

    def edits(training: bool) -> Sequence[Intervention]:
        return gates.sample() if training else gates.at_evaluation()

    def penalty(step: int) -> Tensor:
        return gates.penalty(lambda_by_type, step)

    result = fit(
        model,
        for_dev(task, options),
        replace(options.training, seed=seed, select="last"),
        folder=folder,
        parameters=groups,
        interventions=edits,
        penalty=penalty,
        observe=lambda: {"open": _open(gates.mask(whole))},
        cancel=cancel,
        progress=None if progress is None else _with_counts(progress, gates, whole),
    )
    return TrainedGates(gates.mask(whole), gates.values(), gates.open_probabilities(), history_of(result))


def tune(
    model: Model,
    task: LearningTask,
    mask: HeadMask,
    options: PruneOptions,
    *,
    steps: int,
    folder: Path,
    seed: int,
    cancel: Cancel | None = None,
    progress: OnProgress | None = None,
) -> tuple[dict[str, Any], ...]:
    """Fine-tune a model in place with the mask fixed, and give it the weights that were best on dev; the history."""
    assert options.tuning is not None
    result = fit(
        model,
        for_dev(task, options),
        replace(options.tuning, seed=seed, steps=steps),
        folder=folder,
        parameters=options.tuned_parameters(),
        interventions=mask.interventions(),
        observe=lambda: {"open": _open(mask)},
        cancel=cancel,
        progress=progress,
    )
    return history_of(result)


def for_dev(task: LearningTask, options: PruneOptions) -> LearningTask:
    """The task as it is judged on dev during training: by `dev_metric` where one was chosen."""
    if options.dev_metric is None:
        return task
    judged = copy.copy(task)
    judged.metric = task.check_metric(options.dev_metric)
    return judged


def history_of(result: Fit) -> tuple[dict[str, Any], ...]:
    """Rows of step, loss (since the row before), heads open by type, and score on dev."""
    names = {"step": "step", "loss": "loss", "open": "open", "value": "score", "rate": "rate"}
    return tuple({name: row[own] for own, name in names.items()} for row in result.history)


def _open(mask: HeadMask) -> dict[str, int]:
    return {name: n_open for name, (n_open, _) in mask.counts().items()}


def _with_counts(progress: OnProgress, gates: HeadGates, whole: HeadMask) -> OnProgress:
    """Progress whose note says how many heads are open, by type."""

    def report(about: Progress) -> None:
        if about.stage == "training":
            counts = gates.mask(whole).counts().items()
            heads = ", ".join(f"{name} {n_open}/{n_heads}" for name, (n_open, n_heads) in counts)
            about = replace(about, note=f"{about.note}, open {heads}" if about.note else f"open {heads}")
        progress(about)

    return report
