"""The record of one run: queries and keys rather than maps, so that any rectangle of a pattern can be had, exactly."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import numpy as np
import torch
from torch import Tensor

from headscope.attention import summarise
from headscope.attention.summaries import cell
from headscope.choices import Record
from headscope.errors import InputError, NotRecordedError, UnknownHeadError
from headscope.sites import Head, Site, describe, find, parse
from headscope.traces.inputs import Inputs
from headscope.traces.layer import HeadSummary, LayerRecord
from headscope.traces.patch_grids import layer_tokens
from headscope.traces.pattern_reading import Reading
from headscope.traces.predictions import Prediction, Predictions
from headscope.traces.tokens import TokenChoice, Tokens

if TYPE_CHECKING:
    from headscope.traces.comparison import Comparison

RECORDS: tuple[Record, ...] = get_args(Record)

Where = str | Head | Site | Sequence["str | Head | Site"]
Rows = int | slice | range | None


@dataclass(frozen=True, eq=False)
class Trace:
    """What a model did with one input. It owns no model, never changes, and can be saved.

    A place is a head ("L3H2"), a layer ("L3": the mean over its heads) or a list of those (their mean).
    """

    model: str
    record: Record
    layers: dict[Site, LayerRecord]
    tokens: dict[str, Tokens]
    inputs: Inputs | None = None
    edits: tuple[str, ...] = ()
    answers: Predictions | None = None
    residuals: dict[str, Tensor] = field(default_factory=dict)
    activations: dict[Site, Tensor] = field(default_factory=dict)
    logits: Tensor | None = None
    steps: tuple[int | None, ...] | None = None
    warnings: tuple[str, ...] = ()
    other_layers: dict[Site, str] = field(default_factory=dict)
    """The layers without softmax attention, with the class of the module that mixes their tokens."""
    readings: dict[str, Reading] = field(default_factory=dict)

    @classmethod
    def from_patterns(
        cls,
        patterns: "Sequence[Tensor] | Mapping[str, Sequence[Tensor]]",
        tokens: "Sequence[str] | Tokens | Mapping[str, Sequence[str] | Tokens]",
        *,
        model: str = "patterns",
    ) -> "Trace":
        """A trace of patterns from elsewhere: one tensor [head, query, key] (or [1, head, query, key]) a layer.

        For several stacks give both by name: "encoder", "decoder", "cross".
        """
        by_stack = dict(patterns) if isinstance(patterns, Mapping) else {"main": patterns}
        if not by_stack or any(maps is None or not len(maps) for maps in by_stack.values()):
            raise InputError(_NO_PATTERNS)
        named = dict(tokens) if isinstance(tokens, Mapping) else {"main": tokens}
        texts = {stack: names if isinstance(names, Tokens) else Tokens.of(names) for stack, names in named.items()}
        layers: dict[Site, LayerRecord] = {}
        for stack, maps in by_stack.items():
            for index, layer_patterns in enumerate(maps):
                site = Site("decoder", index, "cross") if stack == "cross" else Site(stack, index)
                key_stack = "encoder" if stack == "cross" else stack
                layers[site] = _layer_of_patterns(layer_patterns, site, key_stack, texts)
        return cls(model, "heads", layers, texts)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{stack} {len(tokens)}" for stack, tokens in self.tokens.items())
        edited = f", {len(self.edits)} edits" if self.edits else ""
        return f"Trace({self.model!r}, {len(self.heads)} heads, tokens: {sizes}, record={self.record!r}{edited})"

    @property
    def heads(self) -> list[Head]:
        """All heads, layer by layer."""
        return [head for layer in self.layers.values() for head in layer.heads()]

    def find(self, place: str | Head | Site) -> list[Head]:
        """The heads that an address names."""
        return find(place, self.heads)

    def layer(self, place: str | Head | Site) -> LayerRecord:
        """What was recorded of one attention layer."""
        return self.layers[self.find(place)[0].site]

    def query_tokens(self, place: str | Head | Site) -> Tokens:
        """The tokens that the rows of a head's pattern stand for, as this trace reads them."""
        layer = self.layer(place)
        return self._tokens(layer, layer.site.stack, layer.n_queries)

    def key_tokens(self, place: str | Head | Site) -> Tokens:
        """The tokens that the columns of a head's pattern stand for, as this trace reads them."""
        layer = self.layer(place)
        return self._tokens(layer, layer.key_stack, layer.n_keys)

    # Patterns and what follows from them

    def pattern(self, place: Where, *, rows: Rows = None, columns: Rows = None) -> np.ndarray:
        """Attention weights [query, key]; any rectangle of them is computed by itself."""
        return self._mean("pattern", place, rows, columns)

    def patterns(self, layer: str | Head | Site) -> Tensor:
        """The patterns of all heads of a layer, as this trace reads them: a torch tensor [head, query, key]."""
        record = self.layer(layer)
        if not self.readings:
            return record.patterns()
        return torch.stack([self._rectangle("pattern", head, None, None) for head in record.heads()])

    def scores(self, place: Where, *, rows: Rows = None, columns: Rows = None) -> np.ndarray:
        """Scores before the softmax [query, key], −inf where masked; of tokens as the model saw them."""
        if self.readings:
            raise NotRecordedError(
                "scores belong to the model's own tokens: read them from the trace before words() or without()."
            )
        return self._mean("scores", place, rows, columns)

    def contribution(self, place: Where, *, rows: Rows = None, columns: Rows = None) -> np.ndarray:
        """Weight × ‖value · W_O‖: how much each key's value adds to the output (Kobayashi et al. 2020) [query, key]."""
        return self._mean("contribution", place, rows, columns)

    def thumbnail(self, place: str | Head | Site, size: int = 96) -> np.ndarray:
        """The pattern, max-pooled to at most `size` cells a side, so that thin diagonals survive."""
        if size < 1:
            raise InputError(f"a thumbnail has at least one cell, got size={size}.")
        heads = self.find(place)
        return torch.stack([self._thumbnail(head, size) for head in heads]).mean(0).numpy()

    def summary(self, head: str | Head) -> HeadSummary:
        """The head's figures: lse, entropy, max, distance and argmax a query; top keys, received, map."""
        return self.layer(head).figures(self._head(head).index)

    # Vectors

    def query(self, head: str | Head) -> np.ndarray:
        """Queries [token, dim], as used: after rotary positions, and scaled where the model does that early."""
        return _numpy(self.tensor("query", head))

    def key(self, head: str | Head) -> np.ndarray:
        """Keys [token, dim]; heads of a group share them."""
        return _numpy(self.tensor("key", head))

    def value(self, head: str | Head) -> np.ndarray:
        """Values [token, dim]."""
        return _numpy(self.tensor("value", head))

    def mixed(self, head: str | Head) -> np.ndarray:
        """The head's output, pattern · value [token, dim]."""
        return _numpy(self.tensor("mixed", head))

    def residual(self, place: str | Site, *, after: bool = False) -> np.ndarray:
        """The residual stream that enters a layer (or leaves it) [token, dim]; needs record='full'."""
        site = _site(place)
        return _numpy(self.tensor("residual", replace(site, layer=site.layer + 1) if after else site))

    def neurons(self, place: str | Site) -> np.ndarray:
        """The MLP activations of a layer [token, neuron]; needs record='full'."""
        return _numpy(self.tensor("neurons", _site(place)))

    def tensor(self, name: str, place: str | Head | Site) -> Tensor:
        """Query, key, value or mixed of a head, residual or neurons of a layer: a torch tensor in the run's dtype."""
        if name in ("query", "key", "value", "mixed"):
            head = self._head(place)
            return self.layers[head.site].tensor(name, head.index)
        site = _site(place)
        if name == "residual":
            stream = self.residuals.get(site.stack)
            if stream is None:
                raise NotRecordedError(f"no residual stream was recorded for {site}. Run with record='full'.")
            if site.layer >= len(stream):
                raise UnknownHeadError(
                    f"there is no residual stream {site}: it has {len(stream)} places, L0 to L{len(stream) - 1}."
                )
            return stream[site.layer]
        if name == "neurons":
            site = Site(site.stack, site.layer, "neurons")
            if site not in self.activations:
                known = ", ".join(str(site) for site in self.activations) or "none: run with record='full'"
                raise NotRecordedError(f"no MLP activations were recorded for {site}: there are {known}.")
            return self.activations[site]
        raise NotRecordedError(f"a trace has no {name!r}: it has query, key, value, mixed, residual and neurons.")

    # Answers

    def predictions(self, k: int = 5, *, answer: int = -1) -> list[Prediction]:
        """The k most probable answers: of the last answer position, unless another is asked for."""
        if k < 1:
            raise InputError(f"ask for at least one prediction, got k={k}.")
        if self.answers is None or not len(self.answers.ids):
            raise NotRecordedError(
                "the model has no output that reads as a prediction for this input "
                "(no language-model or class head, or nothing masked)."
            )
        if not -len(self.answers.ids) <= answer < len(self.answers.ids):
            raise NotRecordedError(
                f"there is no answer {answer}: the model answered at positions {self.answers.positions}."
            )
        return self.answers.top(k, answer)

    # Other ways of reading

    def words(self) -> "Trace":
        """The same trace by words: attention to a word is the sum over its pieces, from it the mean."""
        return self._read_by(lambda token: None if token.special or token.word is None else (token.segment, token.word))

    def sentences(self) -> "Trace":
        """The same trace by sentences."""
        return self._read_by(
            lambda token: None if token.special or token.sentence is None else (token.segment, token.sentence)
        )

    def without(self, tokens: TokenChoice, *, renormalise: bool = True) -> "Trace":
        """The same trace with tokens left out as queries and keys; rows are brought back to one unless told not to.

        In a trace of several stacks, tokens are left out wherever they are found.
        """
        readings = {}
        problems = []
        for stack in self.tokens:
            try:
                readings[stack] = self.reading(stack).without(tokens, renormalise)
            except LookupError as problem:
                problems.append(problem)
                readings[stack] = self.reading(stack)
        if len(problems) == len(self.tokens):
            raise problems[0]
        return replace(self, readings=readings)

    def diff(self, other: "Trace") -> "Comparison":
        """The other run minus this one, `compare(other, this)`: patterns, change of heads, predictions."""
        from headscope.traces.comparison import compare

        return compare(other, self)

    def save(self, folder: str | Path) -> Path:
        """Keep the trace as a folder: JSON and safetensors, checksummed; an old one stays until the new is whole."""
        from headscope.traces.store import save_trace

        return save_trace(self, folder)

    @classmethod
    def load(cls, folder: str | Path) -> "Trace":
        """Read a trace that was saved."""
        from headscope.traces.store import load_trace

        return load_trace(folder)

    def reading(self, stack: str) -> Reading:
        """How the tokens of a stack are read: each by itself, unless by words(), sentences() or without()."""
        return self.readings.get(stack) or Reading.plain(self.tokens[stack])

    def nbytes(self) -> int:
        """Bytes held in tensors."""
        loose = [*self.residuals.values(), *self.activations.values()]
        loose += [] if self.inputs is None else self.inputs.tensors()
        loose += [] if self.logits is None else [self.logits]
        return sum(layer.nbytes() for layer in self.layers.values()) + sum(
            tensor.numel() * tensor.element_size() for tensor in loose
        )

    # Inside

    def _head(self, place: str | Head | Site) -> Head:
        heads = self.find(place)
        if not isinstance(parse(place) if isinstance(place, str) else place, Head):
            raise UnknownHeadError(f"{place} is a layer of {len(heads)} heads: say which, as in {heads[0]}.")
        return heads[0]

    def _tokens(self, layer: LayerRecord, stack: str, length: int) -> Tokens:
        """The tokens as read; by the layer's own names where it sees a coarser grid, or patches in another order."""
        tokens = self.tokens[stack]
        if len(tokens) == length and (layer.places is None or stack in self.readings):
            return self.reading(stack).tokens
        return layer_tokens(tokens, layer, length)

    def _read_by(self, key) -> "Trace":
        return replace(self, readings={stack: self.reading(stack).merge(key) for stack in self.tokens})

    def _mean(self, what: str, place: Where, rows: Rows, columns: Rows) -> np.ndarray:
        places = [place] if isinstance(place, str | Head | Site) else list(place)
        if not places:
            raise UnknownHeadError(f"no head was asked for: {describe(self.heads)}.")
        heads = list(dict.fromkeys(head for place in places for head in self.find(place)))
        shapes = {(self.layers[head.site].n_queries, self.layers[head.site].n_keys) for head in heads}
        if len(shapes) > 1:
            raise InputError(f"patterns of different shapes have no mean: {', '.join(map(str, sorted(shapes)))}.")
        total = None
        for head in heads:
            rectangle = self._rectangle(what, head, rows, columns)
            total = rectangle if total is None else total + rectangle
        assert total is not None
        return _numpy(total / len(heads) if len(heads) > 1 else total)

    def _rectangle(self, what: str, head: Head, rows: Rows, columns: Rows) -> Tensor:
        layer = self.layers[head.site]
        n_rows, n_columns = layer.n_queries, layer.n_keys
        by_row, by_column = self.readings.get(layer.site.stack), self.readings.get(layer.key_stack)
        if by_row is None and by_column is None:
            return self._raw(what, head, _slice(rows, n_rows, "rows"), _slice(columns, n_columns, "columns"))
        for stack, length in ((layer.site.stack, n_rows), (layer.key_stack, n_columns)):
            if len(self.tokens[stack]) != length:
                raise InputError(
                    f"{head} sees {length} places, not the {len(self.tokens[stack])} tokens of {stack}: "
                    "read it without words(), sentences() or without()."
                )
        cells = self._raw(what, head, slice(None), slice(None))
        if by_column is not None:
            # Rows are brought back to one by the weight that is left; contributions are multiples of it.
            weights = self._raw("pattern", head, slice(None), slice(None)) if what == "contribution" else cells
            cells = by_column.columns(cells)
            if by_column.renormalise:
                cells = cells / by_column.columns(weights).sum(-1, keepdim=True).clamp_min(1e-30)
        if by_row is not None:
            cells = by_row.rows(cells)
        return cells[_slice(rows, cells.shape[0], "rows"), _slice(columns, cells.shape[1], "columns")]

    def _raw(self, what: str, head: Head, rows: slice, columns: slice) -> Tensor:
        layer = self.layers[head.site]
        if what == "scores":
            return layer.scores(head.index, rows, columns)
        weights = layer.pattern(head.index, rows, columns)
        if what == "pattern":
            return weights
        if layer.value_norms is None:
            reason = layer.no_norms or "the trace holds no values; run with record='heads'"
            raise NotRecordedError(f"no contributions for {head}: {reason}.")
        return weights * layer.value_norms[head.index, columns].float()

    def _thumbnail(self, head: Head, size: int) -> Tensor:
        layer = self.layers[head.site]
        if self.readings:
            return _pool(self._rectangle("pattern", head, None, None), size)
        kept = layer.summary.map
        step = max(1, -(-layer.n_queries // size))
        if kept is not None and step == cell(layer.n_queries) and -(-layer.n_keys // size) == cell(layer.n_keys):
            return kept[head.index]
        if head.index in layer.stored or layer.query is not None:
            # A band of rows at a time: the whole pattern is never held.
            band = step * max(1, 512 // step)
            bands = [
                _pool_by(layer.pattern(head.index, slice(first, first + band)), step, -(-layer.n_keys // size))
                for first in range(0, layer.n_queries, band)
            ]
            return torch.cat(bands)
        if kept is None:
            raise NotRecordedError(
                f"this trace holds only row figures of {head}. Run with record='summary' for its map."
            )
        return _pool(kept[head.index], size)


_NO_PATTERNS = (
    "the model returned no attention weights (None): load it with attn_implementation='eager', "
    "or let headscope.load trace it."
)


def _layer_of_patterns(patterns: Tensor, site: Site, key_stack: str, tokens: dict[str, Tokens]) -> LayerRecord:
    """A layer of which only the patterns are known."""
    if patterns is None:
        raise InputError(_NO_PATTERNS)
    weights = torch.as_tensor(patterns).detach().to("cpu", torch.float32, copy=True)  # a trace never changes
    weights = weights[0] if weights.ndim == 4 and weights.shape[0] == 1 else weights
    if weights.ndim == 4:
        raise InputError(f"{site} holds a batch of {weights.shape[0]}: give one example at a time.")
    if weights.ndim != 3:
        raise InputError(f"a layer's patterns are [head, query, key], got shape {tuple(weights.shape)} for {site}.")
    if not bool((weights >= 0).all()):  # NaN is not
        raise InputError(f"the patterns of {site} hold NaN or negative weights.")
    n_heads, n_queries, n_keys = weights.shape
    for stack, length, axis in ((site.stack, n_queries, "queries"), (key_stack, n_keys, "keys")):
        if stack not in tokens:
            raise InputError(f"no tokens were given for {stack!r}, which {site} needs: there are {', '.join(tokens)}.")
        if len(tokens[stack]) != length:
            raise InputError(f"{site} has {length} {axis} but {len(tokens[stack])} {stack} tokens were given.")
    scores = weights.clamp_min(torch.finfo(torch.float32).tiny).log()
    summary = summarise(weights, scores, lse=torch.zeros(n_heads, n_queries))
    reason = "only its patterns are known"
    stored = dict(enumerate(weights))
    return LayerRecord(
        site,
        n_heads,
        n_queries,
        n_keys,
        key_stack,
        "given",
        summary,
        stored=stored,
        no_scores=reason,
        no_norms=reason,
        is_causal=site.kind != "cross" and n_queries == n_keys and not bool(weights.triu(1).any()),
    )


def _site(place: str | Head | Site) -> Site:
    address = parse(place) if isinstance(place, str) else place
    return address.site if isinstance(address, Head) else address


def _slice(chosen: Rows, length: int, name: str) -> slice:
    if chosen is None:
        return slice(None)
    if isinstance(chosen, int | np.integer):
        if not -length <= chosen < length:
            raise InputError(f"{name}={chosen} is outside 0 to {length - 1}.")
        return slice(int(chosen) % length, int(chosen) % length + 1)
    if isinstance(chosen, range) and chosen.step > 0:
        if len(chosen) and not 0 <= chosen[0] <= chosen[-1] < length:
            raise InputError(f"{name}={chosen!r} is outside 0 to {length - 1}.")
        chosen = slice(chosen.start, chosen.stop, chosen.step)
    if not isinstance(chosen, slice) or (chosen.step or 1) < 1:
        raise InputError(f"{name} must be an index, a slice or a range that counts upwards, got {chosen!r}.")
    return chosen


def _pool(pattern: Tensor, size: int) -> Tensor:
    return _pool_by(pattern, -(-pattern.shape[0] // size), -(-pattern.shape[1] // size))


def _pool_by(pattern: Tensor, step: int, key_step: int) -> Tensor:
    return torch.nn.functional.max_pool2d(pattern[None, None], (step, key_step), ceil_mode=True)[0, 0]


def _numpy(tensor: Tensor) -> np.ndarray:
    """A copy: what a reader does to it must not reach the trace."""
    tensor = tensor.detach().cpu()
    return (tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.float()).numpy().copy()
