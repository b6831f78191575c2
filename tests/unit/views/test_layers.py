"""A layer for the page: whole and exact enough, or its strongest keys; read by words, without some tokens."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from made_traces import random_layer, trace_of_layers

from headscope.attention import Formula
from headscope.errors import HeadscopeError, InputError, NotRecordedError, UnknownHeadError, UnknownTokenError
from headscope.sites import Site
from headscope.traces import Token, Tokens, Trace
from headscope.views import layers
from headscope.views.parts import part
from headscope.views.wire import Coded

# One head that looks back, one that looks at the first token alone.
BACK = torch.tensor([[1.0, 0.0, 0.0], [0.75, 0.25, 0.0], [0.0, 0.5, 0.5]])
FIRST = torch.tensor([[1.0, 0.0, 0.0]]).repeat(3, 1)
HAND = Trace.from_patterns([torch.stack([BACK, FIRST])], ["a", "b", "c"])


def test_a_hand_made_layer_comes_whole():
    page_part = part(HAND, "layer/L0?what=pattern")
    assert (page_part.props.form, page_part.props.site, page_part.props.n_kept, page_part.props.by) == (
        "dense",
        "L0",
        3,
        "tokens",
    )
    assert page_part.props.queries == page_part.props.keys == []
    assert page_part.arrays["weights"].dtype == np.float16
    assert page_part.arrays["weights"].tolist() == [BACK.tolist(), FIRST.tolist()]
    assert "norms" not in page_part.arrays


def test_half_floats_are_exact_to_a_thousandth_and_bytes_to_half_a_step(monkeypatch):
    trace = trace_of_layers(random_layer(Formula(0.7), 40))
    exact = np.stack([trace.pattern(head) for head in trace.heads])
    half = part(trace, "layer/L0?what=pattern").arrays["weights"]
    assert half == pytest.approx(exact, rel=1e-3, abs=1e-7)
    monkeypatch.setattr(layers, "HALF_CELLS", 100)
    coded = part(trace, "layer/L0?what=pattern").arrays["weights"]
    assert isinstance(coded, Coded)
    assert np.abs(np.sqrt(coded.weights()) - np.sqrt(exact)).max() <= 0.5 / 255 + 1e-6
    assert coded.bytes.tolist() == Coded.of(exact).bytes.tolist()


def test_norms_of_values_come_along():
    trace = trace_of_layers(random_layer(Formula(0.7), 10))
    norms = part(trace, "layer/L0?what=pattern").arrays["norms"]
    weights = part(trace, "layer/L0?what=pattern").arrays["weights"]
    assert weights[1] * norms[1] == pytest.approx(trace.contribution("L0H1"), rel=2e-3, abs=1e-6)


def test_scores_are_minus_infinity_where_masked():
    from headscope.attention import Mask

    mask = Mask(6, 6, stop=torch.arange(1, 7)[None])
    trace = trace_of_layers(random_layer(Formula(0.7, mask=mask), 6))
    weights = part(trace, "layer/L0?what=scores").arrays["weights"]
    assert weights[2] == pytest.approx(trace.scores("L0H2"), rel=1e-3, abs=1e-3)
    assert np.isneginf(weights[0, 0, 1:]).all()


def test_scores_too_large_for_half_floats_travel_whole():
    trace = trace_of_layers(random_layer(Formula(1e5), 6))
    weights = part(trace, "layer/L0?what=scores").arrays["weights"]
    assert weights.dtype == np.float32
    assert weights[0] == pytest.approx(trace.scores("L0H0"), rel=1e-5)


def test_long_layers_come_as_their_strongest_keys(monkeypatch):
    monkeypatch.setattr(layers, "DENSE_CELLS", 100)
    trace = trace_of_layers(random_layer(Formula(0.7), 30))
    page_part = part(trace, "layer/L0?what=pattern")
    assert (page_part.props.form, page_part.props.n_kept) == ("sparse", 8)
    keys, weights = page_part.arrays["keys"], page_part.arrays["weights"]
    assert keys.shape == weights.shape == (4, 30, 8) and keys.dtype == np.int32
    pattern = trace.pattern("L0H1")
    assert keys[1].tolist() == np.argsort(-pattern, axis=1, kind="stable")[:, :8].tolist()
    assert weights[1] == pytest.approx(np.take_along_axis(pattern, keys[1], 1), rel=1e-3)
    scores = part(trace, "layer/L0?what=scores").arrays["weights"]
    assert scores[1] == pytest.approx(np.take_along_axis(trace.scores("L0H1"), keys[1], 1), rel=2e-3, abs=2e-3)
    contributions = part(trace, "layer/L0?what=contribution").arrays["weights"]
    expected = np.take_along_axis(trace.contribution("L0H1"), keys[1], 1)
    assert contributions[1] == pytest.approx(expected, rel=2e-3)
    # As many as fit: very long layers send fewer keys of each query.
    monkeypatch.setattr(layers, "SPARSE_CELLS", 4 * 30 * 3)
    assert part(trace, "layer/L0?what=pattern").props.n_kept == 3


def test_long_layers_read_otherwise_are_sparse_until_they_are_short(monkeypatch):
    monkeypatch.setattr(layers, "DENSE_CELLS", 4 * 15 * 15)
    trace = trace_of_layers(random_layer(Formula(0.7), 30))
    tokens = Tokens(tuple(Token(f"t{i}", word=i // 2, start=2 * i, end=2 * i + 1) for i in range(30)))
    trace = replace(trace, tokens={"main": tokens})
    words = part(trace, "layer/L0?by=words")
    assert (words.props.form, words.props.by, words.props.queries[0]) == ("dense", "words", "t0 t1")
    assert words.arrays["weights"][2] == pytest.approx(trace.words().pattern("L0H2"), rel=1e-3, abs=1e-6)
    rest = part(trace, "layer/L0?hide=0,4")
    assert (rest.props.form, len(rest.props.keys)) == ("sparse", 28)
    pattern = trace.without([0, 4]).pattern("L0H3")
    assert rest.arrays["weights"][3] == pytest.approx(-np.sort(-pattern)[:, :8], rel=1e-3)


def test_a_summary_gives_the_strongest_keys_and_rows_say_what_to_record():
    summary = trace_of_layers(random_layer(Formula(1.0), record="summary"), record="summary")
    assert part(summary, "layer/L0?what=pattern").props.form == "sparse"
    with pytest.raises(NotRecordedError, match="record='heads'"):
        part(summary, "layer/L0?what=scores")
    rows = trace_of_layers(random_layer(Formula(1.0), record="rows"), record="rows")
    for key in ("layer/L0", "row/L0?query=0", "window/L0H0", "maps"):
        with pytest.raises(NotRecordedError, match=r"record='(heads|summary)'"):
            part(rows, key)


def test_fewer_keys_than_are_kept_elsewhere():
    trace = trace_of_layers(random_layer(Formula(1.0), 3, record="summary"), record="summary")
    page_part = part(trace, "layer/L0?what=pattern")
    assert page_part.props.n_kept == 3
    assert page_part.arrays["keys"].min() >= 0


def test_rows_of_padding_weigh_nothing():
    layer = random_layer(Formula(1.0), 5, record="summary")
    layer.summary.top_weights[:, 4] = float("nan")
    layer.summary.map[:, 4] = float("nan")
    trace = trace_of_layers(layer, record="summary")
    assert not part(trace, "layer/L0").arrays["weights"][:, 4].any()
    assert not part(trace, "maps").arrays["L0"].bytes[:, 4].any()


def test_edited_heads_show_what_was_used_and_have_no_scores(monkeypatch):
    trace = trace_of_layers(random_layer(Formula(1.0), 6))
    trace.layer("L0").stored[1] = torch.eye(6)
    assert part(trace, "layer/L0").arrays["weights"][1].tolist() == torch.eye(6).tolist()
    assert np.isnan(part(trace, "layer/L0?what=scores").arrays["weights"][1]).all()
    monkeypatch.setattr(layers, "DENSE_CELLS", 10)
    assert np.isnan(part(trace, "layer/L0?what=scores").arrays["weights"][1]).all()


def test_stacks_are_named_where_there_are_several():
    cross = torch.tensor([[[0.25, 0.25, 0.5], [1.0, 0.0, 0.0]]])
    trace = Trace.from_patterns({"cross": [cross]}, {"encoder": ["x", "y", "z"], "decoder": ["a", "b"]})
    page_part = part(trace, "layer/cross.L0?hide=encoder:0,decoder:1")
    assert (page_part.props.queries, page_part.props.keys) == (["a"], ["y", "z"])
    assert page_part.arrays["weights"].tolist() == [[[pytest.approx(1 / 3, abs=1e-3), pytest.approx(2 / 3, abs=1e-3)]]]
    with pytest.raises(UnknownTokenError, match="say which, as in encoder:0"):
        part(trace, "layer/cross.L0?hide=0")
    with pytest.raises(UnknownTokenError, match="there are encoder, decoder"):
        part(trace, "layer/cross.L0?hide=main:0")


def test_a_coarser_layer_is_numbered_and_not_read_by_words():
    fine, coarse = random_layer(Formula(1.0), 8), random_layer(Formula(1.0), 4, site=Site("main", 1))
    trace = Trace("swin", "heads", {Site("main", 0): fine, Site("main", 1): coarse}, {"main": Tokens.numbered(8)})
    assert part(trace, "layer/L1").props.keys == ["0", "1", "2", "3"]
    with pytest.raises(InputError, match="sees 4 places, not the 8 tokens"):
        part(trace, "layer/L1?by=words")


@pytest.mark.parametrize(
    "key, error, error_text",
    [
        ("layer/L1", UnknownHeadError, "the heads are L0H0 to L0H1"),
        ("layer/L0H1", UnknownHeadError, "ask for its layer, L0"),
        ("layer/nonsense", UnknownHeadError, "not the address"),
        ("layer/L0?hide=3", UnknownTokenError, "0 to 2"),
        ("layer/L0?hide=0,1,2", InputError, "none of the 3 tokens"),
        ("layer/L0?what=scores&by=words", HeadscopeError, "only its patterns are known"),
    ],
)
def test_mistakes_are_explained(key, error, error_text):
    with pytest.raises(error, match=error_text):
        part(HAND, key)


def test_a_trace_that_is_read_by_words_already_is_refused():
    with pytest.raises(InputError, match="give the trace itself"):
        part(HAND.words(), "layer/L0")
