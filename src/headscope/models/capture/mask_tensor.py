"""A mask that model code takes for a tensor: described, not stored, for as long as it is only passed along."""

from typing import Any

import torch
from torch import Tensor
from torch.overrides import get_default_nowrap_functions

from headscope.attention import Mask

_METADATA = frozenset((*get_default_nowrap_functions(), Tensor.size, Tensor.dim, Tensor.numel))
_SAME = frozenset((Tensor.contiguous, Tensor.detach, Tensor.clone))


class MaskTensor(Tensor):
    """A `Mask` in the place of the tensor that Transformers makes for eager attention.

    That is [batch, head or 1, query, key], 0 where a query may look and the lowest number elsewhere. Models test
    whether it is a tensor, and some compute with it: anything more than passing it along turns it into the tensor.
    """

    mask: Mask

    @staticmethod
    def __new__(cls, mask: Mask, dtype: torch.dtype, device: Any) -> "MaskTensor":
        """Takes no storage; the gradient does not flow through masks."""
        tensor = Tensor._make_wrapper_subclass(cls, mask.shape, dtype=dtype, device=torch.device(device))  # type: ignore[attr-defined]
        tensor.mask = mask
        return tensor

    def as_tensor(self) -> Tensor:
        """The tensor that a model would have got for eager attention."""
        allowed = self.mask.materialise().to(self.device)
        free = torch.zeros((), dtype=self.dtype, device=self.device)
        return torch.where(allowed, free, torch.finfo(self.dtype).min)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"MaskTensor({self.mask!r})"

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in _METADATA or getattr(func, "__name__", "") == "__get__":
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args, **kwargs)
        if args and isinstance(args[0], MaskTensor):
            unchanged = _unchanged(func, args[0], args[1:], kwargs)
            if unchanged is not None:
                return unchanged
        return func(*_dense(tuple(args)), **_dense(kwargs))

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*_dense(tuple(args)), **_dense(kwargs or {}))


def _unchanged(func: Any, tensor: MaskTensor, args: tuple, kwargs: dict[str, Any]) -> MaskTensor | None:
    """The mask itself, where a call only passes it along: a cut to all of its keys, a move to its own type."""
    if func is Tensor.__getitem__:
        return None if _is_cut(args[0], tensor.shape) else tensor
    if func in _SAME:
        return tensor
    if func is Tensor.to and not set(kwargs) - {"device", "dtype", "non_blocking", "copy"}:
        wanted = [*args, *(kwargs.get(name) for name in ("device", "dtype"))]
        dtypes = [option for option in wanted if isinstance(option, torch.dtype)]
        devices = [
            option for option in wanted if isinstance(option, str | torch.device | int) and not isinstance(option, bool)
        ]
        if all(isinstance(option, torch.dtype | str | torch.device | int | None) for option in wanted) and all(
            dtype == tensor.dtype for dtype in dtypes
        ):
            return MaskTensor(tensor.mask.to(devices[0]), tensor.dtype, devices[0]) if devices else tensor
    return None


def _is_cut(index: Any, shape: torch.Size) -> bool:
    """Whether an index takes anything but the whole tensor: models cut a mask to the keys they have, often all."""
    parts = index if isinstance(index, tuple) else (index,)
    if parts and parts[0] is Ellipsis:
        parts = (slice(None),) * (5 - len(parts)) + parts[1:]
    return len(parts) > 4 or any(
        not isinstance(part, slice) or part.indices(length) != (0, length, 1)
        for part, length in zip(parts, shape, strict=False)
    )


def _dense(arguments: Any) -> Any:
    if isinstance(arguments, MaskTensor):
        return arguments.as_tensor()
    if isinstance(arguments, dict):
        return {name: _dense(argument) for name, argument in arguments.items()}
    if isinstance(arguments, list | tuple):
        return type(arguments)(_dense(argument) for argument in arguments)
    return arguments
