"""The record of one run: queries and keys rather than maps, so that any rectangle of a pattern can be had, exactly."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import get_args

import numpy as np
import torch
from torch import Tensor

from headscope.arguments import whole_number
from headscope.choices import Record
from headscope.errors import InputError, NotRecordedError, UnknownHeadError
from headscope.sites import Head, Site, find, place_of
from headscope.traces.experts import ExpertChoices
from headscope.traces.given_patterns import NO_PATTERNS, layer_of_patterns
from headscope.traces.inputs import Inputs
from headscope.traces.layer import HeadSummary, LayerRecord
from headscope.traces.patch_grids import layer_tokens
from headscope.traces.pattern_reading import Reading
from headscope.traces.predictions import Prediction, Predictions
from headscope.traces.rectangles import Rows, Where, mean_rectangle, rectangle, span_weights, thumbnail
from headscope.traces.tokens import TokenChoice, Tokens

RECORDS: tuple[Record, ...] = get_args(Record)


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
    pruned_heads: tuple[Head, ...] = ()
    """Heads that are pruned in the model's weights: they attend, and add nothing to the output."""
    expert_choices: dict[Site, ExpertChoices] = field(default_factory=dict)

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
            raise InputError(NO_PATTERNS)
        named = dict(tokens) if isinstance(tokens, Mapping) else {"main": tokens}
        texts = {stack: names if isinstance(names, Tokens) else Tokens.of(names) for stack, names in named.items()}
        layers: dict[Site, LayerRecord] = {}
        for stack, maps in by_stack.items():
            for index, layer_patterns in enumerate(maps):
                site = Site("decoder", index, "cross") if stack == "cross" else Site(stack, index)
                key_stack = "encoder" if stack == "cross" else stack
                layers[site] = layer_of_patterns(layer_patterns, site, key_stack, texts)
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
        return _numpy(mean_rectangle(self, "pattern", place, rows, columns))

    def patterns(self, layer: str | Head | Site) -> Tensor:
        """The patterns of all heads of a layer, as this trace reads them: a torch tensor [head, query, key]."""
        record = self.layer(layer)
        if not self.readings:
            return record.patterns()
        return torch.stack([rectangle(self, "pattern", head, None, None) for head in record.heads()])

    def scores(self, place: Where, *, rows: Rows = None, columns: Rows = None) -> np.ndarray:
        """Scores before the softmax [query, key], −inf where masked; of tokens as the model saw them."""
        if self.readings:
            raise NotRecordedError(
                "scores belong to the model's own tokens: read them from the trace before words() or without()."
            )
        return _numpy(mean_rectangle(self, "scores", place, rows, columns))

    def contribution(self, place: Where, *, rows: Rows = None, columns: Rows = None) -> np.ndarray:
        """Weight × ‖value · W_O‖: how much each key's value adds to the output (Kobayashi et al. 2020) [query, key]."""
        return _numpy(mean_rectangle(self, "contribution", place, rows, columns))

    def attention_to(self, place: Where, spans: Sequence[TokenChoice]) -> np.ndarray:
        """What each query gives to each span of keys, summed over its tokens [query, span]; cheap at any length.

        A span is a position, a text (every token that shows it), a range, a slice, or a list of those.
        """
        return _numpy(span_weights(self, place, spans))

    def thumbnail(self, place: str | Head | Site, size: int = 96) -> np.ndarray:
        """The pattern, max-pooled to at most `size` cells a side, so that thin diagonals survive."""
        size = whole_number(size, "size")
        heads = self.find(place)
        return torch.stack([thumbnail(self, head, size) for head in heads]).mean(0).numpy()

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

    def experts(self, place: str | Site) -> ExpertChoices:
        """Which experts each of the model's tokens took in a mixture-of-experts layer ("L3"), with their weights."""
        site = _site(place)
        choices = self.expert_choices.get(Site(site.stack, site.layer))
        if choices is None:
            layers = ", ".join(map(str, self.expert_choices)) or "none"
            raise NotRecordedError(
                f"no choice of experts was seen in {site}: the layers with a router that was observed are {layers}."
            )
        return choices.copy()

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
        """The k most probable answers, or as many as were kept: of the last position, unless asked otherwise."""
        if self.answers is None or not len(self.answers.ids):
            raise NotRecordedError(
                "the model has no output that reads as a prediction for this input "
                "(no language-model or class head, or nothing masked)."
            )
        if not isinstance(answer, int) or not -len(self.answers.ids) <= answer < len(self.answers.ids):
            raise NotRecordedError(
                f"there is no answer {answer!r}: the model answered at positions {self.answers.positions}."
            )
        k = whole_number(k, "k")
        return self.answers.top(k, answer)

    @property
    def span(self) -> Prediction:
        """The likeliest answer of a model that answers with a span of its text: `span` says which tokens."""
        if self.answers is None or not self.answers.are_spans:
            raise NotRecordedError(
                f"{self.model} has no head for question answering, so it marks no answer in the text: load a model "
                "that was saved from AutoModelForQuestionAnswering, and give question and context as a pair."
            )
        return self.predictions(1)[0]

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

    def save(self, folder: str | Path) -> Path:
        """Keep the trace as a folder: JSON and safetensors, checksummed; an old one stays until the new is whole."""
        from headscope.traces.store import save_trace

        return save_trace(self, folder)

    def reading(self, stack: str) -> Reading:
        """How the tokens of a stack are read: each by itself, unless by words(), sentences() or without()."""
        return self.readings.get(stack) or Reading.plain(self.tokens[stack])

    def nbytes(self) -> int:
        """Bytes held in tensors."""
        loose = [*self.residuals.values(), *self.activations.values()]
        loose += [] if self.inputs is None else self.inputs.tensors()
        loose += [] if self.logits is None else [self.logits]
        loose += [part for choices in self.expert_choices.values() for part in choices.tensors().values()]
        return sum(layer.nbytes() for layer in self.layers.values()) + sum(
            tensor.numel() * tensor.element_size() for tensor in loose
        )

    # Inside

    def _head(self, place: str | Head | Site) -> Head:
        heads = self.find(place)
        if not isinstance(place_of(place), Head):
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


def _site(place: str | Head | Site) -> Site:
    address = place_of(place)
    return address.site if isinstance(address, Head) else address


def _numpy(tensor: Tensor) -> np.ndarray:
    """A copy: what a reader does to it must not reach the trace."""
    tensor = tensor.detach().cpu()
    return (tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.float()).numpy().copy()
