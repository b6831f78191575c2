"""Progress: reported as it goes, stopped between steps, drawn as bars."""

import io
import threading

import pytest
from rich.console import Console

from headscope.errors import Cancelled
from headscope.progress import Progress, Steps, progress_bars, stop_if


def test_steps_are_reported_before_they_are_done():
    calls = []
    steps = Steps("heads", 3, calls.append)
    for _ in range(3):
        steps.next()
    assert calls == [Progress("heads", n_done, 3) for n_done in (0, 1, 2)]


def test_several_steps_are_reported_after_they_are_done():
    calls = []
    steps = Steps("examples", 5, calls.append)
    steps.add(3)
    steps.add(2)
    assert calls == [Progress("examples", 3, 5), Progress("examples", 5, 5)]


def test_a_stop_is_heeded_at_the_next_step():
    stop = threading.Event()
    steps = Steps("heads", 3, None, stop)
    steps.next()
    stop_if(None)
    stop_if(stop)
    stop.set()
    with pytest.raises(Cancelled, match="on request"):
        steps.next()
    with pytest.raises(Cancelled, match="on request"):
        stop_if(stop)


def test_there_is_a_bar_for_each_stage():
    screen = io.StringIO()
    with progress_bars(console=Console(file=screen, force_terminal=True, width=100)) as bars:
        for n_done in (40, 50, 60):
            bars(Progress("examples", n_done, 100))
        bars(Progress("ablation", 1, 7))
    last = screen.getvalue().rsplit("examples", 1)[1]
    assert "60/100" in last and "/s" in last and "ablation" in last and "1/7" in last


def test_a_note_says_how_the_work_is_going():
    calls = []
    Steps("training", 2, calls.append).add(note="loss [1.21]")
    assert calls == [Progress("training", 1, 2, "loss [1.21]")]
    screen = io.StringIO()
    with progress_bars(console=Console(file=screen, force_terminal=True, width=100)) as bars:
        bars(calls[0])
    assert "loss [1.21]" in screen.getvalue()


def test_a_narrow_terminal_shows_the_counts_and_the_note():
    screen = io.StringIO()
    note = "l0-0.017-s0, loss 1.234, dev loss 1.235, open encoder 12/32, decoder 23/32, cross 29/32"
    with progress_bars(console=Console(file=screen, force_terminal=True, width=80)) as bars:
        bars(Progress("training", 128, 1000, note))
    lines = [" ".join(line.split()) for line in screen.getvalue().splitlines()]
    assert any("128/1000" in line for line in lines)
    assert note in " ".join(lines)


def test_a_stage_that_begins_anew_starts_its_bar_again():
    screen = io.StringIO()
    with progress_bars(console=Console(file=screen, force_terminal=True, width=100)) as bars:
        bars(Progress("examples", 100, 100))
        bars(Progress("examples", 2, 8))
    assert "2/8" in screen.getvalue().rsplit("examples", 1)[1]


def test_nothing_is_drawn_where_nobody_looks():
    screen = io.StringIO()
    with progress_bars(console=Console(file=screen)) as bars:
        bars(Progress("examples", 1, 2))
    assert "examples" not in screen.getvalue()
