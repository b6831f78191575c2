"""Importance: how much a loss depends on each head, by its gate's gradient or by taking the head out.

Gate gradients after Michel, Levy and Neubig (2019), equation 2: I_h = mean over inputs of |∂loss / ∂gate_h| at gate 1,
the absolute value taken input by input. Ablation is what the loss gains when a head's output becomes zero, or its mean.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headscope.analysis.attribution import logit_target
from headscope.analysis.attribution.logit_target import BATCH_SIZE, Question, Target
from headscope.analysis.statistics import mean_scores
from headscope.choices import Ablation
from headscope.errors import CaptureError, InputError
from headscope.interventions import At, Intervention
from headscope.interventions.edits import Mean
from headscope.models import Model
from headscope.models.capture.edit_checks import intervention_list
from headscope.progress import Cancel, OnProgress, Steps
from headscope.scores import Scores
from headscope.sites import Head, Site, find
from headscope.traces.tokens import TokenChoice


def gate_importance(
    model: Model,
    inputs: Any,
    *,
    target: Target | list[Target] | None = None,
    position: TokenChoice | None = None,
    interventions: Sequence[Intervention] = (),
    normalised: bool = False,
    batch_size: int = BATCH_SIZE,
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> Scores:
    """|∂loss / ∂gate| of every head, averaged over inputs, with bootstrap intervals.

    The loss of an input is the mean of −log p(target) over its positions; a list names a target for each input. Without
    one, it is that of the tokens that do come next (causal models, decoders), or of the model's own top answer (masked
    tokens, classes). `normalised` divides each layer by its Euclidean norm, as the paper does.

    >>> import headscope as hs
    >>> texts = ["The doctor asked the nurse a question. She", "The teacher asked the student a question. He"]
    >>> hs.analysis.gate_importance(hs.load("builtin:gpt"), texts).top(1)[0][0]
    Head('L0H7')
    """
    edits = _check_request(model, interventions)
    questions = _questions(model, inputs, target, position, edits, cancel)
    targets = logit_target.each_target(target, len(questions))
    samples: list[dict[Head, float]] = [{} for _ in questions]
    steps = Steps("gate importance", len(questions), progress)
    for places in logit_target.batches(model, questions, batch_size):
        gradients = _gate_gradients(
            model, [questions[place] for place in places], [targets[place] for place in places], edits, cancel
        )
        for place, sample in zip(places, gradients, strict=True):
            samples[place] = _in_model_order(model, sample)
        steps.add(len(places))
    if normalised:
        samples = [_unit_layers(sample) for sample in samples]
    return mean_scores("gate importance", samples, {"normalised": normalised})


def _gate_gradients(
    model: Model,
    questions: list[Question],
    targets: list[Target | None],
    edits: list[Intervention],
    cancel: Cancel | None,
) -> list[dict[Head, float]]:
    """|∂loss / ∂gate| of every head, for each question of a batch."""
    logits, session = logit_target.answer(model, questions, edits, grad=True, cancel=cancel)
    losses = torch.stack(
        [
            _loss(answers, _target(model, question, target, answers))
            for question, target, answers in zip(questions, targets, logits, strict=True)
        ]
    )
    mixed = {site: captured.mixed for site, captured in session.captured.items()}
    slopes = torch.autograd.grad(losses.sum(), list(mixed.values()), allow_unused=True)
    samples: list[dict[Head, float]] = [{} for _ in questions]
    for (site, outputs), slope in zip(mixed.items(), slopes, strict=True):
        # ∂loss/∂gate = Σ mixed · ∂loss/∂mixed, over positions and dimensions; examples do not touch each other.
        if outputs.shape[0] % len(questions):
            raise CaptureError("this model joins the inputs of a batch in one row: use batch_size=1.")
        products = torch.zeros_like(outputs) if slope is None else outputs.detach() * slope
        by_head = products.double().unflatten(0, (len(questions), -1)).sum((1, 3, 4)).abs()  # [example, head]
        for sample, values in zip(samples, by_head, strict=True):
            sample |= {site.head(index): float(value) for index, value in enumerate(values)}
    return samples


def ablation(
    model: Model,
    inputs: Any,
    *,
    by: Ablation = "zero",
    target: Target | list[Target] | None = None,
    position: TokenChoice | None = None,
    heads: Sequence[str | Head | Site] | None = None,
    interventions: Sequence[Intervention] = (),
    batch_size: int = BATCH_SIZE,
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> Scores:
    """What the loss gains when one head is taken out, for every head (or those given), averaged over inputs.

    The loss is that of `gate_importance`; with a target and a position it is minus one chosen log-probability. Zero is
    `hs.silence`, "mean" is `hs.mean_ablate`: the mean over the input's own tokens. Several heads share a pass;
    `progress` hears how many of all inputs × heads are done.
    """
    if by not in ("zero", "mean"):
        raise InputError(f"a head is ablated by 'zero' or 'mean', got {by!r}.")
    edits = _check_request(model, interventions)
    questions = _questions(model, inputs, target, position, edits, cancel)
    targets = logit_target.each_target(target, len(questions))
    chosen = model.heads if heads is None else [head for choice in heads for head in find(choice, model.heads)]
    chosen = list(dict.fromkeys(chosen))
    ids, whole = _whole_losses(model, questions, targets, edits, batch_size, cancel)
    samples: list[dict[Head, float]] = [{} for _ in questions]
    # Every pair of an input and a head is a row; rows of like length share a pass.
    pairs = [(place, head) for place in range(len(questions)) for head in chosen]
    steps = Steps("ablation", len(pairs), progress)
    for rows in logit_target.batches(model, [questions[place] for place, _ in pairs], batch_size):
        here = [pairs[row] for row in rows]
        out = _take_out(model, [head for _, head in here], by)
        logits, _ = logit_target.answer(model, [questions[place] for place, _ in here], [*edits, *out], cancel=cancel)
        for (place, head), answers in zip(here, logits, strict=True):
            samples[place][head] = float(_loss(answers, ids[place])) - whole[place]
        steps.add(len(rows))
    samples = [_in_model_order(model, sample) for sample in samples]
    return mean_scores(f"{by} ablation", samples, {"loss": float(np.mean(whole))})


def _whole_losses(
    model: Model,
    questions: list[Question],
    targets: list[Target | None],
    edits: list[Intervention],
    batch_size: int,
    cancel: Cancel | None,
) -> tuple[list[Tensor], list[float]]:
    """The target ids of every question, and the loss on them with no head taken out."""
    ids: list[Tensor] = [torch.empty(0)] * len(questions)
    losses = [0.0] * len(questions)
    for places in logit_target.batches(model, questions, batch_size):
        logits, _ = logit_target.answer(model, [questions[place] for place in places], edits, cancel=cancel)
        for place, answers in zip(places, logits, strict=True):
            ids[place] = _target(model, questions[place], targets[place], answers)
            losses[place] = float(_loss(answers, ids[place]))
    return ids, losses


@dataclass(frozen=True, eq=False)
class _TakeOut:
    """Takes one head out of each row of a batch, or none: `heads` [row] holds its index, −1 for none."""

    heads: Tensor
    by: str

    def __call__(self, x: Tensor, at: At) -> Tensor:
        """Mixed values [batch, head, row, dim] without those heads."""
        n_windows = x.shape[0] // len(self.heads)  # an image may be cut into windows
        index = self.heads.to(x.device).repeat_interleave(n_windows)
        is_out = (torch.arange(x.shape[1], device=x.device) == index[:, None])[:, :, None, None]
        return torch.where(is_out, Mean()(x, at) if self.by == "mean" else torch.zeros_like(x), x)


def _take_out(model: Model, heads: list[Head], by: str) -> list[Intervention]:
    """For each layer an edit that takes, of every row, the head that is that row's."""
    windowed = [layer.site for layer in model.layout.layers if layer.is_windowed]
    edits = []
    for site in dict.fromkeys(head.site for head in heads):
        if by == "mean" and site in windowed:
            raise CaptureError(f"{site} attends within windows of the image: its mean over tokens is not at hand.")
        index = torch.tensor([head.index if head.site == site else -1 for head in heads])
        edits.append(Intervention(site, "mixed", _TakeOut(index, by), label=f"analysis.ablation({site})"))
    return edits


def _check_request(model: Model, interventions: Sequence[Intervention]) -> list[Intervention]:
    if model.module.training:
        raise CaptureError("importance needs dropout off: call module.eval() first.")
    return intervention_list(interventions)


def _questions(
    model: Model,
    inputs: Any,
    target: Target | list[Target] | None,
    position: TokenChoice | None,
    edits: list[Intervention],
    cancel: Cancel | None,
) -> list[Question]:
    """The questions; without target and position, every token of a text that says what came next."""
    targets = target if isinstance(target, list) else [target]
    if any(isinstance(input_target, tuple) for input_target in targets):
        raise InputError("a loss is about one target: a contrast of two is for relevance.")
    says_next = target is None and position is None and (model.is_causal or model.is_encoder_decoder)
    questions = logit_target.ask(model, inputs, slice(None, -1) if says_next else position, edits, cancel=cancel)
    if any(says_next and not question.positions for question in questions):
        raise InputError("an input of one token says nothing of what comes next: give a longer one, or a target.")
    return questions


def _target(model: Model, question: Question, target: Target | None, logits: Tensor) -> Tensor:
    """The id whose probability counts at each position [position]."""
    tokens = question.tokens.get(question.stack)
    if target is None and question.positions and tokens is not None:
        following = [tokens[place + 1].id for place in question.positions if place + 1 < len(tokens)]
        can_follow = model.is_causal or model.is_encoder_decoder
        if can_follow and len(following) == len(question.positions) and None not in following:
            return torch.tensor(following, device=logits.device)
    return logit_target.target_ids(model, target, logits, question)[:, 0]


def _loss(logits: Tensor, ids: Tensor) -> Tensor:
    """The mean of −log p over positions."""
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return -wide.log_softmax(-1).gather(1, ids[:, None]).mean()


def _in_model_order(model: Model, values: dict[Head, float]) -> dict[Head, float]:
    return {head: values[head] for head in model.heads if head in values}


def _unit_layers(values: dict[Head, float]) -> dict[Head, float]:
    """Each layer divided by its Euclidean norm."""
    norms: dict[Site, float] = {}
    for head, value in values.items():
        norms[head.site] = float(np.hypot(norms.get(head.site, 0.0), value))
    return {head: value / (norms[head.site] or 1.0) for head, value in values.items()}
