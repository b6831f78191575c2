"""Scores by which heads are ranked without gates: importance, relevance, confidence, random. The highest are kept."""

import random
from collections.abc import Callable, Sequence
from itertools import islice

import torch
from torch import Tensor

from headscope.analysis import measure, relevance_scores
from headscope.analysis.statistics import mean_scores
from headscope.interventions import gate
from headscope.models import Model
from headscope.progress import Cancel, OnProgress, Steps, stop_if
from headscope.pruning.attention_types import layers_of
from headscope.scores import Scores
from headscope.sites import Head
from headscope.tasks.learning_task import LearningTask, TaskInput

Rank = Callable[..., Scores]


def rank(
    method: str,
    model: Model,
    task: LearningTask,
    *,
    n_examples: int,
    seed: int = 0,
    cancel: Cancel | None = None,
    progress: OnProgress | None = None,
) -> Scores:
    """The score of every head by "importance", "relevance", "confidence" or "random", on the first examples of train.

    The seed is for "random" alone.
    """
    if method == "random":
        return random_scores(model, seed)
    examples = list(islice(task.data("train"), n_examples))
    inputs = list(task.prepare_batch(model, task.read(model, examples), training=False))
    return _RANKINGS[method](model, task, inputs, cancel=cancel, progress=progress)


def random_scores(model: Model, seed: int) -> Scores:
    """A random order of the heads of a model."""
    draw = random.Random(seed)
    values = {layer.site.head(index): draw.random() for layer in layers_of(model) for index in range(layer.n_heads)}
    return Scores("random", values, settings={"seed": seed})


def importance(
    model: Model,
    task: LearningTask,
    inputs: Sequence[TaskInput],
    *,
    cancel: Cancel | None = None,
    progress: OnProgress | None = None,
) -> Scores:
    """The mean over examples of |∂loss / ∂gate| at gate 1, of the task's own loss (Michel et al., 2019, equation 2).

    `analysis.gate_importance` with the loss that training lowers: examples pass by themselves, since a mean over a
    batch would be taken before the absolute value.
    """
    layers = layers_of(model)
    gates = {layer.site: torch.ones(layer.n_heads, device=model.device, requires_grad=True) for layer in layers}
    edits = [gate(site, factor) for site, factor in gates.items()]
    samples: list[dict[Head, float]] = []
    steps = Steps("importance", len(inputs), progress, cancel)
    for task_input in inputs:
        loss = task.loss(model, [task_input], edits, training=False, cancel=cancel)
        slopes: Sequence[Tensor | None] = torch.autograd.grad(loss, list(gates.values()), allow_unused=True)
        samples.append(
            {
                site.head(index): 0.0 if slope is None else abs(float(slope[index]))
                for site, slope in zip(gates, slopes, strict=True)
                for index in range(len(gates[site]))
            }
        )
        steps.add()
    return mean_scores("importance", samples, {"loss": task.name})


def relevance(
    model: Model,
    task: LearningTask,
    inputs: Sequence[TaskInput],
    *,
    cancel: Cancel | None = None,
    progress: OnProgress | None = None,
) -> Scores:
    """Layer-wise relevance propagation, as a share of its layer: from the model's top answer at every step, or from the
    right class of a classifier.
    """
    labels = [task_input.labels for task_input in inputs]
    target = [int(label) for label in labels] if all(label.ndim == 0 for label in labels) else None
    sources = [task_input.inputs for task_input in inputs]
    return relevance_scores(model, sources, target=target, progress=progress, cancel=cancel)  # type: ignore[arg-type]


def confidence(
    model: Model,
    task: LearningTask,
    inputs: Sequence[TaskInput],
    *,
    cancel: Cancel | None = None,
    progress: OnProgress | None = None,
) -> Scores:
    """The mean largest weight of a query, without special tokens as keys (Voita et al., 2019, section 4)."""
    steps = Steps("confidence", len(inputs), progress, cancel)

    def traces():
        for task_input in inputs:
            stop_if(cancel)
            yield model.run(task_input.inputs, cancel=cancel)
            steps.add()

    return measure("confidence", traces())


_RANKINGS: dict[str, Rank] = {"importance": importance, "relevance": relevance, "confidence": confidence}
