"""Threads for tiles: the same numbers, the first failure told, nothing left running."""

import threading

import pytest
import torch

from headscope.attention import Formula, Mask, Summariser, attend_in_tiles
from headscope.attention.threads import run_all, shares


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_shares_cover_every_head_once(two_threads):
    for n_heads in (1, 2, 5, 12):
        covered_heads = [
            head for share in shares(n_heads, torch.device("cpu")) for head in range(share.start, share.stop)
        ]
        assert covered_heads == list(range(n_heads))
    assert len(shares(12, torch.device("cpu"))) == 2 and len(shares(12, torch.device("meta"))) == 1


def test_each_thread_works_with_one_torch_thread(two_threads):
    thread_counts = []

    def work(part, stop):
        torch.ones(8).sum()
        thread_counts.append(torch.get_num_threads())

    run_all(work, [slice(0, 1), slice(1, 2)])
    assert thread_counts == [1, 1] and torch.get_num_threads() == 2


def test_two_threads_give_the_numbers_of_one(two_threads):
    query, key, value = (torch.randn(5, 300, 8, generator=torch.Generator().manual_seed(seed)) for seed in range(3))
    formula = Formula(8**-0.5, mask=Mask.causal(300, 300))

    def mix_and_summarise():
        summariser = Summariser(5, 300, 300)
        return attend_in_tiles(query, key, value, formula, summariser=summariser), summariser.summary().tensors()

    mixed, figures = mix_and_summarise()
    torch.set_num_threads(1)
    expected, others = mix_and_summarise()
    assert torch.allclose(mixed, expected, atol=1e-6)
    for name, values in figures.items():
        assert torch.allclose(values.float(), others[name].float(), atol=1e-4), name


def test_a_failure_stops_the_others_and_is_told(two_threads):
    stopped = []

    def work(part: slice, stop: threading.Event) -> None:
        if part.start == 0:
            raise ZeroDivisionError("the first")
        stopped.append(stop.wait(5))

    with pytest.raises(ZeroDivisionError, match="the first"):
        run_all(work, [slice(0, 1), slice(1, 2)])
    assert stopped == [True]


def test_the_callers_number_of_torch_threads_stays(two_threads):
    run_all(lambda part, stop: None, [slice(0, 1), slice(1, 2)])
    thread_counts = []
    thread = threading.Thread(target=lambda: thread_counts.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert torch.get_num_threads() == 2 and thread_counts == [2]
