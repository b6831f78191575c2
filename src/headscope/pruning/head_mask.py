"""Which heads of a model survive."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from headscope.errors import InputError
from headscope.interventions import Intervention, gate, silence
from headscope.models import Model
from headscope.pruning.attention_types import attention_type, layers_of
from headscope.sites import Head, Site, parse

# Types in the order in which tables list them; others follow as the model has them.
_ORDER = ("encoder", "decoder", "cross", "self")


@dataclass(frozen=True)
class HeadMask:
    """For every attention layer, whether each head survives (True) or is pruned.

    >>> mask = HeadMask({Site("main", 0): (True, False), Site("main", 1): (False, False)})
    >>> mask.counts(), mask.interventions()[1]
    ({'self': (1, 4)}, hs.silence('L1'))
    """

    survivors: dict[Site, tuple[bool, ...]]

    @classmethod
    def full(cls, model: Model) -> "HeadMask":
        """All heads of a model survive."""
        return cls({layer.site: (True,) * layer.n_heads for layer in layers_of(model)})

    @classmethod
    def of(cls, model: Model, heads: Iterable[Head]) -> "HeadMask":
        """These heads of a model survive, and no others."""
        chosen = set(heads)
        whole = cls.full(model)
        unknown = chosen - set(whole.heads())
        if unknown:
            raise InputError(f"{model.name} has no head {min(unknown)}.")
        return cls({site: tuple(site.head(index) in chosen for index in range(len(row))) for site, row in whole.rows()})

    def rows(self) -> Iterable[tuple[Site, tuple[bool, ...]]]:
        """Each layer with its heads."""
        return self.survivors.items()

    def heads(self) -> list[Head]:
        """All heads, layer by layer."""
        return [site.head(index) for site, row in self.rows() for index in range(len(row))]

    def heads_kept(self) -> list[Head]:
        """The heads that survive, layer by layer."""
        return [site.head(index) for site, row in self.rows() for index, survives in enumerate(row) if survives]

    def heads_pruned(self) -> list[Head]:
        """The heads that are pruned, layer by layer."""
        return [site.head(index) for site, row in self.rows() for index, survives in enumerate(row) if not survives]

    def counts(self) -> dict[str, tuple[int, int]]:
        """How many heads survive, and of how many, by type of attention."""
        types = list(dict.fromkeys(attention_type(site) for site in self.survivors))
        types.sort(key=lambda name: _ORDER.index(name) if name in _ORDER else len(_ORDER))
        rows = {name: [row for site, row in self.rows() if attention_type(site) == name] for name in types}
        return {name: (sum(map(sum, rows[name])), sum(map(len, rows[name]))) for name in types}

    def total(self) -> tuple[int, int]:
        """How many heads survive, and of how many."""
        counts = self.counts().values()
        return sum(kept_heads for kept_heads, _ in counts), sum(n_heads for _, n_heads in counts)

    def interventions(self) -> list[Intervention]:
        """Edits that switch the pruned heads off: one for each layer that loses a head."""
        return [_switched_off(site, row) for site, row in self.rows() if not all(row)]

    def check(self, model: Model) -> None:
        """Refuse a model with other layers or other numbers of heads."""
        own = {layer.site: layer.n_heads for layer in layers_of(model)}
        sizes = {site: len(row) for site, row in self.rows()}
        if own != sizes:
            raise InputError(
                f"the mask is of another model: it has {_sizes(sizes)}, and {model.name} has {_sizes(own)}."
            )

    def to_json(self) -> dict[str, list[int]]:
        """Lists of 0 and 1 by the address of the layer."""
        return {str(site): [int(survives) for survives in row] for site, row in self.rows()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "HeadMask":
        """What `to_json` gave."""
        return cls({site: tuple(bool(bit) for bit in data[address]) for address, site in parse_sites(data).items()})


def parse_sites(addresses: Iterable[str]) -> dict[str, Site]:
    """The layers of one model by their addresses; `cross.L0` is of the stack `main` where the model has one."""
    places = {address: parse(address) for address in addresses}
    heads = [address for address, place in places.items() if isinstance(place, Head)]
    if heads:
        raise InputError(f"{heads[0]} is a head: a mask names layers, as 'L0' or 'encoder.L0'.")
    sites = {address: place for address, place in places.items() if isinstance(place, Site)}
    if any(site.stack == "main" for site in sites.values()):
        crossing = {address for address in sites if address.startswith("cross.")}
        sites |= {address: Site("main", sites[address].layer, "cross") for address in crossing}
    return sites


def _switched_off(site: Site, row: tuple[bool, ...]) -> Intervention:
    return gate(site, torch.tensor(row, dtype=torch.float32)) if any(row) else silence(site)


def _sizes(sizes: Mapping[Site, int]) -> str:
    return f"{sum(sizes.values())} heads in {len(sizes)} layers"
