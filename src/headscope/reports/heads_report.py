"""The report of heads: what every head of a model does over a corpus, how sure it is, how much it matters."""

import contextlib
import hashlib
import json
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from headscope import runs
from headscope.analysis import ablation, copying, gate_importance, measure_all, relevance_scores, repeated_tokens
from headscope.analysis.measures.corpus_measures import streaming
from headscope.analysis.measures.roles import Verdict, roles
from headscope.corpora import Corpus, Example, Problem, corpus
from headscope.errors import CaptureError, HeadscopeError, HeadscopeWarning, InputError, LoadError
from headscope.files import read_json, refuse_foreign, take_checksum, with_checksum, write_file
from headscope.models import Model, load
from headscope.reports.alignment_summary import aligned
from headscope.reports.cases import Case, cases, first_examples, thumbnails
from headscope.reports.findings import Answer, outcome
from headscope.reports.relevance_sample import Sample, take_sample
from headscope.reports.report_page import page, plain, script_and_style
from headscope.reports.score_table import scores_table
from headscope.runs.engine import Engine
from headscope.runs.manifest import digest_of
from headscope.runs.run_folder import Folder
from headscope.scores import Scores
from headscope.sites import Head, parse

FORMAT = "headscope-heads"
VERSION = 2
# Before there were checksums, the number stood where the name of the format stands.
_UNVERIFIED = 1
_FILE, _PAGE, _TABLE = "heads.json", "index.html", "scores.parquet"
_KEPT_FORMAT = "headscope-kept-scores"
_REMEDY = "Make the report again with the same folder."
# Relevance, gate gradients and ablation are measured on so many examples.
N_SAMPLE = 16
# What is being done, how much of it is done, and how much there is.
Progress = Callable[[str, int, int], None]
_METHODS: dict[str, Callable[..., Scores]] = {
    "relevance": relevance_scores,
    "gate_importance": gate_importance,
    "ablation": ablation,
}
# The fields of a file of kept scores before there were checksums.
_KEPT_BEFORE = {"run", "examples", "scores"}


@dataclass(frozen=True, eq=False)
class HeadsReport:
    """Scores by measure, a verdict for every head, cases, and answers to the papers' questions; kept in `folder`.

    `index.html` there is the page, `scores.parquet` a long table of all scores, `heads.json` all of it.
    """

    folder: Path
    about: dict[str, Any]
    scores: dict[str, Scores]
    roles: dict[Head, Verdict]
    outcome: list[Answer] = field(default_factory=list)
    cases: dict[Head, list[Case]] = field(default_factory=dict)
    thumbnails: list[dict[str, Any]] = field(default_factory=list, repr=False)

    def __repr__(self) -> str:
        counts: dict[str, int] = {}
        for one in self.roles.values():
            kind = one.findings[0].kind if one.findings else one.role
            counts[kind] = counts.get(kind, 0) + 1
        told = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items(), key=lambda one: (-one[1], one[0])))
        return f"HeadsReport({self.about['model']!r} on {self.about['corpus']['name']!r}: {told}; {self.page})"

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
                "outcome": [asdict(one) for one in self.outcome],
                "roles": {str(head): one.to_json() for head, one in self.roles.items()},
                "cases": {str(head): [asdict(one) for one in held] for head, held in self.cases.items()},
                "scores": {name: one.to_json() for name, one in self.scores.items()},
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
        elif (data.get("format"), data.get("version"), has_checksum) != (FORMAT, VERSION, True):
            raise LoadError(
                f"{file} is damaged, or of another version: this Headscope reads {FORMAT} {VERSION}. {_REMEDY}"
            )
        try:
            return cls._of(Path(folder), data)
        except (AttributeError, KeyError, TypeError, ValueError, HeadscopeError) as error:
            raise LoadError(f"{file} is damaged: {type(error).__name__}: {error}. {_REMEDY}") from error

    @classmethod
    def _of(cls, folder: Path, data: dict[str, Any]) -> "HeadsReport":
        about = {name: data.get(name) for name in ("model", "weights", "corpus", "notes", "absent", "sample")}
        verdicts = {_head(name): Verdict.from_json(_head(name), one) for name, one in data["roles"].items()}
        held = {
            _head(name): [Case(**(one | {"pairs": [tuple(pair) for pair in one["pairs"]]})) for one in several]
            for name, several in data["cases"].items()
        }
        scores = {name: _scores(one) for name, one in data["scores"].items()}
        return cls(folder, about, scores, verdicts, [Answer(**one) for one in data["outcome"]], held)


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
    engine: "str | Engine" = "local",
    truncate: bool = True,
    progress: Progress | None = None,
    cancel: threading.Event | None = None,
) -> HeadsReport:
    """What every head of a model does over a corpus: all measures that apply, roles with evidence, and a page.

    Relevance, and importance (gate gradients, ablation), are measured on `sample` examples; a model that has no rule
    for them is reported without, and the reason. `every` takes each n-th example, for files that are sorted; `extra`
    are further measures for the run. The run is kept in `folder` and goes on where it was stopped; without a folder it
    is kept in a temporary one.

    >>> import headscope as hs
    >>> report = hs.heads("builtin:gpt", "dev.conllu", "my-report", limit=300)  # doctest: +SKIP
    >>> report.roles["L3H2"].role, report.page  # doctest: +SKIP
    """
    script_and_style()  # what is missing for the page is said before hours of measuring, not after
    if folder is not None:
        check_folder(folder)
    loaded = load(model) if isinstance(model, str) else model
    examples = chosen(source, limit, every)
    place = Path(tempfile.mkdtemp(prefix="headscope-heads-")) if folder is None else Path(folder)
    tell = progress or (lambda what, done, total: None)
    run = runs.run(
        loaded if engine == "local" else model,
        examples,
        [*streaming(examples, loaded), *extra],
        place / "run",
        engine=engine,
        truncate=truncate,
        progress=lambda one: tell("measuring", one.n_done, one.n_examples),
        cancel=cancel,
    )
    scores = run.scores()
    first = first_examples(examples)
    scores |= repeated(loaded)
    whole = source if isinstance(source, Corpus) else examples
    scores |= aligned(loaded, whole, first, every, progress=lambda *at: tell("aligning words", *at), cancel=cancel)
    wanted = [name for name, is_wanted in zip(_METHODS, (relevance, importance, importance), strict=True) if is_wanted]
    asked, absent = Sample(), {name: "it was not asked for." for name in _METHODS if name not in wanted}
    more: dict[str, Scores] = {}
    try:
        asked = take_sample(loaded, first, sample) if wanted else asked
    except InputError as problem:
        absent |= dict.fromkeys(wanted, str(problem))
    else:
        more, without = _sampled(loaded, asked, wanted, place, digest_of(run.manifest), tell, cancel)
        absent |= without
    scores |= more
    verdicts = roles(scores)
    found = cases(
        loaded, run, first, scores, verdicts, progress=lambda *at: tell("looking at cases", *at), cancel=cancel
    )
    about = {
        "model": Path(loaded.name).name if Path(loaded.name).is_dir() else loaded.name,
        "corpus": {"name": examples.name, "about": examples.about} | _counted(run),
        "sample": {"n": len(asked.inputs), "about": asked.about, "examples": asked.ids},
        "weights": {"sha256": run.manifest["model"]["weights"], "dtype": run.manifest["model"]["dtype"]},
        "notes": _notes(run, asked, more),
        "absent": absent | run.silent_measures(),
    }
    report = HeadsReport(place, about, scores, verdicts, outcome(scores, verdicts), found, thumbnails(loaded, first))
    _write(report)
    return report


def chosen(source: Any, limit: int | None, every: int = 1) -> Corpus:
    """Every so many examples of a corpus, at most so many of them: for files that are sorted."""
    if every < 1:
        raise InputError(f"every={every} is not a step: 1 takes all examples, 2 every second.")
    whole = source if isinstance(source, Corpus) else corpus(source)
    limits = [one for one in (whole.limit, limit) if one is not None]
    if every == 1 and not limits:
        return whole
    about = f"{whole.about}; one in {every}" if every > 1 else whole.about
    options: dict[str, Any] = {"files": whole.files, "limit": min(limits, default=None), "on_error": whole.on_error}
    return Corpus(whole.name, whole.kind, about, partial(_stepped, whole, every), **options)


def _stepped(whole: Corpus, every: int) -> Iterator[Example | Problem]:
    """What cannot be read is passed on, so that it is counted where it always is."""
    place = 0
    for found in whole.read():
        if isinstance(found, Problem):
            yield found
            continue
        if place % every == 0:
            yield found
        place += 1


def _counted(run: runs.Run) -> dict[str, Any]:
    known = run.manifest["corpus"]
    return {"n_examples": known["n_examples"], "n_passed_over": len(run.skipped_examples())}


def repeated(model: Model) -> dict[str, Scores]:
    """Induction where nothing but copying helps: random tokens given twice (Olsson et al., 2022)."""
    try:
        inputs = repeated_tokens(model, n_inputs=8, length=_length(model))
    except InputError:
        return {}
    traces = [model.run(**one) for one in inputs]
    found = measure_all(("induction", "duplicate_token"), traces)
    names = {"induction": "repeated_induction", "duplicate_token": "repeated_duplicate"}
    scores = {names[name]: one for name, one in found.items()}
    with contextlib.suppress(HeadscopeError):  # a model whose weights it cannot follow is measured without
        scores["copying"] = copying(model)
    return scores


def _length(model: Model) -> int:
    """50 tokens, as is usual, unless the model is too short for two times that."""
    longest = getattr(model.config, "max_position_embeddings", None) or getattr(model.config, "n_positions", None)
    return min(50, (longest - 2) // 2) if longest else 50


def _sampled(
    model: Model,
    asked: Sample,
    wanted: list[str],
    place: Path,
    digest: str,
    tell: Progress,
    cancel: threading.Event | None,
) -> tuple[dict[str, Scores], dict[str, str]]:
    """Relevance and importance on the sample, each kept when it is done; and why what is not there is not."""
    found: dict[str, Scores] = {}
    absent: dict[str, str] = {}
    for name in wanted:
        kept = place / f"{name}.json"
        known = _kept(kept, digest, asked)
        if known is None:
            try:
                known = _METHODS[name](
                    model,
                    asked.inputs,
                    target=asked.targets,
                    progress=lambda *at, name=name: tell(name.replace("_", " "), *at),
                    cancel=cancel,
                )
            except (CaptureError, InputError) as problem:
                absent[name] = str(problem)
                continue
            _keep(kept, digest, asked, known)
        found[name] = known
    return found, absent


def _kept(file: Path, digest: str, asked: Sample) -> Scores | None:
    """What an earlier call had finished, if it asked the same; what is damaged is told, and measured again."""
    if not file.exists():
        return None
    try:
        data = read_json(file, "")
        if not take_checksum(data, file, ""):
            if data.keys() != _KEPT_BEFORE:
                raise LoadError(f"{file} is damaged: it has no checksum. ")
            warnings.warn(
                f"{file} was written by Headscope 0.1.0, without a checksum: delete it to have it measured again.",
                HeadscopeWarning,
                stacklevel=4,
            )
        is_asked = (data["run"], data["examples"]) == (digest, asked.ids)
        return _scores(data["scores"]) if is_asked else None
    except (AttributeError, KeyError, TypeError, ValueError, HeadscopeError) as error:
        problem = str(error) if isinstance(error, LoadError) else f"{file} is damaged: {error}. "
        warnings.warn(f"{problem}It is measured again.", HeadscopeWarning, stacklevel=4)
        return None


def _keep(file: Path, digest: str, asked: Sample, scores: Scores) -> None:
    data = {"format": _KEPT_FORMAT, "run": digest, "examples": asked.ids, "scores": scores.to_json()}
    write_file(file, json.dumps(with_checksum(data), allow_nan=True).encode())


def _notes(run: runs.Run, asked: Sample, found: Mapping[str, Scores]) -> list[str]:
    said = []
    if found:
        names = {"relevance": "relevance", "gate_importance": "gate gradients", "ablation": "ablation"}
        told = ", ".join(names[name] for name in found)
        said.append(f"{told[:1].upper()}{told[1:]}: on {len(asked.inputs)} examples, about {asked.about}.")
    share = found["relevance"].settings.get("bias_share") if "relevance" in found else None
    if share is not None and share == share:
        said.append(f"Bias share of the explained logits: {share:.2f}.".replace("-", "−"))
    n_over = len(run.skipped_examples())
    if n_over:
        said.append(f"{n_over} examples that the model could not take were passed over.")
    return said


def check_folder(folder: str | Path) -> None:
    """Refuse a folder that holds files of others where a report of heads would be written."""
    folder = Path(folder)
    report = _json_of(folder / _FILE)
    ours = {f"{name}.json" for name in _METHODS if _is_kept(_json_of(folder / f"{name}.json"))}
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


def _is_kept(data: dict[str, Any]) -> bool:
    return data.get("format") == _KEPT_FORMAT or data.keys() == _KEPT_BEFORE


def _write(report: HeadsReport) -> None:
    """Write the files of a report: first the one that names the others, which are ours from then on."""
    check_folder(report.folder)  # again: measuring took its time
    others = {_TABLE: scores_table(report.scores), _PAGE: page(report).encode()}
    files = {name: hashlib.sha256(data).hexdigest() for name, data in others.items()}
    text = json.dumps(with_checksum(report.to_json() | {"files": files}), ensure_ascii=False, allow_nan=False, indent=1)
    for name, data in {_FILE: text.encode(), **others}.items():
        write_file(report.folder / name, data)


def _head(name: str) -> Head:
    found = parse(name)
    if not isinstance(found, Head):
        raise HeadscopeError(f"{name} is not a head.")
    return found


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
