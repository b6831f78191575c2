"""Where the rows of a batch stand: their positions among each example's real tokens, which edits choose by."""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from headscope.attention import Mask
from headscope.interventions import At
from headscope.models.layout import AttentionLayer
from headscope.sites import Site
from headscope.traces import Tokens

if TYPE_CHECKING:
    from headscope.models.probed_module import ProbedModule

# The mask of a pass, and the stacks whose positions it is about.
_MASKS = (("attention_mask", ("main", "encoder", "text")), ("decoder_attention_mask", ("decoder",)))


class Positions:
    """Of one pass: which positions are real, by stack [batch, position], and which tokens they are."""

    def __init__(self, model: "ProbedModule", tokens: dict[str, list[Tokens]] | None, real: dict[str, Tensor] | None):
        self.model = model
        self.tokens = tokens or {}
        self._known_real = dict(real or {})
        self.real = dict(self._known_real)
        self.batch: int | None = None
        self.offset = 0

    def begin(self, arguments: dict[str, Any]) -> None:
        """A pass begins with these arguments: its batch size, what the cache holds before it, and its padding."""
        tensors = [tensor for tensor in arguments.values() if isinstance(tensor, Tensor) and tensor.ndim]
        self.batch = tensors[0].shape[0] if tensors else None
        past = arguments.get("past_key_values")
        self.offset = int(past.get_seq_length()) if past is not None and hasattr(past, "get_seq_length") else 0
        self.real = dict(self._known_real)
        for name, stacks in _MASKS:
            mask = arguments.get(name)
            if isinstance(mask, Tensor) and mask.ndim == 2:
                for stack in stacks:
                    self.real.setdefault(stack, mask.bool())

    def learn(self, layer: AttentionLayer, batch: int, mask: Mask | None) -> Tensor | None:
        """Take from a layer's mask which positions are real; gives those of the keys of cross-attention."""
        if mask is None or mask.keys is None:
            return None
        real = mask.keys.expand(batch, -1) if mask.keys.shape[0] == 1 else mask.keys
        if layer.site.kind == "self":
            self.real[layer.site.stack] = real
            return None
        if layer.site.kind == "cross":
            self.real.setdefault(layer.key_stack, real)
            return real
        return None

    def of_attention(
        self,
        layer: AttentionLayer,
        shape: tuple[int, int, int],
        mask: Mask | None,
        *,
        before: int = 0,
        first_head: int = 0,
        real: Tensor | None = None,
    ) -> tuple[At, At]:
        """Of the rows and of the keys of a call [batch, query, key] that begins `before` tokens into its stack.

        `real` are the keys' real positions, if the call brought them.
        """
        stack, (batch, n_queries, n_keys) = layer.site.stack, shape
        offset = before if stack == "encoder" else self.offset + before
        index = self._index(stack, batch, n_queries, offset)
        key_offset = before if mask is None else mask.key_offset + before
        key_index = self._index(layer.key_stack, batch, n_keys, key_offset, real)
        tokens, key_tokens = self.tokens.get(stack), self.tokens.get(layer.key_stack)
        return At(index, key_index, tokens, key_tokens, first_head), At(key_index, None, key_tokens, None, first_head)

    def of_stream(self, site: Site, stream: Tensor) -> At:
        """Of the rows of a residual stream or of MLP activations [batch, token, dim]."""
        offset = 0 if site.stack == "encoder" else self.offset
        return At(self._index(site.stack, stream.shape[0], stream.shape[1], offset), tokens=self.tokens.get(site.stack))

    def with_batch_axis(self, stream: Tensor) -> Tensor:
        """[batch, token, dim] of a stream that some MLPs (OPT) run as [batch · token, dim]."""
        if stream.ndim == 3:
            return stream
        n_examples = self.batch if self.batch and stream.shape[0] % self.batch == 0 else 1
        return stream.unflatten(0, (n_examples, -1))

    def _index(self, stack: str, batch: int, length: int, offset: int = 0, real: Tensor | None = None) -> Tensor:
        """Each row's position among its example's real tokens [batch, row], −1 for padding."""
        real = self.real.get(stack) if real is None else real
        device = self.model.device
        if real is None or real.shape[0] != batch or real.shape[1] < offset + length:
            return (torch.arange(length, device=device) + offset).expand(batch, length)
        counted = real.long().cumsum(1) - 1
        return torch.where(real, counted, -1)[:, offset : offset + length]
