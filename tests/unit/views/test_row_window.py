"""Rows and windows: exact numbers, for either side, at any zoom."""

import numpy as np
import pytest
import torch
from made_traces import random_layer, trace_of_layers

from headscope.attention import Formula, Mask
from headscope.errors import HeadscopeError
from headscope.traces import Trace
from headscope.views.parts import part


@pytest.fixture
def trace() -> Trace:
    mask = Mask(40, 40, stop=torch.arange(1, 41)[None])
    return trace_of_layers(random_layer(Formula(0.7, mask=mask), 40))


def test_a_row_is_the_patterns_row(trace):
    page_part = part(trace, "row/L0?query=17")
    assert (page_part.props.site, page_part.props.side, page_part.props.index) == ("L0", "query", 17)
    assert page_part.arrays["weights"].dtype == np.float32
    expected = np.stack([trace.pattern(head)[17] for head in trace.heads])
    assert np.abs(page_part.arrays["weights"] - expected).max() <= 1e-6
    scores = np.stack([trace.scores(head)[17] for head in trace.heads])
    np.testing.assert_allclose(page_part.arrays["scores"], scores, rtol=1e-5, atol=1e-6)


def test_a_column_is_the_patterns_column(trace):
    page_part = part(trace, "row/L0?key=17")
    expected = np.stack([trace.pattern(head)[:, 17] for head in trace.heads])
    assert np.abs(page_part.arrays["weights"] - expected).max() <= 1e-6
    scores = np.stack([trace.scores(head)[:, 17] for head in trace.heads])
    np.testing.assert_allclose(page_part.arrays["scores"], scores, rtol=1e-5, atol=1e-6)
    assert np.isneginf(page_part.arrays["scores"][:, 0]).all()


def test_rows_without_some_tokens_count_what_is_left(trace):
    rest = trace.without([0, 3])
    for side, place in (("query", np.s_[5]), ("key", np.s_[:, 5])):
        page_part = part(trace, f"row/L0?{side}=5&hide=0,3")
        expected = np.stack([rest.pattern(head)[place] for head in trace.heads])
        assert page_part.arrays["weights"] == pytest.approx(expected, abs=2e-6)
        assert "scores" not in page_part.arrays


def test_a_window_is_the_pooled_pattern(trace):
    page_part = part(trace, "window/L0H2?rows=3:40&columns=5:38&size=7")
    assert (page_part.props.head, page_part.props.rows, page_part.props.columns) == ("L0H2", (3, 40), (5, 38))
    assert page_part.props.cell == (6, 5)
    rectangle = torch.from_numpy(trace.pattern("L0H2", rows=slice(3, 40), columns=slice(5, 38)))
    pooled = torch.nn.functional.max_pool2d(rectangle[None], (6, 5), ceil_mode=True)[0].numpy()
    assert page_part.arrays["weights"] == pytest.approx(pooled, abs=1e-6)


def test_a_small_window_is_the_pattern_itself(trace):
    page_part = part(trace, "window/L0H1?rows=0:9&columns=0:40&size=64")
    assert page_part.props.cell == (1, 1)
    assert page_part.arrays["weights"] == pytest.approx(trace.pattern("L0H1")[:9], abs=1e-6)
    assert part(trace, "window/L0H1").arrays["weights"] == pytest.approx(trace.pattern("L0H1"), abs=1e-6)
    words = part(trace, "window/L0H1?hide=0").arrays["weights"]
    assert words == pytest.approx(trace.without([0]).pattern("L0H1"), abs=1e-6)


@pytest.mark.parametrize(
    "key, error_text",
    [
        ("row/L0?query=40", "there is no query 40 in L0: it has 40"),
        ("row/L0?key=39&hide=0", "there is no key 39 in L0: it has 39"),
        ("row/L7?key=0", "there is no L7"),
        ("window/L0", "say which, as in L0H0"),
        ("window/L0H9", "there is no L0H9"),
        ("window/L0H0?rows=0:41", "outside 0:40"),
        ("window/L0H0?columns=0:41", "outside 0:40"),
        ("window/L0H0?what=scores&by=words", "model's own tokens"),
    ],
)
def test_mistakes_are_explained(trace, key, error_text):
    with pytest.raises(HeadscopeError, match=error_text):
        part(trace, key)
