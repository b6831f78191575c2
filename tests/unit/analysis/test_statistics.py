"""Paired tests of many heads: what is no accident is found, what is noise is not."""

import numpy as np

from headscope.analysis.statistics import paired_test


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
