"""Paired differences of many heads at once: intervals, and p-values corrected for looking at all of them."""

from typing import NamedTuple

import numpy as np

N_RESAMPLES = 2000


class Tested(NamedTuple):
    """For each head: the mean difference, its 95 % bootstrap interval, and the corrected p-value [head]."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    p: np.ndarray


def paired(differences: np.ndarray, *, seed: int = 0) -> Tested:
    """Test paired differences [pair, head] against zero.

    p-values come from flipping signs of whole pairs, and are corrected by comparing each head's |t| with the largest
    |t| over all heads in each flip (Westfall & Young, 1993), which keeps the chance of any false find at p.
    """
    n_pairs, n_heads = differences.shape
    generator = np.random.default_rng(seed)
    mean = differences.mean(0)
    if n_pairs < 2:
        unknown = np.full(n_heads, np.nan)
        return Tested(mean, unknown, unknown, unknown)
    # How often each pair is drawn, and the sign it gets: then all resamples are one product.
    counts = generator.multinomial(n_pairs, np.full(n_pairs, 1 / n_pairs), N_RESAMPLES)
    low, high = np.quantile(counts @ differences / n_pairs, [0.025, 0.975], axis=0)
    signs = generator.choice([-1.0, 1.0], (N_RESAMPLES, n_pairs))
    squares = (differences**2).sum(0)
    observed = np.abs(_t(mean[None], squares, n_pairs))[0]
    largest = np.abs(_t(signs @ differences / n_pairs, squares, n_pairs)).max(1)
    p = (1 + (largest[:, None] >= observed[None, :] - 1e-9).sum(0)) / (1 + N_RESAMPLES)
    return Tested(mean, low, high, p)


def _t(means: np.ndarray, squares: np.ndarray, n_pairs: int) -> np.ndarray:
    """The t statistics of means [resample, head], given the sums of squares, which signs do not change [head].

    0 where a head never differs; without end where all pairs differ alike.
    """
    variance = np.maximum(squares - n_pairs * means**2, 0) / (n_pairs - 1)
    spread = np.sqrt(variance / n_pairs)
    size = np.sqrt(squares / n_pairs)  # what rounding leaves of no variance at all is small beside it
    t = np.divide(means, spread, out=np.zeros_like(means), where=spread > 1e-7 * size)
    return np.where((spread <= 1e-7 * size) & (size > 1e-12), np.copysign(np.inf, means), t)
