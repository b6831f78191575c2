"""What tokens of an input an answer of a model depends on: gradient × input, leave-one-out, and sets of tokens left
out. None of it depends on a head, so it is worked out once for all heads.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from headscope.analysis.attribution.logit_target import Question
from headscope.choices import Removal
from headscope.errors import CaptureError, InputError
from headscope.faithfulness.model_attention import LetGo, answer_probabilities
from headscope.faithfulness.questions import countable_tokens, with_inputs
from headscope.faithfulness.token_importance import gradient_times_input, leave_one_out
from headscope.faithfulness.token_selection import remove_tokens
from headscope.interventions import Intervention, edit
from headscope.models import Model
from headscope.models.capture.passes import Pass
from headscope.models.capture.recorder import Captured
from headscope.models.capture.session import Observer
from headscope.progress import Cancel
from headscope.sites import Site

# Positions of one pass, padding there is none.
_MOST_POSITIONS = 2048


class AnswerTokens:
    """An answer, the probability of which is p; `top` is the class or token that the model answers."""

    def __init__(
        self,
        model: Model,
        question: Question,
        *,
        removal: Removal = "delete",
        interventions: Sequence[Intervention] = (),
        cancel: Cancel | None = None,
    ):
        self.model, self.question = model, question
        self.removal: Removal = removal
        self.interventions, self.cancel = list(interventions), cancel
        self.tokens = question.tokens[question.stack]
        self.countable = torch.zeros(len(self.tokens), dtype=torch.bool)
        self.countable[countable_tokens(question)] = True
        self._without: dict[tuple[int, ...], Tensor] = {}
        self.before = self.without([()])[0]
        self.top = int(self.before.argmax())

    def without(self, sets: Sequence[Sequence[int]]) -> Tensor:
        """The probabilities without each of these sets of tokens [set, class]; each set is run once."""
        keys = [tuple(sorted(tokens)) for tokens in sets]
        new = sorted(set(keys) - self._without.keys(), key=lambda places: (len(places), places))
        by_length: dict[int, list[tuple[int, ...]]] = {}
        for places in new:
            by_length.setdefault(0 if self.removal != "delete" else len(places), []).append(places)
        for group in by_length.values():
            step = max(1, _MOST_POSITIONS // len(self.tokens))
            for first in range(0, len(group), step):
                chosen = group[first : first + step]
                self._without |= dict(zip(chosen, self._run(chosen), strict=True))
        return torch.stack([self._without[key] for key in keys])

    def left_out(self) -> Tensor:
        """Leave-one-out [token]: how far the output moves without each countable token, 0 for others."""
        places = self.countable.nonzero()[:, 0].tolist()
        importance = torch.zeros(len(self.tokens))
        if places:
            changes = leave_one_out(self.before[None], self.without([(place,) for place in places])[None])[0]
            importance[places] = changes.cpu()
        return importance

    def probability(self, remaining: Tensor) -> Tensor:
        """The probability of the model's answer [copy, batch] with `remaining` tokens only [copy, batch, token]."""
        rows = remaining.flatten(0, 1)
        sets = [tuple((~row).nonzero()[:, 0].tolist()) for row in rows]
        return self.without(sets)[:, self.top].cpu().unflatten(0, remaining.shape[:2])

    def gradient(self) -> tuple[Tensor, list[int]]:
        """Gradient × input [token] with all attention patterns held fixed, and the positions that the answer reads.

        The input is the residual stream that enters the first layer: word, position and type together. A classifier
        reads the positions where the output of the last layer's attention matters; else it is the answer's own.
        """
        embedding = _Embedding(self.model, self.question.stack)
        n_tokens = len(self.tokens)
        passed = Pass.of(self.model, [self.question.inputs], [*self.interventions, *embedding.edits]).run(
            exact=True, grad=True, training=False, observers=[embedding], cancel=self.cancel
        )
        probability = answer_probabilities(self.model, self.question, passed.logits, n_tokens)[:, self.top]
        if embedding.embeddings is None or embedding.mixed is None:
            raise CaptureError(f"the residual stream of {self.model.name} was not seen on its way into the layers.")
        if self.question.positions:
            reads = list(self.question.positions)
        else:
            slope = torch.autograd.grad(probability.sum(), embedding.mixed, retain_graph=True, allow_unused=True)[0]
            matters = torch.zeros(n_tokens) if slope is None else slope.abs().amax((0, 1, 3))
            reads = matters.nonzero()[:, 0].tolist()
        if not reads:
            raise InputError(f"this answer of {self.model.name} does not depend on the attention of its last layer.")
        importance = gradient_times_input(probability, embedding.embeddings)
        return importance.reshape(-1)[-n_tokens:].cpu(), reads

    def _run(self, sets: Sequence[tuple[int, ...]]) -> Tensor:
        """The probabilities without sets of one size, in one pass."""
        inputs = [
            remove_tokens(self.model, self.question.inputs, self.question.stack, places, self.removal) if places
            else self.question.inputs
            for places in sets
        ]  # fmt: skip
        n_tokens = len(inputs[0].tokens[self.question.stack])
        is_last = self.question.positions == (len(self.tokens) - 1,)
        logits = (
            Pass.of(self.model, inputs, self.interventions)
            .run(exact=True, training=False, logits="answers" if is_last else "all", cancel=self.cancel)
            .logits
        )
        if not self.question.positions:
            return answer_probabilities(self.model, self.question, logits, n_tokens)
        # Where tokens before the answer are deleted, it moves up; each set has its own place.
        rows = []
        for row, places in enumerate(sets):
            n_before = sum(place < self.question.positions[0] for place in places) if self.removal == "delete" else 0
            moved = with_inputs(self.question, inputs[row], [self.question.positions[0] - n_before])
            rows.append(
                answer_probabilities(self.model, moved, None if logits is None else logits[row][None], n_tokens)
            )
        return torch.cat(rows)


class _Embedding(Observer):
    """The input of the first layer with a gradient, patterns without, and what the last layer's attention gave."""

    def __init__(self, model: Model, stack: str):
        first = min((site for site in model.layout.blocks if site.stack in (stack, "main")), default=None)
        if first is None:
            raise CaptureError(
                f"where the residual stream enters the layers of {model.name} was not found: gradient × input needs it."
            )
        own = [layer.site for layer in model.layout.layers if layer.site.stack == first.stack]
        self.last, self.embeddings, self.mixed = max(own), None, None
        stream = Site(first.stack, first.layer, "residual")
        self.edits = [edit(stream, "residual", self._begin), *(edit(site, "pattern", _detach) for site in own)]

    embeddings: Tensor | None
    mixed: Tensor | None

    def layer(self, captured: Captured) -> None:
        """Keep the last layer's output, and let the rest go."""
        if captured.layer.site == self.last:
            self.mixed = captured.mixed
        LetGo().layer(captured)

    def _begin(self, x: Tensor) -> Tensor:
        leaf = x.detach().requires_grad_()
        self.embeddings = leaf[:, 0]
        return self.embeddings[:, None]


def _detach(pattern: Tensor) -> Tensor:
    return pattern.detach()
