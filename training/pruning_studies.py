"""The studies of `prune_builtin.py`: a model, its task and data, and the points of its curves in order of weight."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from corpora import DOCUMENT_END, language_model_documents, read_table, read_xz, shuffle, translation_pairs, write_xz
from sentence_pairs import tatoeba_sentences
from transformers import AutoModelForSequenceClassification, AutoTokenizer

import headscope as hs
from headscope import tasks
from headscope.corpora import Example
from headscope.pruning import GateOptions, PruneOptions
from headscope.tasks import FitOptions, LearningTask

Lambdas = tuple[float, ...]
Prepare = Callable[[Path, "Study", "Size"], tuple[hs.Model, LearningTask]]
# Text for `gpt` that was cut already, in the folder of data: the books it comes from are larger than all else together.
PASSAGES = "gpt_passages"
# Passages to judge `gpt` by, at most.
N_HELD_OUT = 400
RANKINGS = ("importance", "relevance", "confidence")


@dataclass(frozen=True)
class Size:
    """How much is computed. Examples: None is all there are, or as many as the study says."""

    steps: int
    tuning_steps: int
    scratch_steps: int
    adapting_steps: int
    batch_size: int
    n_train: int | None
    n_dev: int | None
    n_test: int | None
    gate_rate: float
    seeds: int
    ranking_examples: int
    role_examples: int
    precision: Any = "fp32"
    passage_characters: int = 400


SIZES = {
    "tiny": Size(4, 2, 4, 4, 4, 40, 8, 8, 0.5, 2, 4, 20),
    "small": Size(80, 80, 0, 320, 16, 1_500, 64, 150, 0.25, 3, 32, 300),
    "full": Size(500, 250, 3000, 500, 512, None, 300, 1000, 0.05, 3, 200, 300, "bf16", 1600),
}


@dataclass(frozen=True)
class Study:
    """A model with its task; its learning rate and largest batch; λ of each curve, and those of the baselines.

    `adapting_rate` is that of training for the task before anything is pruned. `workers` is its share of the processes.
    """

    prepare: Prepare
    rate: float
    batch_size: int
    batch_tokens: int
    lambdas: Lambdas
    baseline_lambdas: Lambdas
    more_lambdas: Lambdas = ()
    n_train: int | None = None
    encoder_lambdas: Lambdas = ()
    scratch_lambdas: Lambdas = ()
    scratch_rate: float = 1e-3
    adapting_rate: float | None = None
    measures_roles: bool = False
    n_test: int | None = None
    workers: int = 2


# What is read


def prepare_translate(data: Path, study: Study, size: Size) -> tuple[hs.Model, LearningTask]:
    rows = list(translation_pairs(data))

    def pairs(split: str, n: int | None, *, with_pivot: bool = False) -> list[tuple[str, str]]:
        chosen = [(english, russian) for own, english, russian, kind in rows
                  if own == split and (with_pivot or kind == "direct")]  # fmt: skip
        return sample(chosen, n)

    train = pairs("train", size.n_train or study.n_train, with_pivot=True)
    return translator(), translation(train, pairs("valid", size.n_dev), pairs("test", size.n_test))


def prepare_news(data: Path, study: Study, size: Size) -> tuple[hs.Model, LearningTask]:
    rows = [row[:3] for row in read_table(data / "en_ru" / "newstest_2012_2020.tsv.xz")]

    def pairs(years: tuple[str, ...], n: int | None) -> list[tuple[str, str]]:
        return sample([(row[1], row[2]) for row in rows if row[0].startswith(years)], n)

    train = pairs(tuple(f"newstest{year}" for year in range(2012, 2019)), size.n_train or study.n_train)
    n_test = size.n_test if study.n_test is None or size.n_test is None else min(size.n_test, study.n_test)
    return translator(), translation(train, pairs(("newstest2019",), size.n_dev), pairs(("newstest2020",), n_test))


def translator() -> hs.Model:
    return hs.load("builtin:translate", dtype=torch.float32, device="cpu")


def translation(*splits: list[tuple[str, str]]) -> LearningTask:
    return tasks.translation(*splits, label_smoothing=0.1)


def prepare_gpt(data: Path, study: Study, size: Size) -> tuple[hs.Model, LearningTask]:
    n_held_out = [min(n or N_HELD_OUT, N_HELD_OUT) for n in (size.n_dev, size.n_test)]
    numbers = dict(zip(("train", "valid", "test"), (size.n_train or study.n_train, *n_held_out), strict=True))
    model = hs.load("builtin:gpt", dtype=torch.float32, device="cpu")
    splits = [passages(data, split, n or N_HELD_OUT, size.passage_characters) for split, n in numbers.items()]
    return model, tasks.language_modelling(*splits)


def passages(data: Path, split: str, n: int, n_characters: int) -> list[str]:
    """A sample of documents in parts of at most so many characters: 1,600 are about the model's 512 positions."""
    file = passage_file(data, split)
    if file.exists():
        texts = read_xz(file).split(DOCUMENT_END)
    else:
        texts = language_model_documents(data, tatoeba_sentences(data)[0], split)
    parts = [text[start : start + n_characters] for text in texts for start in range(0, len(text), n_characters)]
    return sample([part for part in parts if part.strip()], n)


def passage_file(data: Path, split: str) -> Path:
    return data / PASSAGES / f"{split}.txt.xz"


def write_passages(data: Path, folder: Path) -> None:
    """Write all that `gpt` reads at full size into another folder of data."""
    for split, n in (("train", STUDIES["gpt"].n_train), ("valid", None), ("test", None)):
        texts = passages(data, split, n or N_HELD_OUT, SIZES["full"].passage_characters)
        write_xz(passage_file(folder, split), DOCUMENT_END.join(texts))


def prepare_bert(data: Path, study: Study, size: Size) -> tuple[hs.Model, LearningTask]:
    """A classifier that is yet to be trained."""

    def examples(split: str, n: int | None) -> list[Example]:
        rows = list(read_table(data / "sst2_glue" / f"{split}.tsv.xz"))
        return sample([Example(f"{split}:{i}", text=row[1], label=row[0]) for i, row in enumerate(rows)], n)

    n_test = None if size.precision == "bf16" else size.n_test  # classes are judged fast: all of them
    task = tasks.sequence_classification(
        examples("train", size.n_train or study.n_train), examples("dev", size.n_dev), examples("test", n_test)
    )
    folder = Path(hs.__file__).parent / "builtin" / "bert"
    torch.manual_seed(0)
    module = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=2, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    return hs.Model(module.eval(), tokenizer, name="builtin:bert on SST-2"), task


def adapt(model: hs.Model, task: LearningTask, study: Study, size: Size, folder: Path) -> None:
    """Train a model for a task that it was not made for; the folder keeps the weights."""
    assert study.adapting_rate is not None
    judged = copy.copy(task)
    judged.metric = "loss"
    options = replace(fit_options(study, size, size.adapting_steps), rate=study.adapting_rate)
    tasks.fit(model, judged, replace(options, evaluate_every=max(1, size.adapting_steps // 4)), folder=folder)


def sample(rows: list, n: int | None) -> list:
    """The first n in an order that has nothing to do with that of the source."""
    by_text = {str(row): row for row in rows}
    return [by_text[text] for text in shuffle(by_text)][:n]


TRANSLATOR_LAMBDAS = (0.03, 0.0097, 0.017, 0.0056, 0.053, 0.092)
MORE_LAMBDAS = (0.0032, 0.162)
STUDIES = {
    "translate": Study(
        prepare_translate,
        2e-4,
        512,
        16_384,
        TRANSLATOR_LAMBDAS,
        (0.03, 0.0097),
        more_lambdas=MORE_LAMBDAS,
        n_train=60_000,
        encoder_lambdas=(0.03, 0.0097, 0.092),
        scratch_lambdas=(0.03, 0.0097, 0.0),
        workers=9,
    ),
    "news": Study(
        prepare_news,
        2e-4,
        512,
        8_192,
        TRANSLATOR_LAMBDAS[:5],
        (),
        n_train=15_000,
        adapting_rate=3e-4,
        n_test=500,
    ),
    "gpt": Study(
        prepare_gpt,
        2e-4,
        16,
        8_192,
        (0.016, 0.004, 0.008, 0.002, 0.032, 0.001, 0.064),
        (0.016, 0.004),
        n_train=4_000,
        measures_roles=True,
    ),
    "bert": Study(
        prepare_bert,
        1e-4,
        128,
        8_192,
        (0.008, 0.002, 0.004, 0.001, 0.016, 0.0005, 0.032),
        (0.008, 0.002),
        n_train=20_000,
        adapting_rate=1e-4,
        measures_roles=True,
    ),
}


# What is computed


def fit_options(study: Study, size: Size, steps: int) -> FitOptions:
    return FitOptions(
        steps=steps,
        batch_size=min(size.batch_size, study.batch_size),
        batch_tokens=study.batch_tokens,
        rate=study.rate,
        warmup=min(50, steps // 10),
        precision=size.precision,
        evaluate_every=max(1, steps // 2),
    )


def prune_options(study: Study, size: Size) -> PruneOptions:
    return PruneOptions(
        gates=GateOptions(rate=size.gate_rate),
        training=fit_options(study, size, size.steps),
        tuning=fit_options(study, size, size.tuning_steps),
        dev_metric="loss",
        seeds=size.seeds,
        ranking_examples=size.ranking_examples,
    )


def curves(study: Study, size: Size) -> Iterator[tuple[Lambdas, PruneOptions]]:
    """λ and options of each curve, those first that take longest or tell most."""
    options = prune_options(study, size)
    scratch = replace(fit_options(study, size, size.scratch_steps or 1), rate=study.scratch_rate, start="scratch")
    if size.scratch_steps:
        yield study.scratch_lambdas, replace(options, training=scratch)
    yield study.lambdas, options
    once, encoder = replace(options, seeds=1), replace(options, parameters="encoder")
    for lambdas in (study.baseline_lambdas[:1], study.baseline_lambdas[1:]):
        yield lambdas, replace(options, baselines=("random",), allocations=("l0",))
        yield lambdas, replace(once, baselines=("l0", "importance"), allocations=("own", "l0"))
        yield lambdas, replace(options, l0_seeds=size.seeds)
        if lambdas == study.baseline_lambdas[:1]:
            yield study.encoder_lambdas, encoder
            yield study.encoder_lambdas[:1], replace(encoder, baselines=("random",), allocations=("own",))
            chosen = replace(encoder, baselines=("l0", *RANKINGS), allocations=("own",), seeds=1)
            yield study.encoder_lambdas[:1], chosen
        yield lambdas, replace(once, baselines=RANKINGS, allocations=("own", "l0"))
        yield lambdas, replace(options, baselines=("random",), allocations=("own", "l0"))
    yield study.more_lambdas, options
    yield study.baseline_lambdas, replace(once, baselines=RANKINGS, allocations=("own", "normalised", "l0"))


def small_curves(study: Study, size: Size) -> Iterator[tuple[Lambdas, PruneOptions]]:
    """What a core computes in 15 minutes: gates on frozen weights for the curve, weights at few points, and the
    baselines that answer most.
    """
    options = prune_options(study, size)
    gates_alone = replace(options, parameters="gates")
    middle, other = study.baseline_lambdas[:1], study.baseline_lambdas[1:]
    yield tuple(sorted(study.lambdas)), replace(gates_alone, tuning=None)
    yield middle, replace(gates_alone, tuning=None, baselines=("importance", "random"), allocations=("own", "l0"))
    once = {"allocations": ("own", "l0"), "seeds": 1}
    yield middle, replace(gates_alone, baselines=("importance",), **once)
    yield study.encoder_lambdas[:2], replace(options, parameters="encoder", tuning=None)
    yield middle, replace(options, tuning=None)
    yield middle, replace(gates_alone, baselines=("random",), allocations=("l0",))
    methods = (*RANKINGS, "random")
    yield study.baseline_lambdas, replace(gates_alone, tuning=None, baselines=methods, allocations=("own", "l0"))
    yield other, replace(gates_alone, baselines=("importance",), **once)
    yield other, replace(gates_alone, baselines=("random",), allocations=("l0",))
