"""What measures of a layer's rows share: which queries and keys count, and where each query looks most.

A key is kept when it is not a special token and, in a causal model, not the first of all: heads park there what they
have no use for (Voita et al., 2019, leave out the end of the sentence; Vig & Belinkov, 2019, the first token). Weights
on other keys are left out and the rest is not brought back to one. A query counts when it is not special itself and
sees a kept key.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from headscope.runs import Layer


class ContentTokens(NamedTuple):
    """Queries that count and keys that are kept [example, position]; how many of those each query sees."""

    queries: Tensor
    keys: Tensor
    seen: Tensor


@dataclass(frozen=True, eq=False)
class ContentRows:
    """One layer's rows over its kept keys; sums are [example, head] and more."""

    layer: Layer
    tokens: ContentTokens

    @cached_property
    def pattern(self) -> Tensor:
        """Weights on kept keys, zero elsewhere [example, head, query, key]."""
        return self.layer.pattern * self.tokens.keys[:, None, None]

    @cached_property
    def _strongest(self) -> tuple[Tensor, Tensor]:
        return strongest(self.pattern)

    @property
    def largest(self) -> Tensor:
        """The largest weight of each query on a kept key [example, head, query]."""
        return self._strongest[0]

    @property
    def argmax(self) -> Tensor:
        """The kept key with the largest weight, the first of equals; −1 where there is none [example, head, query]."""
        return self._strongest[1]

    @cached_property
    def sent(self) -> Tensor:
        """What each query that counts puts on kept keys [example, head, query]."""
        return self.pattern.sum(-1) * self.tokens.queries[:, None]

    @cached_property
    def received(self) -> Tensor:
        """What each key receives from queries that count, special keys too [example, head, key]."""
        plain = self.layer.plain_queries[:, None, None].to(self.layer.pattern)
        return (plain @ self.layer.pattern)[:, :, 0]

    def hits(self, keys: Tensor) -> Tensor:
        """How many queries look most at one of these keys [example, key] -> [example, head]."""
        wanted = (keys & self.tokens.keys)[:, None].expand(-1, self.argmax.shape[1], -1)
        is_hit = wanted.gather(2, self.argmax.clamp_min(0)) & (self.argmax >= 0) & self.tokens.queries[:, None]
        return is_hit.sum(-1)


def strongest(weights: Tensor) -> tuple[Tensor, Tensor]:
    """The largest weight of every row and its place, the first of equals; −1 where nothing has any weight."""
    n = weights.shape[-1]
    if weights.dtype != torch.float32 or not n:
        top = weights.max(-1)
        return top.values, torch.where(top.values > 0, top.indices, -1)
    # Weights are not negative, so their bits are in the order that they are in. With the place in the lower half of a
    # wider number the plain maximum gives both, in half the time of a maximum that keeps account of places.
    behind = torch.arange(n - 1, -1, -1, device=weights.device)
    packed = weights.contiguous().view(torch.int32).long().bitwise_left_shift_(32).bitwise_or_(behind).amax(-1)
    largest = (packed >> 32).int().view(torch.float32)
    return largest, torch.where(largest > 0, n - 1 - (packed & 0xFFFFFFFF), -1)


def rows(layer: Layer) -> ContentRows:
    """The rows of a layer, worked out once for all measures."""
    return layer.once("rows", lambda: ContentRows(layer, _content_tokens(layer)))


def once_per_batch(layer: Layer, name: str, make):
    """Something about the batch that all layers between the same tokens share."""
    n_queries, n_keys = layer.pattern.shape[2:]
    about = (layer.site.stack, layer.site.kind, layer.key_stack, layer.is_causal)
    return layer.batch.once((name, *about, layer.rows.start, n_queries, n_keys), make)


def visible_pairs(layer: Layer) -> Tensor:
    """Where a query that counts sees a kept key [example, query, key]."""

    def make() -> Tensor:
        tokens = rows(layer).tokens
        pairs = tokens.queries[:, :, None] & tokens.keys[:, None, :]
        return pairs.tril() if layer.is_causal else pairs

    return once_per_batch(layer, "pairs seen", make)


def _content_tokens(layer: Layer) -> ContentTokens:
    def make() -> ContentTokens:
        keys, queries = layer.plain_keys, layer.plain_queries
        if not layer.is_causal:
            seen = keys.sum(-1, keepdim=True).expand(-1, queries.shape[1])
            return ContentTokens(queries & (seen > 0), keys, seen)
        keys = keys.clone()
        keys[:, 0] = False
        seen = keys.cumsum(-1)
        return ContentTokens(queries & (seen > 0), keys, seen)

    return once_per_batch(layer, "kept", make)
