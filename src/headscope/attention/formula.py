"""The one score function: how attention scores and patterns follow from queries and keys.

The seam uses it while a model runs and a trace uses it afterwards, so that what is shown is what was computed.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from headscope.attention.biases import Bias
from headscope.attention.masks import Mask


@dataclass(frozen=True, eq=False)
class Formula:
    """Everything but the tensors: scaling, soft cap (Gemma 2), sinks [head] (gpt-oss), mask and bias."""

    scaling: float
    softcap: float | None = None
    sinks: Tensor | None = None
    mask: Mask | None = None
    bias: Bias | None = None

    def example(self, index: int, queries: Tensor | None = None, keys: Tensor | None = None) -> "Formula":
        """The formula of one example of a batch, without its padding."""
        return replace(
            self,
            mask=None if self.mask is None else self.mask.example(index, queries, keys),
            bias=None if self.bias is None else self.bias.example(index, queries, keys),
        )

    def to(self, device) -> "Formula":
        """The formula with its tensors on another device."""
        return replace(
            self,
            sinks=None if self.sinks is None else self.sinks.to(device),
            mask=None if self.mask is None else self.mask.to(device),
            bias=None if self.bias is None else self.bias.to(device),
        )

    def heads(self, heads: slice) -> "Formula":
        """The formula of some of the heads."""
        bias = self.bias
        if bias is not None and bias.values.shape[1] > 1:
            bias = replace(bias, values=bias.values[:, heads])
        mask = self.mask
        if mask is not None and mask.dense is not None and mask.dense.shape[1] > 1:
            mask = replace(mask, dense=mask.dense[:, heads])
        return replace(self, sinks=None if self.sinks is None else self.sinks[heads], mask=mask, bias=bias)


def expand_heads(tensor: Tensor, n_heads: int) -> Tensor:
    """Give each of `n_heads` query heads its key or value head [batch, head, key, dim] (grouped-query attention)."""
    batch, n_groups, length, dim = tensor.shape
    if n_groups == n_heads:
        return tensor
    repeated = tensor[:, :, None].expand(batch, n_groups, n_heads // n_groups, length, dim)
    return repeated.reshape(batch, n_heads, length, dim)


def scores(
    query: Tensor,
    key: Tensor,
    formula: Formula,
    *,
    rows: slice = slice(None),
    columns: slice = slice(None),
    out: Tensor | None = None,
) -> Tensor:
    """Attention scores before the softmax [batch, head, row, column]; masked cells hold the lowest finite number.

    The order of operations is that of the models' own eager code, so that results agree to the last bit. Masked cells
    are filled, not added to: an added mask leaks gradient through rows that are masked altogether. `out` is memory to
    use.
    """
    # In place where the gradient allows it: each pass over a tile of scores costs as much as a third of the product.
    product = torch.matmul(query[..., rows, :], key[..., columns, :].transpose(-1, -2), out=out)
    if formula.scaling != 1.0:
        product = product.mul_(formula.scaling)
    if formula.softcap is not None:
        product = torch.tanh(product / formula.softcap) * formula.softcap
    if formula.bias is not None:
        product = product + formula.bias.tile(rows, columns).to(product.dtype)
    return product if formula.mask is None else formula.mask.hide(product, rows, columns)


def softmax(scores: Tensor, sinks: Tensor | None = None, *, out: Tensor | None = None) -> Tensor:
    """The pattern of some scores, in at least fp32. A sink takes its share of each row and is dropped."""
    wide = torch.promote_types(scores.dtype, torch.float32)
    if sinks is None:
        return torch.softmax(scores, dim=-1, dtype=wide, out=out)
    column = sinks.to(scores.dtype).reshape(1, -1, 1, 1).expand(scores.shape[0], -1, scores.shape[2], 1)
    joined = torch.cat([scores, column], dim=-1)
    joined = joined - joined.max(dim=-1, keepdim=True).values
    return torch.softmax(joined, dim=-1, dtype=wide)[..., :-1]


def log_denominator(scores: Tensor, sinks: Tensor | None) -> Tensor:
    """The log of the softmax denominator of scores [batch, head, row, column], the sink's share included."""
    total = scores.float().logsumexp(-1)
    return total if sinks is None else torch.logaddexp(total, sinks.float()[None, :, None].expand_as(total))
