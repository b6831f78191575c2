"""Paired tests of many heads: what is no accident is found, what is noise is not."""

import itertools
import math

import numpy as np
import pytest

from headscope.analysis import statistics
from headscope.analysis.statistics import holm, paired_test, sign_flip_p


def test_a_real_difference_among_noise_is_found_and_the_noise_is_not():
    generator = np.random.default_rng(1)
    differences = generator.normal(0, 1, (60, 40))
    differences[:, 7] += 1.0
    test = paired_test(differences)
    assert test.p[7] < 0.01 and test.low[7] > 0
    assert (np.delete(test.p, 7) > 0.05).all()


def test_the_correction_keeps_false_finds_rare():
    """Over 40 data sets of pure noise with 50 heads each, uncorrected tests would find some in nearly all of them."""
    false = sum(
        (paired_test(np.random.default_rng(seed).normal(0, 1, (20, 50)), seed=seed).p <= 0.05).any()
        for seed in range(40)
    )
    assert false <= 6  # expected 2


def test_heads_that_never_differ_are_no_find():
    test = paired_test(np.zeros((10, 3)))
    assert (test.p == 1).all() and (test.mean == 0).all()


def test_one_pair_gives_a_mean_and_no_claim():
    test = paired_test(np.ones((1, 2)))
    assert (test.mean == 1).all() and np.isnan(test.p).all()


def test_what_differs_alike_in_every_pair_is_as_sure_as_it_can_be():
    differences = np.random.default_rng(2).normal(0, 1, (12, 3))
    differences[:, 1] = 0.3
    test = paired_test(differences)
    assert test.p[1] < 0.01 and np.allclose([test.low[1], test.high[1]], 0.3)
    assert test.p[0] > 0.05 and test.p[2] > 0.05


def test_holm_multiplies_the_smallest_p_by_their_number_and_never_lets_them_fall():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    corrected = holm([0.01, math.nan, 0.02])
    assert corrected[0] == pytest.approx(0.02) and math.isnan(corrected[1])


def test_few_signs_are_all_tried():
    # all of 10 alike: 2 of 2**10 choices of signs reach it, and of 11 2 of 2**11
    assert sign_flip_p(np.ones((10, 1))).tolist() == [2 / 2**10]
    assert sign_flip_p(np.ones((11, 1))).tolist() == [2 / 2**11]
    # 1 1 2: |Σ ± x| ≥ 4 for both choices with one sign; 1 1 -2: every choice gives at least 0
    assert sign_flip_p(np.array([[1.0, 1.0], [1.0, 1.0], [2.0, -2.0]])).tolist() == [2 / 8, 1.0]


def test_many_signs_are_drawn_at_random_and_once_for_all_columns(monkeypatch):
    values = np.random.default_rng(0).normal(0.5, 1.0, (16, 40))
    values[3:, 7] = np.nan  # 3 are left
    values[:, 8] = np.nan
    exact = [(np.abs(_all_signs(16) @ values[:, head]) >= abs(values[:, head].sum()) - 1e-9).mean() for head in (0, 1)]
    n_draws, choices = 0, statistics._sign_choices

    def count_draws(n_samples, n_random):
        nonlocal n_draws
        n_draws += 1
        return choices(n_samples, n_random)

    monkeypatch.setattr(statistics, "_sign_choices", count_draws)
    p = sign_flip_p(values)
    assert n_draws == 2  # for 16 samples and for 3
    assert p[:2].tolist() == pytest.approx(exact, abs=0.01) and p[7] >= 2 / 8 and math.isnan(p[8])
    assert p[5] == sign_flip_p(values[:, 5:6])[0]  # a column does not depend on the others


def test_many_heads_have_so_many_signs_that_they_can_be_decided(monkeypatch):
    monkeypatch.setattr(statistics, "N_FLIPS", 100)
    same = np.ones((30, 20))
    assert max(holm(sign_flip_p(same[:, :1]).repeat(20))) > 0.05  # 100 signs are too few for 20 heads
    assert max(holm(sign_flip_p(same))) < 0.05


def _all_signs(n: int) -> np.ndarray:
    return np.array(list(itertools.product((-1.0, 1.0), repeat=n)))
