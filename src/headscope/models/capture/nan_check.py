"""Which edit it was that made a model's output NaN."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from headscope.errors import InterventionError
from headscope.interventions import Intervention


def check_output(outputs: Any, edits: Sequence[Intervention], again: Callable[[Sequence[Intervention]], Any]) -> None:
    """Refuse an output that edits made NaN, and say which one did; `again` runs the same input with fewer of them.

    An output that is NaN without edits is the model's own, and none of our business.
    """
    if not edits or not _is_broken(outputs) or _is_broken(again([])):
        return
    # Sound with the first `low` of them, broken with the first `high`: in between lies one that breaks it.
    low, high = 0, len(edits)
    while high - low > 1:
        middle = (low + high) // 2
        if _is_broken(again(edits[:middle])):
            high = middle
        else:
            low = middle
    before = "" if low == 0 else f" (after {', '.join(repr(edit) for edit in edits[:low])})"
    raise InterventionError(
        f"{edits[high - 1]!r} makes the model's output NaN{before}: numbers become too large on the way. "
        "Choose a smaller change."
    )


def _is_broken(outputs: Any) -> bool:
    """Whether a floating-point output holds NaN or +inf; −inf is how some models rule an answer out."""
    if isinstance(outputs, Mapping):
        outputs = tuple(outputs.values())
    tensors = outputs if isinstance(outputs, tuple | list) else [outputs]
    floats = [tensor for tensor in tensors if isinstance(tensor, Tensor) and tensor.is_floating_point()]
    if not floats:
        return False
    # A sum tells NaN and +inf apart from everything else in one pass; the device is read once.
    with torch.no_grad():
        sums = [tensor.clamp_min(torch.finfo(tensor.dtype).min).sum(dtype=torch.float64) for tensor in floats]
        return not bool(torch.isfinite(torch.stack([total.to(sums[0].device) for total in sums])).all())
