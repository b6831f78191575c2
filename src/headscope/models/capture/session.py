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
    Mask,
    expand_heads,
    log_denominator,
    scores,
    softmax,
)
from headscope.choices import Record
from headscope.errors import BudgetError, Cancelled, CaptureError, InputError, InterventionError
from headscope.interventions import At, Intervention
from headscope.models.capture.banded_attention import band_mask, own_half, own_query_half
from headscope.models.capture.edit_checks import intervention_list, resolve
from headscope.models.capture.edits import Edits
from headscope.models.capture.expert_routing import Routing
from headscope.models.capture.layer_parts import LayerParts
from headscope.models.capture.positions import Positions
from headscope.models.capture.recorder import Captured, Recorder
from headscope.models.capture.seam import AttentionCall, current_session
from headscope.models.capture.summarised_attention import is_fused, summarise
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
# Where nothing is edited, nobody asks for places.
_NOWHERE = At(torch.empty(0, 0, dtype=torch.long))


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
        lets_go: bool = False,
        exact: bool | None = None,
        cancel: Cancel | None = None,
        tokens: dict[str, list[Tokens]] | None = None,
        real: dict[str, Tensor] | None = None,
        keep: str = "cpu",
        progress: OnProgress | None = None,
        observers: Sequence[Observer] = (),
    ):
        """`lets_go` drops the tensors of a layer as soon as it is done, though the pass has a gradient: training needs
        the loss alone. `exact` forces whole (True) or tiled (False) attention; `tokens` and `real` say what the
        batch's positions are; `progress` hears after each attention layer how many are done, and of how many.
        """
        self.observers = tuple(observers)
        self.model, self.grad, self.exact = model, grad, exact
        self.lets_go = lets_go or not grad
        self.record: Record | None = record
        if record is not None and record not in RECORDS:
            raise InputError(f"there is no record {record!r}: choose one of {', '.join(RECORDS)}.")
        self.interventions = intervention_list(interventions)
        self.positions = Positions(model, tokens, real)
        self.edits = Edits({})
        self.keep = keep
        self.captured: dict[Site, Captured] = {}
        self.residuals: dict[Site, Tensor] = {}
        self.activations: dict[Site, Tensor] = {}
        self.routings: dict[Site, Routing] = {}
        self._cancel = cancel or threading.Event()
        self._progress = progress
        self._calls: dict[str, int] = {}
        self._biases: dict[int, tuple[Tensor, Bias]] = {}
        self._bands: dict[tuple[int, int], tuple[Tensor, Mask]] = {}
        self._context: ContextToken | None = None
        self._stack = ExitStack()
        self.tracer = Tracer(TracedLayers(self))
        self._is_tracing = False
        self.recorder = None if record is None else Recorder(self, record, keep)
        # Without a record, only what it knows of the examples is used.
        self.examples = self.recorder or Recorder(self, "rows", "device")
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
        self.examples.copies.wait()
        self._stack.close()
        if self._context is not None:
            current_session.reset(self._context)
            self._context = None
        self._biases.clear()
        self._bands.clear()

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
        self.edits = Edits(resolve(self.interventions, self.model.layout))

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
        self.routings.clear()
        self._bands.clear()
        self.parts.clear()
        self.examples.forget()
        self.positions.begin(arguments)

    def end(self) -> None:
        """A forward pass of the whole model is over: wait until its records are on the host."""
        self.examples.copies.wait()

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
            self.activations[site] = self.positions.with_batch_axis(activations).detach().clone()
        for observer in self.observers:
            observer.neurons(site, self.positions.with_batch_axis(activations))
        return activations

    def contribution(self, site: Site, kind: str, output: Tensor) -> None:
        """A projection has written into the residual stream."""
        for observer in self.observers:
            observer.contribution(site, kind, self.positions.with_batch_axis(output))

    def _edit_stream(self, site: Site, stage: str, stream: Tensor) -> Tensor:
        if not self.edits.has(site, stage):
            return stream
        flat = self.positions.with_batch_axis(stream)
        at = self.positions.of_stream(site, flat)
        return self.edits.apply(site, stage, flat[:, None], at)[:, 0].reshape(stream.shape)

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
        batch, n_heads, n_queries = call.query.shape[:3]
        at, key_at = self.attention_positions(layer, batch, n_queries, call.key.shape[2], call.formula.mask, name)
        call = self.edits.vectors(site, call, at, key_at)
        if call.is_global is not None and self.edits.has(site, "query"):
            call = replace(call, query=own_query_half(call.query, call.is_global))
        cells = n_heads * n_queries * call.key.shape[2]
        captured = Captured(layer, call.query, call.formula, call.query, call.key, call.value)
        captured.is_global = call.is_global
        exact = self.is_whole(layer, cells) and not self._prefers_kernels(captured)
        weights = None
        if exact:
            self._attend_whole(captured, at)
            assert captured.pattern is not None
            weights = captured.pattern.to(call.query.dtype)
            if call.dropout and call.module.training:
                weights = nn.functional.dropout(weights, p=call.dropout)
            captured.mixed = weights @ expand_heads(call.value, n_heads)
        elif self.grad:
            raise BudgetError("gradients need whole attention maps: shorten the input, or leave grad=False.")
        else:
            summarise(self, captured, at)
        if call.is_global is not None:
            captured.mixed = own_half(captured.mixed, call.is_global)
        mixed = captured.mixed = self.edits.apply(site, "mixed", captured.mixed, at)
        self.parts.finish(captured, name)
        return mixed.transpose(1, 2).contiguous(), weights

    def is_whole(self, layer: AttentionLayer, cells: int) -> bool:
        """Whether attention of so many cells (head × query × key) is computed whole rather than in tiles."""
        if self.exact is not None:
            return self.exact
        # Edited patterns are kept whole, so they are computed whole; the budget has been asked.
        keeps_patterns = self.recorder is not None and self.recorder.holds_vectors
        return self.grad or cells <= EXACT_CELLS or (keeps_patterns and bool(self.edits.heads(layer.site)))

    def _prefers_kernels(self, captured: Captured) -> bool:
        """Whether a short layer is recorded by the GPU kernels: in half precision, where eager code rounds its scores,
        no two ways agree to the last bit.
        """
        assert captured.query is not None
        if self.exact or self.grad or self.record is None or captured.query.dtype == torch.float32:
            return False
        is_stored = captured.layer.stores_patterns and self.examples.holds_vectors
        return not is_stored and captured.query.device.type == "cuda" and is_fused(self, captured)

    def finish(self, captured: Captured) -> None:
        """Keep what a layer did, and what the recorder makes of it."""
        if self.recorder is not None:
            captured.records = self.recorder.records(captured, self.edits.heads(captured.layer.site))
            if self.observers:
                self.recorder.copies.wait()
        for observer in self.observers:
            observer.layer(captured)
        if self.lets_go:
            captured.let_go()
        self.captured[captured.layer.site] = captured
        if self._progress is not None:
            self._progress(Progress("layers", len(self.captured), len(self.model.layout.layers)))

    def _attend_whole(self, captured: Captured, at: At) -> None:
        """Scores and patterns of all queries and keys at once."""
        site, formula = captured.layer.site, captured.formula
        assert captured.query is not None and captured.key is not None and formula is not None
        score_map = scores(captured.query, expand_heads(captured.key, captured.query.shape[1]), formula)
        score_map = self.edits.scores(site, score_map, at, formula.mask)
        pattern = softmax(score_map, formula.sinks)
        if self.edits.heads(site) or formula.sinks is not None:
            captured.lse = log_denominator(score_map, formula.sinks)
            pattern = self.edits.pattern(site, score_map, pattern, at)
        captured.scores, captured.pattern = score_map, pattern

    def attention_positions(
        self, layer: AttentionLayer, batch: int, n_queries: int, n_keys: int, mask: Mask | None, module: str = ""
    ) -> tuple[At, At]:
        """Where the rows and the keys of a call of `module` stand in the input, and which heads it computes."""
        real = self.positions.learn(layer, batch, mask)
        if not self.edits:
            return _NOWHERE, _NOWHERE
        before = self.parts.offset(layer)
        first_head = layer.head_modules.index(module) if module in layer.head_modules else 0
        shape = (batch, n_queries, n_keys)
        return self.positions.of_attention(layer, shape, mask, before=before, first_head=first_head, real=real)

    def band_mask(self, is_global: Tensor, is_masked: Tensor, half: int) -> Mask:
        """The mask of a banded layer; the same object for layers of one window."""
        key = (id(is_global), half)
        if key not in self._bands:
            self._bands[key] = (is_global, band_mask(is_global, is_masked, half))
        return self._bands[key][1]
