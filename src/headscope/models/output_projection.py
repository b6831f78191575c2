"""The matrix that an output projection applies: as the module computes it, with adapters and parametrisations."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers.pytorch_utils import Conv1D

from headscope.models.capture import seam
from headscope.models.capture.passes import training_mode

# Rows of the identity that are computed at a time.
_ROWS = 1024
# The largest relative error at which a module counts as linear: half precision and quantised weights round.
_TOLERANCE = {torch.float64: 1e-8, torch.float32: 1e-4}
_HALF_TOLERANCE = 3e-2


class OutputProjection:
    """W with output = W · input + bias, from `size` inputs, or the `reason` why there is none.

    Of a plain linear layer W is its weight: nothing is run, and nobody waits for the device. Any other module is run on
    a few random vectors first. Where its plain weight gives the same, W is that; otherwise (LoRA, weight norm,
    quantised weights) the module is run on the identity, if it is linear. `dtype` is that of its inputs where its
    weights do not tell.
    """

    def __init__(self, module: nn.Module, size: int, dtype: torch.dtype):
        self.module, self.size = module, size
        tensors = [*module.parameters(), *module.buffers()]
        self.dtype = next((tensor.dtype for tensor in tensors if tensor.is_floating_point()), dtype)
        self.device = tensors[0].device if tensors else torch.device("cpu")
        self.outputs = torch.empty(0)
        self.is_plain, self.reason = False, ""
        if any(tensor.device.type == "meta" for tensor in tensors):
            self.reason = "the output projection is offloaded"
        elif (getattr(module, "in_features", None) or size) != size:
            self.reason = "the output projection does not read the heads one after another"
        elif _is_bare(module) and self._plain_weight() is not None:
            self.is_plain = True
        else:
            self._try()

    def matrix(self) -> Tensor:
        """W [output, size] in float32; only where there is no `reason`."""
        if self.is_plain:
            weight = self._plain_weight()
            assert weight is not None
            return weight.detach().float()
        identity = torch.eye(self.size, device=self.device, dtype=self.dtype)
        with _apart(self.module):
            rows = [self.module(rows[None])[0].float() - self.outputs[0] for rows in identity.split(_ROWS)]
        return torch.cat(rows).T

    def _try(self) -> None:
        """Run the module on zero, two random vectors and their sum: its `outputs` tell whether it has changed."""
        pair = torch.randn(2, self.size, generator=torch.Generator().manual_seed(0)).to(self.device, self.dtype)
        points = torch.cat([torch.zeros_like(pair[:1]), pair, pair.sum(0, keepdim=True)])
        with _apart(self.module):
            try:
                self.outputs = self.module(points[None])[0].float()
            except (RuntimeError, ValueError, TypeError) as error:
                line = str(error).partition("\n")[0]
                self.reason = f"the output projection cannot be run by itself ({line})"
                return
            weight, bias = self._plain_weight(), getattr(self.module, "bias", None)
            bias = bias if isinstance(bias, Tensor) else None
            expected = None if weight is None else functional.linear(points, weight, bias).float()
        self.is_plain = expected is not None and _is_near(self.outputs, expected, 1e-6)
        zero, first, second, both = self.outputs
        tolerance = _TOLERANCE.get(self.dtype, _HALF_TOLERANCE)
        if not self.is_plain and not _is_near(both - zero, first - zero + second - zero, tolerance):
            self.reason = f"the output projection ({type(self.module).__name__}) is not linear"

    def _plain_weight(self) -> Tensor | None:
        """The weight [output, size] of a linear layer or of GPT-2's transposed one."""
        weight: Any = getattr(self.module, "weight", None)
        if not isinstance(weight, Tensor) or not weight.is_floating_point() or weight.ndim != 2:
            return None
        weight = weight.T if type(self.module).__name__ == "Conv1D" else weight
        return weight if weight.shape[1] == self.size else None


@contextmanager
def _apart(module: nn.Module) -> Iterator[None]:
    """Run a module outside of any session, without dropout."""
    token = seam.current_session.set(None)
    try:
        with torch.no_grad(), training_mode(module, False):
            yield
    finally:
        seam.current_session.reset(token)


def _is_bare(module: nn.Module) -> bool:
    """Whether a module computes weight · input + bias and nothing else: nobody put a function of theirs into it."""
    hooks = [*module._forward_hooks.values(), *module._forward_pre_hooks.values()]
    is_ours = all(getattr(hook, "__module__", "").startswith("headscope.") for hook in hooks)
    is_plain = type(module) in (nn.Linear, Conv1D) and type(module.weight) is nn.Parameter
    return is_plain and is_ours and "forward" not in vars(module)


def _is_near(values: Tensor, expected: Tensor, tolerance: float) -> bool:
    return float((values - expected).norm()) <= tolerance * max(1e-30, float(expected.norm()))
