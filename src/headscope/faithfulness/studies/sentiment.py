"""The sentiment study: Jain & Wallace's tests and Wiegreffe & Pinter's answers to them, on two encoders."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from headscope.errors import InputError
from headscope.faithfulness.adversary import AdversaryOptions
from headscope.faithfulness.studies.classifier_tasks import (
    Attends,
    BaseAnswers,
    ClassifierOptions,
    GoldLabels,
    own_attention,
    uniform_attention,
)
from headscope.faithfulness.studies.classifier_tests import classifier_tests
from headscope.faithfulness.studies.sentiment_data import SentimentData, TextBatch
from headscope.faithfulness.studies.stack_parts import Parameters, pick, stack
from headscope.faithfulness.studies.stack_training import TrainedStack, train_stack
from headscope.faithfulness.studies.stacked_classifier import ClassifierShape, Encoder, classify, draw_classifier
from headscope.faithfulness.studies.study_folder import StudyFolder
from headscope.progress import Cancel, OnProgress
from headscope.tasks.task_data import Columns

_FIRST_ADVERSARY, _FIRST_GUIDED = 1000, 2000
# Which attention guides a classifier without context.
GUIDES = ("uniform", "base", "adversary")
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

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The lines of a kind: "base", "average", "uniform", "adversary" or "guided"."""
        return [line for line in self.lines if line["kind"] == kind]


def train_classifiers(
    train: Any,
    dev: Any,
    test: Any,
    vectors: Any,
    folder: Path | str,
    options: SentimentOptions | None = None,
    *,
    columns: Columns | None = None,
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> SentimentResult:
    """Train and test the classifiers; run again with the same folder to resume, or with more seeds to add them."""
    options = options or SentimentOptions()
    data = SentimentData((train, dev, test), vectors, columns=columns, size=options.inputs, limit=options.limit)
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
        self.base: Parameters = {}
        self.lines: list[dict[str, Any]] = []

    def run(self) -> SentimentResult:
        """Everything, in the order in which it depends on what came before."""
        self.base = self._train("base-s0", {"kind": "base", "seed": 0}, "bilstm", own_attention)
        averages = [
            self._train(f"average-s{seed}", {"kind": "average", "seed": seed}, "average", own_attention)
            for seed in range(self.options.average_seeds)
        ]
        texts = {"bilstm": self._tests("bilstm", self.base), "average": self._tests("average", averages[0])}
        self._train("uniform-s0", {"kind": "uniform", "seed": 0}, "bilstm", uniform_attention)
        adversary = self._adversaries()
        for name, source in zip(GUIDES, (None, self.base, adversary), strict=True):
            attends = uniform_attention if source is None else _AttentionOf(source)
            about = {"kind": "guided", "seed": _FIRST_GUIDED, "guide": name}
            self._train(f"guided-{name}", about, "average", attends)
        for seed in range(1, self.options.seeds):
            self._train(f"base-s{seed}", {"kind": "base", "seed": seed}, "bilstm", own_attention)
        sizes = {name: len(getattr(self.data, name)) for name in ("train", "dev", "test")}
        return SentimentResult(self.study.settings, self.study.configuration, sizes, tuple(self.lines), texts)

    def _train(self, name: str, about: Mapping[str, Any], encoder: Encoder, attends: Attends) -> Parameters:
        """One classifier that learns the labels."""
        seed = about["seed"]
        task = GoldLabels(self.data, self.options.classifier, attends, seed=seed)
        trained = self._stack(name, [name], encoder, [seed], task, self.options.epochs)
        self._finish(name, trained, task, [about])
        return pick(trained.best, 0)

    def _adversaries(self) -> Parameters:
        """BiLSTMs with other attention and the base's answers, one for each λ; gives the one that guides."""
        lambdas, seed = self.options.lambdas, _FIRST_ADVERSARY
        task = BaseAnswers(self.data, self.options.classifier, self.base, lambdas, seed=seed)
        names = [f"adversary λ={weight:g}" for weight in lambdas]
        epochs = self.options.adversary_epochs
        trained = self._stack("adversary", names, "bilstm", [seed] * len(lambdas), task, epochs)
        self._finish("adversary", trained, task, [{"kind": "adversary", "lambda": weight} for weight in lambdas])
        rows = [trained.history[epoch - 1][model] for model, epoch in enumerate(trained.best_epochs)]
        near = [model for model, row in enumerate(rows) if row["tvd"] <= SAME_ANSWERS] or [
            min(range(len(rows)), key=lambda model: rows[model]["tvd"])
        ]
        return pick(trained.best, max(near, key=lambda model: rows[model]["jsd"]))

    def _stack(
        self, name: str, names: list[str], encoder: Encoder, seeds: list[int], task: GoldLabels, epochs: int
    ) -> TrainedStack:
        shape = ClassifierShape(encoder, self.options.inputs, self.options.classifier.width)
        parameters: dict[str, Tensor] = stack([draw_classifier(shape, seed) for seed in seeds])
        settings = {"configuration": self.study.configuration, "encoder": encoder, "seeds": seeds}
        options = self.options.classifier.stack_options(epochs, task.seed, settings)
        place = self.study.stack(name)
        return train_stack(names, parameters, task, options, place, progress=self.progress, cancel=self.cancel)

    def _finish(self, name: str, trained: TrainedStack, task: GoldLabels, about: Sequence[Mapping[str, Any]]) -> None:
        """Write the lines of a stack, unless an earlier run has."""
        if self.study.figures(name) is None:
            base = self.base or pick(trained.best, 0)
            rows = task.figures(trained.best, self.data.test, base)
            lines = [
                {"name": trained.names[model], **about[model], "epoch": trained.best_epochs[model], "test": row}
                for model, row in enumerate(rows)
            ]
            self.study.write(name, lines)
        self.lines += self.study.figures(name) or ()

    def _tests(self, encoder: str, parameters: Parameters) -> list[dict[str, Any]]:
        """The tests per text, with adversaries for the BiLSTM."""
        name = f"texts-{encoder}"
        if self.study.figures(name) is None:
            adversary = self.options.adversary if encoder == "bilstm" else None
            options = {"n_texts": self.options.tested, "progress": self.progress, "cancel": self.cancel}
            self.study.write(name, classifier_tests(parameters, self.data, adversary=adversary, **options))
        return self.study.figures(name) or []


class _AttentionOf:
    """The attention of a trained classifier, frozen."""

    def __init__(self, source: Parameters):
        self.source = source

    @torch.no_grad()
    def __call__(self, batch: TextBatch) -> Tensor:
        return classify(self.source, batch.inputs, batch.mask, batch.attended).attention
