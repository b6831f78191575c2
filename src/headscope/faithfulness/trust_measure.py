"""The tests of every head as a measure of a run: one value per head, text and figure, kept shard by shard."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, Literal

import torch

from headscope.analysis.attribution.logit_target import Question
from headscope.choices import TrustTask as TaskName
from headscope.errors import BudgetError, InputError
from headscope.faithfulness.head_tests import FiguresByHead, HeadTests, References, head_figures
from headscope.faithfulness.questions import question_of
from headscope.models import Model
from headscope.progress import Cancel, OnProgress
from headscope.runs import Measure, Tally
from headscope.runs.batch import CorpusBatch
from headscope.runs.measure import Refusal, Tallies
from headscope.sites import Head

# What is replaced together: a head, all heads of a layer, or all heads of the model.
Scope = Literal["heads", "layers", "model"]
REASON = "reason/"
YARDSTICK = "yardstick"


class TrustMeasure(Measure):
    """See `head_figures`. Layers and the whole model go by the name of their first head."""

    def __init__(
        self,
        scope: Scope,
        task: TaskName,
        tests: HeadTests,
        *,
        heads: Sequence[Head] | None = None,
        progress: OnProgress | None = None,
        cancel: Cancel | None = None,
    ):
        self.name = scope
        self.scope: Scope = scope
        self.task: TaskName = task
        self.tests, self.heads = tests, heads
        self.progress, self.cancel = progress, cancel
        self.settings: dict[str, Any] = {"task": task, **asdict(tests)}
        self.settings["heads"] = None if heads is None else list(map(str, heads))

    def start(self, model: Model) -> None:
        """Find the groups of heads that are replaced together."""
        self.model, self.groups = model, head_groups(model, self.scope, self.heads)

    def update(self, batch: CorpusBatch) -> Tallies:
        """Test every text of a batch."""
        for place, inputs, example in zip(batch.places, batch.inputs, batch.examples, strict=True):
            try:
                question = question_of(self.model, self.task, inputs, example, seed=self.tests.seed)
                # The measures of a run share what does not depend on heads.
                make = partial(References.of, self.model, question, self.tests.removal, cancel=self.cancel)
                references = batch.once(("references", place, self.tests.removal), make)
                figures = self._figures(question, references)
            except (InputError, BudgetError) as problem:
                yield Refusal(str(problem))
                continue
            yield from self._tallies(place, figures)

    def _figures(self, question: Question, references: References) -> FiguresByHead:
        options: dict[str, Any] = {"references": references, "progress": self.progress, "cancel": self.cancel}
        return head_figures(self.model, question, self.groups, self.tests, search=self.scope == "heads", **options)

    def _tallies(self, place: int, figures: FiguresByHead) -> Iterator[Tally]:
        by_name = figures.by_name | {YARDSTICK: torch.full((len(figures.heads),), figures.yardstick)}
        for name, values in by_name.items():
            is_tested = values.isfinite()
            totals, counts = torch.where(is_tested, values, 0.0)[None].double(), is_tested[None].double()
            yield Tally(figures.heads, [place], totals.numpy(), counts.numpy(), key=name)
        for head, reason in figures.reasons.items():
            yield Tally([head], [place], [[1.0]], [[1.0]], key=REASON + reason)


def head_groups(model: Model, scope: Scope, heads: Sequence[Head] | None = None) -> list[list[Head]]:
    """The heads that are replaced together: these heads, the layers that they are in, or all heads of the model."""
    chosen = list(model.heads if heads is None else heads)
    if scope == "heads":
        return [[head] for head in chosen]
    if scope == "model":
        return [list(model.heads)]
    sites = dict.fromkeys(head.site for head in chosen)
    return [[head for head in model.heads if head.site == site] for site in sites]
