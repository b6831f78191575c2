from headscope.progress import Progress
from headscope.runs.progress import Counter


def test_examples_that_were_there_before_are_counted_from_the_start():
    calls = []
    counter = Counter(calls.append, n_examples=10, n_before=4)
    counter.batch(1)
    counter.batch(1)
    counter.shard(2)
    assert calls == [Progress("examples", n_done, 10) for n_done in (4, 5, 6, 6)]
