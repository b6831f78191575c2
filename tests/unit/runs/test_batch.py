import numpy as np
import pytest

from headscope import runs
from headscope.corpora import Example
from headscope.errors import NotRecordedError
from headscope.runs.batch_plan import Plan
from headscope.runs.worker import Worker


def example(text, *words):
    spans, at = [], 0
    for word in words:
        at = text.index(word, at)
        spans.append((at, at + len(word)))
        at += len(word)
    return Example("made:0", text=text, words=words, spans=tuple(spans))


PARSED = [
    example("the cat sat on unknown mats.", "the", "cat", "sat", "on", "unknown", "mats", "."),
    example("it was tired", "it", "was", "tired"),
]


def watch_layers(model, look, examples=PARSED):
    """What `look` gives for each layer of one batch."""
    results = []
    Worker(model, [runs.OfLayers("look", lambda layer: results.append(look(layer)) or ())], Plan()).shard(0, examples)
    return results


def test_words_are_read_as_traces_read_them(bert):
    layer_results = watch_layers(bert, lambda layer: (layer.by_words().numpy(), list(layer.examples), layer.site))
    for patterns, examples, site in layer_results:
        for row, example in enumerate(examples):
            words = bert.run(example.text).words().without([0, -1], renormalise=False)
            expected = np.stack([words.pattern(site.head(index)) for index in range(patterns.shape[1])])
            n = len(example.words)
            np.testing.assert_allclose(patterns[row, :, :n, :n], expected, atol=1e-5)
            assert not patterns[row, :, n:].any()


def test_contributions_are_those_of_traces(bert):
    layer_results = watch_layers(bert, lambda layer: (layer.contributions().numpy(), list(layer.examples), layer.site))
    for contributions, examples, site in layer_results:
        for row, example in enumerate(examples):
            trace = bert.run(example.text)
            n = len(trace.tokens["main"])
            np.testing.assert_allclose(
                contributions[row, 1, :n, :n], trace.contribution(site.head(1)), rtol=1e-3, atol=1e-5
            )


def test_tokens_by_batch(bert):
    def look(layer):
        return layer.plain_queries, layer.queries, layer.batch.ids("main"), layer.visible

    plain, real, ids, visible = watch_layers(bert, look)[0]
    assert real.sum(-1).tolist() == [5, plain.shape[1]]  # the shorter one comes first
    assert plain[0].tolist()[:6] == [False, True, True, True, False, False]
    assert (ids[0, 5:] == -1).all() and visible[0, 0] == 5


def test_a_causal_query_sees_itself_and_what_came_before(gpt):
    assert watch_layers(gpt, lambda layer: layer.visible[-1].tolist())[0][:3] == [1, 2, 3]


def test_random_numbers_belong_to_the_batch(bert):
    draws = [watch_layers(bert, lambda layer: layer.batch.rng().random())[0] for _ in range(2)]
    assert draws[0] == draws[1]


def test_cross_attention_has_no_words_of_its_own(bert):
    layer = runs.Layer(
        bert.heads[0].site,
        "main",
        False,
        runs.CorpusBatch([], [SimpleInputs()], [], {}),
        slice(0, 0),
        0,
        None,
        None,
        None,
    )  # type: ignore[arg-type]
    with pytest.raises(NotRecordedError, match="no words"):
        layer.by_words()
    with pytest.raises(NotRecordedError, match="values are not in sight"):
        layer.value_norms()


class SimpleInputs:
    tokens = {"encoder": ()}  # noqa: RUF012
