"""Threads for tiles: each takes some of the heads and works with one torch thread.

A tile is many small operations. Shared out among all cores one by one, they wait for each other more than they work.
"""

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import torch

_lock = threading.Lock()
_pool: ThreadPoolExecutor | None = None
_pool_of: tuple[int, int] = (0, 0)  # the process and the number of threads it was made for


def shares(n_heads: int, device: torch.device) -> list[slice]:
    """The heads, in as many near-equal runs as there are threads for them."""
    n_workers = min(torch.get_num_threads(), n_heads) if device.type == "cpu" else 1
    borders = [round(place * n_heads / n_workers) for place in range(n_workers + 1)]
    return [slice(first, last) for first, last in pairwise(borders)]


def run_all(work: Callable[[slice, threading.Event], None], parts: Sequence[slice]) -> None:
    """Call `work(part, stop)` for all parts at once; if one fails, or we are interrupted, `stop` tells the others."""
    stop = threading.Event()
    if len(parts) == 1:
        work(parts[0], stop)
        return
    waiting = [_threads(len(parts)).submit(_quietly, work, part, stop) for part in parts]
    try:
        for share in waiting:
            share.result()
    except BaseException:
        stop.set()
        for share in waiting:
            share.exception()  # wait: what they write to must not change under our feet
        raise


def _quietly(work: Callable[[slice, threading.Event], None], part: slice, stop: threading.Event) -> None:
    try:
        with torch.no_grad():  # a thread has its own
            work(part, stop)
    except BaseException:
        stop.set()  # now, not when its turn to be waited for comes
        raise


def _threads(number: int) -> ThreadPoolExecutor:
    """The pool: made once, and anew in a forked process, where threads do not follow."""
    global _pool, _pool_of
    with _lock:
        if _pool is None or _pool_of[0] != os.getpid() or _pool_of[1] < number:
            n_torch = torch.get_num_threads()
            _pool = ThreadPoolExecutor(number, "headscope-tiles", initializer=_use_one_torch_thread)
            _pool_of = (os.getpid(), number)
            # Start them all now: setting a thread's number of torch threads also sets that of threads yet to come.
            ready = threading.Barrier(number + 1)
            for _ in range(number):
                _pool.submit(ready.wait)
            ready.wait()
            torch.set_num_threads(n_torch)
        return _pool


def _use_one_torch_thread() -> None:
    # A thread takes over the process's number when it first needs one; later, that would undo what we set here.
    torch.get_num_threads()
    torch.set_num_threads(1)
