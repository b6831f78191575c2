import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from headscope.corpora import Example
from headscope.errors import HeadscopeError, HeadscopeWarning, InputError, MissingExtraError
from headscope.runs import Ray, ray
from headscope.runs.engine import ShardTask
from headscope.runs.ray import STORE_BYTES, _Actors, _recipe, _start


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"headscope\[ray\]"):
        Ray().crew("builtin:gpt", [], 1)


def test_a_model_that_only_this_process_has_cannot_be_sent(bert):
    with pytest.raises(InputError, match="give its name or folder, or a function"):
        _recipe(bert)
    assert _recipe("builtin:gpt") == "builtin:gpt"


class SlowRay:
    """Comes up at the n-th attempt."""

    def __init__(self, n: int, problem: str = "The current node timed out during startup."):
        self.n, self.problem = n, problem
        self.requests: list[dict] = []
        self.n_shut = 0

    def init(self, address, **options):
        options["address"] = address
        self.requests.append(options)
        if len(self.requests) < self.n:
            raise Exception(self.problem)

    def shutdown(self):
        self.n_shut += 1


def test_ray_is_started_small_and_again_where_it_was_too_slow():
    ray = SlowRay(3)
    _start(ray, Ray(n_workers=2), 3)
    assert len(ray.requests) == 3 and ray.n_shut == 2
    assert ray.requests[0]["num_cpus"] == 6 and ray.requests[0]["include_dashboard"] is False
    assert ray.requests[0]["object_store_memory"] == STORE_BYTES
    joined = SlowRay(1)
    _start(joined, Ray("auto"), 1)
    assert joined.requests[0]["address"] == "auto" and "num_cpus" not in joined.requests[0]


def test_ray_that_does_not_come_up_says_what_else_there_is():
    with pytest.raises(HeadscopeError, match=r"3 times in a row.*engine='local'"):
        _start(SlowRay(9), Ray(), 1)
    other = SlowRay(9, "no such thing")
    with pytest.raises(Exception, match="no such thing"):
        _start(other, Ray(), 1)
    assert len(other.requests) == 1 and other.n_shut == 1


class LostError(Exception):
    pass


class SmallCluster:
    """Ray as far as runs use it: nodes with a place each, workers that answer at once unless their node is lost."""

    exceptions = SimpleNamespace(RayTaskError=ZeroDivisionError, RayError=LostError)

    def __init__(self, *nodes: str, silent: bool = False):
        self.alive, self.silent = list(nodes), silent
        self.waiting: list[Any] = []
        self.killed: list[Any] = []

    def is_initialized(self) -> bool:
        return True

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": float(len(self.alive))}

    def nodes(self) -> list[dict]:
        return [{"NodeID": node, "Alive": True} for node in self.alive]

    def remote(self, **_):
        return lambda _: SimpleNamespace(remote=self.actor)

    def actor(self, *_):
        taken = [actor.node for actor in self.actors if actor not in self.killed]
        node = next((node for node in self.alive if node not in taken), None)
        actor = SimpleNamespace(node=node, cluster=self)
        actor.about = SimpleNamespace(remote=lambda: Answer(actor, ({"model": "m"}, node, "host of " + str(node))))
        actor.shard = SimpleNamespace(remote=lambda *call: Answer(actor, b"shard %d" % call[4]))
        self.actors.append(actor)
        return actor

    actors: list[Any]

    def wait(self, answers, timeout):
        ready = [answer for answer in answers if answer.is_there()]
        return ready[:1], []

    def get(self, answer):
        if answer.actor.node not in self.alive:
            raise LostError("its node is gone")
        return answer.value

    def kill(self, actor):
        self.killed.append(actor)


class Answer:
    def __init__(self, actor, value):
        self.actor, self.value = actor, value

    def is_there(self) -> bool:
        node, cluster = self.actor.node, self.actor.cluster
        return node is not None and (node in cluster.alive or not cluster.silent)


@pytest.fixture
def crew(monkeypatch):
    def start(cluster: SmallCluster, n_workers: int | None = None) -> _Actors:
        cluster.actors = []
        monkeypatch.setattr(ray, "_ray", lambda: cluster)
        monkeypatch.setattr(ray, "LOOK_SECONDS", 0.0)
        return _Actors(Ray(n_workers=n_workers), "builtin:gpt", [], 1)

    return start


def tasks(n: int, cluster: SmallCluster, lost: dict[int, str]):
    """So many shards of one example; before some, a node is lost."""
    for index in range(n):
        if index in lost:
            cluster.alive.remove(lost[index])
        yield ShardTask(index, [Example(f"a:{index}", text="a")])


def shards(crew: _Actors, shard_tasks) -> list[int]:
    done = crew.work(shard_tasks, None, "", report=lambda n: None, cancel=threading.Event())  # type: ignore[arg-type]
    return sorted(shard.index for shard in done)


@pytest.mark.parametrize("silent", [False, True])
def test_a_run_goes_on_without_a_node_that_is_lost_and_names_it(crew, silent):
    cluster = SmallCluster("red", "blue", silent=silent)
    with pytest.warns(HeadscopeWarning, match=r"host of red \(Ray node red\) was lost; the run goes on with 1"):
        assert shards(crew(cluster), tasks(6, cluster, {3: "red"})) == list(range(6))


def test_a_lost_worker_moves_to_a_node_that_has_a_place(crew):
    cluster = SmallCluster("red", "blue")
    with pytest.warns(HeadscopeWarning, match="another is started"):
        assert shards(crew(cluster, 1), tasks(4, cluster, {2: "red"})) == list(range(4))
    assert cluster.actors[-1].node == "blue"


def test_without_a_node_the_run_stops_and_says_that_it_can_go_on(crew):
    cluster = SmallCluster("red", silent=True)
    with (
        pytest.warns(HeadscopeWarning, match="none is left"),
        pytest.raises(HeadscopeError, match="run the same again"),
    ):
        shards(crew(cluster), tasks(4, cluster, {2: "red"}))


def test_a_worker_that_finds_no_place_is_not_waited_for_for_ever(crew, monkeypatch):
    monkeypatch.setattr(ray, "START_SECONDS", 0.05)
    with pytest.raises(HeadscopeError, match=r"no worker .* started within"):
        crew(SmallCluster())
