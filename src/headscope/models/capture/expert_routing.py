"""Which experts the tokens of a pass take: read from a router's output, which is known by its shape."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from headscope.models.layout import Router
from headscope.sites import Site
from headscope.traces import ExpertChoices


@dataclass(frozen=True, eq=False)
class Routing:
    """What a router gave: `logits` [row, expert], and for each row the experts it chose and their `weights`."""

    logits: Tensor
    ids: Tensor
    weights: Tensor


def routing_of(output: Any) -> Routing | None:
    """The routing in what a module returned; None where it is no router.

    A router returns three matrices of as many rows: logits of all experts, the weights of the chosen ones and, as whole
    numbers, which those are. No expert is chosen twice in a row.
    """
    if not isinstance(output, tuple) or len(output) != 3 or not all(_is_matrix(part) for part in output):
        return None
    ids = [part for part in output if not part.is_floating_point()]
    floats = [part for part in output if part.is_floating_point()]
    if len(ids) != 1 or ids[0].dtype == torch.bool or len({len(part) for part in output}) != 1:
        return None
    (chosen,), (logits, weights) = ids, floats
    n_experts = logits.shape[1]
    if not 1 <= chosen.shape[1] <= n_experts or weights.shape[1] not in (chosen.shape[1], n_experts):
        return None
    if weights.shape[1] != chosen.shape[1]:
        weights = weights.gather(1, chosen.long())
    return Routing(logits, chosen, weights)


def is_routing(routing: Routing, n_rows: int) -> bool:
    """Whether a routing has one row for each of `n_rows` tokens, and each row names different experts that exist."""
    ids = routing.ids.sort(1).values
    is_in_range = bool((ids >= 0).all()) and bool((ids < routing.logits.shape[1]).all())
    return len(ids) == n_rows and is_in_range and bool((ids.diff(dim=1) > 0).all())


def routers_of(
    routings: Sequence[tuple[str, Routing]], blocks: dict[Site, str], n_rows: dict[str, int]
) -> tuple[Router, ...]:
    """The routers of the blocks, of what the probe saw; a block with several (one for each kind of token) has none."""
    routers = []
    for site, block in blocks.items():
        inside = {name: routing for name, routing in routings if name.startswith(f"{block}.")}
        if len(inside) == 1:
            (name, routing), *_ = inside.items()
            if is_routing(routing, n_rows.get(block, -1)):
                sizes = (routing.logits.shape[1], routing.ids.shape[1])
                routers.append(Router(Site(site.stack, site.layer), name, *sizes))
    return tuple(routers)


def choices_of(routing: Routing, *, with_logits: bool) -> ExpertChoices:
    """What a trace keeps of one example's routing: the expert of the largest weight first."""
    weights, order = routing.weights.detach().float().sort(dim=1, descending=True, stable=True)
    ids = routing.ids.detach().gather(1, order).int()
    logits = routing.logits.detach() if with_logits else None
    return ExpertChoices(routing.logits.shape[1], ids, weights, logits)


def _is_matrix(part: Any) -> bool:
    return isinstance(part, Tensor) and part.ndim == 2
