"""Comprehensiveness and sufficiency (DeYoung et al., 2020): the output without the most attended tokens, and with
them alone, against as many random tokens.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from headscope.errors import InputError

SHARE = 0.2
"""Of the tokens that can be removed, how many count as the most attended; at least one."""
N_RANDOM = 5
"""Random sets of tokens to compare with."""

# The probability of the explained answer [copy, batch] when only the tokens of `kept` [copy, batch, token] remain.
Probability = Callable[[Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Erasure:
    """How much the probability of the answer falls [batch]: without the most attended tokens (comprehensiveness: a
    large fall speaks for the attention) and with those alone (sufficiency: a small fall does). NaN for texts in which
    no token, or every token, would be removed. `random_…` is the mean over random sets of as many tokens.
    """

    comprehensiveness: Tensor
    sufficiency: Tensor
    random_comprehensiveness: Tensor
    random_sufficiency: Tensor


def erasure(
    attention: Tensor,
    removable: Tensor,
    probability: Probability,
    *,
    share: float = SHARE,
    n_random: int = N_RANDOM,
    seed: int = 0,
) -> Erasure:
    """Both scores of attention weights [batch, token], over the tokens that `removable` [batch, token] marks.

    Other tokens (special ones, the answer's own) always remain. Random sets are the same for rows of a batch that have
    the same removable tokens.
    """
    if not 0 < share < 1 or n_random < 1:
        raise InputError(f"share is between 0 and 1 and n_random at least 1, got {share} and {n_random}.")
    counts = removable.sum(-1)
    n_chosen = (share * counts).ceil().long().clamp_min(1)
    is_testable = counts > n_chosen
    noise = torch.rand(n_random, 1, attention.shape[1], generator=torch.Generator().manual_seed(seed))
    ranked = torch.cat([attention[None].to(noise), noise.expand(-1, len(attention), -1)])
    ranked = torch.where(removable, ranked, -math.inf)
    ranks = ranked.argsort(dim=-1, descending=True, stable=True).argsort(-1)
    chosen = ranks < n_chosen[:, None]
    whole = torch.ones_like(removable)[None]
    probabilities = probability(torch.cat([whole, ~chosen, chosen | ~removable]))
    falls = torch.where(is_testable, probabilities[:1] - probabilities[1:], math.nan)
    without, alone = falls[: n_random + 1], falls[n_random + 1 :]
    return Erasure(without[0], alone[0], without[1:].mean(0), alone[1:].mean(0))
