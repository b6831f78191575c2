import io

from rich.console import Console

from headscope.runs import Progress, drawn


def test_rate_and_time_left_count_what_was_done_now():
    progress = Progress(n_done=60, n_examples=100, n_before=40, n_shards_done=6, n_shards=10, seconds=10.0)
    assert progress.rate == 2.0 and progress.seconds_left == 20.0


def test_time_left_is_unknown_at_the_start():
    assert Progress(0, 100, 0, 0, 10, 0.0).seconds_left is None


def test_a_bar_shows_how_many_and_how_fast():
    screen = io.StringIO()
    with drawn("measuring", console=Console(file=screen, force_terminal=True, width=100)) as bar:
        bar(Progress(60, 100, 40, 6, 10, 10.0))
    assert "60/100" in screen.getvalue() and "2.0 examples/s" in screen.getvalue()
