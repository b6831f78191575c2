"""Measures for the page: all that apply to short inputs, the summary's at any length, and those brought along."""

import math

import numpy as np
import pytest
import torch
from made_traces import random_layer, trace_of_layers

import headscope as hs
from headscope.attention import Formula
from headscope.scores import Scores
from headscope.traces import Token, Tokens, Trace
from headscope.views import measures
from headscope.views.measures import scores_part
from headscope.views.parts import part

TOKENS = Tokens(tuple(Token(text, id) for id, text in enumerate("abcd")))
BACK = torch.diag(torch.ones(3), -1)
BACK[0, 0] = 1.0


def test_a_head_that_looks_one_token_back():
    trace = Trace.from_patterns([torch.stack([BACK, torch.full((4, 4), 0.25)])], TOKENS)
    page_part = part(trace, "scores")
    assert page_part.props.heads == ["L0H0", "L0H1"]
    names = [method.name for method in page_part.props.methods]
    assert list(page_part.arrays) == names
    assert {"peak_weight", "entropy", "distance_all_keys", "previous_token", "first_token"} <= set(names)
    assert "same_word_across" not in names and "patch_neighbour" not in names
    assert page_part.arrays["peak_weight"].tolist() == [1.0, 0.25]
    assert page_part.arrays["entropy"] == pytest.approx([0.0, math.log(4)], abs=1e-6)
    assert page_part.arrays["previous_token"] == pytest.approx([1.0, 0.25])
    by_name = {method.name: method for method in page_part.props.methods}
    assert (by_name["peak_weight"].low, by_name["peak_weight"].high) == (0.0, 1.0)
    assert by_name["entropy"].high == pytest.approx(math.log(4))
    assert by_name["previous_token"].baseline == hs.measure("previous_token", trace).baseline
    assert all(method.about and method.low < method.high for method in page_part.props.methods)


def test_long_inputs_and_summaries_have_the_figures_that_need_no_pattern(monkeypatch):
    expected = {"peak_weight", "entropy", "distance_all_keys", "first_token"}
    summary = trace_of_layers(random_layer(Formula(1.0), record="summary"), record="summary")
    assert set(part(summary, "scores").arrays) == expected
    layer = random_layer(Formula(1.0))
    short = part(trace_of_layers(layer), "scores").arrays
    monkeypatch.setattr(measures, "MEASURED_TOKENS", 5)
    long = part(trace_of_layers(layer), "scores").arrays
    assert set(long) == expected < set(short)
    assert long["first_token"] == pytest.approx(short["first_token"], abs=1e-5)
    rows = trace_of_layers(random_layer(Formula(1.0), record="rows"), record="rows")
    assert set(part(rows, "scores").arrays) == expected - {"first_token"}


def test_scores_from_elsewhere_come_first():
    trace = Trace.from_patterns([torch.stack([BACK, BACK])], TOKENS)
    page_part = scores_part(trace, [Scores("mine", {trace.heads[1]: -3.0})])
    assert page_part.props.methods[0].name == "mine"
    assert (page_part.props.methods[0].low, page_part.props.methods[0].high) == (-3.0, -2.0) or page_part.props.methods[
        0
    ].low == -3.0
    assert np.isnan(page_part.arrays["mine"][0]) and page_part.arrays["mine"][1] == -3.0
