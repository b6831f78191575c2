"""The one score function, against the arithmetic of the models' own eager code."""

import math

import pytest
import torch

from headscope.attention import Bias, Formula, Mask, expand_heads, log_denominator, scores, softmax

LOWEST = torch.finfo(torch.float32).min


def test_scores_known_on_paper():
    # Two queries (1, 0) and (0, 2), keys (3, 0) and (4, 5), scaled by a half.
    query = torch.tensor([[[[1.0, 0.0], [0.0, 2.0]]]])
    key = torch.tensor([[[[3.0, 0.0], [4.0, 5.0]]]])
    values = scores(query, key, Formula(0.5))
    assert values.tolist() == [[[[1.5, 2.0], [0.0, 5.0]]]]
    pattern = softmax(values)
    weight = 1 / (1 + math.exp(-0.5))
    assert pattern[0, 0, 0].tolist() == pytest.approx([1 - weight, weight])
    assert log_denominator(values, None)[0, 0, 0] == pytest.approx(math.log(math.exp(1.5) + math.exp(2.0)))


def test_a_soft_cap_comes_before_bias_and_mask():
    query, key = torch.randn(1, 2, 3, 4), torch.randn(1, 2, 3, 4)
    bias = torch.randn(1, 2, 3, 3)
    values = scores(query, key, Formula(0.7, softcap=2.0, mask=Mask.causal(3, 3), bias=Bias("dense", bias, 3, 3)))
    expected = torch.tanh(query @ key.mT * 0.7 / 2.0) * 2.0 + bias
    expected = expected.masked_fill(torch.ones(3, 3, dtype=torch.bool).triu(1), LOWEST)
    torch.testing.assert_close(values, expected)


def test_masked_cells_hold_the_lowest_number_whatever_the_bias():
    bias = Bias("dense", torch.full((1, 1, 2, 2), -5.0), 2, 2)
    values = scores(torch.ones(1, 1, 2, 3), torch.ones(1, 1, 2, 3), Formula(1.0, mask=Mask.causal(2, 2), bias=bias))
    assert values.tolist() == [[[[-2.0, LOWEST], [-2.0, -2.0]]]]


@pytest.mark.parametrize(
    ("rows", "columns"), [(slice(2, 5), slice(1, 4)), (slice(0, 6, 2), slice(1, 7, 2)), (slice(5, 6), slice(0, 7))]
)
def test_a_rectangle_is_computed_by_itself(rows, columns):
    query, key = torch.randn(1, 3, 6, 4), torch.randn(1, 3, 7, 4)
    bias = Bias.describe(torch.randn(1, 3, 1, 7).expand(1, 3, 6, 7))
    formula = Formula(0.5, 5.0, mask=Mask.causal(6, 7), bias=bias)
    torch.testing.assert_close(
        scores(query, key, formula, rows=rows, columns=columns), scores(query, key, formula)[..., rows, columns]
    )


def test_a_sink_takes_its_share_of_every_row():
    values, sinks = torch.randn(2, 3, 4, 5), torch.tensor([0.0, 2.0, -30.0])
    pattern = softmax(values, sinks)
    denominator = values.exp().sum(-1, keepdim=True) + sinks.exp()[:, None, None]
    torch.testing.assert_close(pattern, values.exp() / denominator)
    assert bool((pattern.sum(-1)[:, :2] < 1).all())
    torch.testing.assert_close(log_denominator(values, sinks), denominator[..., 0].log())


def test_the_softmax_is_at_least_fp32():
    assert softmax(torch.randn(1, 1, 2, 2, dtype=torch.bfloat16)).dtype == torch.float32
    assert softmax(torch.randn(1, 1, 2, 2, dtype=torch.float64)).dtype == torch.float64
    assert softmax(torch.randn(1, 1, 2, 2, dtype=torch.float16), torch.zeros(1)).dtype == torch.float32


def test_a_row_that_may_see_nothing_weighs_all_keys_alike_and_leaks_no_gradient():
    query = torch.randn(1, 1, 3, 4, dtype=torch.float64, requires_grad=True)
    mask = Mask(3, 3, stop=torch.tensor([[0, 2, 3]]))
    pattern = softmax(scores(query, torch.randn(1, 1, 3, 4, dtype=torch.float64), Formula(1.0, mask=mask)))
    assert pattern[0, 0, 0].tolist() == pytest.approx([1 / 3] * 3)
    pattern[0, 0, 0, 0].backward()
    assert query.grad is not None and bool((query.grad == 0).all())


def test_gradients_pass_through_every_term():
    query, key = (torch.randn(1, 2, 3, 4, dtype=torch.float64, requires_grad=True) for _ in range(2))
    sinks = torch.randn(2, dtype=torch.float64, requires_grad=True)

    def pattern(query, key, sinks):
        return softmax(scores(query, key, Formula(0.5, 3.0, sinks, Mask.causal(3, 3))), sinks)

    assert torch.autograd.gradcheck(pattern, (query, key, sinks))


def test_grouped_heads_get_their_groups_keys():
    groups = torch.randn(2, 2, 5, 3)
    expanded = expand_heads(groups, 6)
    assert torch.equal(expanded, groups.repeat_interleave(3, dim=1))
    assert expand_heads(groups, 2) is groups


def test_some_of_the_heads_have_their_own_terms():
    query, key = torch.randn(1, 4, 3, 2), torch.randn(1, 4, 3, 2)
    dense = torch.rand(1, 4, 3, 3) < 0.7
    dense[..., 0] = True
    for bias in (torch.randn(1, 4, 3, 3), torch.randn(1, 1, 3, 3)):
        formula = Formula(0.5, sinks=torch.randn(4), mask=Mask.from_dense(dense), bias=Bias("dense", bias, 3, 3))
        part = formula.heads(slice(1, 3))
        values = scores(query[:, 1:3], key[:, 1:3], part)
        assert torch.equal(values, scores(query, key, formula)[:, 1:3])
        torch.testing.assert_close(
            softmax(values, part.sinks), softmax(scores(query, key, formula), formula.sinks)[:, 1:3]
        )


def test_the_formula_of_one_example_leaves_its_padding_out():
    query, key = torch.randn(2, 1, 4, 3), torch.randn(2, 1, 4, 3)
    real = torch.tensor([[1, 1, 1, 1], [0, 1, 1, 1]], dtype=torch.bool)
    mask = Mask(4, 4, stop=torch.arange(1, 5)[None], keys=real, batch=2)
    formula = Formula(0.5, mask=mask, bias=Bias("dense", torch.randn(1, 1, 4, 4), 4, 4))
    positions = torch.tensor([1, 2, 3])
    part = formula.example(1, positions, positions)
    assert part.mask is not None and part.mask.keys is None
    values = scores(query[1:, :, positions], key[1:, :, positions], part)
    torch.testing.assert_close(values, scores(query, key, formula)[1:, :, 1:, 1:])
    assert torch.equal(scores(query[1:, :, positions], key[1:, :, positions], part.to("cpu")), values)
