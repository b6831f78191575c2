"""The graph of a modified backward pass, walked before it is used: only what is linear, or has a rule, may be in it."""

import re
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from headscope.errors import CaptureError


class Halved(torch.autograd.Function):
    """A product of two activations: each factor gets half of the relevance."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        """The same numbers."""
        return x.clone()  # not a view: models and our own scores scale products in place

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> Tensor:
        """Half the gradient."""
        return slopes[0] / 2


class AttentionPattern(torch.autograd.Function):
    """Marks a pattern, so that its softmax can be told from others."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        """The same numbers."""
        return x.clone()  # not a view: models and our own scores scale products in place

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> Tensor:
        """The same gradient."""
        return slopes[0]


# Names as autograd gives them, without "Backward0". Moving numbers about:
# fmt: off
_MOVES = frozenset((
    "View", "UnsafeView", "ViewAs", "ReshapeAlias", "Transpose", "T", "Permute", "Expand", "Slice", "Select",
    "Unsqueeze", "Squeeze", "Clone", "ToCopy", "Alias", "AsStrided", "Cat", "Stack", "Split", "SplitWithSizes", "Chunk",
    "Unbind", "Index", "IndexSelect", "Gather", "Repeat", "Roll", "Flip", "ConstantPadNd", "MaskedFill", "Where",
    "MaskedScatter", "Unfold", "Copy", "CopySlices", "SliceScatter", "SelectScatter", "Diagonal",
))
_LINEAR = frozenset((
    "Add", "Sub", "Rsub", "Neg", "Sum", "Mean", "Cumsum", "Div", "Convolution", "AvgPool2D", "AdaptiveAvgPool2D",
))
# fmt: on
_BILINEAR = frozenset(("Mul", "Mm", "Addmm", "Bmm", "Baddbmm", "Mv", "Dot"))
_SCALES = frozenset(("Rsqrt", "Sqrt", "Std", "LinalgVectorNorm", "Norm", "Pow"))


def name_of(node: Any) -> str:
    """The operation of a graph node: "Mul" for MulBackward0."""
    return re.sub(r"Backward\d*$", "", node.name().split("::")[-1])


def is_scale(scale: Tensor, scaled: Tensor) -> bool:
    """Whether a tensor is the 1/σ or σ of a norm that is spelled out: a root of something, one for many numbers."""
    if scale.numel() >= scaled.numel():
        return False
    node = scale.grad_fn
    while node is not None:
        name = name_of(node)
        if name in _SCALES:
            return True
        inputs = [parent for parent, _ in node.next_functions if parent is not None]
        if len(inputs) != 1 or name not in _MOVES | {"Add", "Reciprocal", "Mul", "Div", "Clamp", "ClampMin"}:
            return False
        node = inputs[0]
    return False


def reaches(answer: Tensor, leaves: list[Tensor], stop: Sequence[Tensor] = ()) -> bool:
    """Whether a tensor depends on some of these leaves, other than by way of the tensors to stop at."""
    seen = {tensor.grad_fn for tensor in stop if tensor.grad_fn is not None}
    waiting: list[Any] = [answer.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if name_of(node) == "AccumulateGrad" and any(node.variable is leaf for leaf in leaves):
            return True
        waiting += [parent for parent, _ in node.next_functions]
    return False


def check(answer: Tensor, sources: list[Tensor]) -> None:
    """Raise if something between the sources and the answer is neither linear nor has a rule."""
    if answer.grad_fn is None:
        raise CaptureError("the logit does not depend on the residual stream: there is nothing to explain.")
    # With each node, the marks that lead to it without anything but moves between: Halved, AttentionPattern.
    seen, waiting = set(), [(answer.grad_fn, frozenset())]
    while waiting:
        node, marks = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        name = name_of(node)
        parents = [parent for parent, _ in node.next_functions if parent is not None]
        if name in ("Halved", "AttentionPattern"):
            marks = marks | {name}
        else:
            _check_node(node, name, len(parents), marks, sources)
            marks = marks if name in _MOVES else frozenset()
        waiting += [(parent, marks) for parent in parents]


def _check_node(node: Any, name: str, n_given: int, marks: frozenset[str], sources: list[Tensor]) -> None:
    if name == "AccumulateGrad":
        if not any(node.variable is source for source in sources):
            raise CaptureError(
                f"a parameter {tuple(node.variable.shape)} takes part in a way that torch does not let us see (a fused "
                "or custom layer): relevance would count it as input."
            )
        return
    if name in _MOVES or (name in _LINEAR and not (name == "Div" and node.next_functions[1][0] is not None)):
        return
    factors = [
        factor for factor, _ in node.next_functions[1 if name in ("Addmm", "Baddbmm") else 0 :] if factor is not None
    ]
    if name in _BILINEAR and (len(factors) < 2 or ("Halved" in marks and len(factors) == n_given)):
        return
    if name == "Softmax":
        if "AttentionPattern" in marks:
            return
        raise CaptureError(
            "the model computes a softmax that is not an attention pattern Headscope sees (a router of experts, an "
            "attention it does not capture): relevance has no rule for that."
        )
    raise CaptureError(
        f"the model computes {name!r} on the way from its input to this logit, for which relevance has no rule: what "
        "it would show could be wrong."
    )
