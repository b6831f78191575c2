"""Another attention with the same output: patterns found by gradient descent for each input (Jain & Wallace, 2019)."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from headscope.attention.divergence import jensen_shannon
from headscope.errors import InputError
from headscope.faithfulness.attention_rows import Answer, AttentionRows
from headscope.faithfulness.output_changes import answer_as_is, output_change
from headscope.progress import Cancel, OnProgress, Steps


@dataclass(frozen=True)
class AdversaryOptions:
    """How adversarial patterns are searched for; defaults are the paper's.

    `patterns` per input start from uniform logits with noise of deviation `noise`, and take `steps` of Adam (AMSGrad)
    at `rate`. Output changes above `tolerance` are penalised `penalty` times; those up to `epsilon` count as the same
    output.
    """

    patterns: int = 5
    steps: int = 500
    rate: float = 0.01
    tolerance: float = 0.01
    epsilon: float = 0.05
    penalty: float = 500.0
    noise: float = 3.0

    def __post_init__(self):
        if self.patterns < 1 or self.steps < 1:
            raise InputError(f"an adversary has at least one pattern and step, got {self.patterns} and {self.steps}.")
        if not 0 <= self.tolerance <= self.epsilon <= 1:
            raise InputError(f"0 ≤ tolerance ≤ epsilon ≤ 1 must hold, got {self.tolerance} and {self.epsilon}.")


@dataclass(frozen=True, eq=False)
class Adversaries:
    """The patterns found [copy, batch, row, key], how far each is (JSD in nats) and how far the output moved
    [copy, batch]; `reachable` [batch] is the largest JSD that any pattern could have from this one.
    """

    patterns: Tensor
    divergence: Tensor
    change: Tensor
    reachable: Tensor
    epsilon: float

    @property
    def epsilon_max_divergence(self) -> Tensor:
        """The largest JSD among patterns whose output moved by at most ε [batch]; 0 if there is none."""
        return epsilon_max(self.divergence, self.change, self.epsilon)

    @property
    def share_of_reachable(self) -> Tensor:
        """The same as a share of the largest JSD that these rows allow [batch]."""
        return self.epsilon_max_divergence / self.reachable.clamp_min(torch.finfo(self.reachable.dtype).tiny)


def epsilon_max(divergence: Tensor, change: Tensor, epsilon: float) -> Tensor:
    """The largest divergence [copy, batch] among copies that change the output by at most ε [batch]; at least 0."""
    return torch.where(change <= epsilon, divergence, 0.0).amax(0)


def row_divergence(rows: AttentionRows, patterns: Tensor) -> Tensor:
    """JSD of patterns [..., batch, row, key] from the rows as they are, the mean over real rows [..., batch]."""
    return rows.mean_over_rows(jensen_shannon(rows.pattern.expand_as(patterns), patterns, mask=rows.visible))


def reachable_divergence(rows: AttentionRows) -> Tensor:
    """The largest JSD that any pattern has from these rows [batch]: all weight on the visible key with the least.

    JSD is convex in the other pattern, so its maximum is at a corner; the corner with the least weight is furthest.
    """
    least = torch.where(rows.visible, rows.pattern, math.inf).argmin(-1)
    corners = torch.nn.functional.one_hot(least, rows.pattern.shape[-1]).to(rows.pattern)
    return row_divergence(rows, corners)


def adversaries(
    rows: AttentionRows,
    answer: Answer,
    options: AdversaryOptions | None = None,
    *,
    seed: int = 0,
    before: Tensor | None = None,
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> Adversaries:
    """Search patterns that are far from the rows and from each other, with the same output.

    Minimises Σ_k [−JSD(a_k, a) + penalty · max(0, |Δy| − tolerance)] − mean JSD(a_i, a_j), with |Δy| the total
    variation of the output. The model stays as it is.
    """
    options = options or AdversaryOptions()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        before = answer_as_is(rows, answer) if before is None else before
    shape = (options.patterns, *rows.pattern.shape)
    noise = torch.randn(shape, generator=generator).to(rows.pattern)
    counts = rows.visible.sum(-1, keepdim=True).clamp_min(1).to(rows.pattern)
    logits = (-counts.log() + options.noise * noise).requires_grad_()
    optimizer = torch.optim.Adam([logits], lr=options.rate, amsgrad=True)
    steps = Steps("adversary", options.steps, progress, cancel)
    for _ in range(options.steps):
        steps.next()
        with torch.enable_grad():
            patterns = _patterns(rows, logits)
            change = output_change(before, answer(patterns), rows.answered)
            far = row_divergence(rows, patterns)
            loss = (options.penalty * (change - options.tolerance).clamp_min(0.0) - far).sum() - _spread(rows, patterns)
        logits.grad = torch.autograd.grad(loss, logits)[0]
        optimizer.step()
    with torch.no_grad():
        patterns = _patterns(rows, logits)
        change = output_change(before, answer(patterns), rows.answered)
        divergence = row_divergence(rows, patterns)
    return Adversaries(patterns, divergence, change, reachable_divergence(rows), options.epsilon)


def _patterns(rows: AttentionRows, logits: Tensor) -> Tensor:
    """Rows that sum to 1 over visible keys; rows that see nothing, or are padding, as they are."""
    sees = rows.visible.any(-1, keepdim=True) if rows.real is None else rows.real[..., None]
    hidden = ~rows.visible & rows.visible.any(-1, keepdim=True)
    weights = logits.masked_fill(hidden, -math.inf).softmax(-1)
    return torch.where(sees, weights, rows.pattern)


def _spread(rows: AttentionRows, patterns: Tensor) -> Tensor:
    """The mean JSD between every two patterns of an input, summed over inputs."""
    n = len(patterns)
    if n < 2:
        return patterns.new_zeros(())
    first, second = torch.triu_indices(n, n, offset=1, device=patterns.device)
    divergence = jensen_shannon(patterns[first], patterns[second], mask=rows.visible)
    return rows.mean_over_rows(divergence).mean(0).sum()
