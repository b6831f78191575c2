"""The chunking study: a base tagger, adversaries whose attention is far from its own, baselines, and probes."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from headscope.errors import InputError
from headscope.faithfulness.studies.attention_rankings import compare_rankings
from headscope.faithfulness.studies.chunking_data import ChunkingData
from headscope.faithfulness.studies.stack_parts import Parameters, pick, seeds_at_once, stack, training_device
from headscope.faithfulness.studies.stack_training import Rows, TrainedStack, train_stack
from headscope.faithfulness.studies.stacked_tagger import TaggerShape, draw_tagger
from headscope.faithfulness.studies.study_folder import StudyFolder, stack_name
from headscope.faithfulness.studies.tagger_attention import FrozenAttention, ReplacedAttention, no_attention
from headscope.faithfulness.studies.tagger_tasks import BaseTags, GoldTags, TaggerOptions, tagger_figures
from headscope.models.word_tagger import save_word_tagger
from headscope.progress import Cancel, OnProgress

Lines = list[dict[str, Any]]
# An adversary counts as having the base's performance if its F1 on dev is at most this much lower.
SAME_F1 = 0.01
# One whose F1 is lower by more than this is in the other mode: attention given up, words tagged by themselves.
BROKEN_F1 = 0.05
# Seeds of adversaries and probes begin here, so that none starts from the weights of a base tagger.
_FIRST_ADVERSARY, _FIRST_PROBE = 1000, 2000
BASELINES = ("uniform", "identity", "previous_token", "no_attention")
PROBES = ("report", "feed_forward")
# Numbers of seeds are no settings of the folder: run again with more, and the new ones are trained.
_EXTENDED = ("seeds", "adversary_seeds", "baseline_seeds", "probe_seeds")
# What a probe's frozen attention is from.
PROBED = ("base", "adversary", "broken adversary", "uniform", "permuted base")


@dataclass(frozen=True)
class ChunkingOptions:
    """The size of the study: `seeds` base taggers, and `adversary_seeds` adversaries for each λ (default: as many).

    `limit` is the greatest number of sentences of each file, for a trial run.
    """

    seeds: int = 5
    adversary_seeds: int | None = None
    lambdas: tuple[float, ...] = (0.2, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0)
    epochs: int = 20
    baseline_seeds: int = 3
    probe_seeds: int = 2
    limit: int | None = None
    inputs: int = 300
    tagger: TaggerOptions = field(default_factory=TaggerOptions)

    def __post_init__(self):
        counts = {
            "seeds": self.seeds,
            "adversary_seeds": self.n_adversaries,
            "baseline_seeds": self.baseline_seeds,
            "probe_seeds": self.probe_seeds,
        }
        for name, n in {**counts, "epochs": self.epochs, "inputs": self.inputs}.items():
            if n < 1:
                raise InputError(f"{name} is at least 1, got {n}.")
        if not self.lambdas or min(self.lambdas) <= 0:
            raise InputError(f"the adversaries need values of λ above 0, got {self.lambdas}.")

    @property
    def n_adversaries(self) -> int:
        """Adversaries for each λ."""
        return self.seeds if self.adversary_seeds is None else self.adversary_seeds


@dataclass(frozen=True)
class ChunkingResult:
    """What came out: a line for each tagger, comparisons of weight rankings, and the folders of saved taggers.

    `context_free` is the chunk F1 of the commonest tag of each word ("word") and part of speech ("pos").
    """

    settings: dict[str, Any]
    configuration: str
    n_parameters: int
    n_sentences: dict[str, int]
    context_free: dict[str, float]
    lines: tuple[dict[str, Any], ...]
    rankings: tuple[dict[str, Any], ...]
    chosen: dict[str, str]
    models: dict[str, Path]

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The lines of a kind: "base", "adversary", a baseline, "probe report" or "probe feed_forward"."""
        return [line for line in self.lines if line["kind"] == kind]


def train_chunkers(
    train: Any,
    test: Any,
    vectors: Any,
    folder: Path | str,
    options: ChunkingOptions | None = None,
    *,
    device: str | None = None,
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> ChunkingResult:
    """Train and compare the taggers on a device ("cpu", "cuda"); run again with the same folder to resume.

    `train` and `test` are CoNLL-2000's files; `vectors` names a model whose input embeddings become the word vectors.
    """
    place = training_device(device)
    options = options or ChunkingOptions()
    data = ChunkingData(train, test, vectors, size=options.inputs, limit=options.limit, device=place)
    settings = {name: value for name, value in asdict(options).items() if name not in _EXTENDED}
    study = StudyFolder(folder, {"study": "chunking", **settings, "data": data.checksum})
    study.begin()
    return ChunkingRun(data, options, study, progress, cancel).run()


class ChunkingRun:
    """The study while it runs."""

    def __init__(
        self,
        data: ChunkingData,
        options: ChunkingOptions,
        study: StudyFolder,
        progress: OnProgress | None = None,
        cancel: Cancel | None = None,
    ):
        self.data, self.options, self.study = data, options, study
        self.progress, self.cancel = progress, cancel
        self.lines: list[dict[str, Any]] = []
        self.chosen: dict[str, str] = {}
        tagger = options.tagger
        self.shape = TaggerShape(options.inputs, tagger.width, tagger.n_heads, len(data.tags))

    def run(self) -> ChunkingResult:
        """Everything, in the order in which it depends on what came before."""
        bases = self._bases()
        for kind in BASELINES:
            self._baselines(kind)
        adversaries = self._adversaries(bases[0])
        chosen = {"base": bases[0]}
        for name, line in zip(("adversary", "broken adversary"), self._choose(), strict=True):
            chosen[name] = adversaries[line["name"]]
            self.chosen[name] = line["name"]
        for kind in PROBES:
            self._probes(kind, chosen)
        rankings = self._rankings(chosen, bases[1:])
        models = self._save_models(chosen)
        sizes = {name: len(getattr(self.data, name)) for name in ("train", "dev", "test")}
        n_parameters = sum(tensor.numel() for tensor in bases[0].values())
        about = (self.study.settings, self.study.configuration, n_parameters, sizes, self.data.context_free())
        return ChunkingResult(*about, tuple(self.lines), tuple(rankings), self.chosen, models)

    # Stacks

    def _bases(self) -> list[Parameters]:
        """Taggers that attend as they learn to; that of seed 0 is the base, and the others are its noise floor."""
        bases: list[Parameters] = []
        for seeds in self._groups("base", self.options.seeds):
            task = GoldTags(self.data, self.options.tagger, seed=seeds[0])
            trained = self._train("base", seeds, [f"base s{seed}" for seed in seeds], [*seeds], task)
            bases += [pick(trained.best, model) for model in range(len(seeds))]
            name = stack_name("base", seeds)
            if not self._is_finished(name):
                figures = tagger_figures(task, trained.best, self.data.test, bases[0])
                self._finish(name, trained, [{"kind": "base", "seed": seed} for seed in seeds], figures)
        return bases

    def _baselines(self, kind: str) -> None:
        attends = no_attention if kind == "no_attention" else ReplacedAttention(kind)
        for seeds in self._groups(kind, self.options.baseline_seeds):
            task = GoldTags(self.data, self.options.tagger, attends, seed=seeds[0])
            trained = self._train(kind, seeds, [f"{kind} s{seed}" for seed in seeds], [*seeds], task)
            name = stack_name(kind, seeds)
            if not self._is_finished(name):
                figures = task.figures(trained.best, self.data.test)
                self._finish(name, trained, [{"kind": kind, "seed": seed} for seed in seeds], figures)

    def _adversaries(self, base: Parameters) -> dict[str, Parameters]:
        """Adversaries by name: for each seed one for each λ, those of a seed all from the same first weights."""
        lambdas, adversaries = self.options.lambdas, {}
        for seeds in self._groups("adversary", self.options.n_adversaries, len(lambdas)):
            cells = [(seed, weight) for seed in seeds for weight in lambdas]
            weights = [weight for _, weight in cells]
            task = BaseTags(self.data, self.options.tagger, base, weights, seed=_FIRST_ADVERSARY + seeds[0])
            names = [f"adversary λ={weight:g} s{seed}" for seed, weight in cells]
            own_seeds = [_FIRST_ADVERSARY + seed for seed, _ in cells]
            trained = self._train("adversary", seeds, names, own_seeds, task)
            name = stack_name("adversary", seeds)
            if not self._is_finished(name):
                best, last = (task.figures(models, self.data.test) for models in (trained.best, trained.last))
                about = [
                    {"kind": "adversary", "seed": seed, "lambda": weight, "last": row}
                    for (seed, weight), row in zip(cells, last, strict=True)
                ]
                self._finish(name, trained, about, best)
            adversaries |= {name: pick(trained.best, model) for model, name in enumerate(names)}
        return adversaries

    def _probes(self, kind: str, chosen: Mapping[str, Parameters]) -> None:
        """Fresh taggers that attend by frozen patterns: as the report's, or with nothing that goes round attention."""
        options, has_residual = self.options.tagger, kind == "report"
        probed = "-".join(self.chosen[name].replace("adversary λ=", "").replace(" ", "") for name in self.chosen)
        name = f"probe-{kind}-{probed}"
        for seeds in self._groups(name, self.options.probe_seeds, len(PROBED)):
            cells = [(seed, source) for seed in seeds for source in PROBED]
            frozen = [chosen.get(source.removeprefix("permuted ")) for _, source in cells]
            is_permuted = [source.startswith("permuted") for _, source in cells]
            attends = FrozenAttention(frozen, is_permuted, n_heads=options.n_heads, has_residual=has_residual)
            task = GoldTags(self.data, options, attends, seed=_FIRST_PROBE + seeds[0])
            names = [f"{kind} probe, {source} s{seed}" for seed, source in cells]
            trained = self._train(name, seeds, names, [_FIRST_PROBE + seed for seed, _ in cells], task)
            if not self._is_finished(stack_name(name, seeds)):
                about = [{"kind": f"probe {kind}", "seed": seed, "source": source} for seed, source in cells]
                self._finish(stack_name(name, seeds), trained, about, task.figures(trained.best, self.data.test))

    def _groups(self, name: str, n_seeds: int, models_per_seed: int = 1) -> list[range]:
        return self.study.seed_groups(name, n_seeds, seeds_at_once(self.data.device, models_per_seed))

    def _train(self, name: str, seeds: range, names: list[str], own_seeds: list[int], task: GoldTags) -> TrainedStack:
        models = [draw_tagger(self.shape, seed) for seed in own_seeds]
        parameters: dict[str, Tensor] = stack(models, self.data.device)
        n_batches = -(-len(self.data.train) // self.options.tagger.batch_size)
        settings = {"configuration": self.study.configuration, "seeds": own_seeds}
        options = self.options.tagger.stack_options(self.options.epochs, n_batches, task.seed, settings)
        place = self.study.stack(stack_name(name, seeds))
        return train_stack(names, parameters, task, options, place, progress=self.progress, cancel=self.cancel)

    def _is_finished(self, name: str) -> bool:
        """Whether the stack has its lines, from an earlier run too."""
        lines = self.study.figures(name)
        self.lines += lines or ()
        return lines is not None

    def _finish(self, name: str, trained: TrainedStack, about: Lines, test: Rows) -> None:
        """Write the lines of a stack: what each model is, its best epoch, and its figures on dev and test."""
        lines = []
        for model, (line, row) in enumerate(zip(about, test, strict=True)):
            epoch = trained.best_epochs[model]
            figures = {"test": row, "epoch": epoch, "dev": trained.history[epoch - 1][model]}
            lines.append({"name": trained.names[model], **line, **figures})
        self.study.write(name, lines)
        self.lines += self.study.figures(name) or ()

    # Choices

    def _choose(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """On dev: the adversary furthest from the base with an F1 within 0.01 of it, and the furthest beyond the break.

        Where none is within 0.01, the first is the adversary with the best F1; where none broke, the second is the one
        with the lowest.
        """
        base = next(line for line in self.lines if line["kind"] == "base")["dev"]["f1"]
        adversaries = [line for line in self.lines if line["kind"] == "adversary"]
        near = [line for line in adversaries if line["dev"]["f1"] >= base - SAME_F1]
        broken = [line for line in adversaries if line["dev"]["f1"] < base - BROKEN_F1]
        by_f1 = sorted(adversaries, key=lambda line: line["dev"]["f1"])
        before = max(near, key=lambda line: line["dev"]["jsd"]) if near else by_f1[-1]
        after = max(broken, key=lambda line: line["dev"]["jsd"]) if broken else by_f1[0]
        return before, after

    def _rankings(self, chosen: Mapping[str, Parameters], other_bases: Sequence[Parameters]) -> list[dict[str, Any]]:
        """Do taggers rank the words of a row alike? On test sentences, head by head."""
        others = {"base, another seed": other_bases[0]} if other_bases else {}
        pairs = [
            *(("base", name) for name in others),
            ("base", "adversary"),
            ("base", "broken adversary"),
            ("adversary", "broken adversary"),
        ]
        return compare_rankings(self.data, {**chosen, **others}, pairs, n_heads=self.shape.n_heads)

    def _save_models(self, chosen: Mapping[str, Parameters]) -> dict[str, Path]:
        """The base and the two adversaries, as folders that `headscope.load` opens."""
        names = {"base": "base"} | self.chosen
        folders = {name: self.study.model(names[name].replace(" ", "-").replace("λ=", "")) for name in chosen}
        for name, folder in folders.items():
            if not (folder / "config.json").exists():
                weights = {key: tensor[0].cpu() for key, tensor in chosen[name].items()}
                save_word_tagger(
                    folder,
                    weights,
                    self.data.vectors.cpu(),
                    self.data.words,
                    self.data.tags,
                    n_heads=self.shape.n_heads,
                )
        return folders
