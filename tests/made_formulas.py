"""One formula of every kind for four heads: masks, windows, padding, blind queries, soft caps, sinks and biases."""

import torch

from headscope.attention import Bias, Formula, Mask


def window(length: int, width: int, *, causal: bool = True) -> Mask:
    at = torch.arange(length)
    stop = at + 1 if causal else (at + width).clamp_max(length)
    return Mask(length, length, start=(at - width + 1).clamp_min(0)[None], stop=stop[None])


def document_mask(length: int) -> Mask:
    """Three documents, one after another, each causal."""
    at = torch.arange(length)
    return Mask(length, length, start=(at * 3 // length * length // 3).clamp(max=at)[None], stop=(at + 1)[None])


def holes(length: int) -> Mask:
    allowed = torch.rand(1, 4, length, length, generator=torch.Generator().manual_seed(1)) < 0.5
    return Mask(length, length, dense=allowed | torch.eye(length, dtype=torch.bool))


def blind(length: int) -> Mask:
    """A causal window in which a few queries may see nothing."""
    mask = window(length, 7)
    assert mask.stop is not None and mask.start is not None
    stop = mask.stop.clone()
    some = [min(1, length - 1), length // 2, length - 1]
    stop[:, some] = mask.start[:, some]
    return Mask(length, length, mask.start, stop)


def alibi(length: int) -> Bias:
    return Bias("key", torch.randn(1, 4, length, generator=torch.Generator().manual_seed(2)), length, length)


def left_padding(length: int) -> Mask:
    """Causal, with the first third of the keys left out: the first queries may see nothing."""
    return Mask(
        length, length, stop=torch.arange(1, length + 1)[None], keys=(torch.arange(length) >= length // 3)[None]
    )


def per_offset(length: int) -> Bias:
    values = torch.randn(1, 4, 2 * length - 1, generator=torch.Generator().manual_seed(3))
    return Bias("offset", values, length, length)


def per_cell(length: int) -> Bias:
    values = torch.randn(1, 1, length, length, generator=torch.Generator().manual_seed(4))
    return Bias("dense", values, length, length)


SINKS = torch.tensor([0.0, 1.0, -3.0, 5.0])
FORMULAS = {
    "bidirectional": lambda n: Formula(0.5),
    "causal": lambda n: Formula(0.5, mask=Mask.causal(n, n)),
    "window": lambda n: Formula(0.5, mask=window(n, 13)),
    "narrow window": lambda n: Formula(0.5, mask=window(n, 3)),
    "window, both ways": lambda n: Formula(0.5, mask=window(n, 13, causal=False)),
    "documents": lambda n: Formula(0.5, mask=document_mask(n)),
    "dense": lambda n: Formula(0.5, mask=holes(n)),
    "right padding": lambda n: Formula(0.5, mask=Mask(n, n, keys=(torch.arange(n) < n - 2)[None])),
    "softcap": lambda n: Formula(0.5, softcap=2.0, mask=Mask.causal(n, n)),
    "sinks": lambda n: Formula(0.5, sinks=SINKS, mask=window(n, 13)),
    "bias": lambda n: Formula(0.5, mask=Mask.causal(n, n), bias=alibi(n)),
    "bias by offset": lambda n: Formula(0.5, bias=per_offset(n)),
    "bias by cell, soft cap": lambda n: Formula(0.5, softcap=3.0, mask=window(n, 13), bias=per_cell(n)),
    "blind": lambda n: Formula(0.5, mask=blind(n)),
    "blind, sinks": lambda n: Formula(0.5, sinks=SINKS, mask=blind(n)),
    "left padding": lambda n: Formula(0.5, mask=left_padding(n)),
}
