"""The session: the one way to watch and edit a model while it runs, for reading and for training alike."""

import threading
from collections.abc import Sequence
from contextlib import ExitStack
from contextvars import Token as ContextToken
from dataclasses import replace
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
from headscope.choices import Record
from headscope.errors import BudgetError, Cancelled, CaptureError, InputError, InterventionError, UnknownTokenError
from headscope.interventions import At, Intervention
from headscope.models.capture.edit_checks import Resolved, intervention_list, resolve
from headscope.models.capture.layer_parts import LayerParts
from headscope.models.capture.recorder import Captured, Recorder, example_parts
from headscope.models.capture.seam import AttentionCall, current_session
from headscope.models.capture.traced_layers import TracedLayers
from headscope.models.capture.tracer import Tracer
from headscope.models.layout import AttentionLayer
from headscope.progress import Cancel, OnProgress, Progress
from headscope.sites import Site
from headscope.traces import Tokens
from headscope.traces.trace import RECORDS

if TYPE_CHECKING:
    from headscope.models.probed_module import ProbedModule

# Up to this many cells of head × query × key a layer is computed whole, as the model's own eager code does, and equal
# to it to the last bit; beyond, in tiles.
EXACT_CELLS = 2**22


class Observer:
    """Sees a pass while it runs: override what is of interest. Tensors are the model's own: copy what is to be kept."""

    def layer(self, captured: Captured) -> None:
        """An attention layer is done, its edits applied; without gradients its tensors are dropped afterwards."""

    def residual(self, site: Site, stream: Tensor) -> None:
        """The residual stream [batch, token, dim] at a block's border, edits applied."""

    def neurons(self, site: Site, activations: Tensor) -> None:
        """MLP activations [batch, token, neuron], edits applied."""

    def contribution(self, site: Site, kind: str, output: Tensor) -> None:
        """What "attention", "cross" or "mlp" adds to the residual stream of a layer [batch, token, dim]."""


class Session:
    """Watches every attention call of one model in the calling context, and edits what it was asked to.

    Made by `model.session(...)`, used as a context manager. `captured` maps each site to what it did in the last
    pass; with `grad=True` its tensors carry the graph.
    """

    def __init__(
        self,
        model: "ProbedModule",
        interventions: Sequence[Intervention] = (),
        *,
        record: Record | None = None,
        grad: bool = False,
        exact: bool | None = None,
        cancel: Cancel | None = None,
        tokens: dict[str, list[Tokens]] | None = None,
        real: dict[str, Tensor] | None = None,
        keep: str = "cpu",
        progress: OnProgress | None = None,
        observers: Sequence[Observer] = (),
    ):
        """`exact` forces whole (True) or tiled (False) attention; `tokens` and `real` say what the batch's positions
        are; `progress` hears after each attention layer how many are done, and of how many.
        """
        self.observers = tuple(observers)
        self.model, self.grad, self.exact = model, grad, exact
        self.record: Record | None = record
        if record is not None and record not in RECORDS:
            raise InputError(f"there is no record {record!r}: choose one of {', '.join(RECORDS)}.")
        self.interventions = intervention_list(interventions)
        self.tokens, self.given_real = tokens or {}, dict(real or {})
        self.real = dict(self.given_real)
        self.keep = keep
        self.captured: dict[Site, Captured] = {}
        self.residuals: dict[Site, Tensor] = {}
        self.activations: dict[Site, Tensor] = {}
        self.batch: int | None = None
        self.offset = 0
        self._cancel = cancel or threading.Event()
        self._progress = progress
        self._calls: dict[str, int] = {}
        self._biases: dict[int, tuple[Tensor, Bias]] = {}
        self._edits: Resolved = {}
        self._context: ContextToken | None = None
        self._stack = ExitStack()
        self.tracer = Tracer(TracedLayers(self))
        self._is_tracing = False
        self.recorder = None if record is None else Recorder(self, record, keep)
        self.parts = LayerParts(self)

    def __enter__(self) -> "Session":
        if current_session.get() is not None:
            raise CaptureError("a session is already open in this context: close it first, or give both edits to one.")
        if self.grad and self.model.module.training and getattr(self.model.module, "is_gradient_checkpointing", False):
            raise CaptureError(
                "gradient checkpointing runs layers again after the session: "
                "call gradient_checkpointing_disable() first."
            )
        self._context = current_session.set(self)
        try:
            if not self.grad:
                self._stack.enter_context(torch.no_grad())
            if self.model.needs_tracer:
                self._trace()
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

    def _trace(self) -> None:
        self._stack.enter_context(self.tracer)
        self._is_tracing = True

    def cancel(self) -> None:
        """Stop the run at its next attention call; it raises `Cancelled`."""
        self._cancel.set()

    @property
    def is_cancelled(self) -> bool:
        """Whether the run was asked to stop."""
        return self._cancel.is_set()

    def check(self) -> None:
        """Raise if the run was cancelled."""
        if self.is_cancelled:
            raise Cancelled("the run was cancelled.")

    def resolve(self) -> None:
        """Check the interventions against the model, and sort them by where they act."""
        for intervention in self.interventions:
            if intervention.stage == "tokens":
                raise InterventionError(
                    f"{intervention!r} changes the input, which a session does not make: use model.run."
                )
        self._edits = resolve(self.interventions, self.model.layout)

    def restart(self) -> None:
        """The model was probed anew: edits and tracer follow the new layout."""
        self.resolve()
        if self.model.needs_tracer and not self._is_tracing:
            self._trace()

    def count(self, key: str) -> int:
        """How often this was counted before in this pass."""
        count = self._calls.get(key, 0)
        self._calls[key] = count + 1
        return count

    def count_so_far(self, key: str) -> int:
        """How often it was counted so far."""
        return self._calls.get(key, 0)

    # What hooks on the model report

    def begin(self, arguments: dict[str, Any]) -> None:
        """A forward pass of the whole model begins."""
        self.check()
        self._calls.clear()
        self.parts.clear()
        if self.recorder is not None:
            self.recorder.forget()
        tensors = [tensor for tensor in arguments.values() if isinstance(tensor, Tensor) and tensor.ndim]
        self.batch = tensors[0].shape[0] if tensors else None
        past = arguments.get("past_key_values")
        self.offset = int(past.get_seq_length()) if past is not None and hasattr(past, "get_seq_length") else 0
        self.real = dict(self.given_real)
        for name, stacks in (("attention_mask", ("main", "encoder", "text")), ("decoder_attention_mask", ("decoder",))):
            mask = arguments.get(name)
            if isinstance(mask, Tensor) and mask.ndim == 2:
                for stack in stacks:
                    self.real.setdefault(stack, mask.bool())

    def residual(self, site: Site, stream: Tensor) -> Tensor:
        """The residual stream passes a block's border."""
        stream = self._edit_stream(site, "residual", stream)
        if self.record == "full":
            self.residuals[site] = stream.detach().clone()  # a block may add to it in place
        for observer in self.observers:
            observer.residual(site, stream)
        return stream

    def neurons(self, site: Site, activations: Tensor) -> Tensor:
        """MLP activations enter the projection that writes them back."""
        activations = self._edit_stream(site, "neurons", activations)
        if self.record == "full":
            self.activations[site] = self._with_batch_axis(activations).detach().clone()
        for observer in self.observers:
            observer.neurons(site, self._with_batch_axis(activations))
        return activations

    def contribution(self, site: Site, kind: str, output: Tensor) -> None:
        """A projection has written into the residual stream."""
        for observer in self.observers:
            observer.contribution(site, kind, self._with_batch_axis(output))

    def _edit_stream(self, site: Site, stage: str, stream: Tensor) -> Tensor:
        if (site, stage) not in self._edits:
            return stream
        flat = self._with_batch_axis(stream)
        offset = 0 if site.stack == "encoder" else self.offset
        at = At(self._index(site.stack, flat.shape[0], flat.shape[1], offset), tokens=self.tokens.get(site.stack))
        return self.apply(site, stage, flat[:, None], at)[:, 0].reshape(stream.shape)

    def _with_batch_axis(self, stream: Tensor) -> Tensor:
        """[batch, token, dim] of a stream that some MLPs (OPT) run as [batch · token, dim]."""
        if stream.ndim == 3:
            return stream
        n_examples = self.batch if self.batch and stream.shape[0] % self.batch == 0 else 1
        return stream.unflatten(0, (n_examples, -1))

    # The seam

    def watches(self, module: nn.Module) -> bool:
        """Whether a module is part of this session's model."""
        return self.model.name_of(module) is not None

    def bias_of(self, dense: Tensor) -> Bias:
        """A bias tensor as it came; the same object for layers that share one (T5)."""
        known = self._biases.get(id(dense))
        if known is None:
            known = self._biases[id(dense)] = (dense, Bias("dense", dense, *dense.shape[-2:]))
        return known[1]

    def next_layer(self, name: str) -> AttentionLayer:
        """The layer that a call of this module computes: shared modules serve several in turn."""
        layers = self.model.layout.of_module(name)
        if not layers:
            raise CaptureError(
                f"{name} computes attention that the probe did not see. Probe the model with inputs that reach it: "
                "model.probe(inputs={…})."
            )
        return layers[self.count(name) % len(layers)]

    def attend(self, call: AttentionCall) -> tuple[Tensor, Tensor | None]:
        """Attention with this session's edits; gives [batch, query, head, dim] and, where it was held whole, the
        pattern.
        """
        self.check()
        name = self.model.name_of(call.module)
        assert name is not None
        layer = self.next_layer(name)
        site = layer.site
        call, at = self._edit_vectors(layer, call, name)
        n_heads, n_queries = call.query.shape[1:3]
        cells = n_heads * n_queries * call.key.shape[2]
        exact = self.is_whole(layer, cells)
        captured = Captured(layer, call.query, call.formula, call.query, call.key, call.value)
        weights = None
        if exact:
            self._attend_whole(captured, at)
            assert captured.pattern is not None
            weights = captured.pattern.to(call.query.dtype)
            weights = nn.functional.dropout(weights, p=call.dropout, training=call.module.training)
            captured.mixed = weights @ expand_heads(call.value, n_heads)
        elif self.grad:
            raise BudgetError("gradients need whole attention maps: shorten the input, or leave grad=False.")
        else:
            self.summarise_in_tiles(captured, at)
        mixed = captured.mixed = self.apply(site, "mixed", captured.mixed, at)
        self.parts.finish(captured, name)
        return mixed.transpose(1, 2).contiguous(), weights

    def is_whole(self, layer: AttentionLayer, cells: int) -> bool:
        """Whether attention of so many cells (head × query × key) is computed whole rather than in tiles."""
        if self.exact is not None:
            return self.exact
        # Edited patterns are kept whole, so they are computed whole; the budget has been asked.
        keeps_patterns = self.recorder is not None and self.recorder.holds_vectors
        return self.grad or cells <= EXACT_CELLS or (keeps_patterns and bool(self.edited_heads(layer.site)))

    def finish(self, captured: Captured) -> None:
        """Keep what a layer did, and what the recorder makes of it."""
        if self.recorder is not None:
            captured.records = self.recorder.records(captured, self.edited_heads(captured.layer.site))
        for observer in self.observers:
            observer.layer(captured)
        if not self.grad:
            captured.let_go()
        self.captured[captured.layer.site] = captured
        if self._progress is not None:
            self._progress(Progress("layers", len(self.captured), len(self.model.layout.layers)))

    def has_edit(self, site: Site, *stages: str) -> bool:
        """Whether some edit acts on this layer at one of these stages."""
        return any((site, stage) in self._edits for stage in stages)

    def edited_heads(self, site: Site) -> list[int]:
        """The heads whose patterns do not follow from queries and keys any more."""
        edited: set[int] = set()
        for stage in ("scores", "pattern"):
            for _, heads in self._edits.get((site, stage), []):
                edited.update(range(heads.start, heads.stop))
        return sorted(edited)

    def _attend_whole(self, captured: Captured, at: At) -> None:
        """Scores and patterns of all queries and keys at once."""
        site, formula = captured.layer.site, captured.formula
        assert captured.query is not None and captured.key is not None and formula is not None
        score_map = scores(captured.query, expand_heads(captured.key, captured.query.shape[1]), formula)
        score_map = self._edit_scores(site, score_map, at, formula.mask)
        pattern = softmax(score_map, formula.sinks)
        if self.edited_heads(site) or formula.sinks is not None:
            captured.lse = log_denominator(score_map, formula.sinks)
            pattern = self.edit_pattern(site, score_map, pattern, at)
        captured.scores, captured.pattern = score_map, pattern

    def _edit_scores(
        self,
        site: Site,
        score_map: Tensor,
        at: At,
        mask: Mask | None,
        heads: slice = slice(None),
        rows: slice = slice(None),
    ) -> Tensor:
        if (site, "scores") not in self._edits:
            return score_map
        score_map = self.apply(site, "scores", score_map, at, heads)
        return score_map if mask is None else mask.hide(score_map, rows)  # an edit does not lift the mask

    def edit_pattern(
        self, site: Site, score_map: Tensor, pattern: Tensor, at: At, heads: slice = slice(None)
    ) -> Tensor:
        """A pattern after the edits of scores (which may have emptied rows) and of patterns."""
        # A row in which edits left nothing to see has no weights at all, rather than equal ones on what is forbidden.
        seen = (score_map > torch.finfo(score_map.dtype).min).any(-1, keepdim=True)
        emptied = ~seen & torch.isinf(score_map).any(-1, keepdim=True)
        pattern = torch.where(emptied, 0.0, pattern.nan_to_num(0.0)) if bool(emptied.any()) else pattern
        return self.apply(site, "pattern", pattern, at, heads)

    def summarise_in_tiles(self, captured: Captured, at: At) -> None:
        """Attention in tiles, with summaries where a recorder asks for them. Example by
        example, without its padding; padded rows come out as zero, as from SDPA."""
        assert captured.query is not None and captured.value is not None and captured.formula is not None
        batch, n_heads, n_queries = captured.query.shape[:3]
        recorder = self.recorder or Recorder(self, "rows", "device")
        if batch > 1 or recorder.real_positions(captured, 0)[0] is not None:
            captured.mixed = captured.query.new_zeros(batch, n_heads, n_queries, captured.value.shape[-1])
        summaries: list[Summary] = []
        for example in range(batch):
            queries, keys = recorder.real_positions(captured, example)
            formula = captured.formula.example(example, queries, keys)
            parts = example_parts(captured, example, queries, keys)
            summariser = None
            if self.recorder is not None:
                shape = (n_heads, parts[0].shape[1], parts[1].shape[1])
                summariser = Summariser(*shape, rows_only=self.record == "rows", device=captured.query.device)
            edit = None
            if self.edited_heads(captured.layer.site):
                edit = self._tile_edit(captured.layer.site, at, example, queries, keys, formula)
            query, key, value = parts
            out = attend_in_tiles(query, key, value, formula, summariser=summariser, edit=edit, check=self.check)
            if queries is None and batch == 1:
                captured.mixed = out[None]
            elif queries is None:
                captured.mixed[example] = out
            else:
                captured.mixed[example][:, queries] = out
            if summariser is not None:
                summaries.append(summariser.summary())
        captured.summaries = summaries

    def _tile_edit(
        self, site: Site, at: At, example: int, queries: Tensor | None, keys: Tensor | None, formula: Formula
    ):
        """The edits of one example's scores and patterns, for tiles of some heads and rows."""
        own = slice(example, example + 1)
        index = at.index[own] if queries is None else at.index[own][:, queries]
        assert at.key_index is not None  # attention always has keys
        key_index = at.key_index[own] if keys is None else at.key_index[own][:, keys]
        tokens = None if at.tokens is None else at.tokens[own]
        key_tokens = None if at.key_tokens is None else at.key_tokens[own]
        edited: dict[int, Tensor] = {}  # by the first head of a tile: threads have different ones

        def edit(stage: str, tile: Tensor, heads: slice, rows: slice) -> Tensor:
            here = At(index[:, rows], key_index, tokens, key_tokens, at.first_head)
            if stage == "scores":
                tile = edited[heads.start] = self._edit_scores(site, tile, here, formula.heads(heads).mask, heads, rows)
                return tile
            return self.edit_pattern(site, edited.pop(heads.start), tile, here, heads)

        return edit

    # Edits

    def _edit_vectors(self, layer: AttentionLayer, call: AttentionCall, module: str) -> tuple[AttentionCall, At]:
        batch, n_heads, n_queries = call.query.shape[:3]
        at, key_at = self.places(layer, batch, n_queries, call.key.shape[2], call.formula.mask, module)
        query = self.apply(layer.site, "query", call.query, at)
        key, value = call.key, call.value
        # Heads of a group share keys and values: an edit of one head's must not touch the others'.
        if (layer.site, "key") in self._edits:
            key = self.apply(layer.site, "key", expand_heads(key, n_heads), key_at)
        if (layer.site, "value") in self._edits:
            value = self.apply(layer.site, "value", expand_heads(value, n_heads), key_at)
        if key.shape[1] != value.shape[1]:
            key, value = expand_heads(key, n_heads), expand_heads(value, n_heads)
        return replace(call, query=query, key=key, value=value), at

    def places(
        self, layer: AttentionLayer, batch: int, n_queries: int, n_keys: int, mask: Mask | None, module: str = ""
    ) -> tuple[At, At]:
        """Where the rows and the keys of a call of `module` stand in the input, and which heads it computes."""
        site = layer.site
        before = self.parts.offset(layer)
        first_head = layer.head_modules.index(module) if module in layer.head_modules else 0
        offset = before if site.stack == "encoder" else self.offset + before
        if site.kind == "self" and mask is not None and mask.keys is not None:
            self.real[site.stack] = _expand_batch(mask.keys, batch)
        key_offset = before if mask is None else mask.key_offset + before
        key_real = None
        if site.kind == "cross" and mask is not None and mask.keys is not None:
            key_real = _expand_batch(mask.keys, batch)
            self.real.setdefault(layer.key_stack, key_real)
        if not self._edits and not self.record:
            index = torch.empty(batch, 0, dtype=torch.long)
            return At(index), At(index)
        index = self._index(site.stack, batch, n_queries, offset)
        key_index = self._index(layer.key_stack, batch, n_keys, key_offset, key_real)
        tokens, key_tokens = self.tokens.get(site.stack), self.tokens.get(layer.key_stack)
        return At(index, key_index, tokens, key_tokens, first_head), At(key_index, None, key_tokens, None, first_head)

    def _index(self, stack: str, batch: int, length: int, offset: int = 0, real: Tensor | None = None) -> Tensor:
        """Each row's position among its example's real tokens [batch, row], −1 for padding."""
        real = self.real.get(stack) if real is None else real
        device = self.model.device
        if real is None or real.shape[0] != batch or real.shape[1] < offset + length:
            return (torch.arange(length, device=device) + offset).expand(batch, length)
        counted = real.long().cumsum(1) - 1
        return torch.where(real, counted, -1)[:, offset : offset + length]

    def apply(self, site: Site, stage: str, x: Tensor, at: At, heads: slice = slice(None)) -> Tensor:
        """Run the edits of one stage over [batch, head, row, last axis]; `heads` says which heads x holds."""
        edits = self._edits.get((site, stage))
        if not edits:
            return x
        first, at = at.first_head + (heads.start or 0), at.to(x.device)
        for intervention, chosen in edits:
            begin, end = max(chosen.start - first, 0), min(max(chosen.stop - first, 0), x.shape[1])
            if begin >= end:
                continue
            part = x[:, begin:end]
            new = intervention.edit(part, at)  # type: ignore[operator]
            if new.shape != part.shape:
                raise InterventionError(
                    f"{intervention!r} gave shape {tuple(new.shape)} where {tuple(part.shape)} was needed."
                )
            if intervention.tokens is not None:
                new = torch.where(self._row_mask(intervention, at)[:, None, :, None], new, part)
            # Joined anew rather than written into: the gradient needs what was there before. With nothing to join, the
            # old tensor drops out of the graph.
            is_whole = part.shape[1] == x.shape[1]
            x = new.to(x.dtype) if is_whole else torch.cat([x[:, :begin], new.to(x.dtype), x[:, end:]], dim=1)
        return x

    def _row_mask(self, intervention: Intervention, at: At) -> Tensor:
        """The rows that an intervention names; one that acts everywhere passes over stacks without such tokens."""
        assert intervention.tokens is not None
        try:
            return at.rows(intervention.tokens)
        except UnknownTokenError:
            if intervention.site is not None:
                raise
            return torch.zeros_like(at.index, dtype=torch.bool)

    def weights_only(self, layer: AttentionLayer, patterns: Tensor | None, mixed: Tensor) -> Tensor:
        """A layer of which only weights [batch, head, query, key] and output [batch, head, query, dim] are in sight."""
        self.check()
        batch, _, n_queries = mixed.shape[:3]
        at, _ = self.places(layer, batch, n_queries, n_queries, None)
        mixed = self.apply(layer.site, "mixed", mixed, at)
        if patterns is not None:
            self.finish(Captured(layer, mixed, pattern=patterns))
        return mixed


def _expand_batch(keys: Tensor, batch: int) -> Tensor:
    return keys.expand(batch, -1) if keys.shape[0] == 1 else keys
