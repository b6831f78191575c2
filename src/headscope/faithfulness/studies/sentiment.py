"""The sentiment study: Jain & Wallace's tests and Wiegreffe & Pinter's answers to them, on a BiLSTM, a Transformer, and
words without context.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from headscope.errors import InputError
from headscope.faithfulness.adversary import AdversaryOptions
from headscope.faithfulness.studies.classifier_tasks import (
    BaseAnswers,
    ClassifierOptions,
    GoldLabels,
    uniform_attention,
)
from headscope.faithfulness.studies.classifier_tests import classifier_tests
from headscope.faithfulness.studies.sentiment_data import SentimentData, TextBatch
from headscope.faithfulness.studies.stack_parts import Parameters, pick, seeds_at_once, stack, training_device
from headscope.faithfulness.studies.stack_training import Rows, TrainedStack, train_stack
from headscope.faithfulness.studies.stacked_classifier import ClassifierShape, Encoder, classify, draw_classifier
from headscope.faithfulness.studies.study_folder import StudyFolder, stack_name
from headscope.progress import Cancel, OnProgress
from headscope.tasks.task_data import Columns

_FIRST_ADVERSARY, _FIRST_GUIDED = 1000, 2000
Lines = list[dict[str, Any]]
# Whose words know their context; they have other seeds, uniform attention and adversaries.
ENCODERS: tuple[Encoder, ...] = ("bilstm", "transformer")
# Which attention guides a classifier without context.
GUIDES = ("uniform", *(f"{encoder} {model}" for encoder in ENCODERS for model in ("base", "adversary")))
# An adversary guides that moves the answers by at most this (TVD on dev), the furthest of them.
SAME_ANSWERS = 0.05


@dataclass(frozen=True)
class SentimentOptions:
    """The size of the study. `tested` is the number of test texts of the tests per text; `limit` the greatest number
    of texts of each file, for a trial run.
    """

    seeds: int = 8
    average_seeds: int = 1
    lambdas: tuple[float, ...] = (1e-4, 5e-4, 1e-3, 5e-3, 2e-2)
    epochs: int = 8
    adversary_epochs: int = 20
    tested: int = 500
    limit: int | None = None
    inputs: int = 300
    classifier: ClassifierOptions = field(default_factory=ClassifierOptions)
    adversary: AdversaryOptions = field(default_factory=AdversaryOptions)

    def __post_init__(self):
        counts = {"seeds": self.seeds, "average_seeds": self.average_seeds, "tested": self.tested}
        for name, n in {**counts, "epochs": self.epochs, "adversary_epochs": self.adversary_epochs}.items():
            if n < 1:
                raise InputError(f"{name} is at least 1, got {n}.")
        if not self.lambdas or min(self.lambdas) <= 0:
            raise InputError(f"the adversaries need values of λ above 0, got {self.lambdas}.")


@dataclass(frozen=True)
class SentimentResult:
    """What came out: a line for each classifier, and the tests per text of the base of each encoder."""

    settings: dict[str, Any]
    configuration: str
    n_texts: dict[str, int]
    lines: tuple[dict[str, Any], ...]
    texts: dict[str, list[dict[str, Any]]]

    def of(self, kind: str, encoder: str | None = None) -> list[dict[str, Any]]:
        """The lines of a kind ("base", "uniform", "adversary" or "guided"), of an encoder."""
        return [line for line in self.lines if line["kind"] == kind and encoder in (None, line["encoder"])]


def train_classifiers(
    train: Any,
    dev: Any,
    test: Any,
    vectors: Any,
    folder: Path | str,
    options: SentimentOptions | None = None,
    *,
    columns: Columns | None = None,
    device: str | None = None,
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> SentimentResult:
    """Train and test the classifiers on a device ("cpu", "cuda"); run again with the same folder to resume, or with
    more seeds to add them.
    """
    place = training_device(device)
    options = options or SentimentOptions()
    about_data = {"columns": columns, "size": options.inputs, "limit": options.limit, "device": place}
    data = SentimentData((train, dev, test), vectors, **about_data)
    settings = {name: value for name, value in asdict(options).items() if name not in ("seeds", "average_seeds")}
    study = StudyFolder(folder, {"study": "sentiment", **settings, "data": data.checksum})
    study.begin()
    return SentimentRun(data, options, study, progress, cancel).run()


class SentimentRun:
    """The study while it runs."""

    def __init__(
        self,
        data: SentimentData,
        options: SentimentOptions,
        study: StudyFolder,
        progress: OnProgress | None = None,
        cancel: Cancel | None = None,
    ):
        self.data, self.options, self.study = data, options, study
        self.progress, self.cancel = progress, cancel
        self.bases: dict[str, Parameters] = {}
        self.lines: Lines = []

    def run(self) -> SentimentResult:
        """Everything, in the order in which it depends on what came before."""
        guides: dict[str, Parameters | None] = {"uniform": None}
        texts = {}
        for encoder in ENCODERS:
            self._base(encoder, self.options.seeds)
            texts[encoder] = self._tests(encoder, self.bases[encoder])
            adversary = self._adversaries(encoder)
            guides |= {f"{encoder} base": self.bases[encoder], f"{encoder} adversary": adversary}
            self._uniform(encoder)
        self._base("average", self.options.average_seeds)
        texts["average"] = self._tests("average", self.bases["average"])
        self._guided(guides)
        sizes = {name: len(getattr(self.data, name)) for name in ("train", "dev", "test")}
        return SentimentResult(self.study.settings, self.study.configuration, sizes, tuple(self.lines), texts)

    # Stacks

    def _base(self, encoder: Encoder, n_seeds: int) -> None:
        """Classifiers that attend as they learn to; that of seed 0 is the base."""
        name = f"{encoder}-base"
        for seeds in self.study.seed_groups(name, n_seeds, seeds_at_once(self.data.device)):
            stack_of_seeds = stack_name(name, seeds)
            names = [f"{encoder} s{seed}" for seed in seeds]
            task = GoldLabels(self.data, self.options.classifier, seed=seeds[0])
            trained = self._train(stack_of_seeds, names, encoder, [*seeds], task, self.options.epochs)
            self.bases.setdefault(encoder, pick(trained.best, 0))
            about = [{"kind": "base", "encoder": encoder, "seed": seed} for seed in seeds]
            self._finish(stack_of_seeds, trained, task, about)

    def _uniform(self, encoder: Encoder) -> None:
        name = f"{encoder}-uniform"
        task = GoldLabels(self.data, self.options.classifier, uniform_attention)
        trained = self._train(name, [f"{encoder} uniform s0"], encoder, [0], task, self.options.epochs)
        self._finish(name, trained, task, [{"kind": "uniform", "encoder": encoder, "seed": 0}])

    def _adversaries(self, encoder: Encoder) -> Parameters:
        """Classifiers with other attention and the base's answers, one for each λ; gives the one that guides."""
        lambdas, seed, name = self.options.lambdas, _FIRST_ADVERSARY, f"{encoder}-adversary"
        task = BaseAnswers(self.data, self.options.classifier, self.bases[encoder], lambdas, seed=seed)
        names = [f"{encoder} adversary λ={weight:g}" for weight in lambdas]
        epochs = self.options.adversary_epochs
        trained = self._train(name, names, encoder, [seed] * len(lambdas), task, epochs)
        about = [{"kind": "adversary", "encoder": encoder, "lambda": weight} for weight in lambdas]
        self._finish(name, trained, task, about)
        rows = [trained.history[epoch - 1][model] for model, epoch in enumerate(trained.best_epochs)]
        near = [model for model, row in enumerate(rows) if row["tvd"] <= SAME_ANSWERS] or [
            min(range(len(rows)), key=lambda model: rows[model]["tvd"])
        ]
        return pick(trained.best, max(near, key=lambda model: rows[model]["jsd"]))

    def _guided(self, guides: dict[str, Parameters | None]) -> None:
        """Classifiers without context, all from the same first weights, each with another frozen attention."""
        seed, names = _FIRST_GUIDED, list(guides)
        task = GoldLabels(self.data, self.options.classifier, _FrozenAttention(list(guides.values())), seed=seed)
        models = [f"guided by {guide}" for guide in names]
        trained = self._train("guided", models, "average", [seed] * len(names), task, self.options.epochs)
        about = [{"kind": "guided", "encoder": "average", "seed": seed, "guide": guide} for guide in names]
        self._finish("guided", trained, task, about)

    def _train(
        self, name: str, names: list[str], encoder: Encoder, seeds: list[int], task: GoldLabels, epochs: int
    ) -> TrainedStack:
        shape = ClassifierShape(encoder, self.options.inputs, self.options.classifier.width)
        models = [draw_classifier(shape, seed) for seed in seeds]
        parameters: dict[str, Tensor] = stack(models, self.data.device)
        settings = {"configuration": self.study.configuration, "encoder": encoder, "seeds": seeds}
        options = self.options.classifier.stack_options(epochs, task.seed, settings)
        place = self.study.stack(name)
        return train_stack(names, parameters, task, options, place, progress=self.progress, cancel=self.cancel)

    def _finish(self, name: str, trained: TrainedStack, task: GoldLabels, about: Lines) -> None:
        """Write the lines of a stack, unless an earlier run has. Distances are from the encoder's base; those of
        classifiers without context, from the BiLSTM.
        """
        if self.study.figures(name) is None:
            encoder = about[0]["encoder"]
            base = self.bases["bilstm" if encoder == "average" else encoder]
            test: Rows = task.figures(trained.best, self.data.test, base)
            lines = [
                {"name": trained.names[model], **about[model], "epoch": trained.best_epochs[model], "test": row}
                for model, row in enumerate(test)
            ]
            self.study.write(name, lines)
        self.lines += self.study.figures(name) or ()

    def _tests(self, encoder: Encoder, parameters: Parameters) -> Lines:
        """The tests per text, with adversaries where words know their context."""
        name = f"texts-{encoder}"
        if self.study.figures(name) is None:
            adversary = self.options.adversary if encoder in ENCODERS else None
            options = {"n_texts": self.options.tested, "progress": self.progress, "cancel": self.cancel}
            self.study.write(name, classifier_tests(parameters, self.data, adversary=adversary, **options))
        return self.study.figures(name) or []


class _FrozenAttention:
    """The attention of trained classifiers, the mean of their heads, for a stack; None is uniform attention."""

    def __init__(self, sources: Sequence[Parameters | None]):
        self.sources = sources

    @torch.no_grad()
    def __call__(self, batch: TextBatch) -> Tensor:
        return torch.cat([
            batch.uniform
            if source is None
            else classify(source, batch.inputs, batch.mask, batch.attended).attention.mean(2, keepdim=True)
            for source in self.sources
        ])  # fmt: skip
