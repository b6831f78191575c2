"""One head, neuron by neuron: how its weights come about from queries and keys, and its output from values.

For each query, over all keys (arrays of `neuron`):

- `query` [query, dim] and `mixed` [query, value dim], the head's output;
- `dots` [query, key]: query · key, scaled: the sum over neurons of query × key × scaling;
- `capped` [query, key]: the same after the soft cap; `bias` [query, key]: what is added; `allowed` [query, key]: 0
  where masked. Each only where the model has it;
- `weights` [query, key]: the pattern, which is the softmax of all that; `norms` [key]: the length of each value;
- `sink` [query]: the weight that goes to the sink, where there is one;
- `importance` [query, dim]: |query × key × scaling| of each neuron, weighted by attention;
- `product_largest`, `weighted_largest` [query]: the size from which query × key, and weight × value, have full colour.

Keys and values themselves are `vectors`, a block of tokens at a time, so that a long input costs what is looked at.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from torch import Tensor

from headscope.attention import scores
from headscope.errors import InputError, NotRecordedError, UnknownHeadError, UnknownTokenError
from headscope.sites import Head, parse
from headscope.traces import DifferenceLayer, LayerRecord, Trace
from headscope.views.contract import NeuronProps, VectorsProps
from headscope.views.part_keys import PartKey
from headscope.views.wire import Part

if TYPE_CHECKING:
    from headscope.views.neuron_differences import SignedTerms
    from headscope.views.selection import Spot

# Tokens in one block of vectors, as the page asks for them; `web/src/data/neuron.ts` has the same number.
BLOCK = 512
# Cells (queries × keys) up to which all queries come at once.
WHOLE_CELLS = 2**18
# Full colour is reached at this share of sizes: a few huge neurons, as first tokens have, would leave the rest pale.
FULL_COLOUR = 0.995
_SAMPLE = 2**17


def neuron_part(trace: Trace, part_key: PartKey) -> Part:
    """`neuron/L3H2?query=5`: one query's terms, or without `query` those of all, where they are few enough."""
    head = head_of(trace, part_key.place)
    layer = trace.layers[head.site]
    first, last = 0, layer.n_queries
    if part_key.query is not None:
        if part_key.query >= layer.n_queries:
            raise UnknownTokenError(
                f"there is no query {part_key.query} in {head}: it has {layer.n_queries}, 0 to {layer.n_queries - 1}."
            )
        first, last = part_key.query, part_key.query + 1
    elif layer.n_queries * layer.n_keys > WHOLE_CELLS:
        raise InputError(
            f"{head} has {layer.n_queries:,} queries and {layer.n_keys:,} keys, too many for all at once: "
            f"ask for one query, as in neuron/{head}?query=0."
        )
    return terms_of(trace, head, first, last).part()


def terms_of(trace: Trace, head: Head, first: int, last: int) -> "Terms | SignedTerms":
    """All terms of some queries of a head; of a difference, those of the first run minus those of the second."""
    if isinstance(trace.layers[head.site], DifferenceLayer):
        from headscope.views.neuron_differences import SignedTerms  # is made of two `Terms`

        return SignedTerms(trace, head, first, last)
    return Terms(trace, head, first, last)


def vectors_part(trace: Trace, part_key: PartKey) -> Part:
    """`vectors/L3H2?of=key&rows=0:512`: the vectors of some tokens, and how they vary over all of them."""
    head = head_of(trace, part_key.place)
    vectors = _vectors(trace, head, part_key.of)
    n_tokens = vectors.shape[0]
    first, last = part_key.rows or (0, min(BLOCK, n_tokens))
    if last > n_tokens:
        raise InputError(f"rows={first}:{last} is outside 0:{n_tokens}.")
    if last - first > BLOCK:
        raise InputError(f"rows={first}:{last} are {last - first} tokens: ask for at most {BLOCK} at a time.")
    wide = vectors.float()
    arrays = {
        "vectors": _as_recorded(vectors[first:last]),
        "mean": wide.mean(0).cpu().numpy(),
        "spread": wide.std(0, correction=0).cpu().numpy(),
    }
    largest, layer = full_colour(wide), trace.layers[head.site]
    if isinstance(layer, DifferenceLayer):
        from headscope.views.neuron_differences import halves_of, signed_colour

        largest = signed_colour(layer, part_key.of, head.index)
        arrays["other"] = _as_recorded(halves_of(layer, part_key.of, head.index)[1][first:last])
    return Part("vectors", VectorsProps(str(head), part_key.of, (first, last), n_tokens, largest), arrays)


def no_neurons(layer: LayerRecord) -> str:
    """Why there are no queries and keys of a layer to look at; empty if there are."""
    if isinstance(layer, DifferenceLayer) and layer.halves is not None:
        reasons = [no_neurons(half.layer) for half in layer.halves]
        return next(filter(None, reasons), layer.no_vectors)
    if layer.query is not None and layer.key is not None and layer.value is not None:
        return ""
    if layer.no_scores:
        return f"{layer.no_scores}: this model gives no queries and keys, but its weights can be seen in the head view"
    return "a summary was recorded, without queries and keys; run again with record='heads'"


def head_of(trace: Trace, place: str | Head) -> Head:
    """The one head that is named, with queries and keys to show."""
    head = parse(place) if isinstance(place, str) else place
    heads = trace.find(head)
    if not isinstance(head, Head):
        raise UnknownHeadError(f"{place} is a layer of {len(heads)} heads: say which, as in {heads[0]}.")
    if reason := no_neurons(trace.layer(heads[0])):
        raise NotRecordedError(f"there are no neurons of {heads[0]} to show: {reason}.")
    return heads[0]


def query_of(layer: LayerRecord, chosen: "Spot | None") -> int:
    """The query that is looked from, as the page has it (`web/src/views/neuron.ts`): the chosen token, or the last.

    A key of self-attention is a token that looks, too; one of another stack is not.
    """
    if chosen is None or (chosen.side == "key" and layer.site.kind != "self"):
        return layer.n_queries - 1
    return chosen.index


class Terms:
    """Everything between the queries `first` to `last` of one head and its output, as tensors in fp32."""

    def __init__(self, trace: Trace, head: Head, first: int, last: int):
        self.head, self.queries = head, (first, last)
        self.layer = layer = trace.layers[head.site]
        rows, formula = slice(first, last), layer.formula
        self.query, self.key, self.value = (_vectors(trace, head, name).float() for name in ("query", "key", "value"))
        self.query = self.query[rows]
        self.weights = layer.pattern(head.index, rows).float()  # [query, key]
        self.mixed = self._beside_unused(_vectors(trace, head, "mixed")[rows].float())
        self.no_terms = self._why_no_terms()
        self.scaling = None if formula is None else formula.scaling
        self.softcap = None if formula is None else formula.softcap
        self.sink = None if formula is None or formula.sinks is None else float(formula.sinks[head.index])
        self.bias_form: Literal["", "key", "offset", "dense", "windows"] = (
            "" if formula is None or formula.bias is None else formula.bias.form
        )
        self.capped = self.bias = self.allowed = None
        self.dots = self.query @ self.key.T
        if formula is not None:
            own = formula.heads(slice(head.index, head.index + 1))
            without = replace(own, softcap=None, bias=None, mask=None)
            self.dots = scores(self.query[None, None], self.key[None, None], without)[0, 0]
            if formula.softcap is not None:
                self.capped = torch.tanh(self.dots / formula.softcap) * formula.softcap
            if own.bias is not None:
                self.bias = own.bias.tile(rows)[0, 0].float().expand(self.dots.shape)
            allowed = None if own.mask is None else own.mask.allowed_cells(rows)
            if allowed is not None:
                self.allowed = allowed[0, 0].expand(self.dots.shape)
        self.is_output_changed = bool(trace.edits) and self._is_output_changed()

    @property
    def products(self) -> Tensor:
        """Query × key, scaled [query, key, dim]: a large thing; ask for few queries."""
        return self.query[:, None] * self.key * (1.0 if self.scaling is None else self.scaling)

    @property
    def weighted(self) -> Tensor:
        """Weight × value [query, key, value dim]: sums up to the head's output."""
        return self.weights[..., None] * self.value

    @property
    def lengths(self) -> Tensor:
        """The length of weight × value [query, key]."""
        return self.weights.nan_to_num(nan=0.0) * self.value.norm(dim=-1)

    @property
    def scores(self) -> Tensor:
        """What the softmax is taken of [query, key]: −inf where masked."""
        logits = self.dots if self.capped is None else self.capped
        logits = logits if self.bias is None else logits + self.bias
        return logits if self.allowed is None else logits.masked_fill(~self.allowed, float("-inf"))

    @property
    def importance(self) -> Tensor:
        """How much each neuron says in what is attended to [query, dim]."""
        size = self.query.abs() * abs(1.0 if self.scaling is None else self.scaling)
        return size * (self.weights.nan_to_num(nan=0.0) @ self.key.abs())

    def _beside_unused(self, mixed: Tensor) -> Tensor:
        """Outputs [query, value dim]: where values have two halves, one of them is used, the other only summed up."""
        if mixed.shape[-1] == self.value.shape[-1]:
            return mixed
        is_global = torch.zeros(self.layer.n_queries, 1, dtype=torch.bool, device=mixed.device)
        is_global[list(self.layer.global_tokens)] = True
        first, second = (self.weights.nan_to_num(nan=0.0) @ self.value).chunk(2, -1)
        is_global = is_global[slice(*self.queries)]
        return torch.cat([torch.where(is_global, first, mixed), torch.where(is_global, mixed, second)], -1)

    def notes(self) -> list[str]:
        """What the reader should know of this head."""
        notes = []
        n_key_heads = self.layer.key.shape[0]  # type: ignore[union-attr]
        if n_key_heads < self.layer.n_heads:
            notes.append(
                f"{self.layer.n_heads} query heads share {n_key_heads} key heads; this one reads key head "
                f"{self._key_head()}"
            )
        if self.layer.way == "banded":
            notes.append(
                "neurons have two halves: the first is of windows, the second of global tokens; a query uses its own"
            )
        notes += [self.no_terms] if self.no_terms else []
        notes += ["its output was edited: it is not the sum of weight × value"] if self.is_output_changed else []
        return notes

    def part(self) -> Part:
        """As the page reads it."""
        layer, dots = self.layer, self.dots
        assert layer.key is not None
        arrays: dict[str, np.ndarray] = {"query": self.query.cpu().numpy(), "mixed": self.mixed.cpu().numpy()}
        optional = {"capped": self.capped, "bias": self.bias}
        for name, tensor in {"dots": dots, **optional}.items():
            if tensor is not None:
                arrays[name] = tensor.contiguous().cpu().numpy()
        if self.allowed is not None:
            arrays["allowed"] = self.allowed.to(torch.uint8).contiguous().cpu().numpy()
        weights = self.weights.nan_to_num(nan=0.0)
        arrays["weights"] = weights.cpu().numpy()
        arrays["norms"] = self.value.norm(dim=-1).cpu().numpy()
        arrays["importance"] = self.importance.cpu().numpy()
        if self.sink is not None and not self.no_terms:
            arrays["sink"] = (1 - weights.sum(-1)).clamp(0, 1).cpu().numpy()
        arrays["product_largest"] = np.array([self._product_colour(row) for row in range(len(dots))], np.float32)
        size = self.value.abs().amax(-1)
        arrays["weighted_largest"] = (weights * size).amax(-1).clamp_min(1e-12).cpu().numpy()
        largest = {
            "query": full_colour(self._all("query")),
            "key": full_colour(self.key),
            "value": full_colour(self.value),
            "mixed": full_colour(self._all("mixed")),
        }
        props = NeuronProps(
            head=str(self.head),
            queries=self.queries,
            dim=self.query.shape[-1],
            value_dim=self.value.shape[-1],
            scaling=self.scaling,
            softcap=self.softcap,
            key_head=self._key_head(),
            n_key_heads=layer.key.shape[0],
            bias=self.bias_form,
            sink=self.sink,
            no_terms=self.no_terms,
            notes=self.notes(),
            largest=largest,
            is_output_edited=self.is_output_changed,
        )
        return Part("neuron", props, arrays)

    def _all(self, name: str) -> Tensor:
        return self.layer.tensor(name, self.head.index).float()

    def _key_head(self) -> int:
        assert self.layer.key is not None
        return self.head.index * self.layer.key.shape[0] // self.layer.n_heads

    def _why_no_terms(self) -> str:
        if self.layer.formula is None:
            return "its scores have terms besides query · key that were not recorded: the weights do not follow from it"
        if self.head.index in self.layer.stored:
            return "its weights were edited: they do not follow from query · key"
        return ""

    def _is_output_changed(self) -> bool:
        computed = self.weights.nan_to_num(nan=0.0) @ self.value
        size = float(self.mixed.abs().max()) + float(computed.abs().max())
        return float((computed - self.mixed).abs().max()) > 0.02 * size + 1e-6

    def _product_colour(self, row: int) -> float:
        keys = self.key if self.allowed is None or not bool(self.allowed[row].any()) else self.key[self.allowed[row]]
        return full_colour(keys * self.query[row] * (1.0 if self.scaling is None else self.scaling))


def full_colour(values: Tensor) -> float:
    """The size from which on values are drawn in full colour."""
    sizes = values.detach().abs().flatten()
    sizes = sizes[:: max(1, sizes.numel() // _SAMPLE)]
    sizes = sizes[sizes.isfinite()]
    if not sizes.numel():
        return 1.0
    place = min(sizes.numel(), max(1, round(FULL_COLOUR * sizes.numel())))
    return max(1e-12, float(sizes.kthvalue(place).values))


def steadiness(mean: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """How much neurons vary over tokens, for their size: 0 for one that is the same whatever the token is."""
    return spread / np.sqrt(mean.astype(np.float64) ** 2 + spread.astype(np.float64) ** 2 + 1e-24)


def _vectors(trace: Trace, head: Head, name: str) -> Tensor:
    return trace.layers[head.site].tensor(name, head.index)


def _as_recorded(values: Tensor) -> np.ndarray:
    """As the run had them: halves as halves, everything else in fp32."""
    values = values.detach().cpu()
    return (values if values.dtype in (torch.float16, torch.float32) else values.float()).numpy()
