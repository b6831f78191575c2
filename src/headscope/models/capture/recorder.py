"""From what a layer did with a batch to what a trace keeps of it: one record an example, without its padding."""

import weakref
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from headscope.attention import Bias, Formula, Mask, Summariser, Summary, attend_in_tiles, expand_heads, log_denominator
from headscope.choices import Record
from headscope.errors import BudgetError
from headscope.models.capture.banded_attention import TWO_VALUES, local_values
from headscope.models.capture.host_copies import HostCopies
from headscope.models.capture.swin import patches_of_windows
from headscope.models.layout import AttentionLayer
from headscope.traces import LayerRecord

if TYPE_CHECKING:
    from headscope.models.capture.session import Session


@dataclass(eq=False)
class Captured:
    """What one layer did with a batch: tensors as [batch, head or group, token, dim], patterns as [batch, head, query,
    key].

    Patterns are there when attention was computed whole; `summaries` when it was computed in tiles. What a layer does
    not show is None: its queries and keys where only weights are in sight, its formula where it gives no pattern.
    """

    layer: AttentionLayer
    mixed: Tensor
    formula: Formula | None = None
    query: Tensor | None = None
    key: Tensor | None = None
    value: Tensor | None = None
    scores: Tensor | None = None
    pattern: Tensor | None = None
    lse: Tensor | None = None
    summaries: list[Summary] = field(default_factory=list)
    records: list[LayerRecord] = field(default_factory=list)
    is_global: Tensor | None = None

    @property
    def n_keys(self) -> int:
        """How many keys there are."""
        return self.key.shape[2] if self.key is not None else self.pattern.shape[3]  # type: ignore[union-attr]

    def let_go(self) -> None:
        """Drop the tensors of the batch: the records hold what is kept."""
        self.scores = self.pattern = self.query = self.key = self.value = self.lse = None
        self.mixed = torch.empty(0)
        self.summaries = []


class Recorder:
    """Makes the records of one session."""

    def __init__(self, session: "Session", record: Record, keep: str):
        self.session: Session = weakref.proxy(session)  # a cycle would hold its tensors until it is collected
        self.record, self.keep = record, keep
        self.holds_vectors = record in ("heads", "full")
        self.copies = HostCopies()
        # Masks and biases that layers share are cut to an example once, and stay shared: on their own device for the
        # layers to come, and as they are stored. Each is held beside its part, so that its id stays its own.
        self._parts: dict[tuple[int, int, bool], tuple[Any, Any]] = {}
        self._described: dict[int, tuple[Bias, Bias | None]] = {}
        self._causal: dict[int, tuple[Mask, bool]] = {}
        self._real: dict[tuple[int, int], tuple[Tensor, Tensor | None]] = {}

    def forget(self) -> None:
        """A new pass has masks, biases and padding of its own."""
        for known in (self._parts, self._described, self._causal, self._real):
            known.clear()

    def records(self, captured: Captured, edited_heads: list[int]) -> list[LayerRecord]:
        """One record for each example of the batch."""
        n_windows = self._n_windows(captured)
        if n_windows > 1:
            return self._window_records(captured, n_windows, edited_heads)
        layer, records = captured.layer, []
        is_given = captured.formula is None or layer.stores_patterns
        stored = list(range(layer.n_heads)) if is_given else edited_heads
        for example in range(captured.mixed.shape[0]):
            queries, keys = self.real_positions(captured, example)
            summary = (
                captured.summaries[example] if captured.summaries else self._summary(captured, example, queries, keys)
            )
            n_keys = captured.n_keys if keys is None else len(keys)
            vectors = self._vectors(captured, example, queries, keys, stored) if self.holds_vectors else {}
            n_queries = summary.max.shape[1]
            vectors["is_causal"] = n_queries == n_keys and self._is_causal(captured, example, queries, keys)
            vectors |= {"window": layer.window, "global_tokens": _global_tokens(captured, example, queries)}
            about = (layer.n_heads, n_queries, n_keys, layer.key_stack, layer.way)
            records.append(LayerRecord(layer.site, *about, summary, **vectors))
        return self._to_host(records)

    def _to_host(self, records: list[LayerRecord]) -> list[LayerRecord]:
        """The records of a layer where they are kept; on their way there until `copies.wait`."""
        if self.keep != "cpu":
            return records
        tensors = {
            f"{index} {name}": tensor
            for index, record in enumerate(records)
            for name, tensor in record.vectors_and_figures().items()
        }
        copies = self.copies.start(tensors)
        return [
            record.with_tensors({name: copies[f"{index} {name}"] for name in record.vectors_and_figures()})
            for index, record in enumerate(records)
        ]

    def real_positions(self, captured: Captured, example: int) -> tuple[Tensor | None, Tensor | None]:
        """The positions of an example's real queries and keys; None where all are."""
        layer, real = captured.layer, self.session.positions.real
        mask = None if captured.formula is None else captured.formula.mask
        key_real = real.get(layer.key_stack)
        if layer.site.kind == "cross" and mask is not None and mask.keys is not None:
            key_real = mask.keys.expand(captured.mixed.shape[0], -1)

        def positions(is_real: Tensor | None, length: int) -> Tensor | None:
            if is_real is None or is_real.shape[1] != length or example >= is_real.shape[0]:
                return None
            known = self._real.get((is_real.data_ptr(), example))
            if known is None:
                chosen = None if bool(is_real[example].all()) else is_real[example].nonzero()[:, 0]
                known = self._real[is_real.data_ptr(), example] = (is_real, chosen)
            return known[1]

        return positions(real.get(layer.site.stack), captured.mixed.shape[2]), positions(key_real, captured.n_keys)

    def _is_causal(self, captured: Captured, example: int, queries: Tensor | None, keys: Tensor | None) -> bool:
        """Whether no query of an example sees a later key: by the mask of this pass, or as the probe saw it."""
        layer = captured.layer
        if layer.site.kind == "cross":
            return False
        if captured.formula is None or captured.n_keys == 1:  # the mask is not in sight, or forbids nothing yet
            return layer.is_causal
        mask = self._part(captured.formula.mask, example, queries, keys, stored=True)
        if mask is None:
            return False
        if id(mask) not in self._causal:
            self._causal[id(mask)] = (mask, mask.is_causal)
        return self._causal[id(mask)][1]

    def smallest_formula(self, formula: Formula) -> Formula:
        """The formula with its bias in the smallest form that is exact."""
        return formula if formula.bias is None else replace(formula, bias=self._smallest(formula.bias))

    def example_formula(
        self, formula: Formula, example: int, queries: Tensor | None, keys: Tensor | None, *, stored: bool = False
    ) -> Formula:
        """One example's formula, on the model's device or as it is stored."""
        return replace(
            formula,
            mask=self._part(formula.mask, example, queries, keys, stored=stored),
            bias=self._part(formula.bias, example, queries, keys, stored=stored),
        )

    def _part(
        self, mask_or_bias: Any, example: int, queries: Tensor | None, keys: Tensor | None, *, stored: bool
    ) -> Any:
        if mask_or_bias is None:
            return None
        known = self._parts.get((id(mask_or_bias), example, stored))
        if known is None:
            is_bias = isinstance(mask_or_bias, Bias)
            small = self._smallest(mask_or_bias) if is_bias and (stored or _is_on_gpu(mask_or_bias)) else mask_or_bias
            part = None if small is None else small.example(example, queries, keys)
            if stored and isinstance(part, Mask) and not part.tensors():
                part = None  # it forbids nothing
            part = self._sent_to_host(part) if stored and part is not None and self.keep == "cpu" else part
            known = self._parts[id(mask_or_bias), example, stored] = (mask_or_bias, part)
        return known[1]

    def _sent_to_host(self, part: Mask | Bias) -> Mask | Bias:
        if isinstance(part, Bias):
            return replace(part, values=self.copies.start({"values": part.values})["values"])
        return replace(part, **self.copies.start(part.tensors()))

    def _smallest(self, bias: Bias) -> Bias | None:
        """A bias as models hand it over is dense; most are one number an offset (T5), or the same for every example."""
        if bias.form != "dense":
            return bias
        known = self._described.get(id(bias))
        if known is None:
            known = self._described[id(bias)] = (bias, Bias.describe(bias.values.detach()))
        return known[1]

    def _summary(self, captured: Captured, example: int, queries: Tensor | None, keys: Tensor | None) -> Summary:
        assert captured.pattern is not None  # computed whole, or it would have come with summaries
        pattern = _rectangle(captured.pattern, example, queries, keys).detach().float()
        lse = (
            None
            if captured.lse is None
            else _rectangle(captured.lse[..., None], example, queries, None)[..., 0].detach()
        )
        if captured.scores is None:
            scores, lse = pattern.clamp_min(torch.finfo(torch.float32).tiny).log(), pattern.new_zeros(pattern.shape[:2])
        else:
            scores = _rectangle(captured.scores, example, queries, keys).detach().float().clone()
        whole = Summariser(*pattern.shape, rows_only=self.record == "rows", device=pattern.device)
        mask = None if captured.formula is None else captured.formula.mask
        offset = 0 if mask is None else mask.query_offset - mask.key_offset  # a cache holds what came before
        whole.add(pattern, scores, lse=lse, query_offset=offset)
        return whole.summary()

    def _vectors(
        self, captured: Captured, example: int, queries: Tensor | None, keys: Tensor | None, stored: list[int]
    ) -> dict[str, Any]:
        vectors: dict[str, Any] = {"mixed": _rows(captured.mixed, example, queries).detach()}
        for name, tensor, positions in (
            ("query", captured.query, queries),
            ("key", captured.key, keys),
            ("value", captured.value, keys),
        ):
            if tensor is not None:
                vectors[name] = _rows(tensor, example, positions).detach()
        if captured.formula is not None:
            formula = self.example_formula(captured.formula, example, queries, keys, stored=True)
            if formula.sinks is not None:
                sinks = {"sinks": formula.sinks.detach()}
                formula = replace(formula, **(self.copies.start(sinks) if self.keep == "cpu" else sinks))
            vectors["formula"] = formula
        if captured.value is not None:
            vectors |= self._value_norms(captured.layer, _rows(captured.value, example, keys))
        else:
            vectors["no_norms"] = "only its weights are in sight, not its values"
        if stored:
            if captured.pattern is None:
                raise BudgetError(
                    f"the edited patterns of {captured.layer.site} are too large to keep whole: "
                    "record a summary instead (record='summary')."
                )
            whole = _rectangle(captured.pattern, example, queries, keys)
            vectors["stored"] = {head: whole[head].detach().clone() for head in stored}
        return vectors

    def _value_norms(self, layer: AttentionLayer, value: Tensor) -> dict[str, Any]:
        gram, reason = self.session.model.output_gram(layer)
        if gram is None:
            return {"no_norms": reason}
        values = local_values(value, layer.value_dim)
        if values is None:
            return {"no_norms": TWO_VALUES}
        each = expand_heads(values[None].detach().to(gram.dtype), layer.n_heads)[0]
        squared = torch.linalg.vecdot(each @ gram.to(each.device), each)
        return {"value_norms": squared.clamp_min(0.0).sqrt().detach()}

    def _n_windows(self, captured: Captured) -> int:
        """How many windows each example is cut into (Swin): the batch axis then holds them all."""
        n_examples = self.session.positions.batch
        return captured.mixed.shape[0] // n_examples if captured.layer.is_windowed and n_examples else 1

    def _window_records(self, captured: Captured, n_windows: int, edited_heads: list[int]) -> list[LayerRecord]:
        """Windows of an image, one after another: one block-diagonal pattern over all of its patches."""
        layer, window_formula, records = captured.layer, captured.formula, []
        assert (
            captured.query is not None
            and captured.key is not None
            and captured.value is not None
            and window_formula is not None
        )
        size = captured.query.shape[2]
        length = n_windows * size
        window = torch.arange(length, device=captured.query.device) // size
        mask = Mask(length, length, start=(window * size)[None], stop=((window + 1) * size)[None])
        for first in range(0, captured.query.shape[0], n_windows):
            part = slice(first, first + n_windows)
            query, key, value, mixed = (
                tensor[part].transpose(0, 1).flatten(1, 2).detach()
                for tensor in (captured.query, captured.key, captured.value, captured.mixed)
            )
            bias = window_formula.bias
            if bias is not None:
                values = bias.values if bias.values.shape[0] == 1 else bias.values[part]
                bias = Bias("windows", values, length, length)
            formula = replace(window_formula, mask=mask, bias=bias)
            summariser = Summariser(layer.n_heads, length, length, rows_only=self.record == "rows", device=query.device)
            edited: dict[int, Tensor] = {}
            if edited_heads:
                assert captured.pattern is not None  # windows are small: they are always computed whole
                edited = {head: torch.block_diag(*captured.pattern[part, head].detach()) for head in edited_heads}
            replace_edited = self._tile_replacing(edited) if edited else None
            attend_in_tiles(query, key, value, formula, summariser=summariser, edit=replace_edited)
            vectors: dict[str, Any] = {}
            if self.holds_vectors:
                vectors = {"stored": edited, "query": query, "key": key, "value": value, "mixed": mixed}
                vectors |= {"formula": formula.to("cpu") if self.keep == "cpu" else formula}
                vectors |= self._value_norms(layer, value)
            about = (layer.n_heads, length, length, layer.key_stack, layer.way)
            vectors |= patches_of_windows(self.session.model.module, layer.module, n_windows, size)
            records.append(LayerRecord(layer.site, *about, summariser.summary(), **vectors))
        return self._to_host(records)

    @staticmethod
    def _tile_replacing(patterns: dict[int, Tensor]):
        """An edit of tiles that puts known patterns in place."""

        def edit(stage: str, tile: Tensor, heads: slice, rows: slice) -> Tensor:
            if stage == "pattern":
                tile = tile.clone()
                for head in patterns.keys() & set(range(heads.start, heads.stop)):
                    tile[:, head - heads.start] = patterns[head][rows]
            return tile

        return edit


def _is_on_gpu(bias: Bias) -> bool:
    """Whether a smaller form saves more than finding it costs."""
    return bias.values.device.type == "cuda"


def example_parts(captured: Captured, example: int, queries: Tensor | None, keys: Tensor | None) -> list[Tensor]:
    """Query, key and value of one example, without its padding [head or group, token, dim]."""
    pairs = ((captured.query, queries), (captured.key, keys), (captured.value, keys))
    return [_rows(tensor, example, positions) for tensor, positions in pairs if tensor is not None]


def _global_tokens(captured: Captured, example: int, queries: Tensor | None) -> tuple[int, ...]:
    """The global tokens of one example, counted without its padding."""
    if captured.is_global is None:
        return ()
    marks = captured.is_global[example]
    marks = marks if queries is None else marks[queries.to(marks.device)]
    return tuple(marks.nonzero()[:, 0].tolist())


def observed_lse(scores: Tensor) -> Tensor:
    """The log of the softmax denominator of scores that a model computed itself, which may hold −inf."""
    return log_denominator(scores.detach().float().clamp_min(torch.finfo(torch.float32).min), None)


def _rows(tensor: Tensor, example: int, positions: Tensor | None) -> Tensor:
    rows = tensor[example]
    return rows if positions is None else rows[:, positions.to(rows.device)]


def _rectangle(tensor: Tensor, example: int, queries: Tensor | None, keys: Tensor | None) -> Tensor:
    rectangle = tensor[example]
    rectangle = rectangle if queries is None else rectangle[:, queries.to(rectangle.device)]
    return rectangle if keys is None else rectangle[:, :, keys.to(rectangle.device)]
