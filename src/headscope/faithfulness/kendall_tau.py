"""Kendall's τ-b between attention and what tokens matter, with ties handled; untestable texts say why."""

import functools
import math
from dataclasses import dataclass

import torch
from torch import Tensor

from headscope.errors import InputError

LEAST_TOKENS = 3
"""With two tokens τ is −1 or 1 whatever they are."""
_EXACT_LENGTH = 33
_SAME = "all values are equal: there is no order to compare"


@dataclass(frozen=True, eq=False)
class RankAgreement:
    """τ-b of each text [batch], NaN where `reasons` says why it was not tested; `p` is two-sided."""

    tau: Tensor
    p: Tensor
    reasons: tuple[str | None, ...]

    @property
    def is_tested(self) -> Tensor:
        """True for the texts that could be tested [batch]."""
        return torch.tensor([reason is None for reason in self.reasons])


def rank_agreement(first: Tensor, second: Tensor, counted: Tensor | None = None) -> RankAgreement:
    """τ-b between two weights of each token [batch, token], over the tokens that `counted` marks.

    p is exact for up to 33 tokens without ties, else from the normal approximation with ties in its variance.

    >>> agreement = rank_agreement(torch.tensor([[1.0, 2.0, 3.0, 4.0]]), torch.tensor([[1.0, 2.0, 4.0, 3.0]]))
    >>> round(float(agreement.tau), 4), round(float(agreement.p), 4)
    (0.6667, 0.3333)
    """
    if first.shape != second.shape or first.ndim != 2:
        raise InputError(f"two weights of each token are [batch, token], got {first.shape} and {second.shape}.")
    counted = torch.ones_like(first, dtype=torch.bool) if counted is None else counted
    taus, p_values, reasons = [], [], []
    for own_first, own_second, is_counted in zip(first, second, counted, strict=True):
        tau, p, reason = _tau_b(own_first[is_counted].double(), own_second[is_counted].double())
        taus.append(tau)
        p_values.append(p)
        reasons.append(reason)
    return RankAgreement(torch.tensor(taus), torch.tensor(p_values), tuple(reasons))


def _tau_b(x: Tensor, y: Tensor) -> tuple[float, float, str | None]:
    n = len(x)
    if n < LEAST_TOKENS:
        return math.nan, math.nan, f"{n} tokens to rank; at least {LEAST_TOKENS} are needed"
    if not bool(x.isfinite().all() & y.isfinite().all()):
        return math.nan, math.nan, "values are not finite"
    signs_x, signs_y = (torch.sign(values[:, None] - values[None]) for values in (x, y))
    untied_x, untied_y = (float((signs**2).sum()) / 2 for signs in (signs_x, signs_y))
    if not untied_x or not untied_y:
        return math.nan, math.nan, _SAME
    score = float((signs_x * signs_y).sum()) / 2  # concordant minus discordant pairs
    tau = max(-1.0, min(1.0, score / math.sqrt(untied_x * untied_y)))
    pairs = n * (n - 1) / 2
    has_ties = untied_x < pairs or untied_y < pairs
    p = _normal_p(x, y, score) if has_ties or n > _EXACT_LENGTH else _exact_p(n, score)
    return tau, p, None


def _exact_p(n: int, score: float) -> float:
    """The share of all orders of n tokens with as large a score, either way."""
    counts = _orders_by_inversions(n)
    extreme = round((n * (n - 1) / 2 - abs(score)) / 2)  # inversions of the more extreme tail
    return min(1.0, 2 * sum(counts[: extreme + 1]) / math.factorial(n))


@functools.lru_cache(maxsize=64)
def _orders_by_inversions(n: int) -> list[int]:
    """How many orders of n tokens have 0, 1, 2 … inversions."""
    counts = [1]
    for length in range(2, n + 1):
        longer = [0] * (len(counts) + length - 1)
        for inversions, count in enumerate(counts):
            for more in range(length):
                longer[inversions + more] += count
        counts = longer
    return counts


def _normal_p(x: Tensor, y: Tensor, score: float) -> float:
    n = len(x)
    ties = [torch.unique(values, return_counts=True)[1].double() for values in (x, y)]
    doubles = [float((counts * (counts - 1)).sum()) for counts in ties]
    triples = [float((counts * (counts - 1) * (counts - 2)).sum()) for counts in ties]
    spreads = [float((counts * (counts - 1) * (2 * counts + 5)).sum()) for counts in ties]
    variance = (n * (n - 1) * (2 * n + 5) - sum(spreads)) / 18
    variance += doubles[0] * doubles[1] / (2 * n * (n - 1))
    variance += triples[0] * triples[1] / (9 * n * (n - 1) * (n - 2))
    return math.erfc(abs(score) / math.sqrt(2 * variance)) if variance > 0 else 1.0
