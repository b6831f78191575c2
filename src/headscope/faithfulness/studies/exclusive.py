"""The exclusiveness study: the same Transformer tags words and classes texts. Is its attention more exclusive, or more
stable, in tagging?
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from headscope.errors import InputError
from headscope.faithfulness.adversary import AdversaryOptions
from headscope.faithfulness.studies.answer_comparisons import (
    answer_adversaries,
    answer_needs,
    closest_divergence,
    compare_seeds,
)
from headscope.faithfulness.studies.answer_data import AnswerData, TextAnswers, WordAnswers
from headscope.faithfulness.studies.answer_tasks import GoldAnswers, OtherAttention, answer_figures
from headscope.faithfulness.studies.chunking_data import ChunkingData
from headscope.faithfulness.studies.sentiment_data import SentimentData
from headscope.faithfulness.studies.stack_parts import Parameters, pick, seeds_at_once, stack, training_device
from headscope.faithfulness.studies.stack_training import Rows, TrainedStack, train_stack
from headscope.faithfulness.studies.stacked_tagger import TaggerShape, draw_tagger
from headscope.faithfulness.studies.study_folder import StudyFolder, stack_name
from headscope.faithfulness.studies.tagger_tasks import TaggerOptions
from headscope.progress import Cancel, OnProgress
from headscope.tasks.task_data import Columns

Lines = list[dict[str, Any]]
TASKS = ("tagging", "classification")
# An adversary starts from fresh weights, or from those of its base.
STARTS = ("fresh", "base")
# Changes of the answer, total variation, at which tasks are compared.
LEVELS = (0.02, 0.05, 0.1, 0.2)
# Seeds of fresh adversaries begin here, so that none starts from the weights of a base.
_FIRST_ADVERSARY = 1000
_EXTENDED = ("seeds", "adversary_seeds")


@dataclass(frozen=True)
class ExclusiveOptions:
    """The size of the study. `seeds` models learn each task; `adversary_seeds` of them (default: all) have adversaries,
    from each start one for each λ. `tested` is the number of texts of the adversaries of single answers; `limit` the
    greatest number of texts of each file, for a trial run.
    """

    seeds: int = 5
    adversary_seeds: int | None = None
    lambdas: tuple[float, ...] = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1)
    epochs: int = 20
    layers: int = 1
    tested: int = 200
    limit: int | None = None
    inputs: int = 300
    tagger: TaggerOptions = field(default_factory=lambda: TaggerOptions(rate=0.05, cooldown=0.5))
    adversary: AdversaryOptions = field(default_factory=AdversaryOptions)

    def __post_init__(self):
        counts = {"adversary_seeds": self.n_adversaries, "epochs": self.epochs, "tested": self.tested}
        for name, n in {**counts, "inputs": self.inputs}.items():
            if n < 1:
                raise InputError(f"{name} is at least 1, got {n}.")
        if self.seeds < 2:
            raise InputError(f"the study compares seeds and needs at least 2, got {self.seeds}.")
        if self.n_adversaries > self.seeds:
            raise InputError(f"adversary_seeds is at most seeds ({self.seeds}), got {self.n_adversaries}.")
        if self.layers not in (1, 2):
            raise InputError(f"the Transformer has 1 or 2 layers, got {self.layers}.")
        if not self.lambdas or min(self.lambdas) <= 0:
            raise InputError(f"the adversaries need values of λ above 0, got {self.lambdas}.")

    @property
    def n_adversaries(self) -> int:
        """How many of the models have adversaries."""
        return self.seeds if self.adversary_seeds is None else self.adversary_seeds


@dataclass(frozen=True)
class ExclusiveResult:
    """What came out: a line for each model ("base", "adversary"), pair of seeds ("pair"), level of the adversaries of
    single answers ("answers"), and what answers need ("needs"). `commonest` is the accuracy of always giving the
    commonest answer of training.
    """

    settings: dict[str, Any]
    configuration: str
    n_parameters: dict[str, int]
    n_texts: dict[str, dict[str, int]]
    commonest: dict[str, float]
    lines: tuple[dict[str, Any], ...]

    def of(self, kind: str, task: str) -> Lines:
        """The lines of a kind and task."""
        return [line for line in self.lines if line["kind"] == kind and line["task"] == task]


def train_both_tasks(
    chunks: Sequence[Any],
    texts: Sequence[Any],
    vectors: Any,
    folder: Path | str,
    options: ExclusiveOptions | None = None,
    *,
    columns: Columns | None = None,
    device: str | None = None,
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> ExclusiveResult:
    """Train and compare the models on a device ("cpu", "cuda"); run again with the same folder to resume.

    `chunks` are the training and test file of CoNLL-2000, `texts` the tables of texts with two labels: training, dev
    and test. `vectors` names a model whose input embeddings become the word vectors.
    """
    place = training_device(device)
    options = options or ExclusiveOptions()
    about = {"size": options.inputs, "limit": options.limit, "device": place}
    words = ChunkingData(chunks[0], chunks[1], vectors, **about)
    sentiment = SentimentData(texts, vectors, columns=columns, **about)
    settings = {name: value for name, value in asdict(options).items() if name not in _EXTENDED}
    study = StudyFolder(folder, {"study": "exclusive", **settings, "data": [words.checksum, sentiment.checksum]})
    study.begin()
    data = {"tagging": WordAnswers(words), "classification": TextAnswers(sentiment)}
    return ExclusiveRun(data, options, study, progress, cancel).run()


class ExclusiveRun:
    """The study while it runs."""

    def __init__(
        self,
        data: dict[str, AnswerData],
        options: ExclusiveOptions,
        study: StudyFolder,
        progress: OnProgress | None = None,
        cancel: Cancel | None = None,
    ):
        self.data, self.options, self.study = data, options, study
        self.progress, self.cancel = progress, cancel
        self.lines: Lines = []
        self.n_parameters: dict[str, int] = {}

    def run(self) -> ExclusiveResult:
        """Both tasks: models of several seeds, how alike they are, and adversaries of both kinds."""
        for task in TASKS:
            bases = self._bases(task)
            self.n_parameters[task] = sum(tensor.numel() for tensor in pick(bases, 0).values())
            self._pairs(task, bases)
            self._answers(task, bases)
            self._adversaries(task, bases)
        n_texts = {task: self.data[task].n_texts for task in TASKS}
        commonest = {task: _commonest(self.data[task]) for task in TASKS}
        about = (self.study.settings, self.study.configuration, self.n_parameters, n_texts, commonest)
        return ExclusiveResult(*about, tuple(self.lines))

    def _bases(self, task: str) -> dict[str, Tensor]:
        """The models that learn the gold answers, as one stack."""
        parts: list[dict[str, Tensor]] = []
        at_once = seeds_at_once(self.data[task].device)
        for seeds in self.study.seed_groups(f"{task}-base", self.options.seeds, at_once):
            name, gold = stack_name(f"{task}-base", seeds), GoldAnswers(self.data[task], self._tagger, seed=seeds[0])
            models = [draw_tagger(self._shape(task), seed) for seed in seeds]
            trained = self._train(name, [f"{task} s{seed}" for seed in seeds], models, gold)
            if self.study.figures(name) is None:
                about = [{"kind": "base", "task": task, "seed": seed} for seed in seeds]
                self._write_models(name, trained, about, answer_figures(gold, trained.best, "test"))
            self.lines += self.study.figures(name) or ()
            parts.append(trained.best)
        return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}

    def _pairs(self, task: str, bases: Parameters) -> None:
        name = f"{task}-pairs-{len(bases['projection.weight'])}"
        if self.study.figures(name) is None:
            lines = compare_seeds(bases, self.data[task], self._tagger)
            self.study.write(name, [{"kind": "pair", "task": task, **line} for line in lines])
        self.lines += self.study.figures(name) or ()

    def _answers(self, task: str, bases: Parameters) -> None:
        """Adversaries of single answers, for each model that has adversaries."""
        for seed in range(self.options.n_adversaries):
            name = f"{task}-answers-s{seed}"
            if self.study.figures(name) is None:
                base, data = pick(bases, seed), self.data[task]
                options = {"levels": LEVELS, "n_texts": self.options.tested}
                watch = {"progress": self.progress, "cancel": self.cancel}
                lines = answer_adversaries(base, data, self._tagger, self.options.adversary, **options, **watch)
                needs = answer_needs(base, data, self._tagger, n_texts=self.options.tested)
                about = {"task": task, "seed": seed}
                answers = [{"kind": "answers", **about, **line} for line in lines]
                self.study.write(name, [{"kind": "needs", **about, **needs}, *answers])
            self.lines += self.study.figures(name) or ()

    def _adversaries(self, task: str, bases: Parameters) -> None:
        """Models with other attention and a base's answers: for each base, start and λ."""
        lambdas = self.options.lambdas
        at_once = seeds_at_once(self.data[task].device, len(STARTS) * len(lambdas))
        for seeds in self.study.seed_groups(f"{task}-adversary", self.options.n_adversaries, at_once):
            name = stack_name(f"{task}-adversary", seeds)
            cells = [(seed, start, weight) for seed in seeds for start in STARTS for weight in lambdas]
            of, weights = [seed for seed, _, _ in cells], [weight for _, _, weight in cells]
            other = OtherAttention(self.data[task], self._tagger, bases, of, weights, seed=_FIRST_ADVERSARY + seeds[0])
            names = [f"{task} adversary λ={weight:g} s{seed} from {start}" for seed, start, weight in cells]
            models = [self._first_weights(task, bases, seed, start) for seed, start, _ in cells]
            trained = self._train(name, names, models, other)
            if self.study.figures(name) is None:
                about = [
                    {"kind": "adversary", "task": task, "seed": seed, "start": start, "lambda": weight}
                    for seed, start, weight in cells
                ]
                figures = answer_figures(other, trained.best, "test", (bases, other.of))
                distances = closest_divergence(trained.best, bases, of, self.data[task], self._tagger)
                figures = [row | {"jsd": jsd} for row, jsd in zip(figures, distances, strict=True)]
                self._write_models(name, trained, about, figures)
            self.lines += self.study.figures(name) or ()

    def _first_weights(self, task: str, bases: Parameters, seed: int, start: str) -> dict[str, Tensor]:
        if start == "fresh":
            return draw_tagger(self._shape(task), _FIRST_ADVERSARY + seed)
        return {name: tensor[0].cpu().clone() for name, tensor in pick(bases, seed).items()}

    def _train(self, name: str, names: list[str], models: list[dict[str, Tensor]], task: GoldAnswers) -> TrainedStack:
        parameters = stack(models, task.data.device)
        n_batches = -(-task.data.n_texts["train"] // self._tagger.batch_size)
        settings = {"configuration": self.study.configuration}
        options = self._tagger.stack_options(self.options.epochs, n_batches, task.seed, settings)
        place = self.study.stack(name)
        return train_stack(names, parameters, task, options, place, progress=self.progress, cancel=self.cancel)

    def _write_models(self, name: str, trained: TrainedStack, about: Lines, test: Rows) -> None:
        lines = [
            {"name": trained.names[model], **line, "epoch": trained.best_epochs[model], "test": row}
            for model, (line, row) in enumerate(zip(about, test, strict=True))
        ]
        self.study.write(name, lines)

    @property
    def _tagger(self) -> TaggerOptions:
        return self.options.tagger

    def _shape(self, task: str) -> TaggerShape:
        sizes = (self.options.inputs, self._tagger.width, self._tagger.n_heads)
        return TaggerShape(*sizes, self.data[task].n_classes, self.options.layers)


def _commonest(data: AnswerData) -> float:
    """The accuracy on the test set of always giving the commonest answer of training."""
    train, test = (torch.cat([batch.labels for batch in data.all_batches(split)]).cpu() for split in ("train", "test"))
    answer = train[train >= 0].mode().values
    return float((test[test >= 0] == answer).double().mean())
