"""One head of two runs, neuron by neuron: every term of the first run minus that of the second, on aligned tokens.

The arrays of `neuron` have the names that they have of one run (`views/neurons.py`) and hold A − B. A product of two
things that both changed does not follow from their differences, so what products are made of comes along:
`a:query`, `b:query` [query, dim], scaled; `a:weights`, `b:weights` [query, key]; and `lengths`
[query, key], the difference in length of weight × value. `vectors` have `other` [token, dim], the second run's own.
"""

from functools import cached_property
from typing import get_args

import numpy as np
import torch
from torch import Tensor

from headscope.choices import Vectors
from headscope.sites import Head
from headscope.traces import DifferenceLayer, Trace
from headscope.traces.difference import Half
from headscope.views.contract import NeuronProps
from headscope.views.neurons import Terms, full_colour
from headscope.views.wire import Part

# What is below this share of the runs' own numbers is rounding, and stays pale.
_ROUNDING = 1e-5


class _Side:
    """The terms of one run, on the aligned tokens."""

    def __init__(self, half: Half, head: Head, first: int, last: int):
        # Rows that follow each other are read together: in between there may be many without a partner.
        rows = half.places("query")[first:last]
        terms = [Terms(half.trace, head, start, stop) for start, stop in _runs(rows)]
        self.terms = terms[0]
        columns = torch.tensor(half.places("key"), device=self.terms.key.device)
        self.key, self.value = self.terms.key[columns], self.terms.value[columns]
        self.query, self.mixed = (
            torch.cat([getattr(stretch, name) for stretch in terms]) for name in ("query", "mixed")
        )
        self.scaled = self.query * (1.0 if self.terms.scaling is None else self.terms.scaling)
        weights = torch.cat([stretch.weights for stretch in terms]).nan_to_num(nan=0.0)
        self.sink = (1 - weights.sum(-1)).clamp(0, 1)
        self.weights = weights[:, columns]
        self.scores = torch.cat([stretch.scores for stretch in terms])[:, columns]
        self.dots, self.capped, self.bias, self.allowed = (
            None
            if getattr(self.terms, name) is None
            else torch.cat([getattr(stretch, name) for stretch in terms])[:, columns]
            for name in ("dots", "capped", "bias", "allowed")
        )
        self.notes = list(dict.fromkeys(note for stretch in terms for note in stretch.notes()))


class SignedTerms:
    """What `Terms` says of one run, of the first run minus the second."""

    def __init__(self, trace: Trace, head: Head, first: int, last: int):
        layer = trace.layers[head.site]
        assert isinstance(layer, DifferenceLayer) and layer.halves is not None
        self.head, self.queries, self.layer = head, (first, last), layer
        self.a, self.b = (_Side(half, head, first, last) for half in layer.halves)
        own = self.a.terms
        self.scaling, self.softcap, self.sink = own.scaling, own.softcap, own.sink
        self.no_terms = own.no_terms or self.b.terms.no_terms
        self.query, self.key, self.value, self.mixed, self.weights = (
            _minus(getattr(self.a, name), getattr(self.b, name))
            for name in ("query", "key", "value", "mixed", "weights")
        )
        assert self.a.dots is not None and self.b.dots is not None
        self.dots = _minus(self.a.dots, self.b.dots)
        self.capped, self.bias = (
            None if (a := getattr(self.a, name)) is None or (b := getattr(self.b, name)) is None else _minus(a, b)
            for name in ("capped", "bias")
        )
        masks = [side.allowed for side in (self.a, self.b)]
        self.allowed = None if masks[0] is None or masks[1] is None else masks[0] | masks[1].to(masks[0].device)

    @property
    def products(self) -> Tensor:
        """Query × key of the first run minus that of the second [query, key, dim]: ask for few queries."""
        return torch.stack([self._product(row) for row in range(len(self.query))])

    @property
    def weighted(self) -> Tensor:
        """Weight × value of the first run minus that of the second [query, key, value dim]."""
        return torch.stack([self._weighted(row) for row in range(len(self.query))])

    @property
    def scores(self) -> Tensor:
        """The difference of what the softmax is taken of [query, key]: NaN where one of them is masked."""
        difference = _minus(self.a.scores, self.b.scores)
        return difference.masked_fill(~difference.isfinite(), float("nan"))

    @property
    def lengths(self) -> Tensor:
        """The length of weight × value in the first run minus that in the second [query, key]."""
        first, second = (side.weights * side.value.norm(dim=-1) for side in (self.a, self.b))
        return _minus(first, second)

    @cached_property
    def importance(self) -> Tensor:
        """How much each neuron's product changed in what is attended to [query, dim]."""
        attended = (self.a.weights + self.b.weights.to(self.a.weights.device)) / 2
        return torch.stack([attended[row] @ self._product(row).abs() for row in range(len(self.query))])

    def notes(self) -> list[str]:
        """What the reader should know of this head in the two runs."""
        shared = [note for note in self.a.notes if note in self.b.notes]
        notes = [*shared, *(f"A: {note}" for note in self.a.notes if note not in shared)]
        notes += [f"B: {note}" for note in self.b.notes if note not in shared]
        scaling = self.b.terms.scaling
        return notes if self.scaling == scaling else [*notes, f"q × k of B is scaled by {scaling or 1:.4g}"]

    def part(self) -> Part:
        """As the page reads it."""
        plain = {"query": self.query, "mixed": self.mixed, "dots": self.dots, "capped": self.capped, "bias": self.bias}
        plain |= {"weights": self.weights, "lengths": self.lengths, "importance": self.importance}
        plain |= {"norms": _minus(self.a.value.norm(dim=-1), self.b.value.norm(dim=-1))}
        for name, side in (("a", self.a), ("b", self.b)):
            plain |= {f"{name}:query": side.scaled, f"{name}:weights": side.weights}
        if self.sink is not None and self.b.terms.sink is not None and not self.no_terms:
            plain["sink"] = _minus(self.a.sink, self.b.sink)
        arrays = {name: tensor.contiguous().cpu().numpy() for name, tensor in plain.items() if tensor is not None}
        if self.allowed is not None:
            arrays["allowed"] = self.allowed.to(torch.uint8).contiguous().cpu().numpy()
        rows = range(len(self.query))
        sizes = [_size(self._product(row), self.a.scaled[row] * self.a.key) for row in rows]
        arrays["product_largest"] = np.array(sizes, np.float32)
        largest_weighted = [max(float(self._weighted(row).abs().max()), _ROUNDING * self._given(row)) for row in rows]
        arrays["weighted_largest"] = np.array(largest_weighted, np.float32).clip(1e-12)
        largest = {name: signed_colour(self.layer, name, self.head.index) for name in get_args(Vectors)}
        key = self.a.terms.layer.key
        assert key is not None
        props = NeuronProps(
            head=str(self.head),
            queries=self.queries,
            dim=self.query.shape[-1],
            value_dim=self.value.shape[-1],
            scaling=self.scaling,
            softcap=self.softcap,
            key_head=self.head.index * key.shape[0] // self.layer.n_heads,
            n_key_heads=key.shape[0],
            bias="" if self.bias is None else self.a.terms.bias_form,
            sink=self.sink,
            no_terms=self.no_terms,
            notes=self.notes(),
            largest=largest,
        )
        return Part("neuron", props, arrays)

    def _product(self, row: int) -> Tensor:
        return _minus(self.a.scaled[row] * self.a.key, self.b.scaled[row] * self.b.key)

    def _weighted(self, row: int) -> Tensor:
        first, second = (side.weights[row][:, None] * side.value for side in (self.a, self.b))
        return _minus(first, second)

    def _given(self, row: int) -> float:
        return float((self.a.weights[row] * self.a.value.abs().amax(-1)).max())


def halves_of(layer: DifferenceLayer, name: Vectors, index: int) -> tuple[Tensor, Tensor]:
    """The vectors of a head in both runs, on the aligned tokens, in fp32."""
    assert layer.halves is not None
    first, second = (half.vectors(name, index).float() for half in layer.halves)
    return first, second.to(first.device)


def signed_colour(layer: DifferenceLayer, name: Vectors, index: int) -> float:
    """The size from which differences of vectors are drawn in full colour."""
    first, second = halves_of(layer, name, index)
    return _size(first - second, first)


def _size(difference: Tensor, own: Tensor) -> float:
    return max(full_colour(difference), _ROUNDING * full_colour(own))


def _minus(first: Tensor, second: Tensor) -> Tensor:
    return first - second.to(first.device)


def _runs(places: list[int]) -> list[tuple[int, int]]:
    """Places as stretches that follow each other: [first, past the last)."""
    stretches: list[tuple[int, int]] = []
    for place in places:
        if stretches and stretches[-1][1] == place:
            stretches[-1] = stretches[-1][0], place + 1
        else:
            stretches.append((place, place + 1))
    return stretches
