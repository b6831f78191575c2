"""Ways of reading a pattern: whole words or sentences instead of sub-words, without some tokens."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from headscope.errors import InputError
from headscope.traces.tokens import Token, TokenChoice, Tokens

_PART = re.compile(r" \d+/\d+$")


@dataclass(frozen=True)
class Reading:
    """Which tokens of a stack are read together: each group is a tuple of positions, left-out tokens in none.

    Attention to a group is the sum over its keys, attention from it the mean over its queries, so rows still sum to one
    (Clark et al., 2019, section 4.1).
    """

    groups: tuple[tuple[int, ...], ...]
    tokens: Tokens
    renormalise: bool = False

    @classmethod
    def plain(cls, tokens: Tokens) -> "Reading":
        """Each token by itself."""
        return cls(tuple((index,) for index in range(len(tokens))), tokens)

    def merge(self, key: Callable[[Token], object]) -> "Reading":
        """Neighbours for which `key` gives the same (not None) value become one."""
        groups: list[tuple[int, ...]] = []
        merged: list[Token] = []
        last: object = None
        before: Token | None = None
        for group, token in zip(self.groups, self.tokens, strict=True):
            mark = key(token)
            if before is not None and mark is not None and mark == last:
                # Inside a word, what lies between two pieces is a piece that was left out, not a space.
                is_cut = token.word is not None and token.word == before.word and group[0] > groups[-1][-1] + 1
                groups[-1] += group
                merged[-1] = _join(merged[-1], token, "" if is_cut else " ")
            else:
                groups.append(group)
                merged.append(token)
            last, before = mark, token
        return replace(self, groups=tuple(groups), tokens=Tokens(tuple(merged), self.tokens.kind))

    def without(self, chosen: TokenChoice, renormalise: bool) -> "Reading":
        """Leave tokens out."""
        left_out = set(self.tokens.positions(chosen))
        remaining = [index for index in range(len(self.groups)) if index not in left_out]
        if not remaining:
            raise InputError(f"leaving out {chosen!r} would leave none of the {len(self.tokens)} tokens.")
        return Reading(
            tuple(self.groups[index] for index in remaining),
            Tokens(tuple(self.tokens[index] for index in remaining), self.tokens.kind),
            self.renormalise or renormalise,
        )

    def rows(self, pattern: Tensor) -> Tensor:
        """The mean over the queries of each group [..., query, key] → [..., group, key]."""
        return self._sums(pattern, -2).div_(self.sizes.to(pattern.device)[:, None])

    def columns(self, pattern: Tensor) -> Tensor:
        """The sum over the keys of each group [..., query, key] → [..., query, group]."""
        return self._sums(pattern, -1)

    @cached_property
    def members(self) -> tuple[Tensor, Tensor]:
        """Every position that is read, and the group it is read in."""
        pairs = [(place, index) for index, group in enumerate(self.groups) for place in group]
        return torch.tensor([place for place, _ in pairs]), torch.tensor([index for _, index in pairs])

    @cached_property
    def sizes(self) -> Tensor:
        """How many positions each group has."""
        return torch.tensor([len(group) for group in self.groups], dtype=torch.float32)

    def _sums(self, pattern: Tensor, axis: int) -> Tensor:
        places, groups = (index.to(pattern.device) for index in self.members)
        if len(places) != pattern.shape[axis]:
            pattern = pattern.index_select(axis, places)
        shape = list(pattern.shape)
        shape[axis] = len(self.groups)
        return pattern.new_zeros(shape).index_add_(axis, groups, pattern)


def _join(first: Token, second: Token, space: str) -> Token:
    between = ""
    if first.end is not None and second.start is not None and second.start > first.end:
        between = space
    elif first.end is not None and second.start is not None and second.start < first.end:
        # Two pieces of one character, shown as "é 1/2" and "é 2/2": together they are the character.
        return replace(first, text=_PART.sub("", first.text), id=None, end=max(first.end, second.end or 0))
    return replace(first, text=first.text + between + second.text, id=None, end=second.end)
