"""What edits did to the output: two runs of one input, compared in full at every position."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from headscope.analysis.attribution.logit_target import name_of
from headscope.arguments import instance
from headscope.attention.divergence import kullback_leibler_of_logs
from headscope.errors import InputError
from headscope.interventions import Intervention
from headscope.models import Model
from headscope.models.logits import output_logits
from headscope.models.spans import answers_with_spans
from headscope.progress import Cancel
from headscope.traces import Inputs, Trace

MOST_BYTES = 2**30
ROWS = 256


@dataclass(frozen=True)
class Shift:
    """One candidate: its text, its id, and its log-probability before and after."""

    text: str
    id: int
    before: float
    after: float


@dataclass(frozen=True, eq=False)
class Effect:
    """The output before and after, position by position.

    `positions` are those of `stack`'s tokens; empty for a classifier, which answers once. `kl` is the divergence of
    the output after the edits from that before, KL(before ‖ after) in nats [position]. `ids` are the candidates that
    were or became likely, the likeliest first, −1 where there are no more; `before` and `after` their
    log-probabilities [position, candidate], `names` their texts. `loss` is the mean negative log-probability of the
    text itself before and after, where the model predicts the text.
    """

    stack: str
    positions: tuple[int, ...]
    kl: Tensor
    ids: Tensor
    before: Tensor
    after: Tensor
    names: dict[int, str]
    loss: tuple[float, float] | None = None

    def __repr__(self) -> str:
        loss = "" if self.loss is None else f", loss {self.loss[0]:.3f} → {self.loss[1]:.3f}"
        kl = f"KL {float(self.kl.mean()):.4f} over {len(self.kl)} positions, {float(self.kl[-1]):.4f} at the last"
        return f"Effect({kl}{loss})"

    def predictions(self, k: int = 5, *, answer: int = -1) -> list[Shift]:
        """The k candidates that were or became likeliest: at the last position, unless another is asked for."""
        if k < 1 or not -len(self.ids) <= answer < len(self.ids):
            raise InputError(
                f"ask for at least one prediction at one of {len(self.ids)} positions, got {k} at {answer}."
            )
        rows = zip(self.ids[answer].tolist(), self.before[answer].tolist(), self.after[answer].tolist(), strict=True)
        return [
            Shift(self.names[candidate], candidate, before, after)
            for candidate, before, after in rows
            if candidate >= 0
        ][:k]


def effect(
    model: Model,
    source: Any,
    interventions: Sequence[Intervention],
    *,
    k: int = 5,
    cancel: Cancel | None = None,
) -> Effect:
    """Run an input (a text, or a trace or its inputs) with and without edits, and compare what the model answers.

    Where the logits of all positions would take more than a gigabyte, those of the last ones that fit are compared.
    """
    instance(model, Model, "the model", "hs.load gives one")
    inputs = source.inputs if isinstance(source, Trace) else source
    inputs = inputs if isinstance(inputs, Inputs) else model.read(inputs)
    if not isinstance(inputs, Inputs):
        raise InputError("effect compares one input at a time.")
    if inputs.needs_target:
        inputs = model.run(inputs, record="rows").inputs
        assert inputs is not None  # runs always keep them
    stack = _stack(inputs)
    n_tokens = len(inputs.tokens[stack])
    size = getattr(model.config, "vocab_size", None) or 1
    last = max(1, MOST_BYTES // (8 * size))
    last = last if last < n_tokens else None
    was = output_logits(model, inputs, (), last=last, cancel=cancel)
    now = output_logits(model, inputs, interventions, last=last, cancel=cancel)
    skipped = 1 if answers_with_spans(model) else 0  # what is no span
    rows = [
        _compare(was[first : first + ROWS], now[first : first + ROWS], k, skipped) for first in range(0, len(was), ROWS)
    ]
    kl, ids, before, after = (torch.cat(parts) for parts in zip(*rows, strict=True))
    is_by_token = len(was) == n_tokens or last is not None
    positions = tuple(range(n_tokens - len(was), n_tokens)) if is_by_token else ()
    loss = _loss(model, inputs, was, now) if len(was) == n_tokens else None
    names = {
        candidate: name_of(model, candidate, was.shape[-1], inputs.tokens[stack])
        for candidate in ids.unique().tolist()
        if candidate >= 0
    }
    return Effect(stack, positions, kl, ids, before, after, names, loss)


def _stack(inputs: Inputs) -> str:
    """Whose tokens the model answers at."""
    return next((stack for stack in ("decoder", "text") if stack in inputs.tokens), next(iter(inputs.tokens)))


def _compare(was: Tensor, now: Tensor, k: int, skipped: int = 0) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """KL, candidates, and their log-probabilities before and after, of some positions.

    The first `skipped` candidates count, and are not listed.
    """
    was, now = was.float().log_softmax(-1), now.float().log_softmax(-1)
    # What is impossible before adds nothing, though −inf times zero is no number.
    kl = kullback_leibler_of_logs(was, now)
    k = min(k, was.shape[-1] - skipped)
    old, new = (logits[:, skipped:].topk(k, -1).indices + skipped for logits in (was, now))
    is_new = ~(new[:, :, None] == old[:, None, :]).any(-1)
    ids = torch.cat([old, new], -1)
    before, after = was.gather(-1, ids), now.gather(-1, ids)
    is_first = torch.cat([torch.ones_like(old, dtype=torch.bool), is_new], -1)
    likeliest = torch.where(is_first, torch.maximum(before, after), float("-inf"))
    order = likeliest.argsort(dim=-1, descending=True, stable=True)
    ids = torch.where(is_first, ids, -1).gather(-1, order).int()
    return kl.cpu(), ids.cpu(), before.gather(-1, order).cpu(), after.gather(-1, order).cpu()


def _loss(model: Model, inputs: Inputs, was: Tensor, now: Tensor) -> tuple[float, float] | None:
    """How badly the text itself was predicted, before and after; None where it is not what the model predicts."""
    name = "decoder_input_ids" if model.is_encoder_decoder else "input_ids" if model.is_causal else ""
    ids = inputs.model_inputs.get(name)
    if ids is None or len(ids) != len(was) or len(ids) < 2:
        return None

    def of(logits: Tensor) -> float:
        return float(torch.nn.functional.cross_entropy(logits[:-1].float(), ids[1:].to(logits.device)))

    return of(was), of(now)
