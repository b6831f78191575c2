"""Prunes the heads of the built-in models: curves of score against heads kept, with baselines.

    python training/prune_builtin.py translate --out .train/pruned                       # 15 minutes on a core
    python training/prune_builtin.py translate news gpt bert --size full --at-once 4     # a GPU
    python training/prune_builtin.py translate --table                                   # what there is so far

`translate` uses the split that the model was trained with, and tests on direct pairs alone. `news` is a second domain,
with longer sentences: WMT news until 2018 for training, 2019 and 2020 to judge; the translator is fine-tuned on it
first. `gpt` is judged by bits per byte on held-out text, `bert` by accuracy on SST-2, after training a classifier. Run
again to resume: finished points stay.
"""

from __future__ import annotations

import argparse
import copy
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from corpora import language_model_documents, read_table, shuffle, translation_pairs
from sentence_pairs import tatoeba_sentences
from transformers import AutoModelForSequenceClassification, AutoTokenizer

import headscope as hs
from headscope import tasks
from headscope.corpora import Example
from headscope.pruning import GateOptions, PruneOptions, Sweep
from headscope.tasks import FitOptions, LearningTask

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
Lambdas = tuple[float, ...]
Prepare = Callable[[Path, Path, "Size"], tuple[hs.Model, LearningTask]]


@dataclass(frozen=True)
class Size:
    """How much is computed. Examples: None is all there are."""

    steps: int
    tuning_steps: int
    scratch_steps: int
    batch_size: int
    evaluate_every: int
    n_train: int | None
    n_dev: int | None
    n_test: int | None
    gate_rate: float
    seeds: int
    ranking_examples: int
    precision: Any = "fp32"
    batch_tokens: int | None = None


SIZES = {
    "tiny": Size(4, 2, 4, 4, 2, 40, 8, 8, 0.5, 1, 4),
    "small": Size(80, 80, 0, 16, 40, 1_500, 64, 150, 0.25, 3, 32),
    "full": Size(850, 425, 6000, 512, 425, None, None, None, 0.05, 3, 500, "bf16", 16_384),
}


@dataclass(frozen=True)
class Study:
    """A model with its task; its learning rate and largest batch; λ of each curve, and those of the baselines."""

    prepare: Prepare
    rate: float
    batch_size: int
    lambdas: Lambdas
    baseline_lambdas: Lambdas
    encoder_lambdas: Lambdas = ()
    scratch_lambdas: Lambdas = ()
    scratch_rate: float = 1e-3


# What is read


def prepare_translate(data: Path, out: Path, size: Size) -> tuple[hs.Model, LearningTask]:
    rows = list(translation_pairs(data))

    def pairs(split: str, n: int | None, *, with_pivot: bool = False) -> list[tuple[str, str]]:
        chosen = [(english, russian) for own, english, russian, kind in rows
                  if own == split and (with_pivot or kind == "direct")]  # fmt: skip
        return sample(chosen, n)

    train = pairs("train", size.n_train, with_pivot=True)
    return translator(), translation(train, pairs("valid", size.n_dev), pairs("test", size.n_test))


def prepare_news(data: Path, out: Path, size: Size) -> tuple[hs.Model, LearningTask]:
    rows = [row[:3] for row in read_table(data / "en_ru" / "newstest_2012_2020.tsv.xz")]

    def pairs(years: tuple[str, ...], n: int | None) -> list[tuple[str, str]]:
        return sample([(row[1], row[2]) for row in rows if row[0].startswith(years)], n)

    train = pairs(tuple(f"newstest{year}" for year in range(2012, 2019)), size.n_train)
    task = translation(train, pairs(("newstest2019",), size.n_dev), pairs(("newstest2020",), size.n_test))
    return adapted(translator(), task, size, 3e-4, 512, out / "news_translator"), task


def translator() -> hs.Model:
    return hs.load("builtin:translate", dtype=torch.float32, device=DEVICE)


def translation(*splits: list[tuple[str, str]]) -> LearningTask:
    return tasks.translation(*splits, label_smoothing=0.1)


def prepare_gpt(data: Path, out: Path, size: Size) -> tuple[hs.Model, LearningTask]:
    sentences, _, _ = tatoeba_sentences(data)
    splits = [
        sample(passages(language_model_documents(data, sentences, split)), n)
        for split, n in (("train", size.n_train), ("valid", size.n_dev or 500), ("test", size.n_test or 500))
    ]
    return hs.load("builtin:gpt", dtype=torch.float32, device=DEVICE), tasks.language_modelling(*splits)


def passages(documents: list[str], n_characters: int = 1600) -> list[str]:
    """Documents in parts of at most so many characters: about the model's 512 positions."""
    return [text[start : start + n_characters] for text in documents for start in range(0, len(text), n_characters)]


def prepare_bert(data: Path, out: Path, size: Size) -> tuple[hs.Model, LearningTask]:
    """A classifier, trained on SST-2 first; its folder keeps it."""

    def examples(split: str, n: int | None) -> list[Example]:
        rows = list(read_table(data / "sst2_glue" / f"{split}.tsv.xz"))
        return sample([Example(f"{split}:{i}", text=row[1], label=row[0]) for i, row in enumerate(rows)], n)

    splits = [examples(split, n) for split, n in (("train", size.n_train), ("dev", size.n_dev), ("test", size.n_test))]
    task = tasks.sequence_classification(*splits)
    folder = Path(hs.__file__).parent / "builtin" / "bert"
    torch.manual_seed(0)
    module = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=2, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = hs.Model(module.eval().to(DEVICE), tokenizer, name="builtin:bert on SST-2")
    return adapted(model, task, size, 1e-4, 256, out / "bert_classifier"), task


def adapted(model: hs.Model, task: LearningTask, size: Size, rate: float, batch_size: int, folder: Path) -> hs.Model:
    """A model trained for a task that it was not made for; the folder keeps it."""
    judged = copy.copy(task)
    judged.metric = "loss"
    tasks.fit(model, judged, replace(fit_options(size, rate, batch_size), steps=4 * size.steps), folder=folder)
    return model


def sample(rows: list, n: int | None) -> list:
    """The first n in an order that has nothing to do with that of the source."""
    by_text = {str(row): row for row in rows}
    return [by_text[text] for text in shuffle(by_text)][:n]


TRANSLATOR_LAMBDAS = (0.0032, 0.0056, 0.0097, 0.017, 0.03, 0.053, 0.092, 0.162)
STUDIES = {
    "translate": Study(
        prepare_translate,
        2e-4,
        512,
        TRANSLATOR_LAMBDAS,
        (0.0097, 0.03),
        encoder_lambdas=(0.0097, 0.03, 0.092),
        scratch_lambdas=(0.0097, 0.03),
    ),
    "news": Study(prepare_news, 2e-4, 512, TRANSLATOR_LAMBDAS, ()),
    "gpt": Study(prepare_gpt, 2e-4, 32, (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064), (0.004, 0.016)),
    "bert": Study(prepare_bert, 1e-4, 256, (0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032), (0.002, 0.008)),
}


# What is computed


def fit_options(size: Size, rate: float, batch_size: int) -> FitOptions:
    return FitOptions(
        steps=size.steps,
        batch_size=min(size.batch_size, batch_size),
        batch_tokens=size.batch_tokens,
        rate=rate,
        warmup=min(50, size.steps // 10),
        precision=size.precision,
        evaluate_every=size.evaluate_every,
    )


def prune_options(study: Study, size: Size) -> PruneOptions:
    training = fit_options(size, study.rate, study.batch_size)
    return PruneOptions(
        gates=GateOptions(rate=size.gate_rate),
        training=training,
        tuning=replace(training, steps=size.tuning_steps, warmup=min(20, size.tuning_steps // 10)),
        dev_metric="loss",
        seeds=size.seeds,
        ranking_examples=size.ranking_examples,
    )


def curves(study: Study, size: Size) -> Iterator[tuple[Lambdas, PruneOptions]]:
    """λ and options of each curve, the most telling first."""
    options = prune_options(study, size)
    yield study.lambdas, options
    baselines = {"baselines": ("l0", "importance", "relevance", "confidence", "random")}
    yield study.baseline_lambdas, replace(options, allocations=("own", "normalised", "l0"), **baselines)
    encoder = replace(options, parameters="encoder")
    yield study.encoder_lambdas, encoder
    yield study.encoder_lambdas[1:2], replace(encoder, allocations=("own", "normalised"), **baselines)
    scratch = replace(options.training, steps=size.scratch_steps, rate=study.scratch_rate, start="scratch")
    if size.scratch_steps:
        yield study.scratch_lambdas, replace(options, training=scratch)


def small_curves(study: Study, size: Size) -> Iterator[tuple[Lambdas, PruneOptions]]:
    """What a core computes in 15 minutes: gates on frozen weights for the curve, weights at few points, and the
    baselines that answer most.
    """
    options = prune_options(study, size)
    gates_alone = replace(options, parameters="gates")
    middle, other = study.baseline_lambdas[-1:], study.baseline_lambdas[:1]
    yield study.lambdas[1:7], replace(gates_alone, tuning=None)
    yield middle, replace(gates_alone, tuning=None, baselines=("importance", "random"), allocations=("own", "l0"))
    once = {"allocations": ("own", "l0"), "seeds": 1}
    yield middle, replace(gates_alone, baselines=("importance",), **once)
    yield study.encoder_lambdas[:2], replace(options, parameters="encoder", tuning=None)
    yield middle, replace(options, tuning=None)
    yield middle, replace(gates_alone, baselines=("random",), allocations=("l0",))
    methods = ("importance", "relevance", "confidence", "random")
    yield study.baseline_lambdas, replace(gates_alone, tuning=None, baselines=methods, allocations=("own", "l0"))
    yield other, replace(gates_alone, baselines=("importance",), **once)
    yield other, replace(gates_alone, baselines=("random",), allocations=("l0",))


def run(name: str, data: Path, out: Path, size_name: str) -> Sweep:
    study, size = STUDIES[name], SIZES[size_name]
    model, task = study.prepare(data, out, size)
    sweep = None
    started = time.monotonic()

    def report(progress: hs.Progress) -> None:
        if progress.stage == "points" or (progress.stage == "training" and progress.done % 50 == 0):
            seconds = time.monotonic() - started
            print(f"{seconds:7.0f} s  {progress.stage} {progress.done}/{progress.total}  {progress.note}", flush=True)

    for lambdas, options in (small_curves if size_name == "small" else curves)(study, size):
        if lambdas:
            sweep = hs.prune(model, task, out / name, lambdas=lambdas, options=options, smaller=False, progress=report)
    assert sweep is not None
    return sweep


# What came out


def table(sweep: Sweep) -> str:
    """The points of a sweep, a row each."""
    types = list(sweep.points[0].counts())
    lines = [f"| point | {' / '.join(types)} | score | 95 % | loss | seconds |", "|---|---|---|---|---|---|"]
    for point in sweep.points:
        counts = " / ".join(str(n_kept) for n_kept, _ in point.counts().values())
        low, high = point.score.interval or (float("nan"), float("nan"))
        loss = "" if point.loss is None else f"{point.loss:.3f}"
        scores = f"{point.score.value:.2f} | {low:.2f} to {high:.2f} | {loss}"
        lines.append(f"| {point.id} | {counts} | {scores} | {point.seconds:.0f} |")
    return "\n".join(lines)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("studies", nargs="+", choices=tuple(STUDIES))
    arguments.add_argument("--data", type=Path, default=Path("../shared/data"))
    arguments.add_argument("--out", type=Path, default=Path(".train/pruned"))
    arguments.add_argument("--size", choices=tuple(SIZES), default="small")
    arguments.add_argument("--at-once", type=int, default=1, help="Processes that share the points. Default: 1.")
    arguments.add_argument("--table", action="store_true", help="Print the points there are, and compute nothing.")
    options = arguments.parse_args()
    if options.table:
        for name in options.studies:
            print(f"\n{name}\n\n{table(Sweep.open(options.out / name))}")
        return
    command = [sys.executable, __file__, *options.studies, "--data", str(options.data), "--out", str(options.out)]
    command += ["--size", options.size]
    if options.at_once > 1:  # what is trained first is trained once
        for name in {"news", "bert"} & set(options.studies):
            STUDIES[name].prepare(options.data, options.out, SIZES[options.size])
    others = [subprocess.Popen(command) for _ in range(options.at_once - 1)]
    for name in options.studies:
        print(f"\n{name}\n\n{table(run(name, options.data, options.out, options.size))}", flush=True)
    failed = [process.pid for process in others if process.wait() != 0]
    if failed:
        sys.exit(f"{len(failed)} of {options.at_once} processes failed; run again to resume.")


if __name__ == "__main__":
    main()
