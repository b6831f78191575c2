"""How much an output depends on each token: gradient × input, and what changes when the token is left out."""

import torch
from torch import Tensor

from headscope.attention.divergence import total_variation
from headscope.errors import InputError


def gradient_times_input(output: Tensor, embeddings: Tensor) -> Tensor:
    """|Σ_d e_d · ∂y/∂e_d| of each token [batch, token], for outputs [batch] of embeddings [batch, token, dim].

    Jain and Wallace (2019) hold attention fixed: detach the patterns on the way from `embeddings` to `output`.

    >>> embeddings = torch.tensor([[[1.0, 2.0], [3.0, 0.0]]], requires_grad=True)
    >>> gradient_times_input((embeddings * torch.tensor([2.0, -1.0])).sum((1, 2)), embeddings).tolist()
    [[0.0, 6.0]]
    """
    if not output.requires_grad:
        raise InputError("the output does not depend on the embeddings: compute it from them with gradients on.")
    slope = torch.autograd.grad(output.sum(), embeddings, allow_unused=True)[0]
    if slope is None:
        raise InputError("the output does not depend on the embeddings: compute it from them.")
    return (embeddings.detach() * slope).sum(-1).abs()


def leave_one_out(before: Tensor, without: Tensor) -> Tensor:
    """How far the output moves without each token [batch, token], as total variation.

    `before` is [batch, class], `without` [batch, token, class]: the output when that token is deleted or masked.
    """
    return total_variation(before[:, None].expand_as(without), without)
