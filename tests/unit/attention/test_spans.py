"""Attention to spans of keys, from the log of each row's denominator."""

import pytest
import torch
from made_formulas import FORMULAS

from headscope.attention import expand_heads, log_denominator, scores, softmax, span_weights, spans

SPANS = [[0], [3, 4, 5, 9, 10, 36], list(range(37)), [7, 12]]


@pytest.mark.parametrize("name", FORMULAS)
def test_weights_of_spans_are_sums_of_the_pattern(name, monkeypatch):
    monkeypatch.setattr(spans, "_COLUMNS", 10)
    monkeypatch.setattr(spans, "_CELLS", 200)  # several tiles
    torch.manual_seed(0)
    query, key, formula = torch.randn(1, 4, 37, 8), torch.randn(1, 2, 37, 8), FORMULAS[name](37)
    of_all = scores(query, expand_heads(key, 4), formula)
    pattern = softmax(of_all, formula.sinks)[0]
    weights = span_weights(query[0], key[0], formula, log_denominator(of_all, formula.sinks)[0], SPANS)
    expected = torch.stack([pattern[..., span].sum(-1) for span in SPANS], -1)
    torch.testing.assert_close(weights, expected, rtol=1e-4, atol=1e-6)


def test_positions_are_taken_as_runs_of_neighbours():
    assert spans.runs_of([3, 4, 5, 9, 10, 12]) == [(3, 6), (9, 11), (12, 13)]
    assert spans.runs_of([]) == []
