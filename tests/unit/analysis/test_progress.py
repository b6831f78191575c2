"""Steps: told as they are done, stopped between them."""

import threading

import pytest

from headscope.analysis.progress import Steps
from headscope.errors import Cancelled


def test_steps_are_told_before_they_are_done():
    calls = []
    steps = Steps(3, lambda done, of: calls.append((done, of)), None)
    for _ in range(3):
        steps.next()
    assert calls == [(0, 3), (1, 3), (2, 3)]


def test_a_stop_is_heeded_at_the_next_step():
    stop = threading.Event()
    steps = Steps(3, None, stop)
    steps.next()
    stop.set()
    with pytest.raises(Cancelled, match="on request"):
        steps.next()
