"""Layers that are watched from outside: what the tracer reports, edited and recorded by a session."""

import weakref
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from headscope.attention import Bias, Formula, Mask, expand_heads
from headscope.errors import CaptureError
from headscope.models.capture.recorder import Captured, observed_lse
from headscope.models.capture.seam import AttentionCall
from headscope.models.capture.tracer import Frame, Product, Softmax
from headscope.models.layout import AttentionLayer

if TYPE_CHECKING:
    from headscope.models.capture.session import Session


class TracedLayers:
    """Stands between a tracer and a session: turns softmaxes and products into edits and records of layers."""

    def __init__(self, session: "Session"):
        self.session: Session = weakref.proxy(session)  # a cycle would hold its tensors until it is collected

    def attend(self, call: AttentionCall) -> tuple[Tensor, Tensor | None]:
        """A whole attention call that the tracer caught (torch's own attention functions)."""
        frame = self.session.tracer.frames[-1]
        self._check_calls(frame, self.session.model.layout.of_module(frame.name))
        out = self.session.attend(call)
        frame.n_attended += 1
        return out

    def _layer(self, frame: Frame) -> AttentionLayer | None:
        layers = self.session.model.layout.of_module(frame.name)
        if not layers:
            return None
        if frame.n_before is None:
            frame.n_before = self.session.count(frame.name)
        return layers[(frame.n_before + frame.n_attended) % len(layers)]

    @staticmethod
    def _check_calls(frame: Frame, layers: list[AttentionLayer]) -> None:
        """Refuse attention that the probe did not see: it would be taken for that which it saw."""
        if layers and frame.n_attended >= len(layers) and not layers[0].is_looped:
            raise CaptureError(
                f"{frame.name} attends more often in one forward pass than it did when the model was probed. Probe the "
                "model with such an input: model.probe(inputs={…})."
            )

    def on_product(self, frame: Frame, product: Product) -> tuple[Tensor, Tensor] | None:
        """Edit queries and keys of a traced layer."""
        layer = self._layer(frame)
        if layer is None or product.query is None or product.key is None:
            return None
        if product.ordinal != layer.product and not layer.is_looped:
            return None
        self.session.check()
        site = layer.site
        if not self.session.edits.has(site, "query", "key"):
            return None
        batch, n_heads, n_queries = product.query.shape[:3]
        at, key_at = self.session.attention_positions(layer, batch, n_queries, product.key.shape[2], None, frame.name)
        key = expand_heads(product.key, n_heads)
        edits = self.session.edits
        return edits.apply(site, "query", product.query, at), edits.apply(site, "key", key, key_at)

    def on_scores(self, frame: Frame, scores: Tensor, product: Product | None) -> Tensor:
        """Edit the scores of a traced layer."""
        layer = self._layer(frame)
        if layer is None or not self.session.edits.has(layer.site, "scores"):
            return scores
        batch, _, n_queries, n_keys = scores.shape
        at, _ = self.session.attention_positions(layer, batch, n_queries, n_keys, None, frame.name)
        hidden = scores <= _forbidden(scores.dtype)
        edited = self.session.edits.apply(layer.site, "scores", scores, at)
        return torch.where(hidden, scores, edited)

    def on_pattern(self, frame: Frame, softmax: Softmax) -> Tensor:
        """Edit the pattern of a traced layer."""
        layer = self._layer(frame)
        if layer is None or not self.session.edits.has(layer.site, "scores", "pattern"):
            return softmax.pattern
        batch, _, n_queries, n_keys = softmax.pattern.shape
        at, _ = self.session.attention_positions(layer, batch, n_queries, n_keys, None, frame.name)
        softmax.pattern = self.session.edits.pattern(layer.site, softmax.scores, softmax.pattern, at)
        return softmax.pattern

    def on_value(self, frame: Frame, softmax: Softmax, value: Tensor) -> Tensor | None:
        """Edit the values of a traced layer."""
        layer = self._layer(frame)
        if layer is None or not self.session.edits.has(layer.site, "value"):
            return None
        batch, n_heads, n_queries, n_keys = softmax.pattern.shape
        _, key_at = self.session.attention_positions(layer, batch, n_queries, n_keys, None, frame.name)
        return self.session.edits.apply(layer.site, "value", expand_heads(value, n_heads), key_at)

    def on_mixed(self, frame: Frame, softmax: Softmax, value: Tensor, mixed: Tensor) -> Tensor:
        """Edit a traced layer's output, and record the layer."""
        layer = self._layer(frame)
        if layer is None:
            return mixed
        self.session.check()
        self._check_calls(frame, self.session.model.layout.of_module(frame.name))
        batch, _, n_queries, n_keys = softmax.pattern.shape
        at, _ = self.session.attention_positions(layer, batch, n_queries, n_keys, None, frame.name)
        mixed = self.session.edits.apply(layer.site, "mixed", mixed, at)
        product = softmax.product
        if product is not None and product.ordinal != layer.product and not layer.is_looped:
            product = None
        query, key = (None, None) if product is None else (product.query, product.key)
        formula = None
        if self.session.record and query is not None and key is not None and not self.session.edits.heads(layer.site):
            formula = describe_scores(softmax.scores.detach(), query.detach(), key.detach(), layer.scaling)
        lse = observed_lse(softmax.scores) if self.session.record else None
        captured = Captured(layer, mixed, formula, query, key, value, softmax.scores, softmax.pattern, lse)
        self.session.parts.finish(captured, frame.name)
        frame.n_attended += 1
        if frame.n_attended > 1:
            self.session.count(frame.name)
        return mixed


def describe_scores(scores: Tensor, query: Tensor, key: Tensor, scaling: float) -> Formula:
    """The formula that gives observed scores back from queries and keys; what they leave over is its bias."""
    n_heads = query.shape[1]
    plain = (query.float() @ expand_heads(key, n_heads).float().transpose(-1, -2)) * scaling
    forbids = scores <= _forbidden(scores.dtype)
    rest = torch.where(forbids, 0.0, scores.float() - plain)
    tolerance = 4e-6 * max(1.0, float(plain.abs().max()))
    bias = Bias.describe(rest, tolerance=tolerance, ignore=forbids)
    mask = Mask.from_dense(~forbids) if bool(forbids.any()) else None
    return Formula(scaling, mask=mask, bias=bias)


def _forbidden(dtype: torch.dtype) -> float:
    """Scores this low are masked: models write −inf, the lowest number, or −10,000."""
    return -9e3 if torch.finfo(dtype).max > 1e5 else -6e4
