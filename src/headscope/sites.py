"""Addresses: where in a Transformer something is read or edited."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeVar

from headscope.errors import UnknownHeadError

Kind = Literal["self", "cross", "neurons", "residual"]
Value = TypeVar("Value")

_ADDRESS = re.compile(r"(?:(?P<stack>[a-z_0-9]+)\.)?(?:(?P<cross>cross)\.)?L(?P<layer>\d+)(?:H(?P<index>\d+))?")


@dataclass(frozen=True, order=True)
class Site:
    """One layer of one stack: its attention (`self` or `cross`), its MLP `neurons` or its `residual` stream.

    >>> Site("encoder", 3)
    Site('encoder.L3')
    """

    stack: str
    layer: int
    kind: Kind = "self"

    def __str__(self) -> str:
        return f"{_prefix(self.stack, self.kind)}L{self.layer}"

    def __repr__(self) -> str:
        note = "" if self.kind in ("self", "cross") else f", kind={self.kind!r}"
        return f"Site({str(self)!r}{note})"

    def head(self, index: int) -> "Head":
        """The head of this attention layer with that index."""
        return Head(self.stack, self.layer, index, "cross" if self.kind == "cross" else "self")


@dataclass(frozen=True, order=True)
class Head:
    """One attention head; layer and index count from 0.

    >>> Head("main", 5, 1), Head("decoder", 2, 0, "cross")
    (Head('L5H1'), Head('cross.L2H0'))
    """

    stack: str
    layer: int
    index: int
    kind: Literal["self", "cross"] = "self"

    def __post_init__(self) -> None:
        if not (isinstance(self.layer, int) and isinstance(self.index, int) and min(self.layer, self.index) >= 0):
            raise UnknownHeadError(f"layer and head count from 0, got layer {self.layer!r} and head {self.index!r}.")

    def __str__(self) -> str:
        return f"{_prefix(self.stack, self.kind)}L{self.layer}H{self.index}"

    def __repr__(self) -> str:
        return f"Head({str(self)!r})"

    @property
    def site(self) -> Site:
        """The attention layer that this head is part of."""
        return Site(self.stack, self.layer, self.kind)


def place_of(address: "str | Head | Site") -> Head | Site:
    """The head or layer that an address names; text is read."""
    if isinstance(address, Head | Site):
        return address
    return parse(address)


def parse(address: str) -> Head | Site:
    """Read `L5H1`, `encoder.L5H1`, `cross.L5H1` or, without a head, `L5`: the one parser of addresses.

    >>> parse("cross.L5H1"), parse("L3")
    (Head('cross.L5H1'), Site('L3'))
    """
    match = _ADDRESS.fullmatch(address.strip()) if isinstance(address, str) else None
    if not match:
        raise UnknownHeadError(
            f"{address!r} is not the address of a head: write layer and head as 'L5H1' (both count from 0), "
            "a whole layer as 'L5', and put the stack in front where a model has several: 'encoder.L5H1', 'cross.L5H1'."
        )
    stack, is_cross = match["stack"], match["cross"] is not None
    if stack == "cross":
        stack, is_cross = None, True
    site = Site(stack or ("decoder" if is_cross else "main"), int(match["layer"]), "cross" if is_cross else "self")
    return site if match["index"] is None else site.head(int(match["index"]))


def find(address: "str | Head | Site", heads: Iterable[Head]) -> list[Head]:
    """The heads, among those given, that an address names: one for a head, all of a layer for a layer."""
    heads = list(heads)
    place = place_of(address)
    matches = [head for head in heads if str(head) == str(place) or str(head.site) == str(place)]
    if not matches:
        raise UnknownHeadError(f"there is no {place}: {describe(heads)}.")
    return matches


def find_head(address: "str | Head | Site", heads: Iterable[Head]) -> Head:
    """The one head, among those given, that an address names."""
    heads = list(heads)
    matches = find(address, heads)
    if len(matches) != 1:
        raise UnknownHeadError(f"{address} names {len(matches)} heads: say which; {describe(heads)}.")
    return matches[0]


class ByHead(dict[Head, Value]):
    """What is known of each head, looked up by the head or by its address.

    >>> ByHead({Head("main", 3, 2): "previous token"})["L3H2"]
    'previous token'
    """

    def __getitem__(self, head: "Head | str") -> Value:
        if isinstance(head, Head) and head in self:
            return super().__getitem__(head)
        return super().__getitem__(find_head(head, self))


def describe(heads: Iterable[Head]) -> str:
    """Which heads there are, in one phrase: `the heads are encoder.L0H0 to encoder.L5H7, …`."""
    stacks: dict[str, list[Head]] = {}
    for head in heads:
        stacks.setdefault(_prefix(head.stack, head.kind), []).append(head)
    if not stacks:
        return "there are no heads"
    return "the heads are " + ", ".join(f"{min(group)} to {max(group)}{_gaps(group)}" for group in stacks.values())


def _gaps(heads: list[Head]) -> str:
    """The layers, where some between the first and the last have no heads."""
    layers = sorted({head.layer for head in heads})
    is_gapless = len(layers) == layers[-1] - layers[0] + 1
    return "" if is_gapless else f" (layers {', '.join(map(str, layers))})"


def _prefix(stack: str, kind: str) -> str:
    """`cross.` stands for the decoder's, the only stack that has cross-attention in most models."""
    if kind == "cross":
        return "cross." if stack in ("main", "decoder") else f"{stack}.cross."
    return "" if stack == "main" else f"{stack}."
