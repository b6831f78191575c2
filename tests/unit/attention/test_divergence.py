"""Divergences known on paper, in nats, row by row; masks first, and no NaN in any gradient."""

import math

import pytest
import torch

from headscope.attention.divergence import (
    jensen_shannon,
    kullback_leibler,
    kullback_leibler_of_logs,
    pairwise_jensen_shannon,
    total_variation,
    with_missing_weight,
)

EVEN, FIRST, LAST = torch.tensor([0.5, 0.5, 0.0]), torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.0, 0.0, 1.0])


def test_a_row_is_at_no_distance_from_itself() -> None:
    rows = torch.rand(4, 7).softmax(-1)
    for distance in (jensen_shannon, total_variation, kullback_leibler):
        assert distance(rows, rows) == pytest.approx([0.0] * 4, abs=1e-7)
        assert not distance(EVEN, EVEN)


def test_rows_without_a_common_key_are_ln_2_apart() -> None:
    assert float(jensen_shannon(FIRST, LAST)) == pytest.approx(math.log(2))
    assert float(jensen_shannon(EVEN, LAST)) == pytest.approx(math.log(2))
    assert float(total_variation(EVEN, LAST)) == 1.0
    assert float(kullback_leibler(EVEN, LAST)) == math.inf


def test_divergences_on_paper() -> None:
    # ½ [ln 4/3 + ½ ln 2/3 + ½ ln 2] = ¾ ln 4/3
    assert float(jensen_shannon(EVEN, FIRST)) == pytest.approx(0.75 * math.log(4 / 3))
    assert float(total_variation(EVEN, FIRST)) == 0.5
    assert float(kullback_leibler(FIRST, EVEN)) == pytest.approx(math.log(2))
    assert float(kullback_leibler(EVEN, FIRST)) == math.inf


def test_divergences_are_per_row() -> None:
    p, q = torch.stack([EVEN, FIRST]), torch.stack([EVEN, LAST])
    assert jensen_shannon(p, q) == pytest.approx([0.0, math.log(2)])
    assert total_variation(p[:, None], q).tolist() == [[0.0, 1.0], [0.5, 1.0]]


def test_masked_keys_do_not_count_even_if_they_hold_nan() -> None:
    p, q = torch.tensor([0.5, 0.5, math.nan]), torch.tensor([1.0, 0.0, -3.0])
    mask = torch.tensor([True, True, False])
    assert float(jensen_shannon(p, q, mask=mask)) == pytest.approx(0.75 * math.log(4 / 3))
    assert float(total_variation(p, q, mask=mask)) == 0.5
    assert float(kullback_leibler(q, p, mask=mask)) == pytest.approx(math.log(2))


def test_gradients_have_no_nan_where_weights_are_zero() -> None:
    logits = torch.tensor([0.3, -0.2, 1.0, 0.0], requires_grad=True)
    mask = torch.tensor([True, True, True, False])
    weights = logits.masked_fill(~mask, -math.inf).softmax(-1)
    base = torch.tensor([0.0, 0.4, 0.6, 0.0])
    for distance in (jensen_shannon, total_variation):
        (slope,) = torch.autograd.grad(distance(weights, base, mask=mask), logits, retain_graph=True)
        assert slope.isfinite().all() and slope[3] == 0
    slope = torch.autograd.grad(kullback_leibler(base, weights), logits)[0]
    assert slope.isfinite().all()


def test_the_least_weight_that_a_float_can_hold_gives_a_number() -> None:
    least = torch.tensor([1e-45, 1.0])
    assert float(jensen_shannon(least, torch.tensor([0.0, 1.0]))) == pytest.approx(0.0, abs=1e-7)


def test_half_precision_is_computed_in_single() -> None:
    assert jensen_shannon(EVEN.bfloat16(), FIRST.bfloat16()).dtype == torch.float32
    assert jensen_shannon(EVEN.double(), FIRST).dtype == torch.float64


def test_the_divergence_from_logarithms_holds_where_probabilities_underflow() -> None:
    p, q = torch.tensor([0.0, -500.0]), torch.tensor([-500.0, 0.0])
    assert float(kullback_leibler_of_logs(p, q)) == pytest.approx(500.0)
    assert float(kullback_leibler_of_logs(torch.tensor([0.0, -math.inf]), torch.tensor([0.0, -math.inf]))) == 0.0


def test_what_a_row_lacks_is_one_more_key() -> None:
    assert with_missing_weight(torch.tensor([[0.25, 0.25], [math.nan, 1.0]])).tolist() == [[0.25, 0.25, 0.5], [0, 1, 0]]


def test_every_two_heads_are_compared_and_summed_over_queries() -> None:
    patterns = torch.rand(4, 3, 5).softmax(-1)
    matrix = pairwise_jensen_shannon(patterns)
    expected = jensen_shannon(patterns[:, None].double(), patterns[None].double()).sum(-1)
    assert torch.allclose(matrix, expected) and torch.equal(matrix, matrix.T) and not matrix.diagonal().any()
    taken_by_a_sink = pairwise_jensen_shannon(torch.tensor([[[1.0, 0.0]], [[0.0, 0.0]]]))
    assert float(taken_by_a_sink[0, 1]) == pytest.approx(math.log(2))
