"""`headscope prune`: which heads a model can do without, what it costs, and the smaller model."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from headscope.choices import StartWeights, TaskName, TrainedPrecision, TrainedWithGates
from headscope.cli.console import print_json, print_note, print_text, printable
from headscope.cli.corpus_options import ReportFolder, parse_columns
from headscope.cli.load_model import Loading
from headscope.cli.progress import note_what_is_kept, progress_bars
from headscope.cli.shared_options import ModelName, PrintOptions
from headscope.errors import Cancelled, HeadscopeError, InputError

if TYPE_CHECKING:
    from headscope.pruning import PruneOptions, PrunePoint, Sweep
    from headscope.reports import PruneReport
    from headscope.tasks import LearningTask

EXAMPLE = (
    "Example: headscope prune builtin:gpt --task language_modelling --train train.txt --dev dev.txt --keep 0.5 "
    "--steps 200 -o pruned"
)
_DATA = "a file, a folder of images, or dataset:NAME:SPLIT of the Hugging Face Hub"
# How often dev is evaluated during training, at least; more often where training has more than 500 steps.
_EVALUATIONS = 5


@dataclass(frozen=True)
class TaskData:
    """What the model is trained for and judged by."""

    task: Annotated[TaskName, typer.Option(help="What the model is trained for and judged by.")]
    train: Annotated[str, typer.Option(help=f"Training data: {_DATA}.")]
    dev: Annotated[str, typer.Option(help="Data to evaluate on during training and to choose a point by.")]
    test: Annotated[str | None, typer.Option(help="Data to score finished models on. Default: dev.")] = None
    metric: Annotated[
        str | None,
        typer.Option(help="Metric. Default: bleu, bits_per_byte, loss, accuracy or f1, as is usual for the task."),
    ] = None
    dev_metric: Annotated[
        str | None, typer.Option(help="Metric on dev during training. Default: loss for translation, else --metric.")
    ] = None
    columns: Annotated[
        str | None,
        typer.Option(
            help="Columns by index (from 0) or name, as text=0,target=1. Fields: text, pair, target, label. "
            "For tagging: the names of the tag columns, as pos,chunk. Default: detected."
        ),
    ] = None

    def learning_task(self) -> "LearningTask":
        """The task with its data, opened."""
        from headscope import tasks

        columns = parse_columns(self.columns, "conll2000" if self.task == "tagging" else None)
        splits = {"train": self.train, "dev": self.dev, "test": self.test}
        data = {split: _source(source) for split, source in splits.items() if source is not None}
        return getattr(tasks, self.task)(**data, metric=self.metric, columns=columns)

    def metric_on_dev(self) -> str | None:
        """BLEU takes minutes at each evaluation: the loss is enough to choose weights by."""
        return self.dev_metric or ("loss" if self.task == "translation" else None)


@dataclass(frozen=True)
class HeadChoice:
    """How many heads are to survive."""

    keep: Annotated[float | None, typer.Option(help="Share of heads that survive, 0 to 1. Finds λ by bisection.")] = (
        None
    )
    penalty: Annotated[
        list[str] | None,
        typer.Option(
            "--lambda",
            help="Penalty λ, in nats per open head; repeatable. A number, or one by type of attention, as "
            "encoder=0.05,cross=0.01: types without one are not pruned.",
        ),
    ] = None

    def lambdas(self) -> "list[float | dict[str, float]]":
        """The penalties; an error where they contradict `--keep` or are none."""
        if (self.keep is None) == (not self.penalty):
            raise InputError(
                "give either --keep (the share of heads that survive, 0 to 1) or --lambda (a penalty in nats per open "
                "head; repeatable)."
            )
        if self.keep is not None and not 0 <= self.keep <= 1:
            raise InputError(f"--keep is a share of the heads, from 0 to 1, got {self.keep:g}.")
        return [_penalty(text) for text in self.penalty or ()]


@dataclass(frozen=True)
class Training:
    """How gates and weights are trained."""

    steps: Annotated[int, typer.Option(help="Training steps with gates, for each λ.", min=1)] = 1000
    tuning_steps: Annotated[
        int | None,
        typer.Option(
            help="Steps of fine-tuning after it, with the mask fixed. 0: none. Default: half of --steps.", min=0
        ),
    ] = None
    parameters: Annotated[
        TrainedWithGates,
        typer.Option(help="Train gates and all weights, gates alone, or gates and encoder beside a frozen decoder."),
    ] = "all"
    start: Annotated[StartWeights, typer.Option(help="Begin with the trained weights, or draw them anew.")] = "trained"
    batch_size: Annotated[int, typer.Option(help="Examples per step.", min=1)] = 32
    rate: Annotated[float, typer.Option(help="Highest learning rate of the weights.")] = 1e-4
    gate_rate: Annotated[
        float, typer.Option(help="Highest learning rate of the gates: raise it for fewer than 100 steps.")
    ] = 0.05
    precision: Annotated[TrainedPrecision, typer.Option(help="Precision of training (autocast).")] = "fp32"
    seed: Annotated[int, typer.Option(help="Seed of data order, dropout and gates.")] = 0


@dataclass(frozen=True)
class Comparisons:
    """What L0's choice of heads is compared with."""

    baselines: Annotated[
        str | None,
        typer.Option(
            help="Other ways to choose as many heads, with and without the same fine-tuning: some of importance, "
            "relevance, confidence, random, l0 (L0's mask on the original weights), with commas between. Default: none."
        ),
    ] = None
    seeds: Annotated[int, typer.Option(help="Seeds of each baseline.", min=1)] = 1
    no_roles: Annotated[
        bool, typer.Option("--no-roles", help="Do not measure the roles of the surviving heads again.")
    ] = False
    roles_corpus: Annotated[
        Path | None,
        typer.Option(help="Corpus to measure roles on; only a treebank shows syntactic roles. Default: dev."),
    ] = None


def prune(
    model: ModelName,
    output: ReportFolder,
    *,
    data: TaskData,
    choice: HeadChoice,
    training: Training,
    comparisons: Comparisons,
    loading: Loading,
    print_options: PrintOptions,
) -> None:
    """Find the heads that a model can do without, what it costs, and write the smaller model.

    Writes baked/ and slim/ (the smaller model), report.html, Parquet and checkpoints.
    """
    lambdas = choice.lambdas()
    options = _options(training, comparisons, data)
    task = data.learning_task()
    if data.dev_metric is not None:
        task.check_metric(data.dev_metric)
    corpus = _roles_corpus(comparisons, task)
    _check_folder(output)
    loaded = loading.model(model)
    task.check(loaded)

    settings = {"keep": choice.keep, "lambdas": lambdas, "options": options}
    sweep, finished = _prune_and_report(loaded, task, output, settings, corpus)
    if print_options.json:
        print_json(_document(sweep, finished))
    else:
        _show(sweep, finished, model)


def _prune_and_report(
    model: Any, task: "LearningTask", output: Path, settings: dict[str, Any], corpus: Any
) -> tuple["Sweep", "PruneReport"]:
    """The sweep and its report, with roles on a corpus; when stopped, what is the best so far."""
    from headscope.pruning import prune as prune_heads
    from headscope.reports import prune_report

    sweep = None
    with note_what_is_kept(output):
        try:
            with progress_bars() as progress:
                sweep = prune_heads(model, task, output, progress=progress, **settings)
                measured_on = (None, None) if corpus is None else (model, corpus)
                return sweep, prune_report(sweep, *measured_on, progress=progress)
        except (KeyboardInterrupt, Cancelled):  # here the bars are gone, which would draw over the note
            _note_best(output, is_finished=sweep is not None)
            raise


def _options(training: Training, comparisons: Comparisons, data: TaskData) -> "PruneOptions":
    from headscope.pruning import GateOptions, PruneOptions
    from headscope.tasks import FitOptions

    tuning_steps = training.steps // 2 if training.tuning_steps is None else training.tuning_steps
    shared: dict[str, Any] = {
        "batch_size": training.batch_size,
        "rate": training.rate,
        "precision": training.precision,
        "seed": training.seed,
    }

    def fit(steps: int, **settings: Any) -> FitOptions:
        return FitOptions(steps=steps, evaluate_every=max(1, min(100, steps // _EVALUATIONS)), **settings, **shared)

    baselines: Any = tuple(name.strip() for name in (comparisons.baselines or "").split(",") if name.strip())
    return PruneOptions(
        parameters=training.parameters,
        gates=GateOptions(rate=training.gate_rate),
        training=fit(training.steps, start=training.start),
        tuning=fit(tuning_steps) if tuning_steps else None,
        dev_metric=data.metric_on_dev(),
        baselines=baselines,
        seeds=comparisons.seeds,
    )


def _source(text: str) -> str | Path:
    return text if text.startswith("dataset:") else Path(text)


def _penalty(text: str) -> float | dict[str, float]:
    """`0.05`, or `encoder=0.05,cross=0.01`."""
    try:
        if "=" not in text:
            return _at_least_0(text)
        return {name.strip(): _at_least_0(value) for name, value in (part.split("=") for part in text.split(","))}
    except ValueError as error:
        raise InputError(
            f"--lambda {text} is not a penalty: write a number that is at least 0, as 0.05, or numbers by type of "
            "attention, as encoder=0.05,cross=0.01."
        ) from error


def _at_least_0(text: str) -> float:
    value = float(text)
    if not 0 <= value < float("inf"):
        raise ValueError(text)
    return value


def _roles_corpus(comparisons: Comparisons, task: "LearningTask") -> Any:
    """What roles are measured on; None where they are not."""
    if comparisons.no_roles:
        return None
    if comparisons.roles_corpus is None:
        return task.dev
    from headscope.corpora import corpus

    return corpus(comparisons.roles_corpus)


def _check_folder(output: Path) -> None:
    from headscope.pruning.sweep_folder import refuse_other_files

    refuse_other_files(output)


# What is printed


def _note_best(output: Path, *, is_finished: bool) -> None:
    """After Ctrl-C: which point is the best so far, and the report of what is there. It is written already where all
    points are finished, and roles were being measured.
    """
    from headscope.pruning import Sweep
    from headscope.reports import prune_report

    try:
        if not is_finished:
            prune_report(output)
        sweep = Sweep.open(output)
        best = sweep.chosen
    except HeadscopeError as problem:  # stopped before there was anything, or a full disk
        print_note(f"There is no report yet: {problem}")
        return
    if best is None:
        print_note("No point with pruned heads is finished yet.")
        return
    print_note(f"The best so far is {_in_words(best)}. {_where(sweep)}")


def _in_words(point: "PrunePoint") -> str:
    n_kept, n_heads = point.total()
    return f"{point.id}: {n_kept} of {n_heads} heads, {point.score.metric} {_score(point)}"


def _score(point: "PrunePoint") -> str:
    from headscope.reports.pruning.conclusions import score_text

    return score_text(point.score.metric, point.score.value)


def _where(sweep: "Sweep") -> str:
    folders = _smaller_models(sweep)
    return f"Its model is in {' and '.join(folders.values())}." if folders else ""


def _smaller_models(sweep: "Sweep") -> dict[str, str]:
    """The folders of the chosen point's smaller models; those of another point are none of it."""
    from headscope.pruning.smaller_model import smaller_models_of

    chosen = sweep.chosen
    if chosen is None or smaller_models_of(sweep.folder, chosen.id, chosen.mask) is None:
        return {}
    return {name: str(sweep.folder / name) for name in ("baked", "slim") if (sweep.folder / name).is_dir()}


def _document(sweep: "Sweep", report: "PruneReport") -> dict[str, Any]:
    chosen = sweep.chosen
    points = [point.to_json() for point in report.points]
    for point in points:
        point.pop("history")
    about = {name: report.about[name] for name in ("model", "task", "metric", "higher_is_better", "baseline", "data")}
    files = {"folder": str(sweep.folder), "page": str(report.page), **_smaller_models(sweep)}
    return {**about, "chosen": None if chosen is None else chosen.id, "points": points, **files}


def _show(sweep: "Sweep", report: "PruneReport", model: str) -> None:
    from headscope.reports.pruning.conclusions import METRIC_LABELS, cost, score_text

    metric = report.about["metric"]
    label, _ = METRIC_LABELS[metric]
    title = Text(f"Heads of {printable(report.about['model'])} and {label}")
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column("point", overflow="fold")
    types = _types(report)
    for name in ("heads kept", *types, label, "95 % interval"):
        table.add_column(name, justify="right")
    for point in report.points:
        low_high = point.score.interval
        interval = "" if low_high is None else " to ".join(score_text(metric, value) for value in low_high)
        n_kept, n_heads = point.total()
        counts = [f"{survivors}/{heads}" for survivors, heads in point.counts().values()] if types else []
        mark = " (chosen)" if point.id == report.chosen else ""
        table.add_row(point.id + mark, f"{n_kept}/{n_heads}", *counts, _score(point), interval)
    print_text(table)
    for panel in report.panels:
        print_text(cost(panel, report.baseline))
    about = {"baked": "the original's size, with the pruned heads folded away", "slim": _gain(report)}
    for name, folder in _smaller_models(sweep).items():
        print_text(Text.assemble((f"{name}: ", "bold"), f"{folder} ({about[name]})"))
    print_text(Text.assemble(("page: ", "bold"), str(report.page)))
    if any(point.total()[0] < point.total()[1] for point in report.points):
        print_text(Text.assemble(("workbench: ", "bold"), f"headscope serve {model} --sweep {sweep.folder}"))


def _gain(report: "PruneReport") -> str:
    """How much smaller and faster the slim model is."""
    smaller = report.smaller
    if smaller is None or smaller.slim is None:
        return ""
    original, slim = smaller.baked, smaller.slim
    sizes = f"{slim.parameters:,} of {original.parameters:,} parameters"
    operations = f"{100 * slim.flops.total / original.flops.total:.0f} % of the operations"
    return f"{sizes}, {operations}, {original.seconds / slim.seconds:.2f} times as fast with {smaller.timed_on}"


def _types(report: "PruneReport") -> list[str]:
    types = list(report.points[0].counts()) if report.points else []
    return types if len(types) > 1 else []
