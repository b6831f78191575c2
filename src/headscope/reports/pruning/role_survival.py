"""Whether heads that had a role survive more often than heads of the same layers drawn at random: exactly."""

from dataclasses import dataclass
from math import comb

import numpy as np

from headscope.pruning import PrunePoint
from headscope.reports.pruning.survivor_roles import SurvivorRoles


@dataclass(frozen=True)
class RoleSurvival:
    """Of the survivors of a point, how many had a role before, how many would `by_chance`, and the probability that
    chance leaves so many or more. Chance keeps as many heads of each layer as the point has.
    """

    n_survivors: int
    n_with_role: int
    by_chance: float
    p_value: float


def role_survival(whole: SurvivorRoles, point: PrunePoint) -> RoleSurvival:
    """From the roles in the untouched model: the sum of a hypergeometric count for each layer."""
    had_role = {head for head, verdict in whole.verdicts.items() if verdict.findings}
    distribution, by_chance = np.ones(1), 0.0
    for site, row in point.mask.rows():
        n_heads, n_kept = len(row), sum(row)
        n_roles = sum(site.head(index) in had_role for index in range(n_heads))
        counts = [comb(n_roles, k) * comb(n_heads - n_roles, n_kept - k) for k in range(min(n_roles, n_kept) + 1)]
        distribution = np.convolve(distribution, np.array(counts) / comb(n_heads, n_kept))
        by_chance += n_kept * n_roles / n_heads
    survivors = point.mask.heads_kept()
    n_with_role = sum(head in had_role for head in survivors)
    return RoleSurvival(len(survivors), n_with_role, by_chance, float(distribution[n_with_role:].sum()))
