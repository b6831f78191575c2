"""The report of trust: for every head whether its attention explains the output, with the tests behind it."""

import hashlib
import io
import json
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from headscope import runs
from headscope.choices import TrustTask as TaskName
from headscope.corpora import Corpus
from headscope.errors import HeadscopeError, InputError, LoadError
from headscope.faithfulness.head_tests import HeadTests
from headscope.faithfulness.questions import task_name
from headscope.faithfulness.seed_change import seed_change
from headscope.faithfulness.trust_measure import Scope, TrustMeasure, head_groups
from headscope.faithfulness.trust_run import HeadTrust, verdicts
from headscope.faithfulness.verdict_rule import TrustVerdict
from headscope.files import read_json, refuse_foreign, take_checksum, with_checksum, write_file
from headscope.models import Model, load
from headscope.progress import Cancel, OnProgress
from headscope.reports.corpus_subset import corpus_subset
from headscope.reports.report_page import plain
from headscope.reports.trust_page import trust_page
from headscope.runs.run_folder import Folder
from headscope.runs.shard import arrow
from headscope.sites import ByHead, Head, Site, find, parse
from headscope.tasks import LearningTask, Score, sequence_classification, tagging

FORMAT = "headscope-trust"
VERSION = 1
_FILE, _PAGE, _TABLE = "trust.json", "report.html", "trust.parquet"
_REMEDY = "Make the report again with the same folder."
# Texts of one shard: what a stopped run loses.
_SHARD = 4


@dataclass(frozen=True, eq=False)
class TrustReport:
    """A verdict for every head, for every layer and for all heads together; kept in `folder`.

    `report.html` there is the page, `trust.parquet` a table of all figures, `trust.json` all of it, and `run` the
    figures of every text.
    """

    folder: Path
    about: dict[str, Any]
    heads: ByHead[HeadTrust]
    layers: list[HeadTrust] = field(default_factory=list)
    whole: HeadTrust | None = None

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {verdict}" for verdict, count in self.counts().items() if count)
        return f"TrustReport({self.about['model']!r} on {self.about['corpus']!r}: {counts}; {self.page})"

    @property
    def page(self) -> Path:
        """The page that shows it."""
        return self.folder / _PAGE

    def counts(self) -> dict[TrustVerdict, int]:
        """How many heads have each verdict."""
        kinds: tuple[TrustVerdict, ...] = ("supported", "mixed", "not supported", "not tested")
        return {kind: sum(trust.verdict == kind for trust in self.heads.values()) for kind in kinds}

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary: what `trust.json` holds."""
        return plain(
            {
                "format": FORMAT,
                "version": VERSION,
                "about": self.about,
                "heads": [trust.to_json() for trust in self.heads.values()],
                "layers": [trust.to_json() for trust in self.layers],
                "whole": None if self.whole is None else self.whole.to_json(),
            }
        )

    @classmethod
    def load(cls, folder: str | Path) -> "TrustReport":
        """Read a report that was kept, and verify it."""
        file = Path(folder) / _FILE
        if not file.is_file():
            raise LoadError(f"there is no report of trust in {folder}: it has no {_FILE}.")
        data = read_json(file, _REMEDY)
        has_checksum = take_checksum(data, file, _REMEDY)
        if data.get("format") != FORMAT or data.get("version") != VERSION or not has_checksum:
            raise LoadError(f"{file} is damaged, or of another version: this Headscope reads {FORMAT} {VERSION}.")
        try:
            heads = ByHead((_head(row["name"]), HeadTrust.from_json(row)) for row in data["heads"])
            layers = [HeadTrust.from_json(row) for row in data["layers"]]
            whole = None if data["whole"] is None else HeadTrust.from_json(data["whole"])
            return cls(Path(folder), data["about"], heads, layers, whole)
        except (AttributeError, KeyError, TypeError, ValueError, HeadscopeError) as error:
            raise LoadError(f"{file} is damaged: {type(error).__name__}: {error}. {_REMEDY}") from error


def trust(
    model: Model | str,
    source: Any,
    task: "LearningTask | str | None" = None,
    folder: str | Path | None = None,
    *,
    heads: Sequence[str | Head | Site] | None = None,
    limit: int | None = None,
    every: int = 1,
    tests: HeadTests | None = None,
    others: Sequence[Model] = (),
    truncate: bool = False,
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> TrustReport:
    """Whether the attention of every head explains the model's output on a corpus: tests, verdicts, and a page.

    `task` is one of `headscope.tasks` or its name; by default what the model can do. `heads` are those to test (a layer
    stands for all of its heads); by default all. `others` are models that differ
    from it in their seed alone: a change of the output then counts from the change between seeds on. `tests` says how
    heads are tested. The run is kept in `folder` and goes on where it was stopped; without one in a temporary folder.
    """
    tests = tests or HeadTests()
    if folder is not None:
        check_folder(folder)
    loaded = load(model) if isinstance(model, str) else model
    name = task_name(loaded, task)
    tests.check(loaded)
    examples = corpus_subset(source, limit, every)
    score = _score(loaded, name, task, examples)
    place = Path(tempfile.mkdtemp(prefix="headscope-trust-")) if folder is None else Path(folder)
    chosen = None if heads is None else [head for choice in heads for head in find(choice, loaded.heads)]
    going: dict[str, Any] = {"progress": progress, "cancel": cancel}
    measures = _measures(name, tests, chosen, going)
    going["truncate"] = truncate
    sizes = {"shard_size": _SHARD, "batch_size": _SHARD, "block": 1}  # a text is a sample, however many there are
    run = runs.run(loaded, examples, measures, place / "run", **sizes, **going)
    noise = seed_change(loaded, others, name, examples, seed=tests.seed, **going) if others else None
    about = _about(loaded, run, examples, name, tests) | {"seed_change": noise, "score": score}
    report = _report(loaded, run, chosen, place, about)
    _write(report)
    return report


def check_folder(folder: str | Path) -> None:
    """Refuse a folder that holds files of others where a report of trust would be written."""
    folder, ours = Path(folder), set()
    try:
        if read_json(folder / _FILE, "").get("format") == FORMAT:
            ours |= {_FILE, _PAGE, _TABLE}
    except LoadError:
        pass
    if (folder / "run" / "manifest.json").is_file():
        Folder(folder / "run").check()
        ours.add("run")
    refuse_foreign(folder, "a report of trust", ours=ours, writes={_FILE, _PAGE, _TABLE, "run"})


def _measures(
    task: TaskName, tests: HeadTests, heads: Sequence[Head] | None, going: dict[str, Any]
) -> list[TrustMeasure]:
    """The tests of heads, and the short ones of layers and of the whole model."""
    wide = replace(tests, erasure_share=None)
    return [
        TrustMeasure("heads", task, tests, heads=heads, **going),
        TrustMeasure("layers", task, wide, heads=heads, **going),
        TrustMeasure("model", task, wide, **going),
    ]


def _about(model: Model, run: runs.Run, examples: Corpus, task: TaskName, tests: HeadTests) -> dict[str, Any]:
    """What was tested, on what, and what was left out."""
    refusals = [shard["heads"] for shard in run.shard_records("refusals") if "heads" in shard]
    n_examples = run.manifest["corpus"]["n_examples"]
    n_refused, n_over = sum(count for count, _ in refusals), len(run.skipped_examples())
    if n_refused + n_over == n_examples:
        first = f", the first because {refusals[0][1]}" if refusals else ""
        raise InputError(f"none of {n_examples} texts could be tested{first}")
    untested = f"{n_refused} of {n_examples} texts were not tested"
    notes = [f"{untested}, the first because {refusals[0][1]}"] if refusals else []
    for scope, name in (("layers", "whole layers"), ("model", "all heads together")):
        more = [shard[scope] for shard in run.shard_records("refusals") if scope in shard]
        n_more = sum(count for count, _ in more) - n_refused
        notes += [f"{n_more} more texts were not tested for {name}: {more[0][1]}"] if n_more > 0 else []
    notes += [f"{n_over} texts that the model could not take were passed over."] if n_over else []
    return {
        "model": Path(model.name).name if Path(model.name).is_dir() else model.name,
        "weights": run.manifest["model"]["weights"],
        "corpus": examples.name,
        "n_texts": n_examples - n_refused - n_over,
        "task": task,
        "tests": asdict(tests),
        "notes": [*model.warnings, *notes],
    }


def _report(
    model: Model, run: runs.Run, heads: Sequence[Head] | None, folder: Path, about: dict[str, Any]
) -> TrustReport:
    def of(scope: Scope, was_searched: bool) -> list[HeadTrust]:
        first_heads = [group[0] for group in head_groups(model, scope, heads)]
        options: dict[str, Any] = {"was_searched": was_searched, "seed_change": about["seed_change"]}
        return verdicts(run.table(scope), scope, first_heads, **options)

    trusts = of("heads", about["tests"]["adversary"] is not None)
    by_head = ByHead((_head(trust.name), trust) for trust in trusts)
    return TrustReport(folder, about, by_head, of("layers", False), of("model", False)[0])


def _score(model: Model, name: TaskName, task: "LearningTask | str | None", examples: Corpus) -> dict[str, Any] | None:
    """How well the model does on the corpus, where it has labels; labels that do not fit the model are refused."""
    learning_task = task if isinstance(task, LearningTask) else None
    labelled = [example for example in examples if (example.tags if name == "tagging" else example.label is not None)]
    if name not in ("sequence_classification", "tagging") or not labelled:
        return None
    if learning_task is None:
        make = tagging if name == "tagging" else sequence_classification
        learning_task = make(dev=labelled)
    score: Score = learning_task.evaluate(model, labelled)
    return {"metric": score.metric, "value": score.value, "n": score.n}


def _write(report: TrustReport) -> None:
    """Write the files of a report: first the one that names the others, which are ours from then on."""
    check_folder(report.folder)  # again: testing took its time
    others = {_TABLE: _table(report), _PAGE: trust_page(report).encode()}
    files = {name: hashlib.sha256(data).hexdigest() for name, data in others.items()}
    text = json.dumps(with_checksum(report.to_json() | {"files": files}), ensure_ascii=False, allow_nan=False, indent=1)
    for name, data in {_FILE: text.encode(), **others}.items():
        write_file(report.folder / name, data)


def _table(report: TrustReport) -> bytes:
    """A row for every head, layer and all heads, as Parquet."""
    pa, pq = arrow()
    rows = [*_rows("head", report.heads.values()), *_rows("layer", report.layers)]
    rows += _rows("model", [report.whole] if report.whole is not None else [])
    names = dict.fromkeys(name for row in rows for name in row)
    sink = io.BytesIO()
    pq.write_table(pa.table({name: [row.get(name) for row in rows] for name in names}), sink)
    return sink.getvalue()


def _rows(scope: str, trusts: Iterable[HeadTrust]) -> list[dict[str, Any]]:
    rows = []
    for head_trust in trusts:
        row: dict[str, Any] = {"scope": scope, "name": head_trust.name, "verdict": head_trust.verdict}
        for part in head_trust.parts:
            row |= {f"{part.name}_{key}": value for key, value in vars(part).items() if key != "name"}
        rows.append(row | dict(head_trust.figures))
    return rows


def _head(name: str) -> Head:
    address = parse(name)
    if not isinstance(address, Head):
        raise HeadscopeError(f"{name} is not a head.")
    return address
