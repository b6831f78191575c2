"""What the model answered: the most probable tokens or classes at the positions where it answers."""

from dataclasses import dataclass

import torch
from torch import Tensor

from headscope.traces.spans import span_of

N_KEPT = 50


@dataclass(frozen=True)
class Prediction:
    """One candidate: its text (a token, a class or a span of the text), id and log-probability.

    `span` is the first and the last token of a span, None for anything else.
    """

    text: str
    id: int
    logprob: float
    span: tuple[int, int] | None = None

    @property
    def probability(self) -> float:
        """Between 0 and 1."""
        return float(torch.tensor(self.logprob).exp())


@dataclass(frozen=True, eq=False)
class Predictions:
    """The top candidates at each answer position; ids and logprobs are [position, candidate].

    `positions` index the tokens of `stack`: the last one of a causal model, the masked ones of a masked model, every
    one of a decoder; empty for a classifier, which answers once. `are_spans`: candidates are spans of the text
    (`headscope.traces.spans`), with log p(start) + log p(end).
    """

    stack: str
    positions: tuple[int, ...]
    ids: Tensor
    logprobs: Tensor
    texts: tuple[tuple[str, ...], ...]
    are_spans: bool = False

    @classmethod
    def of(cls, logits: Tensor, *, stack: str, positions: tuple[int, ...], names) -> "Predictions":
        """The top candidates of logits [answer, candidate]; `names(id)` gives the text of an id."""
        logprobs, ids = logits.detach().float().log_softmax(-1).topk(min(N_KEPT, logits.shape[-1]), dim=-1)
        texts = tuple(tuple(names(int(candidate)) for candidate in row) for row in ids)
        return cls(stack, positions, ids.int().cpu(), logprobs.cpu(), texts)

    def top(self, k: int, answer: int = -1) -> list[Prediction]:
        """The k most probable candidates at one answer position (the last, unless said)."""
        rows = zip(self.texts[answer][:k], self.ids[answer][:k], self.logprobs[answer][:k], strict=True)
        return [
            Prediction(text, int(id), float(logprob), span_of(int(id)) if self.are_spans else None)
            for text, id, logprob in rows
        ]
