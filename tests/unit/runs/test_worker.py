import gc
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tiny_models import FAMILIES

import headscope as hs
from headscope import runs
from headscope.corpora import Example
from headscope.errors import Cancelled, InputError
from headscope.models.capture import session
from headscope.runs import worker
from headscope.runs.batch_plan import Plan
from headscope.runs.worker import Worker

TEXTS = ["the cat sat on the mat.", "it was tired.", "the cat sat.", "she gave her sister the book, and he read it."]
EXAMPLES = [Example(f"made:{number}", text=text) for number, text in enumerate(TEXTS)]


def sums(ledger, name, key=""):
    """[total, queries, chance, examples] by example and head, heads in order."""
    return ledger.sums[name, key][:, :, [ledger.heads[head] for head in sorted(ledger.heads)]]


@pytest.mark.parametrize("name", ["bert", "gpt"])
def test_layers_as_they_pass_say_what_traces_say(name, fast, slow, request):
    model = request.getfixturevalue(name)
    ledger = Worker(model, [fast, slow], Plan(batch_size=3)).shard(0, EXAMPLES)
    np.testing.assert_allclose(sums(ledger, "fast"), sums(ledger, "slow"), rtol=1e-5)
    alone = Worker(model, [slow], Plan(batch_size=1)).shard(0, EXAMPLES)
    np.testing.assert_allclose(sums(alone, "slow"), sums(ledger, "slow"), rtol=1e-5)


def test_all_measures_share_one_pass_a_batch(bert, fast, slow, monkeypatch):
    calls = []
    hook = bert.module.register_forward_pre_hook(lambda *_: calls.append(1))
    Worker(bert, [fast, slow], Plan(batch_size=2)).shard(0, EXAMPLES)
    hook.remove()
    assert len(calls) == 2


def test_batches_hold_examples_of_like_length_and_no_more_than_told(bert, fast):
    worker = Worker(bert, [fast], Plan(batch_tokens=30))
    inputs = worker._ready(EXAMPLES, None)  # type: ignore[arg-type]
    lengths = {place: len(model_inputs.tokens["main"]) for place, model_inputs in inputs.items()}
    batches = worker._batches(inputs)
    assert [place for batch in batches for place in batch] == sorted(lengths, key=lambda place: (lengths[place], place))
    assert all(len(batch) * max(lengths[place] for place in batch) <= 30 or len(batch) == 1 for batch in batches)
    assert len(batches) > 1


def test_what_is_too_large_to_hold_is_shown_some_heads_at_a_time(bert, fast, monkeypatch):
    whole = Worker(bert, [fast], Plan()).shard(0, EXAMPLES)
    monkeypatch.setattr(worker, "WHOLE_CELLS", 2 * 9 * 9)
    monkeypatch.setattr(session, "EXACT_CELLS", 100)
    shapes = []
    counting = runs.OfLayers("count", lambda layer: shapes.append(layer.pattern.shape[:2]) or ())
    parts = Worker(bert, [fast, counting], Plan()).shard(0, EXAMPLES)
    assert {shape[0] for shape in shapes} == {1} and min(shape[1] for shape in shapes) < 4
    np.testing.assert_allclose(sums(parts, "fast"), sums(whole, "fast"), rtol=1e-5)


def test_a_large_batch_is_shown_some_examples_at_a_time(bert, fast, monkeypatch):
    whole = Worker(bert, [fast], Plan()).shard(0, EXAMPLES)
    monkeypatch.setattr(worker, "WHOLE_CELLS", 2 * 4 * 9 * 9)
    batch_sizes = []
    counting = runs.OfLayers("count", lambda layer: batch_sizes.append(len(layer.examples)) or ())
    parts = Worker(bert, [fast, counting], Plan()).shard(0, EXAMPLES)
    assert max(batch_sizes) < 4
    np.testing.assert_allclose(sums(parts, "fast"), sums(whole, "fast"), rtol=1e-5)


@pytest.mark.parametrize("family", ["swin", "vit"])
def test_images_and_their_windows(family):
    module = FAMILIES[family].build()
    model = hs.Model(module, None, name=family)
    pixels = FAMILIES[family].inputs()["pixel_values"]
    trace = model.run(inputs={"pixel_values": pixels[:1]})
    worker = Worker(
        model,
        [runs.OfLayers("sum", lambda layer: [layer.tally(layer.pattern.sum((2, 3)), layer.queries.sum(-1))])],
        Plan(),
    )
    inputs = {place: model.run(inputs={"pixel_values": pixels[place : place + 1]}).inputs for place in range(2)}
    worker._ready = lambda examples, ledger: inputs  # type: ignore[method-assign]
    ledger = worker.shard(0, EXAMPLES[:2])
    assert set(ledger.heads) == set(trace.heads)
    row_sums = sums(ledger, "sum")
    np.testing.assert_allclose(row_sums[0], row_sums[1], rtol=1e-4)  # every query's weights sum to one


def test_what_the_model_cannot_take_is_fatal_or_passed_over_by_choice(bert, fast):
    examples = [*EXAMPLES, Example("made:9", text="word " * 99)]
    with pytest.raises(InputError, match=r"made:9: .*on_error='skip'"):
        Worker(bert, [fast], Plan()).shard(0, examples)
    ledger = Worker(bert, [fast], Plan(on_error="skip")).shard(0, examples)
    assert list(ledger.passed_over) == ["made:9"]
    assert sums(ledger, "fast")[3, -1].sum() == 0
    cut = Worker(bert, [fast], Plan(truncate=True)).shard(0, examples)
    assert cut.notes[0] == 1 and cut.notes[1].startswith("made:9: the text is")
    assert sums(cut, "fast")[3, -1].all()


def test_an_example_that_has_nothing_to_measure_is_counted_with_the_reason(bert):
    def refuses(trace):
        raise InputError("no luck")
        yield

    ledger = Worker(bert, [runs.OfTraces("never", refuses)], Plan()).shard(0, EXAMPLES)
    assert ledger.refusals == {"never": [4, "no luck"]} and not ledger.sums


def test_a_measure_may_wait_for_the_whole_shard(bert):
    class AtEnd(runs.Measure):
        name, settings, record = "at end", {}, "rows"

        def start(self, model):
            self.places = []

        def update(self, batch):
            self.places += batch.places
            return ()

        def end(self):
            places, self.places = self.places, []
            yield runs.Tally(bert.heads[:1], places, [[1.0]] * len(places), [[1.0]])

    worker = Worker(bert, [AtEnd()], Plan(batch_size=2))
    for index in range(2):
        assert sums(worker.shard(index, EXAMPLES), "at end")[0].tolist() == [[1.0]] * 4


def test_a_run_can_be_cancelled_between_batches(bert, fast):
    with pytest.raises(Cancelled):
        Worker(bert, [fast], Plan()).shard(0, EXAMPLES, cancel=SimpleNamespace(is_set=lambda: True))  # type: ignore[arg-type]


def test_threads_are_as_planned_while_a_shard_is_done(bert):
    before, seen = torch.get_num_threads(), []
    watch = runs.OfLayers("threads", lambda layer: seen.append(torch.get_num_threads()) or ())
    Worker(bert, [watch], Plan(threads=3)).shard(0, EXAMPLES[:1])
    assert set(seen) == {3} and torch.get_num_threads() == before


def test_layers_that_were_measured_are_freed_without_the_garbage_collector():
    """Measures keep with a layer what refers back to it; a run's memory must not wait for a collection."""
    patterns: list[weakref.ref[torch.Tensor]] = []

    def seen(layer):
        patterns.append(weakref.ref(layer.pattern))
        layer.once("of itself", lambda: layer)
        layer.batch.once("of itself", lambda: layer.batch)
        yield layer.tally(layer.queries.sum(-1), layer.queries.sum(-1))

    texts = [f"The doctor asked the nurse question {number}. She did not know." for number in range(6)]
    measures = [*hs.analysis.streaming(texts), hs.runs.OfLayers("seen", seen)]
    plan = Plan(shard_size=6, batch_size=2, batch_tokens=4096, block=1, seed=0, threads=1)
    runner = Worker(hs.load("builtin:bert"), measures, plan)
    gc.collect()
    gc.disable()
    try:
        runner.shard(0, [Example(str(number), text=text) for number, text in enumerate(texts)])
        alive = [pattern for pattern in patterns if pattern() is not None]
    finally:
        gc.enable()
    assert len(patterns) == 3 * 6 and not alive
