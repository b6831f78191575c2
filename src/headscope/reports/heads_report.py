"""The report of heads: what every head of a model does over a corpus, how sure it is, how much it matters."""

import hashlib
import json
import tempfile
import warnings
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from headscope import runs
from headscope.analysis import ablation, gate_importance, relevance_scores
from headscope.analysis.measures.corpus_measures import streaming
from headscope.analysis.measures.roles import Verdict, roles
from headscope.arguments import as_path
from headscope.corpora import Corpus, Example
from headscope.errors import CaptureError, HeadscopeError, HeadscopeWarning, InputError, LoadError
from headscope.files import read_json, refuse_foreign, take_checksum, with_checksum, write_file
from headscope.glossary import current_name
from headscope.models import Model, load
from headscope.progress import Cancel, OnProgress
from headscope.reports.alignment_summary import alignment_scores
from headscope.reports.cases import Case, cases, first_examples, thumbnails
from headscope.reports.copying_scores import copying_scores
from headscope.reports.corpus_subset import corpus_subset
from headscope.reports.findings import Answer, outcome
from headscope.reports.relevance_sample import RelevanceSample, take_sample
from headscope.reports.report_page import page, plain, script_and_style
from headscope.reports.score_table import scores_table
from headscope.reports.trust_of_heads import trust_of_heads
from headscope.reports.trust_report import TrustReport
from headscope.runs.engine import Engine
from headscope.runs.manifest import digest_of
from headscope.runs.run_folder import Folder
from headscope.scores import Scores
from headscope.sites import ByHead, Head, parse

FORMAT = "headscope-heads"
VERSION = 3
# Before "confidence" and "distance" had one meaning each.
_FORMER_MEASURES = 2
# Before there were checksums, the number stood where the name of the format stands.
_UNVERIFIED = 1
_FILE, _PAGE, _TABLE = "heads.json", "index.html", "scores.parquet"
_CACHE_FORMAT = "headscope-kept-scores"
_REMEDY = "Make the report again with the same folder."
# Relevance, gate gradients and ablation are measured on so many examples.
N_SAMPLE = 16
_METHODS: dict[str, Callable[..., Scores]] = {
    "relevance": relevance_scores,
    "gate_importance": gate_importance,
    "ablation": ablation,
}
# The fields of a file of kept scores before there were checksums.
_CACHE_FIELDS_0_1 = {"run", "examples", "scores"}


@dataclass(frozen=True, eq=False)
class HeadsReport:
    """Scores by measure, a verdict for every head, cases, and answers to the papers' questions; kept in `folder`.

    `index.html` there is the page, `scores.parquet` a long table of all scores, `heads.json` all of it.
    """

    folder: Path
    about: dict[str, Any]
    scores: dict[str, Scores]
    roles: ByHead[Verdict]
    outcome: list[Answer] = field(default_factory=list)
    cases: ByHead[list[Case]] = field(default_factory=ByHead)
    thumbnails: list[dict[str, Any]] = field(default_factory=list, repr=False)

    def __repr__(self) -> str:
        counts: dict[str, int] = {}
        for verdict in self.roles.values():
            kind = verdict.findings[0].kind if verdict.findings else verdict.role
            counts[kind] = counts.get(kind, 0) + 1
        summary = ", ".join(
            f"{count} {kind}" for kind, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
        )
        return f"HeadsReport({self.about['model']!r} on {self.about['corpus']['name']!r}: {summary}; {self.page})"

    @property
    def page(self) -> Path:
        """The page that shows it."""
        return self.folder / _PAGE

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary: what `heads.json` holds."""
        return plain(
            {
                "format": FORMAT,
                "version": VERSION,
                **self.about,
                "outcome": [asdict(answer) for answer in self.outcome],
                "roles": {str(head): verdict.to_json() for head, verdict in self.roles.items()},
                "cases": {str(head): [asdict(case) for case in head_cases] for head, head_cases in self.cases.items()},
                "scores": {name: measure.to_json() for name, measure in self.scores.items()},
            }
        )

    @classmethod
    def load(cls, folder: str | Path) -> "HeadsReport":
        """Read a report that was kept, and verify it; thumbnails are in its page alone."""
        file = Path(folder) / _FILE
        if not file.is_file():
            raise LoadError(f"there is no report of heads in {folder}: it has no {_FILE}.")
        data = read_json(file, _REMEDY)
        has_checksum = take_checksum(data, file, _REMEDY)
        if data.get("format") == _UNVERIFIED and not has_checksum:
            warnings.warn(
                f"{file} was written by Headscope 0.1.0, without a checksum: damage to it may go unnoticed. {_REMEDY}",
                HeadscopeWarning,
                stacklevel=2,
            )
        elif data.get("format") != FORMAT or data.get("version") not in (_FORMER_MEASURES, VERSION) or not has_checksum:
            raise LoadError(
                f"{file} is damaged, or of another version: this Headscope reads {FORMAT} {_FORMER_MEASURES} and "
                f"{VERSION}. {_REMEDY}"
            )
        try:
            if data.get("version") != VERSION:
                _rename_measures(data)
            return cls._of(Path(folder), data)
        except (AttributeError, KeyError, TypeError, ValueError, HeadscopeError) as error:
            raise LoadError(f"{file} is damaged: {type(error).__name__}: {error}. {_REMEDY}") from error

    @classmethod
    def _of(cls, folder: Path, data: dict[str, Any]) -> "HeadsReport":
        about = {name: data.get(name) for name in ("model", "weights", "corpus", "notes", "absent", "sample", "trust")}
        verdicts = ByHead(
            (_head(name), Verdict.from_json(_head(name), verdict)) for name, verdict in data["roles"].items()
        )
        cases = ByHead(
            (_head(name), [Case(**(case | {"pairs": [tuple(pair) for pair in case["pairs"]]})) for case in head_cases])
            for name, head_cases in data["cases"].items()
        )
        scores = {name: _scores(measure) for name, measure in data["scores"].items()}
        return cls(folder, about, scores, verdicts, [Answer(**answer) for answer in data["outcome"]], cases)


def heads(
    model: Model | str,
    source: Any,
    folder: str | Path | None = None,
    *,
    limit: int | None = None,
    every: int = 1,
    relevance: bool = True,
    importance: bool = True,
    sample: int = N_SAMPLE,
    extra: Iterable[runs.Measure] = (),
    trust: TrustReport | str | Path | None = None,
    engine: "str | Engine" = "local",
    truncate: bool = False,
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> HeadsReport:
    """What every head of a model does over a corpus: all measures that apply, roles with evidence, and a page.

    Relevance, and importance (gate gradients, ablation), are measured on `sample` examples; a model that has no rule
    for them is reported without, and the reason. `every` takes each n-th example, for files that are sorted; `extra`
    are further measures for the run; `trust` a report of `hs.trust` on this model, or its folder, whose verdicts the
    page shows beside the roles. `truncate` cuts what is too long for the model, which is otherwise an error. The
    run is kept in `folder` and goes on where it was stopped; without a folder it is kept in a temporary one.
    """
    script_and_style()  # what is missing for the page is said before hours of measuring, not after
    if folder is not None:
        check_folder(as_path(folder, "the folder of a report"))
    loaded = load(model) if isinstance(model, str) else model
    verdicts = None if trust is None else trust_of_heads(trust, loaded)
    examples = corpus_subset(source, limit, every)
    place = Path(tempfile.mkdtemp(prefix="headscope-heads-")) if folder is None else Path(folder)
    work = _Work(loaded, place, progress, cancel)
    run = runs.run(
        loaded if engine == "local" else model,
        examples,
        [*streaming(examples, loaded), *extra],
        place / "run",
        engine=engine,
        truncate=truncate,
        progress=progress,
        cancel=cancel,
    )
    first = first_examples(examples)
    scores = run.scores() | copying_scores(loaded)
    whole = source if isinstance(source, Corpus) else examples
    scores |= alignment_scores(loaded, whole, first, every, progress=progress, cancel=cancel)
    methods = [name for name, is_wanted in zip(_METHODS, (relevance, importance, importance), strict=True) if is_wanted]
    report = _report(work, run, examples, first, scores, _measure_sample(work, run, first, sample, methods))
    report.about["trust"] = verdicts
    _write(report)
    return report


@dataclass(frozen=True)
class _Work:
    """A report in the making: of which model, into which folder, and who hears of it."""

    model: Model
    folder: Path
    progress: OnProgress | None
    cancel: Cancel | None


@dataclass(frozen=True)
class _OnSample:
    """What was measured on a sample of the corpus; `absent` says of the other methods why they are."""

    sample: RelevanceSample
    scores: dict[str, Scores]
    absent: dict[str, str]


def _report(
    work: _Work,
    run: runs.Run,
    examples: Corpus,
    first: list[Example],
    corpus_scores: dict[str, Scores],
    on_sample: _OnSample,
) -> HeadsReport:
    """Verdicts, cases and findings from all scores; `first` are the examples that cases are taken from."""
    model, sample = work.model, on_sample.sample
    scores = corpus_scores | on_sample.scores
    verdicts = roles(scores)
    about = {
        "model": Path(model.name).name if Path(model.name).is_dir() else model.name,
        "corpus": {"name": examples.name, "about": examples.about} | _example_counts(run),
        "sample": {"n": len(sample.inputs), "about": sample.about, "examples": sample.ids},
        "weights": {"sha256": run.manifest["model"]["weights"], "dtype": run.manifest["model"]["dtype"]},
        "notes": [*model.warnings, *_notes(run, on_sample)],
        "absent": on_sample.absent | run.silent_measures(),
    }
    return HeadsReport(
        work.folder,
        about,
        scores,
        ByHead(verdicts),
        outcome(scores, verdicts),
        ByHead(cases(model, run, first, scores, verdicts, progress=work.progress, cancel=work.cancel)),
        thumbnails(model, first),
    )


def _example_counts(run: runs.Run) -> dict[str, Any]:
    known = run.manifest["corpus"]
    return {"n_examples": known["n_examples"], "n_passed_over": len(run.skipped_examples())}


def _measure_sample(
    work: _Work, run: runs.Run, examples: list[Example], n_samples: int, methods: list[str]
) -> _OnSample:
    """Relevance and importance on a sample, each kept in the folder when it is done."""
    absent = {name: "it was not asked for." for name in _METHODS if name not in methods}
    if not methods:
        return _OnSample(RelevanceSample(), {}, absent)
    try:
        sample = take_sample(work.model, examples, n_samples)
    except InputError as problem:
        return _OnSample(RelevanceSample(), {}, absent | dict.fromkeys(methods, str(problem)))
    scores: dict[str, Scores] = {}
    for name in methods:
        try:
            scores[name] = _sample_scores(work, name, sample, digest_of(run.manifest))
        except (CaptureError, InputError) as problem:
            absent[name] = str(problem)
    return _OnSample(sample, scores, absent)


def _sample_scores(work: _Work, method: str, sample: RelevanceSample, digest: str) -> Scores:
    """The scores of one method, from the folder where an earlier call has left them."""
    file = work.folder / f"{method}.json"
    cached = _cached_scores(file, digest, sample)
    if cached is not None:
        return cached
    scores = _METHODS[method](
        work.model,
        sample.inputs,
        target=sample.targets,
        progress=work.progress,
        cancel=work.cancel,
    )
    _cache_scores(file, digest, sample, scores)
    return scores


def _cached_scores(file: Path, digest: str, sample: RelevanceSample) -> Scores | None:
    """What an earlier call had finished, if it asked the same; what is damaged is told, and measured again."""
    if not file.exists():
        return None
    try:
        data = read_json(file, "")
        if not take_checksum(data, file, ""):
            if data.keys() != _CACHE_FIELDS_0_1:
                raise LoadError(f"{file} is damaged: it has no checksum. ")
            warnings.warn(
                f"{file} was written by Headscope 0.1.0, without a checksum: delete it to have it measured again.",
                HeadscopeWarning,
                stacklevel=5,
            )
        is_asked = (data["run"], data["examples"]) == (digest, sample.ids)
        return _scores(data["scores"]) if is_asked else None
    except (AttributeError, KeyError, TypeError, ValueError, HeadscopeError) as error:
        problem = str(error) if isinstance(error, LoadError) else f"{file} is damaged: {error}. "
        warnings.warn(f"{problem}It is measured again.", HeadscopeWarning, stacklevel=5)
        return None


def _cache_scores(file: Path, digest: str, sample: RelevanceSample, scores: Scores) -> None:
    data = {"format": _CACHE_FORMAT, "run": digest, "examples": sample.ids, "scores": scores.to_json()}
    write_file(file, json.dumps(with_checksum(data), allow_nan=True).encode())


def _notes(run: runs.Run, on_sample: _OnSample) -> list[str]:
    notes, scores, sample = [], on_sample.scores, on_sample.sample
    if scores:
        names = {"relevance": "relevance", "gate_importance": "gate gradients", "ablation": "ablation"}
        methods = ", ".join(names[name] for name in scores)
        notes.append(f"{methods[:1].upper()}{methods[1:]}: on {len(sample.inputs)} examples, about {sample.about}.")
    share = scores["relevance"].settings.get("bias_share") if "relevance" in scores else None
    if share is not None and share == share:
        notes.append(f"Bias share of the explained logits: {share:.2f}.".replace("-", "−"))
    n_over = len(run.skipped_examples())
    if n_over:
        notes.append(f"{n_over} examples that the model could not take were passed over.")
    return notes


def check_folder(folder: str | Path) -> None:
    """Refuse a folder that holds files of others where a report of heads would be written."""
    folder = Path(folder)
    report = _json_of(folder / _FILE)
    ours = {f"{name}.json" for name in _METHODS if _is_cache(_json_of(folder / f"{name}.json"))}
    if report.get("format") == FORMAT:
        ours |= {_FILE, *report.get("files", {})}
    elif report.get("format") == _UNVERIFIED and {"roles", "scores"} <= report.keys():
        ours |= {_FILE, _PAGE, _TABLE}
    if (folder / "run" / "manifest.json").is_file():
        Folder(folder / "run").check()
        ours.add("run")
    writes = {_FILE, _PAGE, _TABLE, "run", *(f"{name}.json" for name in _METHODS)}
    refuse_foreign(folder, "a report of heads", ours=ours, writes=writes)


def _json_of(file: Path) -> dict[str, Any]:
    """The object that a file holds; an empty one where it holds none, as a file of others may."""
    try:
        return read_json(file, "")
    except LoadError:
        return {}


def _is_cache(data: dict[str, Any]) -> bool:
    return data.get("format") == _CACHE_FORMAT or data.keys() == _CACHE_FIELDS_0_1


def _write(report: HeadsReport) -> None:
    """Write the files of a report: first the one that names the others, which are ours from then on."""
    check_folder(report.folder)  # again: measuring took its time
    others = {_TABLE: scores_table(report.scores), _PAGE: page(report).encode()}
    files = {name: hashlib.sha256(data).hexdigest() for name, data in others.items()}
    text = json.dumps(with_checksum(report.to_json() | {"files": files}), ensure_ascii=False, allow_nan=False, indent=1)
    for name, data in {_FILE: text.encode(), **others}.items():
        write_file(report.folder / name, data)


def _rename_measures(data: dict[str, Any]) -> None:
    """Give the measures of a report of an earlier version the names that they have now."""
    for part in ("scores", "absent"):
        data[part] = {current_name(name): value for name, value in data[part].items()}
    for name, scores in data["scores"].items():
        scores["method"] = name if current_name(scores["method"]) == name else scores["method"]


def _head(name: str) -> Head:
    address = parse(name)
    if not isinstance(address, Head):
        raise HeadscopeError(f"{name} is not a head.")
    return address


def _scores(data: dict[str, Any]) -> Scores:
    """Read what `Scores.to_json` wrote."""

    def number(value: float | None) -> float:
        return float("nan") if value is None else value

    return Scores(
        data["method"],
        {_head(name): number(value) for name, value in data["values"].items()},
        data["settings"],
        data["n_samples"],
        data["baseline"],
        {_head(name): (number(low), number(high)) for name, (low, high) in data["intervals"].items()},
        {_head(name): number(value) for name, value in data["baselines"].items()},
    )
