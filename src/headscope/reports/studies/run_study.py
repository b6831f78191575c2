"""Making a study: what its measures are run on, and which checks they feed."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headscope import runs
from headscope.analysis.measures.corpus_measures import streaming
from headscope.corpora import Corpus
from headscope.errors import CaptureError, InputError
from headscope.models import Model, load
from headscope.progress import Cancel, OnProgress
from headscope.reports.cases import first_examples
from headscope.reports.copying_scores import copying_scores
from headscope.reports.corpus_subset import corpus_subset
from headscope.reports.relevance_sample import take_sample
from headscope.reports.studies import raganato, vig, voita
from headscope.reports.studies.checks import Check, Study, check_folder
from headscope.scores import Scores


@dataclass(frozen=True)
class Paper:
    """A paper: the measures that its checks need, and the checks."""

    title: str
    published_for: str
    measures: tuple[str, ...]
    checks: Callable[..., Iterable[Check]]
    notes: tuple[str, ...]
    needs_relevance: bool = False


STUDIES: dict[str, Paper] = {
    "vig": Paper(
        "Vig & Belinkov (2019): Analyzing the Structure of Attention in a Transformer Language Model",
        "GPT-2 small on English Wikipedia (10,000 sentences), and of public replications for induction",
        vig.MEASURES,
        vig.checks,
        vig.NOTES,
    ),
    "voita": Paper(
        "Voita et al. (2019): Analyzing Multi-Head Self-Attention",
        "English to Russian Transformer-base encoders, WMT and OpenSubtitles",
        voita.MEASURES,
        voita.checks,
        voita.NOTES,
        needs_relevance=True,
    ),
    "raganato": Paper(
        "Raganato & Tiedemann (2018): An Analysis of Encoder Representations in Transformer-Based Machine Translation",
        "encoders of translators from English, trees of UD English PUD",
        raganato.MEASURES,
        raganato.checks,
        raganato.NOTES,
    ),
}


@dataclass(frozen=True, eq=False)
class Measured:
    """What the checks of a paper may look at."""

    model: Model
    examples: Corpus
    scores: Mapping[str, Scores]
    progress: OnProgress | None
    cancel: Cancel | None = None


def study(
    name: str,
    model: Model | str,
    source: Any,
    folder: str | Path,
    *,
    limit: int | None = None,
    every: int = 1,
    engine: Any = "local",
    truncate: bool = False,
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> Study:
    """The checks of a paper ("vig", "voita", "raganato") on a model and a treebank; written into `folder`. `truncate`
    cuts sentences that are too long for the model, which are otherwise an error."""
    if name not in STUDIES:
        raise InputError(f"there is no study {name!r}: the studies are {', '.join(STUDIES)}.")
    check_folder(folder)
    paper = STUDIES[name]
    loaded = load(model) if isinstance(model, str) else model
    examples = corpus_subset(source, limit, every)
    measures = streaming(examples, loaded, names=paper.measures)
    if not any(measure.name in ("dependency_alignment", "syntactic") for measure in measures):
        raise InputError(f"the study {name!r} needs a treebank: {examples!r} has no trees. Give a file in CoNLL-U.")
    run = runs.run(
        loaded if engine == "local" else model,
        examples,
        measures,
        Path(folder) / "run",
        engine=engine,
        truncate=truncate,
        progress=progress,
        cancel=cancel,
    )
    scores = run.scores() | copying_scores(loaded)
    notes = list(paper.notes)
    if paper.needs_relevance:
        relevance, why = _relevance(loaded, examples, progress, cancel)
        scores |= relevance
        notes += [f"No relevance: {why}"] if why else []
    checks = tuple(paper.checks(Measured(loaded, examples, scores, progress, cancel)))
    n_examples = run.manifest["corpus"]["n_examples"]
    known_as = Path(loaded.name).name if Path(loaded.name).is_dir() else loaded.name
    report = Study(name, paper.title, paper.published_for, known_as, examples.name, n_examples, checks, tuple(notes))
    report.save(folder)
    return report


def _relevance(
    model: Model, examples: Corpus, progress: OnProgress | None, cancel: Cancel | None
) -> tuple[dict[str, Scores], str]:
    from headscope.analysis import relevance_scores

    try:
        sample = take_sample(model, first_examples(examples), 16)
        relevance = relevance_scores(model, sample.inputs, target=sample.targets, progress=progress, cancel=cancel)
    except (CaptureError, InputError) as problem:
        return {}, str(problem)
    return {"relevance": relevance}, ""
