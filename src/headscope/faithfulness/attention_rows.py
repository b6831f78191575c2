"""The rows of attention that a test replaces, and the output that follows from other rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from headscope.errors import InputError

# Other rows [copy, batch, row, key] to probabilities [copy, batch, class], or [copy, batch, answer, class]. Every copy
# is a trial of its own; the adversary needs the gradient to flow from the result to the rows.
Answer = Callable[[Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class AttentionRows:
    """Rows of attention under test: `pattern` [batch, row, key].

    `visible` [batch, row, key] is True where a key may be attended; `movable` [batch, key] where a weight may be
    permuted (not for special tokens; default: everywhere). `real` [batch, row] is False for rows that are padding.
    `own` [batch, row] is the key at which each query stands, where queries and keys are the same tokens. `answered`
    [batch, answer] is False for answers that are padding.
    """

    pattern: Tensor
    visible: Tensor
    movable: Tensor | None = None
    real: Tensor | None = None
    own: Tensor | None = None
    answered: Tensor | None = None

    def __post_init__(self):
        if self.pattern.ndim != 3 or self.visible.shape != self.pattern.shape or self.visible.dtype != torch.bool:
            raise InputError(
                f"rows of attention are [batch, row, key] with a boolean mask of the same shape, got "
                f"{tuple(self.pattern.shape)} and {tuple(self.visible.shape)} of {self.visible.dtype}."
            )
        n_batch, n_rows, n_keys = self.pattern.shape
        shapes = {"movable": (n_batch, n_keys), "real": (n_batch, n_rows), "own": (n_batch, n_rows)}
        for name, shape in shapes.items():
            value = getattr(self, name)
            if value is not None and tuple(value.shape) != shape:
                raise InputError(f"{name} is {list(shape)} for these rows, got {list(value.shape)}.")

    @property
    def permutable(self) -> Tensor:
        """True where a weight may move [batch, row, key]: the key can be seen and is not special."""
        return self.visible if self.movable is None else self.visible & self.movable[:, None]

    def part(self, places: Sequence[int]) -> "AttentionRows":
        """The rows of some members of the batch."""
        chosen = list(places)
        names = ("movable", "real", "own", "answered")
        others = {name: None if getattr(self, name) is None else getattr(self, name)[chosen] for name in names}
        return AttentionRows(self.pattern[chosen], self.visible[chosen], **others)

    @property
    def weights(self) -> Tensor:
        """The attention that each key gets [batch, key]: the mean over the rows that can see it."""
        seen_by = self.visible if self.real is None else self.visible & self.real[..., None]
        return (self.pattern * seen_by).sum(1) / seen_by.sum(1).clamp_min(1)

    def mean_over_rows(self, values: Tensor) -> Tensor:
        """The mean over real rows of one number per row: [..., batch, row] to [..., batch]."""
        if self.real is None:
            return values.mean(-1)
        real = self.real.to(values)
        return (values * real).sum(-1) / real.sum(-1).clamp_min(1.0)
