"""Kendall's τ-b: known values, ties, and texts that cannot be ranked."""

import math

import pytest
import torch

from headscope.errors import InputError
from headscope.faithfulness import rank_agreement


def tau(first, second, **options):
    return rank_agreement(torch.tensor([first]), torch.tensor([second]), **options)


def test_the_same_order_is_1_and_the_reverse_is_minus_1():
    assert tau([1.0, 2.0, 3.0], [10.0, 20.0, 30.0]).tau.tolist() == [1.0]
    assert tau([1.0, 2.0, 3.0], [3.0, 2.0, 1.0]).tau.tolist() == [-1.0]


def test_one_discordant_pair_of_six_gives_two_thirds_and_its_exact_p():
    agreement = tau([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 4.0, 3.0])
    assert float(agreement.tau) == pytest.approx(4 / 6)
    assert float(agreement.p) == pytest.approx(2 * 4 / 24)  # 1 order without inversions, 3 with one, of 24; both tails


def test_ties_are_taken_out_of_the_count_of_pairs():
    # pairs: (0, 1) tied in the first; (0, 2) and (1, 2) concordant: 2 / √(2 · 3)
    assert float(tau([1.0, 1.0, 2.0], [1.0, 2.0, 3.0]).tau) == pytest.approx(2 / math.sqrt(6))


def test_what_cannot_be_ranked_says_why():
    short = tau([1.0], [2.0])
    assert short.tau.isnan().all() and short.reasons == ("1 tokens to rank; at least 3 are needed",)
    constant = tau([0.25] * 4, [1.0, 2.0, 3.0, 4.0])
    assert constant.tau.isnan().all() and "all values are equal" in constant.reasons[0]
    assert "not finite" in tau([math.nan, 1.0, 2.0], [1.0, 2.0, 3.0]).reasons[0]
    assert constant.is_tested.tolist() == [False]
    with pytest.raises(InputError, match=r"\[batch, token\]"):
        rank_agreement(torch.ones(3), torch.ones(3))


def test_tokens_that_do_not_count_are_left_out():
    counted = torch.tensor([[True, True, True, False]])
    assert tau([1.0, 2.0, 3.0, 0.0], [1.0, 2.0, 3.0, 9.0], counted=counted).tau.tolist() == [1.0]


@pytest.mark.parametrize(("n", "n_values"), [(5, 1000), (33, 1000), (34, 1000), (20, 4), (60, 10)])
def test_tau_and_p_are_those_of_scipy(n, n_values):
    stats = pytest.importorskip("scipy.stats")
    first, second = torch.randint(0, n_values, (2, 1, n)).float()
    second = second + 0.5 * first.round()
    ours, theirs = rank_agreement(first, second), stats.kendalltau(first[0].numpy(), second[0].numpy())
    assert float(ours.tau) == pytest.approx(theirs.statistic, abs=1e-6)
    assert float(ours.p) == pytest.approx(theirs.pvalue, rel=1e-4)
