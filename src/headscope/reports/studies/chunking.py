"""The chunking study as a report: Yang's tagger on CoNLL-2000, its adversaries and probes, with baselines and seeds."""

import math
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from headscope.faithfulness.studies.chunking import (
    BASELINES,
    BROKEN_F1,
    PROBED,
    ChunkingOptions,
    ChunkingResult,
    train_chunkers,
)
from headscope.progress import Cancel, OnProgress
from headscope.reports.studies.charts import Chart, PointSeries, ReferenceLine, histogram, points_chart
from headscope.reports.studies.checks import NOT_QUOTED, TRAINING, Check, Study, check_folder

TITLE = "Chunking: is attention the only path? After Yang's report on a one-layer tagger of CoNLL-2000"
PUBLISHED_FOR = "the report and the notebook beside its code: one seed, GloVe vectors, the test set used to stop"
# λ, NLL and KL (mean over cells) on the test set, as the notebook printed them.
PUBLISHED_SWEEP = (
    (0.2, 0.222, 0.188), (0.3, 0.222, 0.187), (0.4, 0.223, 0.248), (0.5, 0.219, 0.210), (0.6, 0.232, 0.273),
    (0.7, 0.236, 0.260), (0.8, 0.245, 0.273), (0.9, 0.242, 0.289), (1.0, 0.230, 0.298), (1.1, 0.247, 0.311),
    (1.2, 0.258, 0.314), (1.3, 0.252, 0.314), (1.4, 0.258, 0.310), (1.5, 0.256, 0.293), (1.6, 0.246, 0.317),
    (1.7, 0.249, 0.295), (1.8, 0.254, 0.326), (1.9, 0.260, 0.325), (2.0, 0.250, 0.317), (2.1, 0.472, 0.337),
    (2.2, 0.484, 0.330), (2.3, 0.499, 0.330), (2.4, 0.481, 0.327), (2.5, 0.477, 0.347), (2.6, 0.263, 0.332),
    (2.7, 0.473, 0.349), (2.8, 0.472, 0.348), (2.9, 0.479, 0.344), (3.0, 0.481, 0.341), (3.1, 0.262, 0.324),
)  # fmt: skip
KNEE = 0.33
_PUBLISHED_PROBES = {"base": "0.90 [report]", "adversary": "0.90 [report]", "broken adversary": "0.89 [report]"}
_PUBLISHED_ADVERSARIES = {
    0.2: "F1 0.90 [report]; KL per cell 0.188 [notebook]",
    3.0: "F1 0.75 [report]; KL per cell 0.341 [notebook]",
}
_SOURCES = {
    "base": "attention of the base",
    "adversary": "attention of an adversary, before the break",
    "broken adversary": "attention of an adversary, after the break",
    "uniform": "uniform attention",
    "permuted base": "attention of the base, each row in another order",
}
_NAMES = {
    "uniform": "uniform attention",
    "identity": "attention to itself only",
    "previous_token": "attention to the previous word only",
    "no_attention": "no attention block",
}
NOTES = (
    "[report]: stated in the report. [notebook]: printed in its notebook. [recount]: recomputed from the data or the "
    "code's description.",
    "Word vectors are the mean of a model's word-piece embeddings, reduced to 300 by PCA: the report's GloVe and "
    "character n-gram vectors cannot be had here. F1 is lower for that, and with fewer sentences or epochs.",
    "140,953 parameters are those of 25 tags, three of them special; a part of the sentences may have fewer tags.",
    "Before the break: of the adversaries with an F1 on dev within 0.01 of the base's (else the best), the furthest "
    "from it. After: of those more than 0.05 below it (else the worst), the furthest.",
    "Differences on purpose: padding is masked in attention and in every mean; dev, not the test set, chooses epochs "
    "and adversaries; divergence is that of attention without dropout; chunks end at O, as in conlleval.",
    "KL per cell is the mean over all cells of the patterns, the unit of the report's figure, which counts padding; "
    "ours does not. KL per row is the divergence of a query's distribution. JSD is at most ln 2 = 0.693 nats.",
    "An adversary's epoch is chosen by its own objective on dev. The charts of NLL show the last epoch, as the report.",
    "The report's probe never used the frozen attention (a flag was not passed on): its 0.90, 0.90 and 0.89 are "
    "three ordinary trainings. Here both probes attend by the frozen patterns, and queries and keys take no part.",
    "In the report's probe a residual goes round attention; in the feed-forward probe nothing does. The control has "
    "the same weights in another order.",
)


def chunking_study(
    train: Any,
    test: Any,
    vectors: Any,
    folder: str | Path,
    options: ChunkingOptions | None = None,
    *,
    device: str | None = None,
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> Study:
    """Train the taggers of the chunking study on a device, or resume, and write the report into `folder`.

    `train` and `test` are CoNLL-2000's files, `vectors` a model whose input embeddings become the word vectors.
    """
    check_folder(folder)
    place = Path(folder) / TRAINING
    result = train_chunkers(train, test, vectors, place, options, device=device, progress=progress, cancel=cancel)
    study = chunking_report(result)
    study.save(folder)
    return study


def chunking_report(result: ChunkingResult) -> Study:
    """The report of a finished study."""
    n_seeds, epochs, n_lambdas = len(result.of("base")), result.settings["epochs"], len(result.settings["lambdas"])
    about = (
        f"Taggers of {result.n_parameters:,} trained parameters, {epochs} epochs on {result.n_sentences['train']:,} "
        f"sentences, chosen on {result.n_sentences['dev']:,}, tested on {result.n_sentences['test']:,}. "
        f"{n_seeds} base taggers, {len(result.of('adversary'))} adversaries over {n_lambdas} values of λ. Published "
        f"numbers are of {PUBLISHED_FOR}."
    )
    return Study(
        "chunking",
        TITLE,
        PUBLISHED_FOR,
        "one-layer tagger",
        "CoNLL-2000",
        sum(result.n_sentences.values()),
        tuple(checks(result)),
        NOTES,
        about=about,
        configuration=result.configuration,
        charts=tuple(charts(result)),
        rows=tuple(_flat(line) for line in result.lines),
    )


def checks(result: ChunkingResult) -> Iterator[Check]:
    """Every check, with what was published."""
    part = "The tagger and what needs no context (chunk F1 on the test set)"
    yield Check(part, "trained parameters", "140,953 [recount]", f"{result.n_parameters:,}")
    yield Check(part, "base", "0.90 [report]", _f1(result.of("base")))
    yield Check(part, "commonest tag of each part of speech", "0.7707 [recount]", f"{result.context_free['pos']:.4f}")
    yield Check(part, "commonest tag of each word", "0.711 [recount]", f"{result.context_free['word']:.3f}")
    for kind in BASELINES:
        yield Check(part, f"trained with {_NAMES[kind]}", NOT_QUOTED, _f1(result.of(kind)))
    yield from _adversary_checks(result)
    for kind, name in (
        ("report", "the report's probe, residual kept"),
        ("feed_forward", "feed-forward probe, no residual"),
    ):
        part = f"Fresh taggers that attend by frozen patterns: {name} (chunk F1 on the test set)"
        for source in PROBED:
            lines = [line for line in result.of(f"probe {kind}") if line["source"] == source]
            published = _PUBLISHED_PROBES.get(source, NOT_QUOTED) if kind == "report" else NOT_QUOTED
            yield Check(part, _SOURCES[source], published, _f1(lines))
    part = "Do they rank the words of a row alike? (mean Kendall τ-b; rows with the same first word)"
    for line in result.rankings:
        ours = (
            f"τ {_signed(line['tau'])}; {line['top1']:.0%} (chance {line['chance_top1']:.0%}) of {line['rows']:,} rows"
        )
        yield Check(part, f"{line['first']}; {line['second']}", NOT_QUOTED, ours)


def _adversary_checks(result: ChunkingResult) -> Iterator[Check]:
    adversaries, base = result.of("adversary"), result.of("base")
    part = "Adversaries: the base's answers, attention far from the base's"
    floor = [line["test"] for line in base[1:]]
    if floor:
        noise = f"JSD {_mean(floor, 'jsd')}, KL per row {_mean(floor, 'kl_row')}, TVD of tags {_mean(floor, 'tvd')}"
        yield Check(part, "noise floor: base taggers of other seeds against the base", NOT_QUOTED, noise)
    for weight in result.settings["lambdas"]:
        lines = [line for line in adversaries if line["lambda"] == weight]
        test = [line["test"] for line in lines]
        ours = (
            f"F1 {_f1(lines)}; JSD {_mean(test, 'jsd')}; KL per cell {_mean(test, 'kl_cell')}, per row "
            f"{_mean(test, 'kl_row')}; TVD of tags {_mean(test, 'tvd')}"
        )
        yield Check(part, f"λ = {weight:g}", _PUBLISHED_ADVERSARIES.get(weight, NOT_QUOTED), ours)
    limit = statistics.fmean(line["test"]["f1"] for line in base) - BROKEN_F1
    ranges = (("λ up to 2", 0.0, 2.0, "0 of 19"), ("λ above 2", 2.0, math.inf, "9 of 11; 2.6 and 3.1 escape"))
    for name, low, high, published in ranges:
        lines = [line for line in adversaries if low < line["lambda"] <= high]
        broken = [line for line in lines if line["test"]["f1"] < limit]
        what = f"{name}: adversaries more than {BROKEN_F1:g} below the base's mean F1"
        yield Check("Two modes", what, f"{published} [notebook]", f"{len(broken)} of {len(lines)}")


def charts(result: ChunkingResult) -> Iterator[Chart]:
    """The report's figure redrawn, and the modes as a histogram."""
    adversaries = result.of("adversary")
    notes = [f"{line['name']}: F1 {line['last']['f1']:.3f}" for line in adversaries]
    last = [line["last"] for line in adversaries]
    ours = [(row["kl_cell"], row["nll"]) for row in last]
    published = [(kl, nll) for _, nll, kl in PUBLISHED_SWEEP]
    base_nll = statistics.fmean(line["test"]["nll"] for line in result.of("base"))
    yield points_chart(
        "NLL against KL per cell, as the report draws it",
        "Each point is an adversary, last epoch. At the dashed line, 0.33, the report sees a knee.",
        [
            PointSeries("ours", ours, "dot", 1, notes=notes),
            PointSeries("notebook, one seed", published, "ring", 2, notes=[f"λ={row[0]:g}" for row in PUBLISHED_SWEEP]),
        ],
        x="KL(adversary ‖ base), nats, mean over cells",
        y="NLL against gold tags, nats a word",
        lines=[ReferenceLine("0.33", x=KNEE), ReferenceLine("our base", y=base_nll)],
    )
    yield points_chart(
        "NLL against KL per row",
        "The same adversaries; the divergence of a query's distribution has no bound.",
        [PointSeries("ours", [(row["kl_row"], row["nll"]) for row in last], "dot", 1, notes=notes)],
        x="KL(adversary ‖ base), nats, mean over rows",
        y="NLL against gold tags, nats a word",
        lines=[ReferenceLine("our base", y=base_nll)],
    )
    yield _modes(adversaries)
    yield _distance_and_performance(result)


def _modes(adversaries: Sequence[dict[str, Any]]) -> Chart:
    names = {"λ up to 1": (0.0, 1.0), "λ above 1, up to 2": (1.0, 2.0), "λ above 2": (2.0, math.inf)}
    values = {
        name: [line["test"]["f1"] for line in adversaries if low < line["lambda"] <= high]
        for name, (low, high) in names.items()
    }
    groups = {name: group for name, group in values.items() if group}
    limits = (math.floor(20 * min(map(min, groups.values()))) / 20, 0.95)
    return histogram(
        "F1 of the adversaries",
        "Two modes, if there is a gap.",
        groups,
        bins=30,
        limits=limits,
        x="chunk F1 on the test set",
        y="adversaries",
    )


def _distance_and_performance(result: ChunkingResult) -> Chart:
    adversaries, seeds = result.of("adversary"), result.of("base")[1:]
    places = [[(line["test"]["jsd"], line["test"]["f1"]) for line in lines] for lines in (adversaries, seeds)]
    return points_chart(
        "Distance and performance",
        "How far attention moves (JSD, at most 0.693) and what that costs.",
        [
            PointSeries("adversaries", places[0], "dot", 1, notes=[line["name"] for line in adversaries]),
            PointSeries("base taggers, other seeds", places[1], "triangle", 3),
        ],
        x="JSD of attention from the base, mean over rows",
        y="chunk F1 on the test set",
        lines=[ReferenceLine("commonest tag of each word", y=result.context_free["word"])],
        y_range=(0.0, 1.0),
    )


def _f1(lines: Sequence[dict[str, Any]]) -> str:
    """The mean and the standard deviation over seeds."""
    values = [line["test"]["f1"] for line in lines]
    if len(values) == 1:
        return f"{values[0]:.3f}"
    return f"{statistics.fmean(values):.3f} ± {statistics.stdev(values):.3f} ({min(values):.3f} to {max(values):.3f})"


def _mean(rows: Sequence[dict[str, float]], name: str) -> str:
    return f"{statistics.fmean(row[name] for row in rows):.3g}"


def _signed(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


def _flat(line: dict[str, Any]) -> dict[str, Any]:
    """A line with its figures beside each other: `test_f1` and so on."""
    flat: dict[str, Any] = {}
    for name, value in line.items():
        flat |= {f"{name}_{key}": number for key, number in value.items()} if isinstance(value, dict) else {name: value}
    return flat
