"""Rectangles of a pattern, max-pooled without the pattern."""

import pytest
import torch
from made_formulas import FORMULAS

from headscope.attention import expand_heads, log_denominator, pooled, pooled_weights, scores, softmax

RECTANGLES = [((0, 37), (0, 37), (5, 7)), ((3, 30), (10, 37), (1, 1)), ((20, 37), (0, 9), (4, 3))]


def naive(pattern: torch.Tensor, rows: tuple, columns: tuple, cell: tuple) -> torch.Tensor:
    part = pattern[slice(*rows), slice(*columns)]
    return torch.nn.functional.max_pool2d(part[None, None], cell, ceil_mode=True)[0, 0]


@pytest.mark.parametrize("name", FORMULAS)
def test_cells_are_the_largest_weights_of_the_pattern(name, monkeypatch):
    monkeypatch.setattr(pooled, "_CELLS", 100)  # several bands
    torch.manual_seed(0)
    query, key, formula = torch.randn(1, 4, 37, 8), torch.randn(1, 2, 37, 8), FORMULAS[name](37)
    of_all = scores(query, expand_heads(key, 4), formula)
    pattern, lse = softmax(of_all, formula.sinks)[0], log_denominator(of_all, formula.sinks)[0]
    for head in range(4):
        vectors = (query[0, head], key[0, head // 2], formula.heads(slice(head, head + 1)), lse[head])
        for rectangle in RECTANGLES:
            expected = naive(pattern[head], *rectangle)
            torch.testing.assert_close(pooled_weights(*vectors, *rectangle), expected, rtol=1e-4, atol=1e-7)


def test_a_row_whose_weights_are_no_numbers_counts_as_none():
    query, key = torch.ones(4, 2), torch.ones(4, 2)
    lse = torch.full((4,), 2.0 + torch.tensor(4.0).log().item())
    lse[2] = float("nan")
    weights = pooled_weights(query, key, FORMULAS["bidirectional"](4), lse + 0.0, (0, 4), (0, 4), (2, 4))
    expected = torch.exp(torch.tensor([1.0, 1.0])) / torch.exp(torch.tensor(2.0)) / 4
    torch.testing.assert_close(weights[:, 0], expected)
