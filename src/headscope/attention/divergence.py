"""How far two distributions are apart, row by row: Jensen-Shannon, total variation, Kullback-Leibler. In nats.

Rows are the last axis: the keys of a query, or the classes of an answer. Keys that do not count are set to 0 before any
logarithm, so padding never gives NaN, in the gradient either. Rows are not renormalised. All give one number per row.
"""

import math

import torch
from torch import Tensor

# The Jensen-Shannon divergence of two rows that share no key.
MOST_JENSEN_SHANNON = math.log(2)
# Cells of a comparison of every two heads that are computed at once.
_CELLS = 2**22


def jensen_shannon(p: Tensor, q: Tensor, *, mask: Tensor | None = None) -> Tensor:
    """The mean of KL(p ‖ m) and KL(q ‖ m) with m = (p + q) / 2: 0 for equal rows, ln 2 for rows that share no key.

    `mask` is True for the keys that count, broadcast over the rows.

    >>> even, first, last = torch.tensor([[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]])
    >>> [round(float(jensen_shannon(first, row)), 4) for row in (first, even, last)]
    [0.0, 0.2158, 0.6931]
    """
    p, q = _masked(p, q, mask)
    mean = ((p + q) / 2).clamp_min(torch.finfo(p.dtype).tiny)  # the half of the least number would be 0
    return ((_sum_of_log_ratios(p, mean) + _sum_of_log_ratios(q, mean)) / 2).clamp(0.0, MOST_JENSEN_SHANNON)


def total_variation(p: Tensor, q: Tensor, *, mask: Tensor | None = None) -> Tensor:
    """Half the L1 distance, 0 to 1: the largest difference in probability of any set of keys."""
    p, q = _masked(p, q, mask)
    return (p - q).abs().sum(-1) / 2


def kullback_leibler(p: Tensor, q: Tensor, *, mask: Tensor | None = None) -> Tensor:
    """KL(p ‖ q) = Σ p ln(p / q): infinite where q is 0 on a key that p has. It is not symmetric."""
    return _sum_of_log_ratios(*_masked(p, q, mask)).clamp_min(0.0)


def kullback_leibler_of_logs(log_p: Tensor, log_q: Tensor) -> Tensor:
    """KL(p ‖ q) from logarithms of probabilities, which hold what underflows as a probability; summed in float64."""
    terms = torch.where(log_p.isneginf(), 0.0, log_p.exp() * (log_p - log_q))
    return terms.sum(-1, dtype=torch.float64).clamp_min(0.0)


def with_missing_weight(rows: Tensor) -> Tensor:
    """Rows with one key more, which takes what a row lacks to a sum of 1: attention to a sink, or to what is hidden."""
    rows = rows.nan_to_num(nan=0.0)
    return torch.cat([rows, (1.0 - rows.sum(-1, keepdim=True)).clamp_min(0.0)], -1)


def pairwise_jensen_shannon(patterns: Tensor) -> Tensor:
    """The divergence between every two heads of patterns [head, query, key], summed over queries: [head, head].

    It is H((p + q) / 2) − (H(p) + H(q)) / 2, so each head's own entropy is computed once. Weight that a row lacks
    counts as one more key.
    """
    rows = with_missing_weight(patterns.double()).flatten(1)  # [head, query × key]
    own = _entropy(rows)
    sums = torch.zeros(len(rows), len(rows), dtype=torch.float64, device=rows.device)
    step = max(1, _CELLS // rows.shape[1])
    for head in range(len(rows)):
        for first in range(head + 1, len(rows), step):
            others = slice(first, first + step)
            mixed = _entropy((rows[head] + rows[others]) / 2)
            sums[head, others] = (mixed - (own[head] + own[others]) / 2).clamp_min(0.0)
    return sums + sums.T


def _masked(p: Tensor, q: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """Both in one precision of at least float32, 0 where the mask is False."""
    dtype = torch.promote_types(torch.promote_types(p.dtype, q.dtype), torch.float32)
    p, q = p.to(dtype), q.to(dtype)
    return (p, q) if mask is None else (p.masked_fill(~mask, 0.0), q.masked_fill(~mask, 0.0))


def _sum_of_log_ratios(p: Tensor, q: Tensor) -> Tensor:
    """Σ p (ln p − ln q), with 0 ln 0 = 0; the gradient is 0 there too, rather than NaN."""
    has_weight = p > 0
    log_ratios = torch.where(has_weight, p, 1.0).log() - torch.where(has_weight, q, 1.0).log()
    return (torch.where(has_weight, p, 0.0) * log_ratios).sum(-1)


def _entropy(rows: Tensor) -> Tensor:
    """The sum of −p ln p over the last axis."""
    return torch.special.entr(rows).sum(-1)
