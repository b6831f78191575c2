"""The chunking study: a base tagger, adversaries whose attention is far from its own, baselines, and probes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from headscope.errors import InputError
from headscope.faithfulness.studies.attention_rankings import compare_rankings
from headscope.faithfulness.studies.chunking_data import ChunkingData
from headscope.faithfulness.studies.stack_parts import Parameters, pick, stack
from headscope.faithfulness.studies.stack_training import TrainedStack, train_stack
from headscope.faithfulness.studies.stacked_tagger import TaggerShape, draw_tagger
from headscope.faithfulness.studies.study_folder import StudyFolder
from headscope.faithfulness.studies.tagger_attention import FrozenAttention, ReplacedAttention, no_attention
from headscope.faithfulness.studies.tagger_tasks import BaseTags, GoldTags, TaggerOptions, tagger_figures
from headscope.models.word_tagger import save_word_tagger
from headscope.progress import Cancel, OnProgress

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
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> ChunkingResult:
    """Train and compare the taggers; run again with the same folder to resume.

    `train` and `test` are CoNLL-2000's files; `vectors` names a model whose input embeddings become the word vectors.
    """
    options = options or ChunkingOptions()
    data = ChunkingData(train, test, vectors, size=options.inputs, limit=options.limit)
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
        self.base: Parameters = {}
        tagger = options.tagger
        self.shape = TaggerShape(options.inputs, tagger.width, tagger.n_heads, len(data.tags))

    def run(self) -> ChunkingResult:
        """Everything, in the order in which it depends on what came before."""
        bases = [self._base(seed) for seed in range(self.options.seeds)]
        base = bases[0]
        for kind in BASELINES:
            for seed in range(self.options.baseline_seeds):
                self._baseline(kind, seed)
        adversaries = [self._adversaries(base, seed) for seed in range(self.options.n_adversaries)]
        chosen = {"base": base}
        for name, line in zip(("adversary", "broken adversary"), self._choose(), strict=True):
            place = self.options.lambdas.index(line["lambda"])
            chosen[name] = pick(adversaries[line["seed"]].best, place)
            self.chosen[name] = line["name"]
        for kind in PROBES:
            for seed in range(self.options.probe_seeds):
                self._probes(kind, seed, chosen)
        rankings = self._rankings(chosen, bases[1:])
        models = self._save_models(chosen)
        sizes = {name: len(getattr(self.data, name)) for name in ("train", "dev", "test")}
        n_parameters = sum(tensor.numel() for tensor in base.values())
        about = (self.study.settings, self.study.configuration, n_parameters, sizes, self.data.context_free())
        return ChunkingResult(*about, tuple(self.lines), tuple(rankings), self.chosen, models)

    # Stacks

    def _base(self, seed: int) -> Parameters:
        """A tagger that attends as it learns to; that of seed 0 is the base, and the others are its noise floor."""
        task = GoldTags(self.data, self.options.tagger, seed=seed)
        trained = self._train(f"base-s{seed}", [f"base s{seed}"], [seed], task)
        self.base = pick(trained.best, 0) if seed == 0 else self.base

        def lines() -> list[dict[str, Any]]:
            test = tagger_figures(task, trained.best, self.data.test, self.base)
            return [{"kind": "base", "seed": seed, "test": test[0]}]

        self._finish(f"base-s{seed}", trained, lines)
        return pick(trained.best, 0)

    def _baseline(self, kind: str, seed: int) -> None:
        attends = no_attention if kind == "no_attention" else ReplacedAttention(kind)
        task = GoldTags(self.data, self.options.tagger, attends, seed=seed)
        trained = self._train(f"{kind}-s{seed}", [f"{kind} s{seed}"], [seed], task)

        def lines() -> list[dict[str, Any]]:
            return [{"kind": kind, "seed": seed, "test": task.figures(trained.best, self.data.test)[0]}]

        self._finish(f"{kind}-s{seed}", trained, lines)

    def _adversaries(self, base: Parameters, seed: int) -> TrainedStack:
        """An adversary for each λ, all from the same first weights."""
        lambdas, own_seed = self.options.lambdas, _FIRST_ADVERSARY + seed
        task = BaseTags(self.data, self.options.tagger, base, lambdas, seed=own_seed)
        names = [f"adversary λ={weight:g} s{seed}" for weight in lambdas]
        stack_name = f"adversary-s{seed}"
        trained = self._train(stack_name, names, [own_seed] * len(lambdas), task)

        def lines() -> list[dict[str, Any]]:
            test, last = (task.figures(parameters, self.data.test) for parameters in (trained.best, trained.last))
            return [
                {"kind": "adversary", "seed": seed, "lambda": weight, "test": test[place], "last": last[place]}
                for place, weight in enumerate(lambdas)
            ]

        self._finish(stack_name, trained, lines)
        return trained

    def _probes(self, kind: str, seed: int, chosen: Mapping[str, Parameters]) -> None:
        """Fresh taggers that attend by frozen patterns: as the report's, or with nothing that goes round attention."""
        sources = [None if name == "uniform" else chosen[name.removeprefix("permuted ")] for name in PROBED]
        is_permuted = [name.startswith("permuted") for name in PROBED]
        options = self.options.tagger
        has_residual = kind == "report"
        attends = FrozenAttention(sources, is_permuted, n_heads=options.n_heads, has_residual=has_residual)
        own_seed = _FIRST_PROBE + seed
        task = GoldTags(self.data, options, attends, seed=own_seed)
        probed = "-".join(self.chosen[name].replace("adversary λ=", "").replace(" ", "") for name in self.chosen)
        stack_name = f"probe-{kind}-s{seed}-{probed}"
        trained = self._train(stack_name, [f"{kind} probe, {name}" for name in PROBED], [own_seed] * len(PROBED), task)

        def lines() -> list[dict[str, Any]]:
            test = task.figures(trained.best, self.data.test)
            about = {"kind": f"probe {kind}", "seed": seed}
            return [{**about, "source": name, "test": row} for name, row in zip(PROBED, test, strict=True)]

        self._finish(stack_name, trained, lines)

    def _train(self, stack_name: str, names: list[str], seeds: list[int], task: GoldTags) -> TrainedStack:
        parameters: dict[str, Tensor] = stack([draw_tagger(self.shape, seed) for seed in seeds])
        n_batches = -(-len(self.data.train) // self.options.tagger.batch_size)
        settings = {"configuration": self.study.configuration, "seeds": seeds}
        options = self.options.tagger.stack_options(self.options.epochs, n_batches, task.seed, settings)
        place = self.study.stack(stack_name)
        return train_stack(names, parameters, task, options, place, progress=self.progress, cancel=self.cancel)

    def _finish(self, stack_name: str, trained: TrainedStack, lines_of: Callable[[], Sequence[dict[str, Any]]]) -> None:
        """Write the lines of a stack, unless an earlier run has."""
        if self.study.figures(stack_name) is None:
            lines = []
            for model, line in enumerate(lines_of()):
                epoch = trained.best_epochs[model]
                dev = trained.history[epoch - 1][model]
                lines.append({"name": trained.names[model], **line, "epoch": epoch, "dev": dev})
            self.study.write(stack_name, lines)
        self.lines += self.study.figures(stack_name) or ()

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
                weights = {key: tensor[0] for key, tensor in chosen[name].items()}
                save_word_tagger(
                    folder, weights, self.data.vectors, self.data.words, self.data.tags, n_heads=self.shape.n_heads
                )
        return folders
