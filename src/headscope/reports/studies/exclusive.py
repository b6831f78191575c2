"""The exclusiveness study as a report: the same Transformer on tagging and classification, side by side."""

import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from headscope.faithfulness.studies.exclusive import (
    LEVELS,
    STARTS,
    TASKS,
    ExclusiveOptions,
    ExclusiveResult,
    train_both_tasks,
)
from headscope.progress import Cancel, OnProgress
from headscope.reports.studies.charts import Chart, Mark, PointSeries, points_chart
from headscope.reports.studies.checks import NOT_QUOTED, TRAINING, Check, Study, check_folder
from headscope.reports.studies.seed_means import SeedMean, mean_over_pairs, mean_over_seeds
from headscope.tasks.task_data import Columns

TITLE = "Exclusive: is attention harder to replace in tagging than in classification?"
PUBLISHED_FOR = (
    "a one-layer tagger of CoNLL-2000 [report] and a BiLSTM on SST [memory]: another model for each task, one seed"
)
# The level at which the conclusion compares.
CHOSEN_LEVEL = 0.05
# And of the change without attention, this part.
NEEDED_PART = 0.25
NOTES = (
    "Tagging answers for every word, and reads the answer from the word's own row of attention. Classification answers "
    "once, and reads the answer from the row of the first token. Both compare these rows in the last layer.",
    "JSD is in nats, at most ln 2 = 0.693. Heads are paired so that the rows are closest, since nothing makes head 0 "
    "of one model do what head 0 of another does; the mean over heads, then over answers of the test set.",
    "Chance is the JSD from another model's rows with their weights in another order. Stability is 1 − JSD / chance: 1 "
    "for equal rows, 0 for rows that are no more alike than that.",
    "A global adversary is a trained model: cross-entropy with the base's probabilities − λ · KL(adversary ‖ base), "
    "from fresh weights or from the base's. JSD at a change is read linearly between two of them: each "
    "for a part of the answers.",
    "An adversary of single answers changes the rows of one answer, and leaves the model as it is (Jain & Wallace).",
    "The answers of one task need attention more than those of the other: most words can be tagged without any. So the "
    "tasks are also compared at the change that another seed makes, and at a quarter of the change without attention.",
    "Share is JSD over the largest that any rows could have from the base's: rows of longer texts can go further.",
    "Square brackets hold 95 % intervals over seeds, by Student's t; those of pairs of seeds by the jackknife. "
    "Differences are of independent seeds (Welch). They know nothing of other data or settings.",
    "[report]: stated in Yang's report. [memory]: Wiegreffe & Pinter's figures quoted from memory of the paper.",
    "The tasks differ in data, number of classes and length of texts too. A difference between them need not be due to "
    "the kind of task.",
)
_PUBLISHED = {
    "tagging": "F1 0.90 at λ = 0.2, 0.75 at λ = 3 [report]",
    "classification": "JSD 0.514 at a change of 0.036 [memory]",
}
_MARKS: dict[str, tuple[Mark, int]] = {"tagging": ("dot", 1), "classification": ("square", 2)}


def exclusive_study(
    chunks: Sequence[Any],
    texts: Sequence[Any],
    vectors: Any,
    folder: str | Path,
    options: ExclusiveOptions | None = None,
    *,
    columns: Columns | None = None,
    device: str | None = None,
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> Study:
    """Train the models of the exclusiveness study on a device, or resume, and write the report into `folder`.

    `chunks` are CoNLL-2000's training and test file; `texts` are tables of texts with one of two labels: training, dev
    and test. `vectors` names a model whose input embeddings become the word vectors.
    """
    check_folder(folder)
    watch = {"columns": columns, "device": device, "progress": progress, "cancel": cancel}
    result = train_both_tasks(chunks, texts, vectors, Path(folder) / TRAINING, options, **watch)
    study = exclusive_report(result)
    study.save(folder)
    return study


def exclusive_report(result: ExclusiveResult) -> Study:
    """The report of a finished study."""
    settings, sizes, n_seeds = result.settings, result.n_texts, len(result.of("base", "tagging"))
    n_layers = "one layer" if settings["layers"] == 1 else f"{settings['layers']} layers"
    about = (
        f"The same Transformer ({n_layers} of {settings['tagger']['n_heads']} heads, width "
        f"{settings['tagger']['width']}), {settings['epochs']} epochs on {sizes['tagging']['train']:,} sentences of "
        f"CoNLL-2000 and {sizes['classification']['train']:,} texts of two classes. {n_seeds} seeds "
        f"per task. Published numbers are of {PUBLISHED_FOR}."
    )
    return Study(
        "exclusive",
        TITLE,
        PUBLISHED_FOR,
        "small Transformer",
        "CoNLL-2000 and two classes",
        sum(sum(split.values()) for split in sizes.values()),
        (*_scores(result), *_needs(result), *_stability(result), *_reach(result)),
        NOTES,
        about=about,
        conclusion=conclusion(result),
        configuration=result.configuration,
        charts=tuple(charts(result)),
        rows=tuple(
            {name: value for name, value in line.items() if name != "test"}
            | {f"test_{name}": value for name, value in line.get("test", {}).items()}
            for line in result.lines
        ),
    )


def conclusion(result: ExclusiveResult) -> str:
    """Both answers in words. Tasks are called different where the interval of their difference leaves out 0."""
    stable = [stability(result, task) for task in TASKS]
    sentences = [
        _sentence(
            stable,
            "Attention is more stable across seeds in tagging than in classification",
            "Attention is less stable across seeds in tagging than in classification",
            "Whether attention is more stable across seeds in tagging than in classification is not decided",
            "stability",
        )
    ]
    for what, levels in _yardsticks(result).items():
        shares = [reached(result, task, level, share=True) for task, level in zip(TASKS, levels, strict=True)]
        sentences.append(
            _sentence(
                [share for share in shares if share is not None],
                f"At {what}, attention is less exclusive in tagging: global adversaries go further",
                f"At {what}, attention is more exclusive in tagging: global adversaries go less far",
                f"At {what}, which task has the more exclusive attention is not decided",
                "share of the reachable JSD",
            )
        )
    return " ".join(sentences)


def stability(result: ExclusiveResult, task: str) -> SeedMean:
    """1 − JSD / chance, over pairs of seeds."""
    return mean_over_pairs({
        (line["first"], line["second"]): 1 - line["jsd"] / line["chance"] for line in result.of("pair", task)
    })  # fmt: skip


def reached(
    result: ExclusiveResult, task: str, level: float, *, start: str | None = None, share: bool = False
) -> SeedMean | None:
    """How far global adversaries go from their bases (JSD, or its share of what is reachable) at a change of the
    answer, the mean over bases; None unless those of every base come that near. `start` None: whichever goes further.
    """
    lines = [line for line in result.of("adversary", task) if start in (None, line["start"])]
    values = []
    for seed in sorted({line["seed"] for line in lines}):
        own = [line["test"] for line in lines if line["seed"] == seed]
        far = frontier([(row["tvd"], row["jsd"] / (row["reachable"] if share else 1.0)) for row in own], level,
                       from_base=start != "fresh")  # fmt: skip
        if far is None:
            return None
        values.append(far)
    return mean_over_seeds(values)


def frontier(points: Sequence[tuple[float, float]], level: float, *, from_base: bool) -> float | None:
    """The greatest distance at a change of at most `level`, from points (change, distance).

    Between two models it is read linearly: answers may be split between them, and both numbers are means over answers.
    With `from_base` the base itself, (0, 0), is one of the points.

    >>> frontier([(0.1, 0.4), (0.2, 0.3), (0.3, 0.6)], 0.2, from_base=True)
    0.5
    """
    known = [*points, (0.0, 0.0)] if from_base else list(points)
    within, beyond = ([point for point in known if (point[0] <= level) is side] for side in (True, False))
    if not within:
        return None
    mixed = [near + (far - near) * (level - low) / (high - low) for low, near in within for high, far in beyond]
    return max([distance for _, distance in within] + mixed)


def _scores(result: ExclusiveResult) -> Iterator[Check]:
    part = "How well the models do (accuracy on the test set)"
    for task in TASKS:
        accuracy = mean_over_seeds([line["test"]["accuracy"] for line in result.of("base", task)])
        ours = f"{accuracy}; commonest answer {result.commonest[task]:.3f}; {result.n_parameters[task]:,} parameters"
        yield Check(part, task, NOT_QUOTED, ours)


def _needs(result: ExclusiveResult) -> Iterator[Check]:
    part = "How much answers need attention at all (change of the answer, TVD; the model as it is)"
    names = {"uniform": "uniform rows", "permuted": "rows in another order, median", "no_attention": "no attention"}
    for name, what in names.items():
        means = [mean_over_seeds([line[name] for line in result.of("needs", task)]) for task in TASKS]
        yield Check(part, what, NOT_QUOTED, _beside(means))


def _stability(result: ExclusiveResult) -> Iterator[Check]:
    part = "Is attention more stable across seeds in tagging? (pairs of seeds, test set)"
    figures = {
        "JSD of paired heads": "jsd",
        "JSD of heads by their number": "jsd_numbered",
        "JSD of the mean over heads": "jsd_mean",
        "JSD by chance: weights in another order": "chance",
        "same most attended token": "top1",
        "change of the answer (TVD)": "tvd",
    }
    for what, name in figures.items():
        means = [
            mean_over_pairs({(line["first"], line["second"]): line[name] for line in result.of("pair", task)})
            for task in TASKS
        ]
        yield Check(part, what, NOT_QUOTED, _beside(means))
    yield Check(part, "stability, 1 − JSD / chance", NOT_QUOTED, _beside([stability(result, task) for task in TASKS]))


def _reach(result: ExclusiveResult) -> Iterator[Check]:
    part = "Global adversaries"
    for task in TASKS:
        rows = [line["test"] for line in result.of("adversary", task)]
        ours = f"JSD up to {max(row['jsd'] for row in rows):.3f}, at a change of {_at_furthest(rows):.3f}"
        yield Check(part, f"{task}: the furthest", _PUBLISHED[task], ours)
    for yardstick, levels in _yardsticks(result).items():
        for what, share in (("JSD", False), ("share of what is reachable", True)):
            far = [reached(result, task, level, share=share) for task, level in zip(TASKS, levels, strict=True)]
            yield Check(part, f"at {yardstick}: {what}", NOT_QUOTED, _beside(far))
    for level in LEVELS:
        part = f"How far attention can go when the answer changes by at most {level:g} (TVD)"
        names = {f"global adversaries from {start} weights, JSD": start for start in STARTS}
        for what, start in {**names, "global adversaries, the further of both, JSD": None}.items():
            yield Check(part, what, NOT_QUOTED, _beside([reached(result, task, level, start=start) for task in TASKS]))
        shares = [reached(result, task, level, share=True) for task in TASKS]
        yield Check(part, "the same as share of what is reachable", NOT_QUOTED, _beside(shares))
        for what, share in (("adversaries of single answers, JSD", False), ("the same as share", True)):
            single = [_of_answers(result, task, level, share=share) for task in TASKS]
            yield Check(part, what, NOT_QUOTED, _beside(single))


def _yardsticks(result: ExclusiveResult) -> dict[str, list[float]]:
    """Changes of the answer at which tasks are compared, tagging and classification: in words and in figures."""
    seeds = [statistics.fmean(line["tvd"] for line in result.of("pair", task)) for task in TASKS]
    without = [statistics.fmean(line["no_attention"] for line in result.of("needs", task)) for task in TASKS]
    parts = [NEEDED_PART * change for change in without]
    return {
        f"a change of {CHOSEN_LEVEL:g}": [CHOSEN_LEVEL] * len(TASKS),
        f"the change of another seed ({seeds[0]:.3f} and {seeds[1]:.3f})": seeds,
        f"a quarter of the change without attention ({parts[0]:.3f} and {parts[1]:.3f})": parts,
    }


def _of_answers(result: ExclusiveResult, task: str, level: float, *, share: bool) -> SeedMean:
    lines = [line for line in result.of("answers", task) if line["level"] == level]
    return mean_over_seeds([line["jsd"] / (line["reachable"] if share else 1.0) for line in lines])


def charts(result: ExclusiveResult) -> Iterator[Chart]:
    """Distance against change: adversaries of both kinds, and other seeds, for both tasks."""
    series, seeds = [], []
    for task, (mark, color) in _MARKS.items():
        lines = result.of("adversary", task)
        places = [(line["test"]["jsd"] / line["test"]["reachable"], line["test"]["tvd"]) for line in lines]
        notes = [line["name"] for line in lines]
        series.append(PointSeries(f"{task}, global adversaries", places, mark, color, notes=notes))
        single = [(_of_answers(result, task, level, share=True).mean, level) for level in LEVELS]
        series.append(PointSeries(f"{task}, single answers", single, "plus", color + 2, is_line=True))
        pairs = [(line["jsd"], line["tvd"]) for line in result.of("pair", task)]
        seeds.append(PointSeries(task, pairs, mark, color))
    yield points_chart(
        "How far attention goes, and what it costs",
        "Each point is a model, or a level of change for single answers. Right and down is less exclusive.",
        series,
        x="JSD from the base, share of what is reachable",
        y="change of the answer (TVD)",
    )
    yield points_chart(
        "Models of other seeds",
        "Each point is a pair of models that differ in their seed alone.",
        seeds,
        x="JSD of paired heads, nats (at most 0.693)",
        y="change of the answer (TVD)",
    )


def _sentence(values: Sequence[SeedMean], above: str, below: str, undecided: str, what: str) -> str:
    if len(values) < len(TASKS):
        return f"{undecided} (not reached)."
    tagging, classification = values
    low, high = tagging.minus(classification).interval
    words = above if low > 0 else below if high < 0 else undecided
    return f"{words} ({what} {tagging} and {classification})."


def _beside(values: Sequence[SeedMean | None]) -> str:
    """Both tasks and their difference."""
    tagging, classification = values
    texts = [str(value) if value is not None else "not reached" for value in values]
    both = f"tagging {texts[0]}; classification {texts[1]}"
    if tagging is None or classification is None:
        return both
    return f"{both}; difference {tagging.minus(classification)}"


def _at_furthest(rows: Sequence[dict[str, float]]) -> float:
    return max(rows, key=lambda row: row["jsd"])["tvd"]
