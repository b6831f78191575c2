"""One limit for what is cached and for what requests work with: evicted, waited for, refused; never exceeded."""

import json
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import made_media
import pytest
from starlette.testclient import TestClient

from headscope.server.errors import Refused
from headscope.server.memory import Cache, Memory, Reservation


class Value:
    """Something that can be seen to be gone."""


def test_the_least_recently_used_entry_is_evicted_first() -> None:
    cache = Cache[str](Memory(30), "texts")
    for key in "abc":
        cache.put(key, key.upper(), 10)
    assert cache.get("a") == "A"
    cache.put("d", "D", 10)
    assert cache.get("b") is None
    assert cache.newest_first() == ["D", "A", "C"] and cache.size == 30


def test_the_newest_entry_stays_however_large() -> None:
    cache = Cache[str](Memory(30), "texts")
    cache.put("a", "A", 10)
    cache.put("b", "B", 100)
    assert cache.newest_first() == ["B"]
    cache.put("c", "C", 1)
    assert cache.newest_first() == ["C"] and cache.size == 1


def test_an_entry_that_is_put_again_counts_once() -> None:
    cache = Cache[str](Memory(30), "texts")
    cache.put("a", "A", 10)
    cache.put("a", "B", 20)
    assert len(cache) == 1 and cache.size == 20 and cache.get("a") == "B"


def test_all_caches_share_one_limit() -> None:
    memory = Memory(100)
    runs, parts = Cache[str](memory, "runs"), Cache[str](memory, "parts", share=0.5)
    runs.put("old", "R", 40)
    parts.put("a", "A", 40)
    assert runs.get("old") == "R"
    runs.put("new", "N", 40)
    assert parts.get("a") is None and len(runs) == 2 and memory.used_bytes == 80


def test_a_cache_keeps_to_its_share() -> None:
    memory = Memory(100)
    runs, parts = Cache[str](memory, "runs"), Cache[str](memory, "parts", share=0.3)
    runs.put("old", "R", 10)
    for key in "abcd":
        parts.put(key, key, 10)
    assert parts.newest_first() == ["d", "c", "b"] and runs.get("old") == "R"


def test_work_that_needs_room_evicts_what_was_used_least_recently() -> None:
    memory = Memory(100)
    runs = Cache[str](memory, "runs")
    for key in "ab":
        runs.put(key, key, 40)
    with memory.reserve(50, "this run"):
        assert runs.newest_first() == ["b"] and memory.used_bytes == 90
        runs.put("c", "c", 40)
        assert runs.newest_first() == ["c"] and memory.used_bytes == 90
    assert memory.used_bytes == 40


def test_what_was_worked_out_takes_the_place_that_was_reserved_for_it() -> None:
    memory = Memory(100)
    runs = Cache[str](memory, "runs")
    runs.put("a", "a", 40)
    with memory.reserve(60, "this run") as room:
        runs.put("b", "b", 30, room)
        assert len(runs) == 2 and room.size == 30 and memory.used_bytes == 100


def test_what_is_being_read_is_not_evicted() -> None:
    memory = Memory(100)
    runs = Cache[str](memory, "runs")
    for key in "ab":
        runs.put(key, key, 40)
    with memory.reserve(50, "this view", reads=[runs.address("a")]):
        assert runs.newest_first() == ["a"]
        with pytest.raises(Refused, match="other requests are using"), memory.reserve(20, "this run", wait=0):
            pass
    too_large = memory.reserve(61, "this view", reads=[runs.address("a")])
    with pytest.raises(Refused, match="takes up to 1 MB of memory"), too_large:
        pass


def test_what_can_never_fit_is_refused_at_once_with_what_to_do() -> None:
    memory = Memory(50_000_000)
    with pytest.raises(Refused) as caught, memory.reserve(1_170_000_000, "this picture"):
        pass
    assert caught.value.status == 413
    assert caught.value.problem.message == (
        "this picture takes up to 1,170 MB of memory; this server may use 50 MB in all."
    )
    assert "--max-memory 3GB" in caught.value.problem.hint


def test_work_waits_for_other_work_and_the_limit_always_holds() -> None:
    memory, most, n_at_once = Memory(100), [], []
    under_way = 0
    lock = threading.Lock()

    def work(number: int) -> None:
        nonlocal under_way
        with memory.reserve(40, "this run"):
            with lock:
                under_way += 1
                most.append(memory.used_bytes)
                n_at_once.append(under_way)
            threading.Event().wait(0.001)
            with lock:
                under_way -= 1

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(work, range(48)))
    assert max(most) <= 100 and max(n_at_once) <= 2 and memory.used_bytes == 0


def test_work_that_waits_too_long_is_refused_and_told_when_to_come_back() -> None:
    memory = Memory(100)
    late = memory.reserve(40, "this view", wait=0.01)
    with memory.reserve(80, "this run"), pytest.raises(Refused) as caught, late:
        pass
    assert caught.value.status == 503 and int(caught.value.headers["Retry-After"]) > 0  # type: ignore[index]
    assert memory.used_bytes == 0


def test_memory_is_free_again_after_an_error() -> None:
    memory = Memory(100)
    with pytest.raises(ZeroDivisionError), memory.reserve(80, "this run"):
        raise ZeroDivisionError
    assert memory.used_bytes == 0


def test_evicted_values_are_gone() -> None:
    memory = Memory(100)
    cache, value = Cache[Value](memory, "values"), Value()
    seen = weakref.ref(value)
    cache.put("a", value, 60)
    del value
    with memory.reserve(60, "this run") as room:
        assert isinstance(room, Reservation) and seen() is None


def task(client: TestClient, name: str, trace: str) -> bytes:
    answer = client.post("/api/tasks", json={"name": name, "trace": trace})
    last = json.loads(answer.text.splitlines()[-1])
    assert last["state"] == "done", last
    return client.get(f"/api/results/{last['result']}").content


def test_traces_parts_results_and_uploads_count_together(client: TestClient, run) -> None:
    memory = client.workbench.memory  # type: ignore[attr-defined]
    assert memory.used_bytes == 0
    trace = run(client)[-1]["trace"]
    sizes = [memory.used_bytes]
    assert sizes[0] > client.workbench.runs.find(trace).trace.nbytes()  # type: ignore[attr-defined]
    expected = [len(client.get(f"/api/traces/{trace}/maps").content)]
    sizes.append(memory.used_bytes)
    expected.append(len(task(client, "effect", trace)))
    sizes.append(memory.used_bytes)
    picture = made_media.png(made_media.picture(400))
    assert client.post("/api/media", content=picture).status_code == 200
    expected.append(len(picture))
    sizes.append(memory.used_bytes)
    assert all(after - before >= size for (before, after), size in zip(pairwise(sizes), expected, strict=True))


def test_the_limit_holds_at_every_step_of_many_runs(start, run, monkeypatch: pytest.MonkeyPatch) -> None:
    used, put = [], Memory.put

    def measure_and_put(self: Memory, *arguments, **more) -> None:
        used.append((self.used_bytes, self.limit))
        put(self, *arguments, **more)
        used.append((self.used_bytes, self.limit))

    monkeypatch.setattr(Memory, "put", measure_and_put)
    client = start(limits={"memory": 2_000_000})
    for number in range(12):
        trace = run(client, text=f"run number {number} " + "of many " * number)[-1]["trace"]
        assert client.get(f"/api/traces/{trace}/layer/L0").status_code == 200
        if number % 3 == 0:
            assert task(client, "effect", trace)
    assert all(size <= limit for size, limit in used)
    assert 1 < len(client.workbench.runs.cache) < 12  # type: ignore[attr-defined]


def test_a_view_that_no_memory_is_left_for_is_refused_in_words(start, run, monkeypatch: pytest.MonkeyPatch) -> None:
    client = start()
    trace = run(client)[-1]["trace"]
    monkeypatch.setattr("headscope.server.api.working_bytes", lambda *arguments, **more: 10**10)
    answer = client.get(f"/api/traces/{trace}/maps")
    assert answer.status_code == 413 and "this view takes up to 10,00" in answer.json()["message"]
    assert "--max-memory" in answer.json()["hint"]
