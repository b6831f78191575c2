"""What was recorded of one attention layer over one input, and how its patterns follow from it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headscope.attention import Formula, Summary, log_denominator, pooled_weights, scores, softmax, span_weights
from headscope.errors import NotRecordedError
from headscope.sites import Head, Site

# Up to so many cells (head × query × key) a model in half precision may have rounded the scores whose sums it kept.
WHOLE_CELLS = 2**22
_VECTORS = ("query", "key", "value", "mixed", "value_norms")
_FIGURE, _STORED = "figure ", "pattern "


@dataclass(frozen=True, eq=False)
class HeadSummary:
    """The figures of one head: those of a layer's `Summary` without the head axis, as numpy arrays."""

    lse: np.ndarray
    entropy: np.ndarray
    max: np.ndarray
    distance: np.ndarray
    argmax: np.ndarray
    top_keys: np.ndarray | None = None
    top_weights: np.ndarray | None = None
    received: np.ndarray | None = None
    map: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class LayerRecord:
    """One attention layer: query [head, query, dim], key and value [group, key, dim], mixed [head, query, dim].

    `value_norms` [head, key] are ‖value · W_O‖, or None for the reason in `no_norms`. `stored` holds the patterns of
    heads that the formula does not give: edited ones, or all of a layer whose scores have further terms. Where patches
    are not taken row by row (Swin), `places` [position] numbers them in `grid`, −1 for what was only filled up.
    `window` is how many keys a query sees to one side, itself included (None: no window); `global_tokens` see all and
    are seen by all.
    `is_causal` says that no query sees a later key: by the model's mask, whatever edits do to the weights.
    """

    site: Site
    n_heads: int
    n_queries: int
    n_keys: int
    key_stack: str
    way: str
    summary: Summary
    formula: Formula | None = None
    query: Tensor | None = None
    key: Tensor | None = None
    value: Tensor | None = None
    mixed: Tensor | None = None
    value_norms: Tensor | None = None
    no_norms: str = ""
    stored: dict[int, Tensor] = field(default_factory=dict)
    no_scores: str = ""
    grid: tuple[int, int] | None = None
    places: Tensor | None = None
    is_causal: bool = False
    window: int | None = None
    global_tokens: tuple[int, ...] = ()

    def pattern(self, index: int, rows: slice = slice(None), columns: slice = slice(None)) -> Tensor:
        """A rectangle of one head's pattern, exactly as it was used [row, column]."""
        return self.patterns(slice(index, index + 1), rows, columns)[0]

    def patterns(self, heads: slice = slice(None), rows: slice = slice(None), columns: slice = slice(None)) -> Tensor:
        """The same rectangle of several heads' patterns, computed together [head, row, column]."""
        chosen = range(self.n_heads)[heads]
        if all(index in self.stored for index in chosen):
            return torch.stack([self.stored[index][rows, columns].float() for index in chosen])
        scores_of_heads = self._scores(heads, rows, slice(None))
        sinks = None if self.formula is None or self.formula.sinks is None else self.formula.sinks[heads]
        patterns = softmax(scores_of_heads, sinks)[0][..., columns]
        for place, index in enumerate(chosen):
            if index in self.stored:
                patterns[place] = self.stored[index][rows, columns].to(patterns.dtype)
        return patterns

    def scores(self, index: int, rows: slice = slice(None), columns: slice = slice(None)) -> Tensor:
        """A rectangle of one head's scores [row, column]; −inf where the mask forbids."""
        if index in self.stored and self.query is not None and not self.no_scores:
            reason = (
                "have terms that were not recorded"
                if self.formula is None
                else "no longer give its pattern: it was edited"
            )
            raise NotRecordedError(f"the scores of {self.site.head(index)} {reason}.")
        cells = self._scores(slice(index, index + 1), rows, columns)[0, 0]
        return cells.masked_fill(cells == torch.finfo(cells.dtype).min, float("-inf"))

    def span_weights(self, spans: Sequence[Sequence[int]], heads: slice = slice(None)) -> Tensor:
        """What each query gives to the keys of each span, positions in order, summed [head, query, span]."""
        chosen = range(self.n_heads)[heads]
        if all(index in self.stored for index in chosen):
            weights = torch.zeros(len(chosen), self.n_queries, len(spans))
        else:
            self._check_scores(chosen[0])
            assert self.query is not None and self.key is not None and self.formula is not None
            keys = self.key[[index * self.key.shape[0] // self.n_heads for index in chosen]]
            weights = span_weights(
                self.query[heads], keys, self.formula.heads(heads), self._denominators()[heads], spans
            )
        for place, index in enumerate(chosen):
            if index in self.stored:
                pattern = self.stored[index].float()
                weights[place] = torch.stack([pattern[:, list(span)].sum(-1) for span in spans], -1)
        return weights

    def pooled(self, index: int, rows: tuple[int, int], columns: tuple[int, int], cell: tuple[int, int]) -> Tensor:
        """A rectangle of one head's pattern, max-pooled: the largest of every `cell` queries and keys."""
        if index in self.stored:
            pattern = self.stored[index][slice(*rows), slice(*columns)].float().nan_to_num(nan=0.0)
            return torch.nn.functional.max_pool2d(pattern[None, None], cell, ceil_mode=True)[0, 0]
        self._check_scores(index)
        assert self.query is not None and self.key is not None and self.formula is not None
        key, formula = self.key[index * self.key.shape[0] // self.n_heads], self.formula.heads(slice(index, index + 1))
        return pooled_weights(self.query[index], key, formula, self._denominators()[index], rows, columns, cell)

    def _denominators(self) -> Tensor:
        """The log of each row's softmax denominator [head, query], of scores that are not rounded."""
        assert self.query is not None
        is_rounded = self.query.dtype not in (torch.float32, torch.float64)
        if is_rounded and self.n_heads * self.n_queries * self.n_keys <= WHOLE_CELLS:
            assert self.formula is not None
            return log_denominator(self._scores(slice(None), slice(None), slice(None)), self.formula.sinks)[0]
        return self.summary.lse.to(self.query.device)

    def _scores(self, heads: slice, rows: slice, columns: slice) -> Tensor:
        """Scores of some heads [1, head, row, column]; masked cells hold the lowest finite number."""
        chosen = range(self.n_heads)[heads]
        self._check_scores(chosen[0])
        assert self.query is not None and self.key is not None and self.formula is not None
        groups = [index * self.key.shape[0] // self.n_heads for index in chosen]
        whole = groups == list(range(self.key.shape[0]))  # no groups to expand: no copy to make
        query, key = self.query[None, heads], self.key[None] if whole else self.key[None, groups]
        if self.query.dtype != torch.float64:
            query, key = query.float(), key.float()
        return scores(query, key, self.formula.heads(heads), rows=rows, columns=columns)

    def _check_scores(self, index: int) -> None:
        """Refuse to work out what was not recorded."""
        if self.no_scores:
            raise NotRecordedError(f"{self.site.head(index)} has no scores to read: {self.no_scores}.")
        if self.query is None or self.key is None or self.formula is None:
            raise NotRecordedError(
                f"this trace holds a summary of {self.site.head(index)}, not its queries and keys. "
                "Run again with record='heads' to read patterns."
            )

    def tensor(self, name: str, index: int) -> Tensor:
        """The query, key, value or mixed vectors of one head [token, dim]."""
        vectors: Tensor | None = getattr(self, name)
        head = self.site.head(index)
        if vectors is None:
            reason = self.no_scores or "the trace holds a summary only. Run with record='heads'"
            raise NotRecordedError(f"no {name} was recorded for {head}: {reason}.")
        return vectors[index * vectors.shape[0] // self.n_heads]

    def figures(self, index: int) -> HeadSummary:
        """The summary of one head."""
        return HeadSummary(
            **{name: tensor[index].cpu().numpy().copy() for name, tensor in self.summary.tensors().items()}
        )

    def heads(self) -> list[Head]:
        """The heads of this layer."""
        return [self.site.head(index) for index in range(self.n_heads)]

    def vectors_and_figures(self) -> dict[str, Tensor]:
        """The tensors of this record alone, by name: not its masks and biases, which layers share."""
        named = {name: getattr(self, name) for name in _VECTORS}
        tensors: dict[str, Tensor] = {name: tensor for name, tensor in named.items() if tensor is not None}
        tensors |= {f"{_FIGURE}{name}": tensor for name, tensor in self.summary.tensors().items()}
        return tensors | {f"{_STORED}{index}": pattern for index, pattern in self.stored.items()}

    def with_tensors(self, tensors: dict[str, Tensor]) -> "LayerRecord":
        """The record with these in place of its `vectors_and_figures`."""
        figures = {name.removeprefix(_FIGURE): tensor for name, tensor in tensors.items() if name.startswith(_FIGURE)}
        stored = {int(name.removeprefix(_STORED)): tensors[name] for name in tensors if name.startswith(_STORED)}
        vectors: dict[str, Any] = {name: tensors[name] for name in _VECTORS if name in tensors}
        return replace(self, summary=Summary(**figures), stored=stored, **vectors)

    def to(self, device) -> "LayerRecord":
        """The record with its tensors on another device."""
        moved = {
            attribute.name: getattr(self, attribute.name).to(device)
            for attribute in fields(self)
            if isinstance(getattr(self, attribute.name), Tensor | Summary | Formula)
        }
        return replace(self, **moved, stored={index: pattern.to(device) for index, pattern in self.stored.items()})

    def nbytes(self) -> int:
        """Bytes held, masks and biases (shared between layers) not counted."""
        tensors = [getattr(self, attribute.name) for attribute in fields(self)]
        tensors = [tensor for tensor in tensors if isinstance(tensor, Tensor)] + list(self.stored.values())
        return sum(tensor.numel() * tensor.element_size() for tensor in [*tensors, *self.summary.tensors().values()])
