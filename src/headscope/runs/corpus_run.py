"""A run: measures over a corpus, shard by shard, kept in a folder; stopped at any moment, it goes on where it was."""

import functools
import itertools
import threading
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headscope.corpora import Corpus, Example, corpus
from headscope.errors import Cancelled, HeadscopeError, HeadscopeWarning, InputError, MissingExtraError
from headscope.progress import Cancel, OnProgress
from headscope.runs.batch_plan import Plan, block_for
from headscope.runs.engine import Crew, Engine, Local, ShardTask, Source
from headscope.runs.manifest import digest_of, make_manifest, measure_names
from headscope.runs.measure import Measure
from headscope.runs.progress import Counter
from headscope.runs.run_folder import Folder
from headscope.runs.shard import Shard, arrow
from headscope.runs.table import MeasureTable
from headscope.scores import Scores


@dataclass(frozen=True, eq=False)
class Run:
    """The folder of a run and what can be read from it."""

    folder: Path
    manifest: dict[str, Any]
    measures: tuple[Measure, ...] = ()

    def __repr__(self) -> str:
        names = ", ".join(measure_names(self.manifest))
        n_done = sum(shard.is_there for shard in self._shards)
        part = "" if n_done == self.n_shards else f", {n_done} of {self.n_shards} shards so far"
        about = self.manifest["corpus"]
        return (
            f"Run({self.manifest['model']['name']!r} on {about['n_examples']} examples of {about['name']}: {names}"
            f"{part})"
        )

    @property
    def n_shards(self) -> int:
        """How many shards it has when it is complete."""
        return len(self._shards)

    @property
    def is_complete(self) -> bool:
        """Whether every shard is done."""
        return all(shard.is_there for shard in self._shards)

    def table(self, measure: str) -> MeasureTable:
        """What one measure counted over the corpus; refused while shards are missing."""
        names = measure_names(self.manifest)
        if measure not in names:
            raise HeadscopeError(f"this run has no measure {measure!r}: it has {', '.join(names)}.")
        stored = names[measure]
        about = next(stated for stated in self.manifest["measures"] if stated["name"] == stored)
        n_blocks = -(-self.manifest["corpus"]["n_examples"] // self.manifest["plan"]["block"])
        seed = self.manifest["plan"]["seed"]
        return MeasureTable(measure, about["settings"], self._complete(), n_blocks, seed, stored=stored)

    def scores(self) -> dict[str, Scores]:
        """Scores by measure, and by measure and key (`syntactic/nsubj`) where it has several.

        A measure that nothing in the corpus bears on is left out: `silent_measures()` says why. A run that was
        opened without its measures gives means.
        """
        known = {measure.name: measure for measure in self.measures}
        scores_by_name: dict[str, Scores] = {}
        for name in measure_names(self.manifest):
            table = self.table(name)
            if not table.keys():
                continue
            scores = known[name].finish(table) if name in known else table.means()
            if isinstance(scores, Scores):
                scores_by_name[name] = scores
            else:
                scores_by_name |= {f"{name}/{key}": key_scores for key, key_scores in scores.items()}
        return scores_by_name

    def silent_measures(self) -> dict[str, str]:
        """The measures that counted nothing, and why."""
        tables = [self.table(name) for name in measure_names(self.manifest)]
        return {table.measure: table.why() for table in tables if not table.keys()}

    def skipped_examples(self) -> dict[str, str]:
        """The examples that the model could not take, and why."""
        return {where: reason for reasons in self.shard_records("passed_over") for where, reason in reasons.items()}

    def shard_records(self, what: str) -> list[Any]:
        """What every shard says of itself: "passed_over", "refusals" or "notes"."""
        return [shard.about(what) for shard in self._complete()]

    def file(self, index: int, name: str) -> Path | None:
        """A file that a measure wrote beside a shard, verified; None where it wrote none of this name."""
        return self._shards[index].file(name)

    def sql(self, query: str) -> Any:
        """Ask DuckDB; the rows are the table `samples`. Gives a DuckDB relation: `.fetchall()`, `.df()` …

        Columns: measure, key, head, block, example, total, n_queries, chance, n_examples. The files are verified before
        DuckDB reads them. A run that is not complete can be asked too, with a warning.
        """
        try:
            import duckdb
        except ImportError as error:
            raise MissingExtraError("sql needs the package duckdb: pip install 'headscope[runs]'.") from error
        shards = [shard for shard in self._shards if shard.is_there]
        if not shards:
            raise HeadscopeError(f"{self.folder} has no shards yet.")
        if len(shards) < self.n_shards:
            warnings.warn(f"{self._lack()}: the rows are those of the others.", HeadscopeWarning, stacklevel=2)
        for shard in shards:
            with shard.open():
                pass  # verified
        files = ", ".join(f"'{path}'" for path in (str(shard.path.resolve()).replace("'", "''") for shard in shards))
        connection = duckdb.connect()
        connection.execute(f"create view samples as select * from read_parquet([{files}])")
        return connection.sql(query)

    @functools.cached_property
    def _shards(self) -> list[Shard]:
        return Folder(self.folder).shards(self.manifest)

    def _complete(self) -> list[Shard]:
        """All shards: numbers of some of them would pass for those of the corpus."""
        if not self.is_complete:
            raise HeadscopeError(f"{self._lack()}. Run it again with the same folder to resume.")
        return self._shards

    def _lack(self) -> str:
        missing = [shard.path for shard in self._shards if not shard.is_there]
        more = f" and {len(missing) - 1} more are" if len(missing) > 1 else " is"
        return f"{self!r} is not complete: {missing[0]}{more} missing"


def open(folder: str | Path, measures: Sequence[Measure] = ()) -> Run:
    """A run that was kept; with its measures, scores are finished as they finish them."""
    return Run(Path(folder), Folder(folder).manifest(), tuple(measures))


def run(
    model: Source,
    source: Any,
    measures: Sequence[Measure],
    folder: str | Path,
    *,
    engine: "str | Engine" = "local",
    shard_size: int = 256,
    batch_size: int = 64,
    batch_tokens: int = 4096,
    block: int | None = None,
    seed: int = 0,
    threads: int | None = None,
    truncate: bool = False,
    resume: bool = True,
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> Run:
    """Measure a model over a corpus, and keep what was counted in `folder`.

    `source` is a corpus or whatever `corpus` takes; measures are made with `OfCells`, `OfLayers` and
    `OfTraces`, or written as a `Measure`. Stopped by Ctrl-C or killed, the same call goes on after the last shard that
    was done, and the files come out the same to the byte. `engine` is "local", "ray" or `Ray(address=…)`. `truncate`
    cuts what is too long for the model, which is otherwise refused.

    >>> import headscope as hs, tempfile
    >>> texts = ["The doctor asked the nurse a question. She"]
    >>> measures = hs.analysis.streaming(texts, names=["previous_token"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     hs.runs.run("builtin:gpt", texts, measures, folder).scores()["previous_token"].top(1)[0][0]
    Head('L3H2')
    """
    examples = source if isinstance(source, Corpus) else corpus(source)
    chosen = [_measure(measure) for measure in measures]
    names = [measure.name for measure in chosen]
    if not names or len(set(names)) < len(names):
        raise InputError(f"a run needs measures with different names, got {names}.")
    arrow()
    place, works_at = Folder(folder), _engine(engine)
    place.check()
    survey = examples.survey()
    if not survey.n_examples:
        raise InputError(f"there is nothing to measure: {examples!r} has no examples.")
    plan = Plan(
        shard_size=shard_size,
        batch_size=batch_size,
        batch_tokens=batch_tokens,
        block=block or block_for(survey.n_examples, shard_size),
        seed=seed,
        threads=threads or works_at.threads(),
        truncate=truncate,
        on_error=examples.on_error,
    )
    crew = works_at.crew(model, chosen, plan.threads)
    try:
        manifest = make_manifest(crew.identity, examples, survey, chosen, plan)
        with place.alone():
            manifest = place.begin(manifest, resume=resume)
            _work(crew, place, examples, manifest, plan, progress, cancel or threading.Event())
    finally:
        crew.close()
    done = Run(Path(folder), manifest, tuple(chosen))
    _say_notes(done)
    return done


def _work(
    crew: Crew,
    place: Folder,
    examples: Corpus,
    manifest: dict[str, Any],
    plan: Plan,
    progress: OnProgress | None,
    cancel: Cancel,
) -> None:
    done = place.done_shards(manifest)
    n_examples, n_shards = manifest["corpus"]["n_examples"], len(place.shards(manifest))
    n_before = sum(min(plan.shard_size, n_examples - index * plan.shard_size) for index in done)
    try:
        counter = Counter(progress, n_examples, n_before)
        if len(done) < n_shards:
            tasks = _tasks(examples, plan, done)
            for finished in crew.work(tasks, plan, digest_of(manifest), report=counter.batch, cancel=cancel):
                place.write(finished.index, finished.data)
                done.add(finished.index)
                counter.shard(finished.n_examples)
    except (KeyboardInterrupt, Cancelled) as error:
        raise Cancelled(_stop_note(place, len(done), n_shards)) from error
    if cancel.is_set() and len(done) < n_shards:
        raise Cancelled(_stop_note(place, len(done), n_shards))
    if len(done) != n_shards:
        raise HeadscopeError(f"the corpus changed while it was read: {n_shards} shards were expected.")


def _say_notes(done: Run) -> None:
    """Say once what was said of many examples."""
    notes = [note for note in done.shard_records("notes") if note]
    if notes:
        n_notes = sum(note[0] for note in notes)
        more = "" if n_notes == 1 else f" ({n_notes} examples came with warnings; this is the first)"
        warnings.warn(f"{notes[0][1]}{more}", HeadscopeWarning, stacklevel=3)


def _stop_note(place: Folder, n_done: int, n_shards: int) -> str:
    return f"stopped with {n_done} of {n_shards} shards done, kept in {place.path}: the same call goes on from there."


def _tasks(examples: Corpus, plan: Plan, done: set[int]) -> Iterator[ShardTask]:
    stream: Iterator[Example] = iter(examples)
    for index in itertools.count():
        shard = list(itertools.islice(stream, plan.shard_size))
        if not shard:
            return
        if index not in done:
            yield ShardTask(index, shard)


def _engine(engine: "str | Engine") -> Engine:
    if engine == "local":
        return Local()
    if engine == "ray":
        from headscope.runs.ray import Ray

        return Ray()
    if isinstance(engine, str):
        raise InputError(f"there is no engine {engine!r}: there are 'local' and 'ray'.")
    return engine


def _measure(measure: Any) -> Measure:
    if isinstance(measure, Measure):
        return measure
    raise InputError(
        f"{type(measure).__name__} is not a measure over a corpus: make one with OfCells, OfLayers or OfTraces, or "
        "write a Measure."
    )
