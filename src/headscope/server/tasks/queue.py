"""Tasks in the queue of runs, and their results, each worked out once and cached."""

import asyncio
import functools
import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import TypeAdapter, ValidationError

from headscope.models import Model
from headscope.server.catalogue import Catalogue
from headscope.server.errors import Refused
from headscope.server.jobs import Job, Jobs
from headscope.server.memory import Cache, Memory
from headscope.server.messages import RunEvent, TaskRequest
from headscope.server.request_bodies import BoundedLists
from headscope.server.runs import Runs, ServerRun
from headscope.server.tasks.task import Desk, Task

MOST_ELEMENTS = 50_000
"""Of a list in the options of a task: as many stretches as can be painted."""
SHARE_OF_RESULTS = 1 / 8
"""Of the server's memory."""
SHARE_OF_TASK = 1 / 4
"""What one task works with, if it does not say; and what tasks leave for those that come after."""


@dataclass(frozen=True)
class Result:
    """An encoded part, and what it is of: a task, a run or a model, and the run that is subtracted."""

    id: str
    of: tuple[str, str, str]
    data: bytes


class Tasks:
    """Results by the hash of what was asked: the same request finds the same result, under way or cached."""

    def __init__(self, known: Mapping[str, Task], catalogue: Catalogue, jobs: Jobs, runs: Runs, memory: Memory):
        self.known, self.catalogue, self.jobs, self.runs, self.memory = known, catalogue, jobs, runs, memory
        self.results = Cache[Result](memory, "results", SHARE_OF_RESULTS)
        self._aside = Cache[Any](memory, "aside", SHARE_OF_TASK)
        self._salt = secrets.token_hex(8)

    async def start(self, wanted: TaskRequest, *, only_kept: bool = False) -> str | Job | None:
        """The id of a cached result, or the job that computes it; with `only_kept` None in place of the job."""
        task = self.known.get(wanted.name)
        if task is None:
            message = f"there is no task {wanted.name[:60]!r}: the tasks are {', '.join(self.known)}."
            raise Refused(404, "UnknownTask", message)
        options = _options(task, wanted.options)
        run = self.runs.find(wanted.trace) if task.of_trace else None
        other = self.runs.find(minus) if (minus := _minus(options)) else None
        # In a thread: names of folders are looked up, and options may be long.
        model = run.request.model if run else await asyncio.to_thread(self.catalogue.resolve, wanted.model)
        id = await asyncio.to_thread(self._id, task, wanted.trace, model, options)
        if self.results.get(id) is not None:
            return id
        if only_kept:
            return None
        return self.jobs.submit(f"task {id}", lambda job: self._work(job, id, task, model, run, other, options))

    def result_of(self, wanted: TaskRequest) -> bytes | None:
        """The result of a task of a run, if it was asked for and is still cached."""
        task = self.known[wanted.name]
        model = self.runs.find(wanted.trace).request.model
        result = self.results.get(self._id(task, wanted.trace, model, _options(task, wanted.options)))
        return None if result is None else result.data

    def find(self, id: str) -> bytes:
        """A cached result: an encoded part."""
        result = self.results.get(id)
        if result is None:
            raise Refused(404, "UnknownResult", f"there is no result {id[:40]!r} (any more).", "Ask for it again.")
        return result.data

    def all(self, name: str, about: str, minus: str = "") -> dict[str, bytes]:
        """Cached results of a task about a run (less another), or about a model alone: by id, the last one last."""
        results = reversed(self.results.newest_first())
        return {result.id: result.data for result in results if result.of == (name, about, minus)}

    def latest(self, name: str, about: str) -> tuple[str, bytes] | None:
        """The last of those, and its id."""
        return next(reversed(self.all(name, about).items()), None)

    def _id(self, task: Task, trace: str, model: str, options: Any) -> str:
        identity = json.dumps([self._salt, task.name, trace, model, vars(options)], sort_keys=True, default=str)
        return hashlib.sha256(identity.encode()).hexdigest()[:16]

    def _work(
        self, job: Job, id: str, task: Task, model: str, run: ServerRun | None, other: ServerRun | None, options: Any
    ) -> RunEvent:
        """In the thread of runs."""
        if not all(self.catalogue.is_loaded(name) for name in (model, *([other.request.model] if other else []))):
            job.tell_from_thread(RunEvent("loading"))
        loaded = self.catalogue.load(model)
        second = (self.catalogue.load(other.request.model), other) if other else None
        job.tell_from_thread(RunEvent("running"))

        reads = [self.runs.cache.address(read.id) for read in (run, other) if read is not None]
        with self.memory.reserve(self._size(task, loaded, run), "this task", reads=reads) as room:
            corpus = self.catalogue.options.corpus
            desk = Desk(loaded, run, job.cancel, job.report, self._aside, room, corpus, second)
            data = task.work(desk, options).encode()
            of = task.name, model if run is None else run.id, other.id if other else ""
            self.results.put(id, Result(id, of, data), len(data), room)
        return RunEvent("done", result=id)

    def _size(self, task: Task, model: Model, run: ServerRun | None) -> int:
        if run is not None and task.working_bytes is not None:
            return task.working_bytes(model, run)
        return int(self.memory.limit * SHARE_OF_TASK)


def _minus(options: Any) -> str:
    """The run that is subtracted, where a task takes one and it is named."""
    return getattr(options, "minus", "")


def _options(task: Task, values: dict[str, object]) -> Any:
    unknown = set(values) - set(task.options.__dataclass_fields__)
    if unknown:
        known = ", ".join(task.options.__dataclass_fields__) or "none"
        raise Refused(422, "InputError", f"{task.name} has no option {min(unknown)!r}: it takes {known}.")
    try:
        return _adapter(task.options).validate_python(values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise Refused(422, "InputError", f"{task.name}: {where or 'its options'}: {first['msg']}.") from error


@functools.cache
def _adapter(options: type) -> TypeAdapter:
    return TypeAdapter(Annotated[options, BoundedLists(MOST_ELEMENTS)])  # type: ignore[valid-type]
