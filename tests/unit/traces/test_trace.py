"""What a trace gives back: patterns and scores by rectangles, means, thumbnails, vectors; and its refusals."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from made_traces import DIM, random_layer, trace_of_layers
from tiny_models import FAMILIES, tiny_tokenizer

import headscope as hs
from headscope.attention import Bias, Formula, Mask, expand_heads, scores, softmax
from headscope.errors import HeadscopeError, InputError, NotRecordedError, UnknownHeadError
from headscope.models import Model
from headscope.sites import Head, Site
from headscope.traces import LayerRecord, Tokens, Trace

RECTANGLES = [
    (None, None),
    (3, 5),
    (-1, None),
    (slice(2, 7), slice(4, 9)),
    (slice(None, None, 3), slice(1, None, 2)),
    (range(1, 6, 2), range(0, 12)),
    (slice(4, 4), None),
    (np.int64(3), None),
]


def formula(length: int = 12) -> Formula:
    bias = Bias.describe(torch.randn(1, 4, 1, length).expand(1, 4, length, length))
    return Formula(0.5, softcap=4.0, sinks=torch.randn(4), mask=Mask.causal(length, length), bias=bias)


def whole(layer: LayerRecord) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores and pattern of all heads, at once."""
    assert layer.query is not None and layer.key is not None and layer.formula is not None
    raw_scores = scores(layer.query[None], expand_heads(layer.key[None], 4), layer.formula)
    return raw_scores[0], softmax(raw_scores, layer.formula.sinks)[0]


def rectangle(array, rows, columns):
    def as_slice(chosen):
        return slice(int(chosen), int(chosen) + 1 or None) if isinstance(chosen, int | np.integer) else chosen

    rows, columns = (list(indices) if isinstance(indices, range) else indices for indices in (rows, columns))
    array = array if rows is None else array[as_slice(rows)]
    return array if columns is None else array[:, as_slice(columns)]


@pytest.mark.parametrize(("rows", "columns"), RECTANGLES)
def test_any_rectangle_is_a_slice_of_the_whole(rows, columns):
    layer = random_layer(formula())
    trace = trace_of_layers(layer)
    raw_scores, pattern = whole(layer)
    raw_scores = raw_scores.masked_fill(raw_scores == torch.finfo(torch.float32).min, float("-inf"))
    assert layer.value_norms is not None
    for index in range(4):
        head, place = f"L0H{index}", {"rows": rows, "columns": columns}
        np.testing.assert_allclose(
            trace.pattern(head, **place), rectangle(pattern[index].numpy(), rows, columns), atol=1e-6
        )
        np.testing.assert_allclose(
            trace.scores(head, **place), rectangle(raw_scores[index].numpy(), rows, columns), atol=1e-5
        )
        weighted = pattern[index] * layer.value_norms[index]
        np.testing.assert_allclose(
            trace.contribution(head, **place), rectangle(weighted.numpy(), rows, columns), atol=1e-5
        )


@pytest.mark.parametrize("rows", [12, -13, slice(5, 2, -1), range(5, 2, -1), range(-3, 0), range(5, 13), "the", 1.5])
def test_a_rectangle_that_does_not_exist_is_refused(rows):
    trace = trace_of_layers(random_layer(formula()))
    with pytest.raises(InputError, match="rows"):
        trace.pattern("L0H0", rows=rows)


def test_a_layer_or_several_places_give_their_mean():
    trace = trace_of_layers(random_layer(formula()), random_layer(formula()))
    each = {str(head): trace.pattern(head) for head in trace.heads}
    np.testing.assert_allclose(trace.pattern("L0"), np.mean([each[f"L0H{index}"] for index in range(4)], 0), atol=1e-6)
    np.testing.assert_allclose(trace.pattern(["L0H1", "L1H2"]), (each["L0H1"] + each["L1H2"]) / 2, atol=1e-6)
    np.testing.assert_allclose(trace.pattern(["L0", "L1"]), np.mean(list(each.values()), 0), atol=1e-6)
    # A head that is named twice counts once.
    np.testing.assert_allclose(trace.pattern(["L0H1", Head("main", 0, 1)]), each["L0H1"], atol=1e-6)
    np.testing.assert_allclose(trace.pattern(Site("main", 1), rows=3), trace.pattern("L1")[3:4], atol=1e-6)


def test_patterns_of_different_shapes_have_no_mean():
    cross = random_layer(Formula(1.0), 5, 9, site=Site("decoder", 0, "cross"), key_stack="encoder")
    trace = trace_of_layers(random_layer(Formula(1.0), 5, site=Site("decoder", 0)), cross)
    assert trace.pattern("cross.L1H0").shape == (5, 9)
    with pytest.raises(InputError, match=r"\(5, 5\), \(5, 9\)"):
        trace.pattern(["decoder.L0", "cross.L1"])
    with pytest.raises(UnknownHeadError, match=r"no head was named: the heads are decoder\.L0H0"):
        trace.pattern([])


def test_attention_to_spans_is_what_the_pattern_gives_them():
    trace = trace_of_layers(random_layer(formula()))
    texts = next(iter(trace.tokens.values())).texts
    spans = [0, range(3, 7), [texts[2], 11, slice(5, 8)], -1]
    positions = [[0], [3, 4, 5, 6], [2, 5, 6, 7, 11], [11]]
    for place in ("L0H3", "L0", ["L0H0", "L0H2"]):
        expected = np.stack([trace.pattern(place)[:, span].sum(-1) for span in positions], -1)
        np.testing.assert_allclose(trace.attention_to(place, spans), expected, rtol=1e-4, atol=1e-6)


def test_attention_to_spans_of_half_precision_and_of_edited_heads_follows_the_pattern():
    model = Model(FAMILIES["llama"].build().to(torch.bfloat16), tiny_tokenizer())
    trace = model.run("the cat sat on the mat", interventions=[hs.uniform("L0H1")])
    assert isinstance(trace, Trace)
    for head in ("L0H0", "L0H1", "L1H0"):
        expected = np.stack([trace.pattern(head)[:, [1]].sum(-1), trace.pattern(head)[:, 2:5].sum(-1)], -1)
        np.testing.assert_allclose(trace.attention_to(head, [1, range(2, 5)]), expected, atol=2e-3)


@pytest.mark.parametrize("spans", ["the", [], 3, ["no such word"], [99]])
def test_spans_that_name_no_keys_are_refused(spans):
    trace = trace_of_layers(random_layer(formula()))
    with pytest.raises(HeadscopeError):
        trace.attention_to("L0H0", spans)
    with pytest.raises(InputError, match="own tokens"):
        trace.without(0).attention_to("L0H0", [1])


@pytest.mark.parametrize("length", [7, 96, 97, 250, 700])
@pytest.mark.parametrize("size", [1, 5, 31, 96, 1000])
def test_a_thumbnail_of_any_size_equals_naive_pooling(length, size):
    trace = trace_of_layers(random_layer(Formula(0.5, mask=Mask.causal(length, length)), length))
    step = -(-length // size)
    extra = -length % step
    pattern = np.pad(trace.pattern("L0H3"), ((0, extra), (0, extra)))
    naive = pattern.reshape(len(pattern) // step, step, -1, step).max((1, 3))
    assert max(naive.shape) <= size
    np.testing.assert_allclose(trace.thumbnail("L0H3", size), naive, atol=1e-6)


def test_a_thumbnail_of_a_layer_is_the_mean_and_of_other_axes_pooled_apart():
    layer = random_layer(Formula(0.5), 20, 150, key_stack="encoder", site=Site("decoder", 0, "cross"))
    trace = trace_of_layers(layer)
    assert trace.thumbnail("cross.L0H0", 10).shape == (10, 10)
    each = [trace.thumbnail(head, 10) for head in trace.heads]
    np.testing.assert_allclose(trace.thumbnail("cross.L0", 10), np.mean(each, 0), atol=1e-6)
    with pytest.raises(InputError, match="whole number of 1 or more"):
        trace.thumbnail("cross.L0", 0)


def test_a_summary_gives_thumbnails_from_its_map():
    torch.manual_seed(1)
    full = trace_of_layers(random_layer(Formula(0.5), 250))
    torch.manual_seed(1)
    small = trace_of_layers(random_layer(Formula(0.5), 250, record="summary"), record="summary")
    np.testing.assert_allclose(small.thumbnail("L0H1"), full.thumbnail("L0H1"), atol=1e-6)
    # Its cells of 3 tokens cannot be cut: smaller thumbnails pool them, and keep the largest weight.
    assert max(small.thumbnail("L0H1", 30).shape) <= 30
    assert small.thumbnail("L0H1", 1).item() == pytest.approx(full.thumbnail("L0H1", 1).item())


def test_what_was_not_recorded_is_refused_with_the_record_that_holds_it():
    summary = trace_of_layers(random_layer(formula(), record="summary"), record="summary")
    for read in (summary.pattern, summary.scores, summary.query, summary.mixed, summary.contribution):
        with pytest.raises(NotRecordedError, match="record='heads'"):
            read("L0H0")
    for read in (summary.residual, summary.neurons):
        with pytest.raises(NotRecordedError, match="record='full'"):
            read("L0")
    rows = trace_of_layers(random_layer(formula(), record="rows"), record="rows")
    with pytest.raises(NotRecordedError, match="record='summary'"):
        rows.thumbnail("L0H0")
    with pytest.raises(NotRecordedError, match="has no 'gate'"):
        summary.tensor("gate", "L0")
    assert Trace("m", "heads", rows.layers, rows.tokens).answers is None
    with pytest.raises(NotRecordedError, match="prediction"):
        Trace("m", "heads", rows.layers, rows.tokens).predictions()


def test_vectors_are_those_of_the_head_or_its_group():
    layer = random_layer(formula(), dtype=torch.bfloat16)
    trace = trace_of_layers(layer)
    assert layer.query is not None and layer.key is not None and layer.value is not None and layer.mixed is not None
    assert trace.tensor("query", "L0H3").dtype == torch.bfloat16
    np.testing.assert_array_equal(trace.query("L0H3"), layer.query[3].float())
    np.testing.assert_array_equal(trace.key("L0H1"), layer.key[0].float())
    np.testing.assert_array_equal(trace.value("L0H2"), layer.value[1].float())
    np.testing.assert_array_equal(trace.mixed("L0H2"), layer.mixed[2].float())
    assert trace.query("L0H0").shape == (12, DIM)


def test_one_head_may_be_written_in_any_way_that_names_it():
    trace = trace_of_layers(random_layer(formula()))
    for place in (" L0H2 ", "main.L0H2", Head("main", 0, 2)):
        np.testing.assert_array_equal(trace.query(place), trace.query("L0H2"))
    with pytest.raises(UnknownHeadError, match="L0 is a layer of 4 heads: say which, as in L0H0"):
        trace.query("L0")
    with pytest.raises(UnknownHeadError, match="the heads are L0H0 to L0H3"):
        trace.pattern("L5H0")


def test_residuals_neurons_and_predictions():
    trace = trace_of_layers(random_layer(formula()), random_layer(formula()), record="full")
    np.testing.assert_array_equal(trace.residual("L1"), trace.residuals["main"][1])
    np.testing.assert_array_equal(trace.residual("L1", after=True), trace.residuals["main"][2])
    np.testing.assert_array_equal(trace.neurons("L1H0"), trace.activations[Site("main", 1, "neurons")])
    with pytest.raises(UnknownHeadError, match="3 places, L0 to L2"):
        trace.residual("L3")
    with pytest.raises(NotRecordedError, match="there are L0, L1"):
        trace.neurons("L2")
    assert len(trace.predictions(7)) == 7
    with pytest.raises(NotRecordedError, match=r"no answer 1: .* \(3,\)"):
        trace.predictions(answer=1)


def test_the_figures_of_a_head_have_no_head_axis():
    layer = random_layer(formula())
    figures = trace_of_layers(layer).summary("L0H2")
    np.testing.assert_array_equal(figures.entropy, layer.summary.entropy[2])
    assert figures.received is not None and figures.received.shape == (12,)
    assert trace_of_layers(random_layer(formula(), record="rows")).summary("L0H0").map is None


def test_contributions_without_tokens_follow_the_weights():
    layer = random_layer(formula())
    trace = trace_of_layers(layer).without([0, 3])
    positions = [index for index in range(12) if index not in (0, 3)]
    assert layer.value_norms is not None
    expected = trace.pattern("L0H1") * layer.value_norms[1][positions].numpy()
    np.testing.assert_allclose(trace.contribution("L0H1"), expected, atol=1e-5)


def test_double_precision_runs_are_read_in_double_precision():
    layer = random_layer(Formula(0.5), dtype=torch.float64)
    assert layer.query is not None and layer.key is not None
    expected = (layer.query[1] @ layer.key[0].T * 0.5).softmax(-1)
    assert trace_of_layers(layer).pattern("L0H1").dtype == np.float64
    np.testing.assert_allclose(trace_of_layers(layer).pattern("L0H1"), expected, atol=1e-12)


def test_an_edited_pattern_is_given_as_it_was_used_and_has_no_scores():
    layer = random_layer(formula())
    edited = LayerRecord(**{**vars(layer), "stored": {1: torch.eye(12)}})
    trace = trace_of_layers(edited)
    np.testing.assert_array_equal(trace.pattern("L0H1", rows=slice(2, 4)), np.eye(12)[2:4])
    np.testing.assert_array_equal(trace.thumbnail("L0H1", 4), np.eye(4))
    with pytest.raises(NotRecordedError, match="edited"):
        trace.scores("L0H1")
    assert trace.scores("L0H0").shape == (12, 12)


def test_scores_with_terms_of_their_own_are_not_called_edited():
    layer = random_layer(formula())
    stored = dict(enumerate(whole(layer)[1]))
    trace = trace_of_layers(LayerRecord(**{**vars(layer), "formula": None, "stored": stored}))
    with pytest.raises(NotRecordedError, match="terms that were not recorded"):
        trace.scores("L0H1")


def test_a_layer_that_sees_a_coarser_grid_numbers_its_places():
    trace = trace_of_layers(random_layer(Formula(0.5), 16), random_layer(Formula(0.5), 4))
    trace = Trace("swin", "heads", trace.layers, {"main": Tokens.numbered(16, "patches")})
    assert len(trace.query_tokens("L0")) == 16
    assert trace.query_tokens("L1").texts == trace.key_tokens("L1").texts == ["0", "1", "2", "3"]
    assert trace.pattern("L1H0").shape == (4, 4)
    with pytest.raises(InputError, match="sees 4 places, not the 16 tokens"):
        trace.without(0).pattern("L1H0")


def test_a_trace_prints_what_it_is():
    trace = trace_of_layers(random_layer(formula()), edits=("hs.silence('L0H0')",))
    assert repr(trace) == "Trace('made', 4 heads, tokens: main 12, record='heads', 1 edits)"
    assert trace.nbytes() > 4 * 12 * DIM * 4


# Patterns that came from elsewhere


def random_pattern(n_queries: int = 3, n_keys: int = 3, n_heads: int = 2) -> torch.Tensor:
    return torch.rand(n_heads, n_queries, n_keys).softmax(-1)


def test_patterns_from_elsewhere_are_given_back():
    first, second = random_pattern(), random_pattern()
    trace = Trace.from_patterns((first, second[None]), ["a", "b", "c"], model="mine")
    np.testing.assert_array_equal(trace.pattern("L0H1"), first[1])
    np.testing.assert_array_equal(trace.pattern("L1H0"), second[0])
    assert trace.summary("L1H0").max == pytest.approx(second[0].amax(-1).numpy())
    assert trace.query_tokens("L0").texts == ["a", "b", "c"]
    for read in (trace.scores, trace.query, trace.contribution, trace.mixed):
        with pytest.raises(NotRecordedError, match="only its patterns are known"):
            read("L0H0")


def test_patterns_from_elsewhere_are_copied():
    pattern = random_pattern()
    trace = Trace.from_patterns([pattern], "abc")
    before = trace.pattern("L0H0").copy()
    pattern.zero_()
    np.testing.assert_array_equal(trace.pattern("L0H0"), before)


def test_stacks_are_given_by_name():
    trace = Trace.from_patterns(
        {"encoder": [random_pattern()], "decoder": [random_pattern(2, 2)], "cross": [random_pattern(2, 3)]},
        {"encoder": "abc", "decoder": "xy"},
    )
    assert [str(head) for head in trace.heads[::2]] == ["encoder.L0H0", "decoder.L0H0", "cross.L0H0"]
    assert trace.key_tokens("cross.L0").texts == ["a", "b", "c"] and trace.query_tokens("cross.L0").texts == ["x", "y"]


@pytest.mark.parametrize(
    ("patterns", "tokens", "message"),
    [
        (None, "abc", "attn_implementation='eager'"),
        ((), "abc", "attn_implementation='eager'"),
        ({}, "abc", "attn_implementation='eager'"),
        ([None, None], "abc", "attn_implementation='eager'"),
        ([torch.rand(2, 2, 3, 3)], "abc", "L0 holds a batch of 2"),
        ([torch.rand(2, 3, 3)], "abcd", "L0 has 3 queries but 4 main tokens"),
        ([torch.rand(2, 4, 3)], "abcd", "L0 has 3 keys but 4 main tokens"),
        ([torch.rand(3, 3)], "abc", r"\[head, query, key\], got shape \(3, 3\)"),
        ([torch.rand(1, 1, 2, 3, 3)], "abc", r"\[head, query, key\]"),
        ({"cross": [torch.rand(1, 2, 3)]}, {"decoder": "ab"}, "no tokens were given for 'encoder'"),
    ],
)
def test_patterns_that_make_no_trace_are_refused(patterns, tokens, message):
    with pytest.raises(InputError, match=message):
        Trace.from_patterns(patterns, tokens)


@pytest.mark.parametrize("weight", [float("nan"), -0.1])
def test_patterns_that_are_no_weights_are_refused(weight):
    pattern = torch.full((1, 2, 2), 0.5)
    pattern[0, 1, 1] = weight
    with pytest.raises(InputError, match="NaN or negative"):
        Trace.from_patterns([pattern], ["a", "b"])


def test_patterns_of_a_layer_come_together_as_they_come_one_by_one():
    layer = random_layer(formula())
    together = layer.patterns()
    _, expected = whole(layer)
    torch.testing.assert_close(together, expected)
    torch.testing.assert_close(layer.patterns(slice(1, 3), slice(0, 2), slice(1, 3)), together[1:3, 0:2, 1:3])


def test_a_stored_pattern_takes_its_place_among_the_others():
    layer = random_layer(formula())
    edited = torch.full((12, 12), 1 / 12)
    layer = replace(layer, stored={2: edited})
    together = layer.patterns()
    assert torch.equal(together[2], edited)
    torch.testing.assert_close(together[1], whole(layer)[1][1])
