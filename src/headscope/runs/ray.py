"""Runs on a Ray cluster: an actor a GPU, or a few CPU threads, holds the model and does shards as they come.

Which examples share a batch is in the plan, and every worker has as many threads as the plan says, so the numbers are
those of a local run. A worker that is lost is replaced, where a node has a place for it, and its shard done again.
"""

import logging
import socket
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from headscope.errors import HeadscopeError, HeadscopeWarning, InputError, MissingExtraError
from headscope.models import Model
from headscope.progress import Cancel
from headscope.runs.batch_plan import Plan
from headscope.runs.engine import Crew, Done, ShardTask, Source, as_model
from headscope.runs.manifest import identity
from headscope.runs.measure import Measure
from headscope.runs.worker import Worker

# Ray itself waits for ever for a worker that no node has a place for; a large model takes minutes to load.
START_SECONDS = 600.0
# Between two looks at which nodes are left.
LOOK_SECONDS = 5.0
WAIT_SECONDS = 1.0
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


@dataclass(eq=False)
class _Member:
    """A worker on the cluster: its actor, the node that it runs on once that is known, and since when it starts."""

    actor: Any
    node: str = ""
    host: str = ""
    since: float = field(default_factory=time.monotonic)


@dataclass(frozen=True)
class _Attempt:
    """A shard that a worker is at, or that has to be done again."""

    task: ShardTask
    number: int
    member: _Member | None = None


class _Actors:
    def __init__(self, engine: Ray, recipe: str | Callable[[], Model], measures: Sequence[Measure], threads: int):
        self.ray, self.threads = _ray(), threads
        self.starting: dict[Any, _Member] = {}
        self.free: list[_Member] = []
        self.busy: dict[Any, _Attempt] = {}
        self.again: list[_Attempt] = []
        self.identity: dict[str, Any] = {}
        self.is_ours = not self.ray.is_initialized()
        if self.is_ours:
            _start(self.ray, engine, threads)
        self.recipe, self.measures = recipe, list(measures)
        try:
            resources = self.ray.cluster_resources()
            self.on_gpu = resources.get("GPU", 0) >= 1
            for _ in range(engine.n_workers or max(1, self._places())):
                self._start_member()
            while not self.free:
                self._see_who_is_there(self._ready())
        except BaseException:
            self.close()
            raise

    def work(
        self, tasks: Iterator[ShardTask], plan: Plan, digest: str, *, report: Callable[[int], None], cancel: Cancel
    ) -> Iterator[Done]:
        has_more, looked = True, time.monotonic()
        while has_more or self.again or self.busy:
            while self.free and (self.again or has_more):
                task = None if self.again else next(tasks, None)
                if task is None and not self.again:
                    has_more = False
                    break
                attempt = _Attempt(task, 1) if task is not None else self.again.pop()
                self._hand_out(attempt, plan, digest)
            ready = self._ready() if self.busy or self.again or has_more else []
            if cancel.is_set():
                return
            if time.monotonic() - looked > LOOK_SECONDS:
                looked = time.monotonic()
                self._drop_members_of_lost_nodes()
            self._see_who_is_there(ready)
            for waiting in ready:
                if waiting in self.busy:
                    done = self._take(waiting)
                    if done is not None:
                        report(done.n_examples)
                        yield done

    def close(self) -> None:
        members = (attempt.member for attempt in self.busy.values())
        for member in (*self.starting.values(), *self.free, *filter(None, members)):
            self.ray.kill(member.actor)
        if self.is_ours:
            self.ray.shutdown()

    def _hand_out(self, attempt: _Attempt, plan: Plan, digest: str) -> None:
        member, task = self.free.pop(), attempt.task
        waiting = member.actor.shard.remote(self.measures, plan, digest, self.identity, task.index, task.examples)
        self.busy[waiting] = replace(attempt, member=member)

    def _ready(self) -> list[Any]:
        """Something that has an answer by now, after a second at most."""
        waiting = [*self.busy, *self.starting]
        if not waiting:
            raise HeadscopeError(
                "all workers on the Ray cluster were lost, and it has no place for another. The shards that are done "
                "stay: run the same again, and it goes on from there."
            )
        return self.ray.wait(waiting, timeout=WAIT_SECONDS)[0]

    def _take(self, waiting: Any) -> Done | None:
        """The shard that a worker has done; None where the worker was lost, and the shard is to be done again."""
        attempt = self.busy.pop(waiting)
        assert attempt.member is not None
        try:
            data = self.ray.get(waiting)
        except self.ray.exceptions.RayTaskError as error:
            self.free.append(attempt.member)
            raise _cause(error) from error
        except self.ray.exceptions.RayError as error:  # the worker, its machine or its answer is lost
            self._lose(attempt, error)
            return None
        self.free.append(attempt.member)
        return Done(attempt.task.index, data, len(attempt.task.examples))

    def _lose(self, attempt: _Attempt, error: Exception | str) -> None:
        """Have the shard of a lost worker done again, by a new one if the cluster has a place for it."""
        task, member = attempt.task, attempt.member
        assert member is not None
        if attempt.number == MAX_ATTEMPTS:
            raise HeadscopeError(
                f"shard {task.index} ({task.examples[0].id} to {task.examples[-1].id}) was lost with its worker "
                f"{attempt.number} times: {error}"
            )
        self.again.append(_Attempt(task, attempt.number + 1))
        self._forget(member)

    def _forget(self, member: _Member) -> None:
        """Let go of a lost worker, say so, and start another where there is a place."""
        self.ray.kill(member.actor)
        is_replaced = len(self.starting) + len(self.free) + len(self.busy) < self._places()
        if is_replaced:
            self._start_member()
        n_others = len(self.starting) + len(self.free) + len(self.busy)
        what = f"the run goes on with {n_others}" if n_others else "none is left"
        what = "another is started" if is_replaced else what
        where = f" on {member.host} (Ray node {member.node[:12]})" if member.node else ""
        warnings.warn(f"a worker{where} was lost; {what}.", HeadscopeWarning, stacklevel=2)

    def _drop_members_of_lost_nodes(self) -> None:
        """Ray itself notices after half a minute, or never, that nobody will answer."""
        alive = {node["NodeID"] for node in self.ray.nodes() if node["Alive"]}
        for member in [member for member in self.free if member.node not in alive]:
            self.free.remove(member)
            self._forget(member)
        for waiting, attempt in list(self.busy.items()):
            if attempt.member is not None and attempt.member.node not in alive:
                del self.busy[waiting]
                self._lose(attempt, "its node is gone")

    def _see_who_is_there(self, ready: list[Any]) -> None:
        """Take in workers that have started; give up those that take too long."""
        for waiting in [waiting for waiting in ready if waiting in self.starting]:
            member = self.starting.pop(waiting)
            try:
                own, member.node, member.host = self.ray.get(waiting)
            except self.ray.exceptions.RayTaskError as error:
                raise _cause(error) from error
            except self.ray.exceptions.RayError as error:
                raise HeadscopeError(f"a worker on the Ray cluster could not be started: {error}") from error
            self.identity = self.identity or own
            self.free.append(member)
        for waiting, member in list(self.starting.items()):
            if time.monotonic() - member.since > START_SECONDS:
                del self.starting[waiting]
                self.ray.kill(member.actor)
                if not (self.starting or self.free or self.busy):
                    raise HeadscopeError(
                        f"no worker on the Ray cluster started within {START_SECONDS:.0f} s: is it busy with other "
                        "work? What is done stays: run the same again later, or without it (engine='local')."
                    )

    def _places(self) -> int:
        """How many workers the nodes that are left can hold."""
        resources = self.ray.cluster_resources()
        return int(resources.get("GPU", 0) if self.on_gpu else resources.get("CPU", 0) // self.threads)

    def _start_member(self) -> None:
        needs = {"num_gpus": 1} if self.on_gpu else {"num_cpus": self.threads}
        actor = self.ray.remote(**needs)(Actor).remote(self.recipe, "cuda" if self.on_gpu else None)
        self.starting[actor.about.remote()] = _Member(actor)


class Actor:
    """A worker in a process of its own."""

    def __init__(self, recipe: str | Callable[[], Model], device: str | None):
        self.model = as_model(recipe, device=device)
        self.own = identity(self.model)
        self.worker: Worker | None = None

    def about(self) -> tuple[dict[str, Any], str, str]:
        """Who its model is, and the node and machine that it runs on."""
        return self.own, _ray().get_runtime_context().get_node_id(), socket.gethostname()

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
        ray.init(engine.address, **quiet)
        return
    n_cpus = None if engine.n_workers is None else engine.n_workers * threads
    for attempt in range(1, MAX_STARTS + 1):
        try:
            # (Without an address Ray would join a cluster that happens to run on this machine.)
            ray.init("local", num_cpus=n_cpus, include_dashboard=False, object_store_memory=STORE_BYTES, **quiet)
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
