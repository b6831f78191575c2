import sys

import pytest

from headscope.errors import HeadscopeError, InputError, MissingExtraError
from headscope.runs import Ray
from headscope.runs.ray import STORE_BYTES, _recipe, _start


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

    def init(self, **options):
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
