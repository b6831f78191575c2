"""One answer of a model as a function of the attention of its heads: what the tests of `AttentionRows` are given.

Rows of one head, or of several heads that are replaced together, are one group. Groups share passes: the input is
repeated, and in each copy another group has other rows. Without gradients memory is bounded by `CELLS` whatever the
number of heads; with them `most_copies_with_gradient` says how many copies fit.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import get_args

import torch
from torch import Tensor, nn

from headscope.analysis.attribution.logit_target import Question
from headscope.choices import QueryRows
from headscope.errors import BudgetError, CaptureError, InputError
from headscope.faithfulness.attention_rows import AttentionRows
from headscope.interventions import Intervention, edit
from headscope.models import Model
from headscope.models.capture.passes import Pass
from headscope.models.capture.recorder import Captured
from headscope.models.capture.session import Observer
from headscope.progress import Cancel
from headscope.sites import Head, Site

# Cells of head × query × key that are held at once, in a layer or in all rows of the groups.
CELLS = 2**24
# Cells of activations that a pass with gradients may hold for the backward pass: 512 MiB in float32.
_GRAPH_CELLS = 2**27
# Copies of an input in one pass: beyond this a pass is no faster per copy.
_MOST_COPIES = 64


class ModelAttention:
    """The rows of some groups of heads in one input, and the answer that follows from other rows.

    `rows.pattern` is [group, head × query, key]; `answer` takes [copy, group, head × query, key] and gives
    probabilities [copy, group, class]. `queries` are the positions whose rows are replaced.
    """

    def __init__(
        self,
        model: Model,
        question: Question,
        groups: Sequence[Sequence[Head]],
        queries: Sequence[int],
        *,
        interventions: Sequence[Intervention] = (),
        cancel: Cancel | None = None,
    ):
        self.model, self.question, self.cancel = model, question, cancel
        self.groups = [list(group) for group in groups]
        self.queries = torch.tensor(list(queries))
        self.interventions = list(interventions)
        self.n_tokens = len(question.tokens[question.stack])
        sizes = {len(group) for group in self.groups}
        if len(sizes) != 1:
            raise InputError("groups of heads must all have as many heads.")
        for head in {head for group in self.groups for head in group}:
            if (reason := untestable(model, question, head)) is not None:
                raise CaptureError(f"{head} cannot be tested: {reason}.")
        n_cells = sum(map(len, self.groups)) * len(self.queries) * self.n_tokens
        if n_cells > CELLS:
            raise BudgetError(
                f"the rows of these heads have {n_cells:,} cells, more than {CELLS:,}: give fewer heads at once, or "
                "replace the rows of the answer only."
            )
        self.rows, self.before = self._read()

    def answer(self, patterns: Tensor) -> Tensor:
        """The probabilities [copy, group, class] with these rows in place; with a gradient if the rows have one."""
        n_copies, n_groups = patterns.shape[:2]
        flat = patterns.flatten(0, 1)
        parts = []
        for places in self._chunks(len(flat)):
            group_of = torch.arange(places.start, places.stop) % n_groups
            edits = self._replacing(flat[places], group_of)
            parts.append(self._probabilities(len(group_of), edits, grad=patterns.requires_grad))
        return torch.cat(parts).unflatten(0, (n_copies, n_groups))

    @property
    def most_copies_with_gradient(self) -> int:
        """How many copies may be held until the backward pass: `answer` holds what all of its passes leave behind."""
        layers = self.model.layout.layers
        width = getattr(self.model.config, "hidden_size", None) or 1024
        n_heads = max(layer.n_heads for layer in layers)
        # A layer leaves about 16 vectors for each token (4 of them in its MLP's width), and 4 maps for each head.
        n_cells = len(layers) * self.n_tokens * (16 * width + 4 * n_heads * self.n_tokens)
        return max(1, _GRAPH_CELLS // n_cells)

    def part(self, places: Sequence[int]) -> "ModelAttention":
        """The same of some of its groups."""
        smaller = copy.copy(self)
        smaller.groups = [self.groups[place] for place in places]
        smaller.rows = self.rows.part(places)
        return smaller

    def silenced(self) -> Tensor:
        """The probabilities with the output of each group's heads set to zero, for every query [group, class]."""
        parts = []
        for places in self._chunks(len(self.groups)):
            group_of = torch.arange(places.start, places.stop)
            parts.append(self._probabilities(len(group_of), self._silencing(group_of)))
        return torch.cat(parts)

    def _read(self) -> tuple[AttentionRows, Tensor]:
        """The rows as they are, and the answer."""
        seen: dict[tuple[Site, str], Tensor] = {}
        queries = self.queries

        def keep(site: Site, stage: str) -> Callable[[Tensor], Tensor]:
            def read(x: Tensor) -> Tensor:
                values = x.detach()[0, :, queries.to(x.device)]
                seen[site, stage] = values if stage == "pattern" else values > torch.finfo(x.dtype).min
                return x

            return read

        sites = {head.site for group in self.groups for head in group}
        edits = [edit(site, stage, keep(site, stage)) for site in sites for stage in ("scores", "pattern")]
        before = self._probabilities(1, edits)[0]
        stacked = {
            stage: torch.stack(
                [torch.cat([seen[head.site, stage][head.index] for head in group]) for group in self.groups]
            )
            for stage in ("pattern", "scores")
        }
        pattern, visible = stacked["pattern"].float(), stacked["scores"]
        tokens = self.question.tokens[self.question.stack]
        plain = torch.tensor([not token.special for token in tokens], device=pattern.device)
        own = queries.to(pattern.device).repeat(len(self.groups[0])).expand(len(self.groups), -1)
        movable = plain.expand(len(self.groups), -1)
        return AttentionRows(pattern, visible, movable=movable, own=own), before

    def _probabilities(self, n: int, edits: Sequence[Intervention], *, grad: bool = False) -> Tensor:
        """The answer of n copies of the input [copy, class]."""
        with _frozen(self.model.module) if grad else nullcontext():
            passed = Pass.of(self.model, [self.question.inputs] * n, [*self.interventions, *edits]).run(
                exact=True,
                grad=grad,
                training=False,
                logits="answers" if self.question.positions == (self.n_tokens - 1,) else "all",
                observers=[LetGo()] if grad else (),
                cancel=self.cancel,
            )
        return answer_probabilities(self.model, self.question, passed.logits, self.n_tokens)

    def _replacing(self, weights: Tensor, group_of: Tensor) -> list[Intervention]:
        """Edits that put rows in place: those of copy n are the rows of group `group_of[n]`."""

        def put(site: Site) -> Callable[[Tensor], Tensor]:
            copies, heads, of_group = self._where(site, group_of)

            def replace_rows(x: Tensor) -> Tensor:
                places = torch.arange(len(self.queries)) + of_group[:, None] * len(self.queries)
                new = weights[copies[:, None], places].to(x)  # [changed head, query, key]
                where = (copies[:, None], heads[:, None], self.queries[None])
                return x.index_put(tuple(index.to(x.device) for index in where), new)

            return replace_rows

        return [edit(site, "pattern", put(site)) for site in self._sites(group_of)]

    def _silencing(self, group_of: Tensor) -> list[Intervention]:
        """Edits that set the output of each copy's heads to zero."""

        def silence(site: Site) -> Callable[[Tensor], Tensor]:
            copies, heads, _ = self._where(site, group_of)

            def zero(x: Tensor) -> Tensor:
                return x.index_put((copies.to(x.device), heads.to(x.device)), x.new_zeros(()))

            return zero

        return [edit(site, "mixed", silence(site)) for site in self._sites(group_of)]

    def _sites(self, group_of: Tensor) -> list[Site]:
        groups = [self.groups[group] for group in group_of.unique().tolist()]
        return list(dict.fromkeys(head.site for group in groups for head in group))

    def _where(self, site: Site, group_of: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The copies in which a head of this layer is changed, which head, and which one of its group."""
        changes = [
            (copy, head.index, place)
            for copy, group in enumerate(group_of.tolist())
            for place, head in enumerate(self.groups[group])
            if head.site == site
        ]
        copies, heads, places = torch.tensor(changes).T
        return copies, heads, places

    def _chunks(self, n: int) -> Iterator[slice]:
        """Copies that share a pass: a layer's patterns of all of them, and their logits, are held at once."""
        most_heads = max(layer.n_heads for layer in self.model.layout.layers)
        n_logits = self.n_tokens * (
            getattr(self.model.config, "vocab_size", None) or 1 if self.question.positions else 1
        )
        step = max(1, min(_MOST_COPIES, CELLS // (most_heads * self.n_tokens**2), 4 * CELLS // n_logits))
        return (slice(first, min(first + step, n)) for first in range(0, n, step))


@contextmanager
def _frozen(module: nn.Module) -> Iterator[None]:
    """No parameter needs a gradient inside, so that a graph holds none of what their gradients would need."""
    needing = [parameter for parameter in module.parameters() if parameter.requires_grad]
    try:
        for parameter in needing:
            parameter.requires_grad_(False)
        yield
    finally:
        for parameter in needing:
            parameter.requires_grad_(True)


class LetGo(Observer):
    """Drops what a session with gradients would hold of every layer: autograd holds what it needs by itself."""

    def layer(self, captured: Captured) -> None:
        """Forget the layer's tensors."""
        captured.let_go()


def answer_probabilities(model: Model, question: Question, logits: Tensor | None, n_tokens: int) -> Tensor:
    """The probabilities of the explained answer [copy, class], from the logits of copies without padding."""
    if logits is None:
        raise InputError(f"{model.name} gives no logits: there is no answer to explain.")
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
    if wide.ndim == 2:
        return wide.softmax(-1)
    return wide[:, question.positions[0] - n_tokens].softmax(-1)


def untestable(model: Model, question: Question, head: Head) -> str | None:
    """Why the rows of a head cannot be replaced in this input; None where they can."""
    layer = next(layer for layer in model.layout.layers if layer.site == head.site)
    if head.kind != "self" or head.stack not in (question.stack, "main"):
        return "it does not attend within the text that is explained"
    if layer.is_windowed or layer.is_looped or layer.head_modules:
        return "its module attends window by window or head by head"
    return None


def check_query_rows(query_rows: str) -> None:
    """Refuse another word than "answer" or "all"."""
    if query_rows not in get_args(QueryRows):
        raise InputError(f"query_rows is 'answer' or 'all', got {query_rows!r}.")
