"""Runs on a Ray cluster: an actor a GPU, or a few CPU threads, holds the model and does shards as they come.

Which examples share a batch is in the plan, and every worker has as many threads as the plan says, so the numbers are
those of a local run. A worker that is lost is replaced and its shard done again.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headscope.errors import HeadscopeError, InputError, MissingExtraError
from headscope.models import Model
from headscope.progress import Cancel
from headscope.runs.batch_plan import Plan
from headscope.runs.engine import Crew, Done, ShardTask, Source, as_model
from headscope.runs.manifest import identity
from headscope.runs.measure import Measure
from headscope.runs.worker import Worker

# A shard that costs this many workers their life is at fault itself.
MAX_ATTEMPTS = 3
# Ray waits half a minute for its own processes, which on a busy machine is too little.
MAX_STARTS = 3
# Examples go out and tables of numbers come back: little at a time, and Ray's own choice is a third of all memory.
STORE_BYTES = 256 * 2**20


@dataclass(frozen=True)
class Ray:
    """A cluster: the one at `address` ("auto" for the one this machine is part of), or a small one on this machine.

    `n_workers` is the number of GPUs, or of CPUs where there are none, unless given.
    """

    address: str | None = None
    n_workers: int | None = None

    def threads(self) -> int:
        """One: the cluster's processors are shared out by worker."""
        return 1

    def crew(self, model: Source, measures: Sequence[Measure], threads: int) -> Crew:
        """Actors with the model loaded; the first says who the model is, and all must agree."""
        return _Actors(self, _recipe(model), measures, threads)


def _recipe(model: Source) -> str | Callable[[], Model]:
    """What a worker elsewhere makes the model from."""
    if not isinstance(model, Model):
        return str(model) if isinstance(model, Path) else model
    if model.name.startswith("builtin:") or Path(model.name).is_dir():
        return model.name
    raise InputError(
        f"{model.name} cannot be sent to other processes as it is: give its name or folder, or a function that makes "
        "it, and every worker loads it."
    )


class _Actors:
    def __init__(self, engine: Ray, recipe: str | Callable[[], Model], measures: Sequence[Measure], threads: int):
        self.ray, self.threads = _ray(), threads
        self.actors: list[Any] = []
        self.is_ours = not self.ray.is_initialized()
        if self.is_ours:
            _start(self.ray, engine, threads)
        self.recipe, self.measures = recipe, list(measures)
        try:
            resources = self.ray.cluster_resources()
            self.on_gpu = resources.get("GPU", 0) >= 1
            there = resources.get("GPU", 1) if self.on_gpu else resources.get("CPU", 1) // threads
            self.actors = [self._actor() for _ in range(engine.n_workers or max(1, int(there)))]
            self.identity = self._get(self.actors[0].identity.remote())
        except BaseException:
            self.close()
            raise

    def work(
        self, tasks: Iterator[ShardTask], plan: Plan, digest: str, *, report: Callable[[int], None], cancel: Cancel
    ) -> Iterator[Done]:
        ray = self.ray
        free = list(self.actors)
        again: list[tuple[ShardTask, int]] = []
        busy: dict[Any, tuple[Any, ShardTask, int]] = {}
        has_more = True
        while has_more or again or busy:
            while free and (again or has_more):
                task, attempt = again.pop() if again else (next(tasks, None), 1)
                if task is None:
                    has_more = False
                    break
                actor = free.pop()
                waiting = actor.shard.remote(self.measures, plan, digest, self.identity, task.index, task.examples)
                busy[waiting] = (actor, task, attempt)
            ready, _ = ray.wait(list(busy), timeout=1.0) if busy else ([], [])
            if cancel.is_set():
                return
            for waiting in ready:
                actor, task, attempt = busy.pop(waiting)
                try:
                    data = ray.get(waiting)
                except ray.exceptions.RayTaskError as error:
                    raise _cause(error) from error
                except ray.exceptions.RayError as error:  # the worker, its machine or its answer is lost
                    if attempt == MAX_ATTEMPTS:
                        raise HeadscopeError(
                            f"shard {task.index} ({task.examples[0].id} to {task.examples[-1].id}) was lost with its "
                            f"worker {attempt} times: {error}"
                        ) from error
                    again.append((task, attempt + 1))
                    ray.kill(actor)
                    self.actors.remove(actor)
                    actor = self._actor()
                    self.actors.append(actor)
                else:
                    report(len(task.examples))
                    yield Done(task.index, data, len(task.examples))
                free.append(actor)

    def close(self) -> None:
        for actor in self.actors:
            self.ray.kill(actor)
        if self.is_ours:
            self.ray.shutdown()

    def _actor(self) -> Any:
        needs = {"num_gpus": 1} if self.on_gpu else {"num_cpus": self.threads}
        return self.ray.remote(**needs)(Actor).remote(self.recipe, "cuda" if self.on_gpu else None)

    def _get(self, waiting: Any) -> Any:
        try:
            return self.ray.get(waiting)
        except self.ray.exceptions.RayTaskError as error:
            raise _cause(error) from error


class Actor:
    """A worker in a process of its own."""

    def __init__(self, recipe: str | Callable[[], Model], device: str | None):
        self.model = as_model(recipe, device=device)
        self.own = identity(self.model)
        self.worker: Worker | None = None

    def identity(self) -> dict[str, Any]:
        """Who its model is."""
        return self.own

    def shard(
        self,
        measures: list[Measure],
        plan: Plan,
        digest: str,
        expected: dict[str, Any],
        index: int,
        examples: Sequence[Any],
    ) -> bytes:
        """One shard, as Parquet."""
        if self.own != expected:
            raise HeadscopeError(f"a worker loaded another model than the first: {self.own}, not {expected}.")
        if self.worker is None:
            self.worker = Worker(self.model, measures, plan)
        return self.worker.shard(index, examples).parquet([measure.name for measure in measures], digest)


def _start(ray: Any, engine: Ray, threads: int) -> None:
    """Join the cluster at the engine's address, or start a small one here."""
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    if engine.address is not None:
        ray.init(address=engine.address, **quiet)
        return
    n_cpus = None if engine.n_workers is None else engine.n_workers * threads
    for attempt in range(1, MAX_STARTS + 1):
        try:
            ray.init(num_cpus=n_cpus, include_dashboard=False, object_store_memory=STORE_BYTES, **quiet)
            return
        except Exception as error:  # Ray raises a plain one when its processes are slow to come up
            ray.shutdown()
            if "timed out" not in str(error):
                raise
            if attempt == MAX_STARTS:
                raise HeadscopeError(
                    f"Ray did not come up on this machine, {attempt} times in a row: {error} The machine may be busy. "
                    "Work without it (engine='local'), or start a cluster yourself (ray start --head) and name it "
                    "(address='auto')."
                ) from error


def _cause(error: Any) -> Exception:
    """What a worker raised, as it raised it, where it is one of ours."""
    cause = getattr(error, "cause", None)
    return cause if isinstance(cause, HeadscopeError) else error


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError("engine='ray' needs the package ray: pip install 'headscope[ray]'.") from error
    return ray
