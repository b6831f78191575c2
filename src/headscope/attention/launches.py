"""Launches of kernels whose shape was seen before: Triton takes a tenth of a millisecond to look one up."""

from collections.abc import Hashable
from typing import Any

_MAX_COMPILED = 1024
_compiled: dict[tuple[Hashable, Hashable], Any] = {}


def launch(
    kernel: Any, grid: tuple[int, ...], arguments: dict[str, Any], known: Hashable = None, **options: int
) -> None:
    """Launch a kernel. `known` stands for all that its code depends on: dtypes, shapes, strides, alignment, constants.

    Without it, Triton finds that out by itself.
    """
    if known is None:
        kernel[grid](**arguments, **options)
        return
    compiled = _compiled.get((kernel.fn, known))
    if compiled is not None:
        compiled[(*grid, 1, 1)[:3]](*(arguments[name] for name in kernel.arg_names))
        return
    if len(_compiled) >= _MAX_COMPILED:
        _compiled.clear()
    _compiled[kernel.fn, known] = kernel[grid](**arguments, **options)
