"""The session: the one way to watch and edit a model while it runs, for reading and for training alike."""

import threading
from collections.abc import Sequence
from contextlib import ExitStack
from contextvars import Token as ContextToken
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from headscope.attention import (
    Bias,
    Formula,
    Mask,
    Summariser,
    Summary,
    attend_in_tiles,
    expand_heads,
    log_denominator,
    scores,
    softmax,
)
from headscope.errors import BudgetError, CaptureError, Cancelled, InterventionError
from headscope.interventions import At, Intervention
from headscope.models.layout import AttentionLayer
from headscope.models.seam import Call, current_session
from headscope.models.tracer import Frame, Product, Softmax, Tracer
from headscope.sites import Site
from headscope.traces import LayerRecord, Tokens
from headscope.traces.trace import Record

if TYPE_CHECKING:
    from headscope.models.model import Model

# Up to this many cells of head × query × key a layer is computed whole, as the model's own eager code does, and equal to
# it to the last bit; beyond, in tiles.
EXACT_CELLS = 2**22


@dataclass(eq=False)
class Captured:
    """What one layer did with a batch: tensors as [batch, head or group, token, dim], the formula, a summary an example."""

    layer: AttentionLayer
    formula: Formula | None
    query: Tensor | None = None
    key: Tensor | None = None
    value: Tensor | None = None
    scores: Tensor | None = None
    pattern: Tensor | None = None
    mixed: Tensor | None = None
    records: list[LayerRecord] = field(default_factory=list)


class Session:
    """Watches every attention call of one model in the calling context, and edits what it was asked to.

    Made by `model.session(...)`, used as a context manager. `captured` maps each site to what it did in the last pass; with
    `grad=True` its tensors carry the graph.
    """

    def __init__(
        self,
        model: "Model",
        interventions: Sequence[Intervention] = (),
        *,
        record: Record | None = None,
        grad: bool = False,
        exact: bool | None = None,
        cancel: threading.Event | None = None,
        tokens: dict[str, list[Tokens]] | None = None,
        real: dict[str, Tensor] | None = None,
        keep: str = "cpu",
    ):
        """`exact` forces whole (True) or tiled (False) attention; `tokens` and `real` say what the batch's positions are."""
        self.model, self.record, self.grad, self.exact = model, record, grad, exact
        self.interventions = list(interventions)
        self.tokens, self.real = tokens or {}, dict(real or {})
        self.keep = keep
        self.captured: dict[Site, Captured] = {}
        self.residuals: dict[Site, Tensor] = {}
        self.activations: dict[Site, Tensor] = {}
        self.batch: int | None = None
        self.offset = 0
        self._cancel = cancel or threading.Event()
        self._calls: dict[str, int] = {}
        self._biases: dict[int, tuple[Tensor, Bias, Bias | None]] = {}
        self._shared: dict[tuple, tuple[Any, Any]] = {}
        self._edits: dict[tuple[Site, str], list[tuple[Intervention, slice]]] = {}
        self._context: ContextToken | None = None
        self._stack = ExitStack()
        self.tracer = Tracer(self)

    def __enter__(self) -> "Session":
        if current_session.get() is not None:
            raise CaptureError("a session is already open in this context: close it first, or give both edits to one.")
        if self.grad and self.model.module.training and getattr(self.model.module, "is_gradient_checkpointing", False):
            raise CaptureError("gradient checkpointing runs layers again after the session: call gradient_checkpointing_disable() first.")
        self._context = current_session.set(self)
        try:
            if not self.grad:
                self._stack.enter_context(torch.no_grad())
            if self.model.needs_tracer:
                self._stack.enter_context(self.tracer)
            if self.model.has_layout:
                self.resolve()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *problem: object) -> None:
        self._stack.close()
        if self._context is not None:
            current_session.reset(self._context)
            self._context = None
        self._biases.clear()
        self._shared.clear()

    def cancel(self) -> None:
        """Stop the run at its next attention call; it raises `Cancelled`."""
        self._cancel.set()

    def check(self) -> None:
        """Raise if the run was cancelled."""
        if self._cancel.is_set():
            raise Cancelled("the run was cancelled.")

    def resolve(self) -> None:
        """Check the interventions against the model, and sort them by where they act."""
        from headscope.models.validate import resolve

        self._edits = resolve(self.interventions, self.model.layout)

    def restart(self) -> None:
        """The model was probed anew: the tracer and the edits follow the new layout."""
        self.resolve()

    def count(self, key: str) -> int:
        """How often this was counted before in this pass."""
        count = self._calls.get(key, 0)
        self._calls[key] = count + 1
        return count

    def counted(self, key: str) -> int:
        """How often it was counted so far."""
        return self._calls.get(key, 0)

    # What hooks on the model report

    def begin(self, arguments: dict[str, Any]) -> None:
        """A forward pass of the whole model begins."""
        self.check()
        self._calls.clear()
        tensors = [one for one in arguments.values() if isinstance(one, Tensor) and one.ndim]
        self.batch = tensors[0].shape[0] if tensors else None
        past = arguments.get("past_key_values")
        self.offset = int(past.get_seq_length()) if past is not None and hasattr(past, "get_seq_length") else 0
        for name, stacks in (("attention_mask", ("main", "encoder", "text")), ("decoder_attention_mask", ("decoder",))):
            mask = arguments.get(name)
            if isinstance(mask, Tensor) and mask.ndim == 2:
                for stack in stacks:
                    self.real.setdefault(stack, mask.bool())

    def residual(self, site: Site, stream: Tensor) -> Tensor:
        """The residual stream passes a block's border."""
        stream = self._edit_stream(site, "residual", stream)
        if self.record == "full":
            self.residuals[site] = stream.detach()
        return stream

    def neurons(self, site: Site, activations: Tensor) -> Tensor:
        """MLP activations enter the projection that writes them back."""
        activations = self._edit_stream(site, "neurons", activations)
        if self.record == "full":
            self.activations[site] = activations.detach()
        return activations

    def _edit_stream(self, site: Site, stage: str, stream: Tensor) -> Tensor:
        if (site, stage) not in self._edits:
            return stream
        flat = stream if stream.ndim == 3 else stream[None]  # some MLPs run on [token, dim]
        offset = 0 if site.stack == "encoder" else self.offset
        at = At(self._index(site.stack, flat.shape[0], flat.shape[1], offset), tokens=self.tokens.get(site.stack))
        return self._apply(site, stage, flat[:, None], at)[:, 0].reshape(stream.shape)

    # The seam

    def watches(self, module: nn.Module) -> bool:
        """Whether a module is part of this session's model."""
        return self.model.name_of(module) is not None

    def bias_of(self, dense: Tensor) -> Bias:
        """A bias tensor as it came; layers that share one (T5) share its description too."""
        known = self._biases.get(id(dense))
        if known is None:
            whole = Bias("dense", dense, *dense.shape[-2:])
            known = self._biases[id(dense)] = (dense, whole, Bias.describe(dense) if self.record else None)
            self._shared[("described", id(whole))] = (whole, known[2])
        return known[1]

    def next_layer(self, name: str) -> AttentionLayer:
        """The layer that a call of this module computes: shared modules serve several in turn."""
        layers = self.model.layout.of_module(name)
        if not layers:
            raise CaptureError(
                f"{name} computes attention that the probe did not see. Probe the model with inputs that reach it: "
                "model.probe(**inputs)."
            )
        return layers[self.count(name) % len(layers)]

    def attend(self, call: Call) -> tuple[Tensor, Tensor | None]:
        """Attention with this session's edits; gives [batch, query, head, dim] and, where it was held whole, the pattern."""
        self.check()
        name = self.model.name_of(call.module)
        assert name is not None
        layer = self.next_layer(name)
        site = layer.site
        call, at, key_at = self._edit_vectors(layer, call)
        batch, n_heads, n_queries, _ = call.query.shape
        edits = (site, "scores") in self._edits or (site, "pattern") in self._edits
        cells = n_heads * n_queries * call.key.shape[2]
        exact = self.exact if self.exact is not None else self.grad or cells <= EXACT_CELLS
        captured = Captured(layer, call.formula, call.query, call.key, call.value)
        weights = None
        if exact:
            found, pattern, lse = self._whole(call, site, at, edits)
            weights = nn.functional.dropout(pattern.to(call.query.dtype), p=call.dropout, training=call.module.training)
            mixed = weights @ expand_heads(call.value, n_heads)
            captured.scores, captured.pattern = found, pattern
            summaries = self._summaries(layer, call, found, pattern, lse) if self.record else []
        else:
            if self.grad:
                raise BudgetError("gradients need whole attention maps: shorten the input, or leave grad=False.")
            mixed, summaries = self._tiled(layer, call, at if edits else None)
        mixed = captured.mixed = self._apply(site, "mixed", mixed, at)
        if self.record:
            captured.records = self._records(captured, summaries, edits)
        self._keep(captured)
        return mixed.transpose(1, 2).contiguous(), weights

    def _whole(self, call: Call, site: Site, at: At, edited: bool) -> tuple[Tensor, Tensor, Tensor | None]:
        n_heads = call.query.shape[1]
        found = scores(call.query, expand_heads(call.key, n_heads), call.formula)
        if edited:
            found = self._edit_scores(site, found, at, call.formula.mask)
        pattern = softmax(found, call.formula.sinks)
        lse = log_denominator(found, call.formula.sinks) if edited or call.formula.sinks is not None else None
        if edited:
            pattern = self._edit_pattern(site, found, pattern, at)
        return found, pattern, lse

    def _edit_scores(self, site: Site, found: Tensor, at: At, mask: Mask | None, rows: slice = slice(None)) -> Tensor:
        if (site, "scores") not in self._edits:
            return found
        found = self._apply(site, "scores", found, at)
        return found if mask is None else mask.hide(found.clone(), rows)

    def _edit_pattern(self, site: Site, found: Tensor, pattern: Tensor, at: At) -> Tensor:
        # A row in which edits left nothing to see has no weights at all, rather than equal ones on what is forbidden.
        seen = (found > torch.finfo(found.dtype).min).any(-1, keepdim=True)
        emptied = ~seen & torch.isinf(found).any(-1, keepdim=True)
        pattern = torch.where(emptied, 0.0, pattern.nan_to_num(0.0)) if bool(emptied.any()) else pattern
        return self._apply(site, "pattern", pattern, at)

    def _tiled(self, layer: AttentionLayer, call: Call, edit_at: At | None) -> tuple[Tensor, list[Summary | None]]:
        """Example by example, without its padding; padded rows come out as zero, as from SDPA."""
        batch, n_heads, n_queries = call.query.shape[:3]
        mixed = call.query.new_zeros(batch, n_heads, n_queries, call.value.shape[-1])
        summaries: list[Summary | None] = []
        for example in range(batch):
            queries, keys = self._kept(layer, example, call)
            formula = self._formula_of(call.formula, example, queries, keys)
            parts = [_rows(one, example, kept) for one, kept in ((call.query, queries), (call.key, keys), (call.value, keys))]
            shape = (n_heads, parts[0].shape[1], parts[1].shape[1])
            summariser = Summariser(*shape, rows_only=self.record == "rows", device=mixed.device) if self.record else None
            edit = None if edit_at is None else self._tile_edit(layer.site, edit_at, example, queries, keys, formula)
            out = attend_in_tiles(*parts, formula, summariser=summariser, edit=edit, check=self.check)
            if queries is None:
                mixed[example] = out
            else:
                mixed[example][:, queries] = out
            summaries.append(None if summariser is None else summariser.summary())
        return mixed, summaries

    def _tile_edit(self, site: Site, at: At, example: int, queries: Tensor | None, keys: Tensor | None, formula: Formula):
        one = slice(example, example + 1)
        index = at.index[one] if queries is None else at.index[one][:, queries]
        key_index = at.key_index
        if key_index is not None:
            key_index = key_index[one] if keys is None else key_index[one][:, keys]
        tokens = None if at.tokens is None else at.tokens[one]
        key_tokens = None if at.key_tokens is None else at.key_tokens[one]
        held: dict[str, Tensor] = {}

        def edit(stage: str, tile: Tensor, heads: slice, rows: slice) -> Tensor:
            here = At(index[:, rows], key_index, tokens, key_tokens)
            tile = tile.clone()  # the tile is working memory
            if stage == "scores":
                if (site, "scores") in self._edits:
                    tile = self._apply(site, "scores", tile, here, heads)
                    tile = tile if formula.mask is None else formula.heads(heads).mask.hide(tile, rows)  # type: ignore[union-attr]
                held["scores"] = tile
                return tile
            found = held.pop("scores")
            seen = (found > torch.finfo(found.dtype).min).any(-1, keepdim=True)
            emptied = ~seen & torch.isinf(found).any(-1, keepdim=True)
            return self._apply(site, "pattern", torch.where(emptied, 0.0, tile.nan_to_num(0.0)), here, heads)

        return edit

    # Edits

    def _edit_vectors(self, layer: AttentionLayer, call: Call) -> tuple[Call, At, At]:
        batch, n_heads, n_queries = call.query.shape[:3]
        at, key_at = self._places(layer, batch, n_queries, call.key.shape[2], call.formula.mask)
        query = self._apply(layer.site, "query", call.query, at)
        key, value = call.key, call.value
        # Heads of a group share keys and values: an edit of one head's must not touch the others'.
        if (layer.site, "key") in self._edits:
            key = self._apply(layer.site, "key", expand_heads(key, n_heads), key_at)
        if (layer.site, "value") in self._edits:
            value = self._apply(layer.site, "value", expand_heads(value, n_heads), key_at)
        if key.shape[1] != value.shape[1]:
            key, value = expand_heads(key, n_heads), expand_heads(value, n_heads)
        return replace(call, query=query, key=key, value=value), at, key_at

    def _places(
        self, layer: AttentionLayer, batch: int, n_queries: int, n_keys: int, mask: Mask | None
    ) -> tuple[At, At]:
        """Where the rows and the keys of a call stand in the input."""
        site = layer.site
        offset = 0 if site.stack == "encoder" else self.offset
        if site.kind == "self" and mask is not None and mask.keys is not None:
            self.real[site.stack] = _widened(mask.keys, batch)
        key_offset = 0 if mask is None else mask.key_offset
        key_real = None
        if site.kind == "cross" and mask is not None and mask.keys is not None:
            key_real = _widened(mask.keys, batch)
            self.real.setdefault(layer.key_stack, key_real)
        if not self._edits and not self.record:
            index = torch.empty(batch, 0, dtype=torch.long)
            return At(index), At(index)
        index = self._index(site.stack, batch, n_queries, offset)
        key_index = self._index(layer.key_stack, batch, n_keys, key_offset, key_real)
        tokens, key_tokens = self.tokens.get(site.stack), self.tokens.get(layer.key_stack)
        return At(index, key_index, tokens, key_tokens), At(key_index, tokens=key_tokens)

    def _index(self, stack: str, batch: int, length: int, offset: int = 0, real: Tensor | None = None) -> Tensor:
        """Each row's position among its example's real tokens [batch, row], −1 for padding."""
        real = self.real.get(stack) if real is None else real
        device = self.model.device
        if real is None or real.shape[0] != batch or real.shape[1] < offset + length:
            return (torch.arange(length, device=device) + offset).expand(batch, length)
        counted = real.long().cumsum(1) - 1
        return torch.where(real, counted, -1)[:, offset : offset + length]

    def _apply(self, site: Site, stage: str, x: Tensor, at: At, heads: slice = slice(None)) -> Tensor:
        """Run the edits of one stage over [batch, head, row, last axis]; `heads` says which heads x holds."""
        edits = self._edits.get((site, stage))
        if not edits:
            return x
        first = heads.start or 0
        x = x.clone()
        for one, chosen in edits:
            inside = slice(max(chosen.start - first, 0), max(chosen.stop - first, 0))
            part = x[:, inside]
            if not part.shape[1]:
                continue
            new = one.edit(part, at)  # type: ignore[operator]
            if new.shape != part.shape:
                raise InterventionError(f"{one!r} gave shape {tuple(new.shape)} where {tuple(part.shape)} was needed.")
            if one.tokens is not None:
                new = torch.where(at.rows(one.tokens)[:, None, :, None], new, part)
            x[:, inside] = new.to(x.dtype)
        return x

    # Records

    def _kept(self, layer: AttentionLayer, example: int, call: Call) -> tuple[Tensor | None, Tensor | None]:
        """The positions of an example's real queries and keys; None where all are."""
        real = self.real.get(layer.site.stack)
        mask = call.formula.mask
        key_real = self.real.get(layer.key_stack)
        if layer.site.kind == "cross" and mask is not None and mask.keys is not None:
            key_real = _widened(mask.keys, call.key.shape[0])

        def kept(found: Tensor | None, length: int) -> Tensor | None:
            if found is None or found.shape[1] != length or example >= found.shape[0] or bool(found[example].all()):
                return None
            return found[example].nonzero()[:, 0]

        return kept(real, call.query.shape[2]), kept(key_real, call.key.shape[2])

    def _formula_of(self, formula: Formula, example: int, queries: Tensor | None, keys: Tensor | None) -> Formula:
        """One example's formula; masks and biases that layers share stay shared."""

        def of(thing):
            if thing is None:
                return None
            key = (id(thing), example)
            known = self._shared.get(key)
            if known is None:
                smallest = thing
                if isinstance(thing, Bias):
                    smallest = self._shared.get(("described", id(thing)), (None, thing))[1]
                made = None if smallest is None else smallest.example(example, queries, keys)
                if isinstance(made, Mask) and not made.tensors():
                    made = None if made.query_offset == made.key_offset == 0 else made
                known = self._shared[key] = (thing, made)
            return known[1]

        return replace(formula, mask=of(formula.mask), bias=of(formula.bias))

    def _summaries(
        self, layer: AttentionLayer, call: Call, found: Tensor, pattern: Tensor, lse: Tensor | None
    ) -> list[Summary | None]:
        """The summaries of a batch whose patterns are at hand, each without its padding."""
        if self._windows(call) > 1:
            return []
        summaries: list[Summary | None] = []
        with torch.no_grad():
            for example in range(pattern.shape[0]):
                queries, keys = self._kept(layer, example, call)
                part, scored = _rectangle(pattern, example, queries, keys), _rectangle(found, example, queries, keys)
                total = None if lse is None else lse[example] if queries is None else lse[example][:, queries]
                whole = Summariser(*part.shape, rows_only=self.record == "rows", device=part.device)
                whole.add(part.detach(), scored.detach().float().clone(), lse=None if total is None else total.detach())
                summaries.append(whole.summary())
        return summaries

    def _windows(self, call: Call) -> int:
        """How many windows each example is cut into (Swin): the batch axis then holds them all."""
        return call.query.shape[0] // self.batch if self.batch and call.query.shape[0] % self.batch == 0 else 1

    def _records(self, captured: Captured, summaries: list[Summary | None], edited: bool) -> list[LayerRecord]:
        assert captured.query is not None and captured.key is not None and captured.value is not None
        call = Call(nn.Identity(), captured.query, captured.key, captured.value, captured.formula or Formula(1.0))
        n_windows = self._windows(call)
        if n_windows > 1:
            return self._window_records(captured, call, n_windows)
        layer, records = captured.layer, []
        stored_heads = self._stored_heads(layer) if edited or layer.stores_patterns else []
        for example, summary in enumerate(summaries):
            assert summary is not None  # a session that records summarises every example
            queries, keys = self._kept(layer, example, call)
            vectors: dict[str, Any] = {}
            if self.record in ("heads", "full"):
                vectors = {
                    "query": self._out(_rows(captured.query, example, queries)),
                    "key": self._out(_rows(captured.key, example, keys)),
                    "value": self._out(_rows(captured.value, example, keys)),
                    "mixed": self._out(_rows(captured.mixed, example, queries)),  # type: ignore[arg-type]
                    "formula": self._formula_of(call.formula, example, queries, keys).to(self.keep)
                    if self.keep == "cpu"
                    else self._formula_of(call.formula, example, queries, keys),
                    "stored": self._stored(captured, example, queries, keys, stored_heads),
                    **self._value_norms(layer, _rows(captured.value, example, keys)),
                }
            n_queries, n_keys = summary.max.shape[1], call.key.shape[2] if keys is None else len(keys)
            records.append(
                LayerRecord(
                    layer.site,
                    layer.n_heads,
                    n_queries,
                    n_keys,
                    layer.key_stack,
                    layer.way,
                    summary.to("cpu") if self.keep == "cpu" else summary,
                    **vectors,
                )
            )
        return records

    def _window_records(self, captured: Captured, call: Call, n_windows: int) -> list[LayerRecord]:
        """Windows of an image, one after another: one block-diagonal pattern over all of its patches."""
        layer, records = captured.layer, []
        assert captured.mixed is not None
        size = call.query.shape[2]
        length = n_windows * size
        window = torch.arange(length, device=call.query.device) // size
        mask = Mask(length, length, start=(window * size)[None], stop=((window + 1) * size)[None])
        for example in range(call.query.shape[0] // n_windows):
            part = slice(example * n_windows, (example + 1) * n_windows)

            def flat(tensor: Tensor, part: slice = part) -> Tensor:
                return tensor[part].transpose(0, 1).flatten(1, 2).detach()

            query, key, value, mixed = (flat(one) for one in (call.query, call.key, call.value, captured.mixed))
            bias = call.formula.bias
            if bias is not None:
                values = bias.values if bias.values.shape[0] == 1 else bias.values[part]
                bias = Bias("windows", values, length, length)
            formula = replace(call.formula, mask=mask, bias=bias)
            summariser = Summariser(layer.n_heads, length, length, rows_only=self.record == "rows", device=query.device)
            attend_in_tiles(query, key, value, formula, summariser=summariser)
            vectors: dict[str, Any] = {}
            if self.record in ("heads", "full"):
                vectors = {"query": query, "key": key, "value": value, "mixed": mixed}
                vectors = {name: self._out(one) for name, one in vectors.items()}
                vectors |= {"formula": formula.to("cpu"), **self._value_norms(layer, value)}
            about = (layer.n_heads, length, length, layer.key_stack, layer.way)
            records.append(LayerRecord(layer.site, *about, summariser.summary().to("cpu"), **vectors))
        return records

    def _stored_heads(self, layer: AttentionLayer) -> list[int]:
        """The heads whose patterns the formula does not give."""
        if layer.stores_patterns:
            return list(range(layer.n_heads))
        found: set[int] = set()
        for stage in ("scores", "pattern"):
            for _, heads in self._edits.get((layer.site, stage), []):
                found.update(range(heads.start, heads.stop))
        return sorted(found)

    def _stored(
        self, captured: Captured, example: int, queries: Tensor | None, keys: Tensor | None, heads: list[int]
    ) -> dict[int, Tensor]:
        if not heads:
            return {}
        if captured.pattern is None:
            raise BudgetError(
                f"the edited patterns of {captured.layer.site} are too large to keep whole: record a summary instead (record='summary')."
            )
        whole = _rectangle(captured.pattern, example, queries, keys)
        return {head: self._out(whole[head].clone()) for head in heads}

    def _value_norms(self, layer: AttentionLayer, value: Tensor) -> dict[str, Any]:
        gram, reason = self.model.output_gram(layer)
        if gram is None:
            return {"no_norms": reason}
        each = expand_heads(value[None].detach().to(gram.dtype), layer.n_heads)[0]
        squared = torch.linalg.vecdot(each @ gram.to(each.device), each)
        return {"value_norms": self._out(squared.clamp_min(0.0).sqrt())}

    def _out(self, tensor: Tensor) -> Tensor:
        tensor = tensor.detach()
        return tensor.to("cpu") if self.keep == "cpu" else tensor

    def _keep(self, captured: Captured) -> None:
        if not self.grad:
            # The records hold what is kept; whole patterns must not outlive the call.
            captured.scores = captured.pattern = captured.query = captured.key = captured.value = captured.mixed = None
        self.captured[captured.layer.site] = captured

    # The tracer's reports

    def _traced_layer(self, frame: Frame) -> AttentionLayer | None:
        layers = self.model.layout.of_module(frame.name)
        if not layers:
            return None
        if getattr(frame, "layer", None) is None:
            frame.layer = self.next_layer(frame.name)  # type: ignore[attr-defined]
        return frame.layer  # type: ignore[attr-defined]

    def on_product(self, frame: Frame, product: Product) -> tuple[Tensor, Tensor] | None:
        """Edit queries and keys of a traced layer."""
        layer = self._traced_layer(frame)
        if layer is None or product.ordinal != layer.product or product.query is None or product.key is None:
            return None
        self.check()
        site = layer.site
        if (site, "query") not in self._edits and (site, "key") not in self._edits:
            return None
        batch, n_heads, n_queries = product.query.shape[:3]
        at, key_at = self._places(layer, batch, n_queries, product.key.shape[2], None)
        key = expand_heads(product.key, n_heads)
        return self._apply(site, "query", product.query, at), self._apply(site, "key", key, key_at)

    def on_scores(self, frame: Frame, found: Tensor, product: Product | None) -> Tensor:
        """Edit the scores of a traced layer."""
        layer = self._traced_layer(frame)
        if layer is None or (layer.site, "scores") not in self._edits:
            return found
        batch, _, n_queries, n_keys = found.shape
        at, _ = self._places(layer, batch, n_queries, n_keys, None)
        hidden = found <= _forbidden(found.dtype)
        edited = self._apply(layer.site, "scores", found, at)
        return torch.where(hidden, found, edited)

    def on_pattern(self, frame: Frame, found: Softmax) -> Tensor:
        """Edit the pattern of a traced layer."""
        layer = self._traced_layer(frame)
        if layer is None or not ({(layer.site, "scores"), (layer.site, "pattern")} & self._edits.keys()):
            return found.pattern
        batch, _, n_queries, n_keys = found.pattern.shape
        at, _ = self._places(layer, batch, n_queries, n_keys, None)
        found.pattern = self._edit_pattern(layer.site, found.scores, found.pattern, at)
        return found.pattern

    def on_value(self, frame: Frame, found: Softmax, value: Tensor) -> Tensor | None:
        """Edit the values of a traced layer."""
        layer = self._traced_layer(frame)
        if layer is None or (layer.site, "value") not in self._edits:
            return None
        batch, n_heads, n_queries, n_keys = found.pattern.shape
        _, key_at = self._places(layer, batch, n_queries, n_keys, None)
        return self._apply(layer.site, "value", expand_heads(value, n_heads), key_at)

    def on_mixed(self, frame: Frame, found: Softmax, value: Tensor, mixed: Tensor) -> Tensor:
        """Edit a traced layer's output, and record the layer."""
        layer = self._traced_layer(frame)
        if layer is None:
            return mixed
        self.check()
        batch, n_heads, n_queries, n_keys = found.pattern.shape
        at, _ = self._places(layer, batch, n_queries, n_keys, None)
        mixed = self._apply(layer.site, "mixed", mixed, at)
        product = found.product if found.product is not None and found.product.ordinal == layer.product else None
        query, key = (None, None) if product is None else (product.query, product.key)
        edited = (layer.site, "scores") in self._edits or (layer.site, "pattern") in self._edits
        formula = None
        if self.record and query is not None and key is not None and not edited:
            formula = describe_scores(found.scores.detach(), query.detach(), key.detach(), layer.scaling)
        captured = Captured(layer, formula, query, key, value, found.scores, found.pattern, mixed)
        if self.record:
            captured.records = self._traced_records(captured)
        self._keep(captured)
        return mixed

    def _traced_records(self, captured: Captured) -> list[LayerRecord]:
        layer, pattern, found = captured.layer, captured.pattern, captured.scores
        assert pattern is not None and found is not None and captured.value is not None and captured.mixed is not None
        is_given = captured.formula is None  # the formula does not give the pattern: it is kept itself
        call = Call(nn.Identity(), pattern, captured.value, captured.value, captured.formula or Formula(1.0))
        lse = log_denominator(found.detach().float().clamp_min(torch.finfo(torch.float32).min), None)
        records = []
        for example in range(pattern.shape[0]):
            queries, keys = self._kept(layer, example, call)
            part, scored = _rectangle(pattern, example, queries, keys), _rectangle(found, example, queries, keys)
            total = lse[example] if queries is None else lse[example][:, queries]
            whole = Summariser(*part.shape, rows_only=self.record == "rows", device=part.device)
            whole.add(part.detach(), scored.detach().float().clone(), lse=total)
            vectors: dict[str, Any] = {}
            if self.record in ("heads", "full"):
                vectors["value"] = self._out(_rows(captured.value, example, keys))
                vectors["mixed"] = self._out(_rows(captured.mixed, example, queries))
                vectors |= self._value_norms(layer, _rows(captured.value, example, keys))
                if captured.query is not None and captured.key is not None:
                    vectors["query"] = self._out(_rows(captured.query, example, queries))
                    vectors["key"] = self._out(_rows(captured.key, example, keys))
                if is_given:
                    vectors["stored"] = {head: self._out(part[head].clone()) for head in range(layer.n_heads)}
                    if captured.query is None:
                        vectors["no_scores"] = "its queries and keys are not in sight, only its weights"
                else:
                    formula = self._formula_of(call.formula, example, queries, keys)
                    vectors["formula"] = formula.to("cpu") if self.keep == "cpu" else formula
            about = (layer.n_heads, *part.shape[1:], layer.key_stack, layer.way)
            records.append(LayerRecord(layer.site, *about, whole.summary().to("cpu"), **vectors))
        return records

    def weights_only(self, layer: AttentionLayer, patterns: Tensor | None, mixed: Tensor) -> Tensor:
        """A layer of which only weights [batch, head, query, key] and output [batch, head, query, dim] are in sight."""
        self.check()
        site = layer.site
        for stage in ("query", "key", "value", "scores", "pattern"):
            if (site, stage) in self._edits:
                raise InterventionError(f"{site} gives no {stage} to edit: only its output (silence, scale, patch) can be changed.")
        batch, n_heads, n_queries = mixed.shape[:3]
        at, _ = self._places(layer, batch, n_queries, n_queries, None)
        mixed = self._apply(site, "mixed", mixed, at)
        captured = Captured(layer, None, mixed=mixed, pattern=patterns)
        if self.record and patterns is not None:
            captured.records = self._weight_records(layer, patterns, mixed)
        self._keep(captured)
        return mixed

    def _weight_records(self, layer: AttentionLayer, patterns: Tensor, mixed: Tensor) -> list[LayerRecord]:
        call = Call(nn.Identity(), patterns, patterns.transpose(-1, -2), mixed, Formula(1.0))
        reason = "this attention gives weights only, without queries, keys and values"
        records = []
        for example in range(patterns.shape[0]):
            queries, keys = self._kept(layer, example, call)
            part = _rectangle(patterns, example, queries, keys).detach()
            whole = Summariser(*part.shape, rows_only=self.record == "rows", device=part.device)
            found = part.clamp_min(torch.finfo(torch.float32).tiny).log()
            whole.add(part, found, lse=torch.zeros(part.shape[:2], device=part.device))
            vectors: dict[str, Any] = {"no_scores": reason, "no_norms": reason}
            if self.record in ("heads", "full"):
                vectors["mixed"] = self._out(_rows(mixed, example, queries))
                vectors["stored"] = {head: self._out(part[head].clone()) for head in range(layer.n_heads)}
            about = (layer.n_heads, *part.shape[1:], layer.key_stack, layer.way)
            records.append(LayerRecord(layer.site, *about, whole.summary().to("cpu"), **vectors))
        return records


def describe_scores(found: Tensor, query: Tensor, key: Tensor, scaling: float) -> Formula | None:
    """The formula that gives observed scores back from queries and keys, to 1e-5; None if none does."""
    n_heads = query.shape[1]
    plain = (query.float() @ expand_heads(key, n_heads).float().transpose(-1, -2)) * scaling
    forbids = found <= _forbidden(found.dtype)
    rest = torch.where(forbids, 0.0, found.float() - plain)
    tolerance = 4e-6 * max(1.0, float(plain.abs().max()))
    bias = Bias.describe(rest, tolerance=tolerance, ignore=forbids)
    mask = Mask.from_dense(~forbids) if bool(forbids.any()) else None
    return Formula(scaling, mask=mask, bias=bias)


def _forbidden(dtype: torch.dtype) -> float:
    """Scores this low are masked: models write −inf, the lowest number, or −10,000."""
    return -9e3 if torch.finfo(dtype).max > 1e5 else -6e4


def _widened(keys: Tensor, batch: int) -> Tensor:
    return keys.expand(batch, -1) if keys.shape[0] == 1 else keys


def _rows(tensor: Tensor, example: int, kept: Tensor | None) -> Tensor:
    """One example of [batch, head, token, dim], without its padding."""
    one = tensor[example]
    return one if kept is None else one[:, kept.to(one.device)]


def _rectangle(tensor: Tensor, example: int, queries: Tensor | None, keys: Tensor | None) -> Tensor:
    """One example of [batch, head, query, key], without its padding."""
    one = tensor[example]
    one = one if queries is None else one[:, queries.to(one.device)]
    return one if keys is None else one[:, :, keys.to(one.device)]

