"""The sentiment study as a report: the tables of Jain & Wallace, and the plot of Wiegreffe & Pinter."""

import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from headscope.faithfulness.studies.classifier_tests import summary
from headscope.faithfulness.studies.sentiment import (
    ENCODERS,
    GUIDES,
    SentimentOptions,
    SentimentResult,
    train_classifiers,
)
from headscope.progress import Cancel, OnProgress
from headscope.reports.studies.charts import Chart, PointSeries, points_chart
from headscope.reports.studies.checks import NOT_QUOTED, TRAINING, Check, Study, check_folder
from headscope.tasks.task_data import Columns

TITLE = (
    "Sentiment: attention is not explanation (Jain & Wallace, 2019), and is not not explanation (Wiegreffe & Pinter)"
)
PUBLISHED_FOR = "SST with fastText vectors and a BiLSTM of width 128: [released] from released tables, [memory] quoted"
NOTES = (
    "[released]: from the tables that Jain & Wallace released, with two labels that their code swaps put right. "
    "[memory]: Wiegreffe & Pinter's figures quoted from memory of the paper.",
    "Word vectors are the mean of a model's word-piece embeddings, reduced by PCA and frozen: fastText's cannot be had "
    "here.",
    "τ is Kendall's τ-b over the words of a text, without beginning and end; gradient × input is that of the answer "
    "with attention held fixed; leave-one-out deletes a word and runs again. Texts with nothing to rank do not count.",
    "Short texts make τ noisy: see the share with p ≤ .05.",
    "TVD of two classes is |Δp|; the released code of Wiegreffe & Pinter counts half of it.",
    "The objective of the adversaries is ½|Δp| − λ · KL(adversary ‖ base), as in the released code; dev chooses the "
    "epoch, where that code uses the test set.",
    "Per-text adversaries change the attention of one text and leave the model as it is: 5 patterns, the furthest of "
    "those that move the answer by at most 0.05.",
    "The Transformer has two layers of four heads. The attention that is tested, replaced and moved is that of the "
    "first token in the last layer, from which the answer is read; its τ is that of the mean over heads.",
    "Distances of classifiers without context are from the BiLSTM.",
)
_NAMES = {"bilstm": "BiLSTM", "transformer": "Transformer", "average": "no context"}
_PUBLISHED_TAU = {
    ("bilstm", "gradient"): "0.34 ± 0.21 [48 %]; 0.36 ± 0.21 [49 %] [released]",
    ("average", "gradient"): "0.61 [87 %]; 0.60 [83 %] [released]",
    ("bilstm", "leave_one_out"): "0.27 ± 0.19 [33 %]; 0.32 ± 0.19 [40 %] [released]",
    ("bilstm", "gradient_with_leave_one_out"): "0.66, both classes [released]",
}
_MEASURES = {
    "gradient": "attention and gradient × input",
    "leave_one_out": "attention and leave-one-out",
    "gradient_with_leave_one_out": "gradient × input and leave-one-out",
}
_PUBLISHED_SCORES = {
    "accuracy": "0.808 [released]", "f1": "0.784 [released]; 0.831 reproduced [memory]", "uniform": "0.822 [memory]",
}  # fmt: skip
_PUBLISHED_GUIDES = {
    "uniform": "0.812 [memory]", "bilstm base": "0.824 [memory]", "bilstm adversary": "0.592 [memory]",
}  # fmt: skip


def sentiment_study(
    train: Any,
    dev: Any,
    test: Any,
    vectors: Any,
    folder: str | Path,
    options: SentimentOptions | None = None,
    *,
    columns: Columns | None = None,
    device: str | None = None,
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> Study:
    """Train and test the classifiers of the sentiment study on a device, or resume, and write the report into `folder`.

    `train`, `dev` and `test` are tables with a text and one of two labels; `columns` names them as for `hs.corpus`.
    """
    check_folder(folder)
    options_of_run = {"columns": columns, "device": device, "progress": progress, "cancel": cancel}
    result = train_classifiers(train, dev, test, vectors, Path(folder) / TRAINING, options, **options_of_run)
    study = sentiment_report(result)
    study.save(folder)
    return study


def sentiment_report(result: SentimentResult) -> Study:
    """The report of a finished study."""
    sizes, settings = result.n_texts, result.settings
    about = (
        f"BiLSTMs and Transformers of width {settings['classifier']['width']}, {settings['epochs']} epochs on "
        f"{sizes['train']:,} texts, chosen on {sizes['dev']:,}, tested on {sizes['test']:,}; tests per text on "
        f"{len(result.texts['bilstm']):,}. "
        f"{len(result.of('base', 'bilstm'))} seeds. Published numbers are of {PUBLISHED_FOR}."
    )
    return Study(
        "sentiment",
        TITLE,
        PUBLISHED_FOR,
        "BiLSTM and Transformer",
        "two classes",
        sum(sizes.values()),
        (
            *_scores(result),
            *_agreement(result),
            *(check for encoder in ENCODERS for check in _other_attention(result, encoder)),
        ),
        NOTES,
        about=about,
        configuration=result.configuration,
        charts=tuple(charts(result)),
        rows=tuple(
            {name: value for name, value in line.items() if name != "test"}
            | {f"test_{name}": value for name, value in line["test"].items()}
            for line in result.lines
        ),
    )


def _scores(result: SentimentResult) -> Iterator[Check]:
    part = "How well the classifiers do (test set)"
    for encoder in ENCODERS:
        published = _PUBLISHED_SCORES if encoder == "bilstm" else {}
        name, base = _NAMES[encoder], result.of("base", encoder)
        yield Check(part, f"{name}, accuracy", published.get("accuracy", NOT_QUOTED), _mean(base, "accuracy"))
        yield Check(part, f"{name}, F1 of class 1", published.get("f1", NOT_QUOTED), _mean(base, "f1"))
        uniform = _mean(result.of("uniform", encoder), "f1")
        what = f"{name}, trained with uniform attention, F1"
        yield Check(part, what, published.get("uniform", NOT_QUOTED), uniform)
    yield Check(part, "no context, own attention, F1", "0.817 [memory]", _mean(result.of("base", "average"), "f1"))
    for guide in GUIDES:
        lines = [line for line in result.of("guided") if line["guide"] == guide]
        encoder, _, model = guide.partition(" ")
        what = f"no context, guided by the {_NAMES[encoder]}'s {model}, F1" if model else "no context, uniform, F1"
        yield Check(part, what, _PUBLISHED_GUIDES.get(guide, NOT_QUOTED), _mean(lines, "f1"))


def _agreement(result: SentimentResult) -> Iterator[Check]:
    part = "Rank agreement: mean τ ± deviation over texts [p ≤ .05], texts predicted 0; predicted 1"
    for encoder, lines in result.texts.items():
        for name, what in _MEASURES.items():
            published = _PUBLISHED_TAU.get((encoder, name), NOT_QUOTED)
            yield Check(
                part,
                f"{_NAMES[encoder]}: {what}",
                published,
                "; ".join(_tau(lines, name, predicted) for predicted in (0, 1)),
            )
    means = [summary(result.texts[encoder], "gradient")["mean"] for encoder in ("average", *ENCODERS)]
    what = "attention and gradient × input, all texts: no context; BiLSTM; Transformer"
    yield Check(part, what, "0.61; 0.35; – [released]", "; ".join(_number(tau) for tau in means))


def _other_attention(result: SentimentResult, encoder: str) -> Iterator[Check]:
    part = f"{_NAMES[encoder]}: other attention, same answers? (test set)"
    texts = result.texts[encoder]
    changes = [line["permutation"] for line in texts]
    yield Check(part, "permuted attention: median change of the answer, mean over texts", NOT_QUOTED, _of(changes))
    jsd, tvd = ([line[f"adversary_{name}"] for line in texts] for name in ("jsd", "tvd"))
    yield Check(
        part, "per-text adversaries: JSD at a change of at most 0.05", NOT_QUOTED, f"{_of(jsd)}; TVD {_of(tvd)}"
    )
    seeds = [line["test"] for line in result.of("base", encoder)[1:]]
    if seeds:
        ours = f"JSD {_of([row['jsd'] for row in seeds])}, TVD {_of([row['tvd'] for row in seeds])}"
        yield Check(part, "other seeds against the base: the noise floor", NOT_QUOTED, ours)
    uniform = result.of("uniform", encoder)[0]["test"]
    ours = f"JSD {uniform['jsd']:.3f}, TVD {uniform['tvd']:.3f}"
    yield Check(part, "trained with uniform attention against the base", NOT_QUOTED, ours)
    for line in result.of("adversary", encoder):
        row = line["test"]
        ours = f"F1 {row['f1']:.3f}, TVD {row['tvd']:.3f}, JSD {row['jsd']:.3f}"
        is_quoted = encoder == "bilstm" and line["lambda"] == 5e-4
        published = "best, λ = 5.25e-4: F1 0.823, TVD 0.036, JSD 0.514 [memory]" if is_quoted else NOT_QUOTED
        yield Check(part, f"global adversary, λ = {line['lambda']:g}", published, ours)


def charts(result: SentimentResult) -> Iterator[Chart]:
    """For each encoder the plot of Wiegreffe & Pinter, and the violin of Jain & Wallace as points."""
    for encoder in ENCODERS:
        texts, name = result.texts[encoder], _NAMES[encoder]
        adversaries = sorted(result.of("adversary", encoder), key=lambda line: line["lambda"])
        per_text = tuple(statistics.fmean(line[f"adversary_{figure}"] for line in texts) for figure in ("jsd", "tvd"))
        uniform = [_place(line) for line in result.of("uniform", encoder)]
        yield points_chart(
            f"{name}: distance of attention and change of the answer",
            "Means over test texts. How far attention can go before the answer does, against what another seed does.",
            [
                PointSeries("global adversaries over λ", [_place(line) for line in adversaries], "dot", 1,
                        is_line=True, notes=[line["name"] for line in adversaries]),
                PointSeries("other seeds", [_place(line) for line in result.of("base", encoder)[1:]], "triangle", 3),
                PointSeries("trained with uniform attention", uniform, "square", 2),
                PointSeries("per-text adversaries", [(per_text[0], per_text[1])], "plus", 4),
            ],
            x="JSD of attention from the base, nats (at most 0.693)",
            y="TVD of the answer",
        )  # fmt: skip
        yield points_chart(
            f"{name}: permuted attention",
            "Each point is a text: the median change of its answer over permutations, against its largest weight.",
            [PointSeries("texts", [(line["largest_weight"], line["permutation"]) for line in texts], "dot", 1,
                    notes=[f"{line['words']} words" for line in texts])],
            x="largest weight of attention",
            y="median change of the answer (TVD)",
        )  # fmt: skip


def _place(line: dict[str, Any]) -> tuple[float, float]:
    return line["test"]["jsd"], line["test"]["tvd"]


def _tau(lines: Sequence[dict[str, Any]], name: str, predicted: int) -> str:
    row = summary(list(lines), name, predicted)
    if not row["texts"]:
        return "no text"
    return f"{_number(row['mean'])} ± {row['deviation']:.2f} [{row['significant']:.0%}]".replace("%", " %")


def _mean(lines: Sequence[dict[str, Any]], name: str) -> str:
    return _of([line["test"][name] for line in lines])


def _of(values: Sequence[float]) -> str:
    """The mean, and the deviation where there are several."""
    spread = f" ± {statistics.stdev(values):.3f}" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.3f}{spread}"


def _number(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")
