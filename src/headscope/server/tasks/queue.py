"""Tasks in the queue of runs, and their results, each worked out once and kept ready for a while."""

import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pydantic import TypeAdapter, ValidationError

from headscope.server.catalogue import Catalogue
from headscope.server.jobs import Job, Jobs
from headscope.server.kept import Kept
from headscope.server.messages import RunEvent, TaskRequest
from headscope.server.options import Limits
from headscope.server.problems import Refused
from headscope.server.runs import Run, Runs
from headscope.server.tasks.task import Desk, Task

# Results of one task about one run that are known to belong together: windows of a long input, say.
_MOST_RESULTS = 500


class Tasks:
    """Results by the hash of what was asked: the same request finds the same result, under way or kept."""

    def __init__(self, known: Mapping[str, Task], catalogue: Catalogue, jobs: Jobs, runs: Runs, limits: Limits):
        self.known, self.catalogue, self.jobs, self.runs = known, catalogue, jobs, runs
        self.results: Kept[bytes] = Kept(limits.part_bytes)
        self._made: Kept[tuple[str, ...]] = Kept(1000)
        self._aside: Kept[Any] = Kept(limits.trace_bytes // 4)  # used in the thread of runs only
        self._salt = secrets.token_hex(8)

    def start(self, wanted: TaskRequest, *, only_kept: bool = False) -> str | Job | None:
        """The id of a kept result, or the job that computes it; with `only_kept` None in place of the job."""
        task = self.known.get(wanted.name)
        if task is None:
            told = f"there is no task {wanted.name[:60]!r}: the tasks are {', '.join(self.known)}."
            raise Refused(404, "UnknownTask", told)
        options = _options(task, wanted.options)
        run = self.runs.find(wanted.trace) if task.of_trace else None
        other = self.runs.find(minus) if (minus := _minus(options)) else None
        model = run.request.model if run else self.catalogue.permitted(wanted.model)
        id = self._id(task, wanted.trace, model, options)
        if self.results.get(id) is not None:
            self._belongs(task, run, other, model, id)
            return id
        if only_kept:
            return None
        return self.jobs.submit(f"task {id}", lambda job: self._work(job, id, task, model, run, other, options))

    def made(self, wanted: TaskRequest) -> bytes | None:
        """The result of a task of a run, if it was asked for and is still kept."""
        task = self.known[wanted.name]
        model = self.runs.find(wanted.trace).request.model
        return self.results.get(self._id(task, wanted.trace, model, _options(task, wanted.options)))

    def _id(self, task: Task, trace: str, model: str, options: Any) -> str:
        told = json.dumps([self._salt, task.name, trace, model, asdict(options)], sort_keys=True, default=str)
        return hashlib.sha256(told.encode()).hexdigest()[:16]

    def find(self, id: str) -> bytes:
        """A result that is remembered: an encoded part."""
        found = self.results.get(id)
        if found is None:
            raise Refused(404, "UnknownResult", f"there is no result {id[:40]!r} (any more).", "Ask for it again.")
        return found

    def all(self, name: str, about: str, minus: str = "") -> dict[str, bytes]:
        """Remembered results of a task about a trace (less another), or about a model alone: by their ids, the last one
        last."""
        found = {id: self.results.get(id) for id in self._made.get((name, about, minus)) or ()}
        return {id: data for id, data in found.items() if data is not None}

    def latest(self, name: str, about: str) -> tuple[str, bytes] | None:
        """The last of those, and its id."""
        return next(reversed(self.all(name, about).items()), None)

    def _belongs(self, task: Task, run: Run | None, other: Run | None, model: str, id: str) -> None:
        about = task.name, model if run is None else run.id, other.id if other else ""
        others = [one for one in self._made.get(about) or () if one != id]
        self._made.put(about, (*others[-_MOST_RESULTS:], id), 1)

    def _work(
        self, job: Job, id: str, task: Task, model: str, run: Run | None, other: Run | None, options: Any
    ) -> RunEvent:
        """In the thread of runs."""
        if not all(self.catalogue.is_loaded(one) for one in (model, *([other.request.model] if other else []))):
            job.tell_from_thread(RunEvent("loading"))
        loaded = self.catalogue.load(model)
        second = (self.catalogue.load(other.request.model), other) if other else None
        job.tell_from_thread(RunEvent("running"))

        def progress(done: int, of: int) -> None:
            job.tell_from_thread(RunEvent("running", done=done, of=of))

        data = task.work(
            Desk(loaded, run, job.cancel, progress, self._aside, self.catalogue.options.corpus, second), options
        ).encode()

        def keep() -> None:
            self.results.put(id, data, len(data))
            self._belongs(task, run, other, model, id)

        job.in_loop(keep)
        return RunEvent("done", result=id)


def _minus(options: Any) -> str:
    """The run that is subtracted, where a task takes one and it is named."""
    return getattr(options, "minus", "")


def _options(task: Task, given: dict[str, object]) -> Any:
    unknown = set(given) - set(task.options.__dataclass_fields__)
    if unknown:
        known = ", ".join(task.options.__dataclass_fields__) or "none"
        raise Refused(422, "InputError", f"{task.name} has no option {sorted(unknown)[0]!r}: it takes {known}.")
    try:
        return TypeAdapter(task.options).validate_python(given)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(one) for one in first["loc"])
        raise Refused(422, "InputError", f"{task.name}: {where or 'its options'}: {first['msg']}.") from error
