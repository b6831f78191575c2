"""Layers that attend in several calls: one window of the tokens after another, or one head after another.

Vision towers (Qwen2.5-VL) call attention once a window or image, in a loop within one forward pass of the module; their
windows become one block-diagonal pattern. Modules of one head each, side by side in a list, become one layer.
"""

import weakref
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from headscope.attention import Formula, Mask, Summary
from headscope.models.capture.recorder import Captured
from headscope.models.capture.summarised_attention import summarise
from headscope.models.layout import AttentionLayer

if TYPE_CHECKING:
    from headscope.models.capture.session import Session


class LayerParts:
    """Holds what the calls of such layers did until the layer is complete."""

    def __init__(self, session: "Session"):
        self.session: Session = weakref.proxy(session)  # a cycle would hold its tensors until it is collected
        self._windows: dict[str, list[Captured]] = {}
        self._heads: dict[str, dict[str, Captured]] = {}

    def clear(self) -> None:
        """A new pass begins."""
        self._windows.clear()
        self._heads.clear()

    def offset(self, layer: AttentionLayer) -> int:
        """How many tokens the windows before this one hold."""
        return sum(window.mixed.shape[2] for window in self._windows.get(layer.module, ()))

    def finish(self, captured: Captured, module: str) -> None:
        """A call of a module is done: finish its layer, unless parts of it are still to come."""
        layer = captured.layer
        if layer.is_looped:
            self._windows.setdefault(layer.module, []).append(captured)
            return
        if layer.head_modules:
            heads = self._heads.setdefault(layer.module, {})
            heads[module] = captured
            if len(heads) < len(layer.head_modules):
                return
            del self._heads[layer.module]
            captured = _join_heads([heads[name] for name in layer.head_modules])
        self.session.finish(captured)

    def end(self, module: str) -> None:
        """The forward pass of a module that attends in windows is over."""
        windows = self._windows.pop(module, [])
        if windows:
            self.session.finish(windows[0] if len(windows) == 1 else self._join_windows(windows))

    def _join_windows(self, windows: list[Captured]) -> Captured:
        """One layer over the tokens of all windows; its pattern has theirs on the diagonal."""
        first = windows[0]
        mixed = _join([window.mixed for window in windows], 2)
        assert mixed is not None
        joined = Captured(
            first.layer,
            mixed,
            query=_join([window.query for window in windows], 2),
            key=_join([window.key for window in windows], 2),
            value=_join([window.value for window in windows], 2),
        )
        formulas = [window.formula for window in windows]
        if first.formula is not None and all(formula is not None and formula.bias is None for formula in formulas):
            joined.formula = replace(first.formula, mask=_block_mask(windows, mixed.device))
        session, cells = self.session, mixed.shape[1] * mixed.shape[2] ** 2
        patterns = [window.pattern for window in windows]
        is_kept = session.is_whole(first.layer, cells) or joined.formula is None
        if is_kept and all(pattern is not None for pattern in patterns):
            lowest = torch.finfo(mixed.dtype).min
            joined.pattern = _on_diagonal(patterns, 0.0)
            joined.scores = _on_diagonal([window.scores for window in windows], lowest)
            joined.lse = _join([window.lse for window in windows], 2)
        elif session.recorder is not None:
            at, _ = session.attention_positions(joined.layer, mixed.shape[0], mixed.shape[2], mixed.shape[2], None)
            summarise(session, joined, at)
            joined.mixed = mixed
        return joined


def _join_heads(heads: list[Captured]) -> Captured:
    """One layer of the heads that modules of their own computed."""
    mixed = _join([head.mixed for head in heads], 1)
    assert mixed is not None
    joined = Captured(heads[0].layer, mixed)
    for name in ("query", "key", "value", "scores", "pattern", "lse"):
        setattr(joined, name, _join([getattr(head, name) for head in heads], 1))
    formulas = [head.formula for head in heads if head.formula is not None]
    if len(formulas) == len(heads) and all(_is_same(formula, formulas[0]) for formula in formulas):
        joined.formula = formulas[0]
    if all(head.summaries for head in heads):
        joined.summaries = [
            _join_summaries(list(parts)) for parts in zip(*(head.summaries for head in heads), strict=True)
        ]
    return joined


def _is_same(formula: Formula, other: Formula) -> bool:
    """Whether two heads compute their pattern alike, by scaling and mask alone."""
    if formula.bias is not None or formula.scaling != other.scaling or formula.softcap != other.softcap:
        return False
    own, others = ({} if mask is None else mask.tensors() for mask in (formula.mask, other.mask))
    return own.keys() == others.keys() and all(torch.equal(tensor, others[name]) for name, tensor in own.items())


def _join_summaries(summaries: list[Summary]) -> Summary:
    """The summary of heads that were summarised one by one."""
    named = [summary.tensors() for summary in summaries]
    return Summary(**{name: torch.cat([tensors[name] for tensors in named]) for name in named[0]})


def _join(tensors: list[Tensor | None], axis: int) -> Tensor | None:
    known = [tensor for tensor in tensors if tensor is not None]
    return torch.cat(known, axis) if known and len(known) == len(tensors) else None


def _block_mask(windows: list[Captured], device: torch.device) -> Mask:
    """Each query sees the keys of its own window, and of those what the window's mask allows."""
    sizes = torch.tensor([window.mixed.shape[2] for window in windows], device=device)
    length, stops = int(sizes.sum()), sizes.cumsum(0)
    masks = [None if window.formula is None else window.formula.mask for window in windows]
    if all(mask is None for mask in masks):
        start, stop = (stops - sizes).repeat_interleave(sizes), stops.repeat_interleave(sizes)
        return Mask(length, length, start=start[None], stop=stop[None])
    batch = windows[0].mixed.shape[0]
    blocks: list[Tensor | None] = []
    for mask, size in zip(masks, sizes.tolist(), strict=True):
        cells = None if mask is None else mask.allowed_cells()
        allowed = torch.ones(1, 1, size, size, dtype=torch.bool, device=device) if cells is None else cells
        blocks.append(allowed.expand(batch, 1, size, size))
    dense = _on_diagonal(blocks, False)
    assert dense is not None
    return Mask.from_dense(dense)


def _on_diagonal(blocks: list[Tensor | None], fill: float) -> Tensor | None:
    """Squares [batch, head, query, key] along the diagonal of one; the graph of each is kept."""
    if any(block is None for block in blocks):
        return None
    known = [block for block in blocks if block is not None]
    length, place, rows = sum(block.shape[-1] for block in known), 0, []
    for block in known:
        width = block.shape[-1]
        rows.append(torch.nn.functional.pad(block, (place, length - place - width), value=fill))
        place += width
    return torch.cat(rows, 2)
