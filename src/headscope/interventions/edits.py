"""What an edit does to a tensor on its way through the attention function.

Every edit takes a tensor [batch, head, row, last axis] of the heads it was asked for and gives the new one. Which rows
may change (`tokens=`) is seen to by the caller. An edit checks its own arguments, so that one read from a file is as
sound as one made in Python.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Protocol

import torch
from torch import Tensor

from headscope.errors import InterventionError
from headscope.traces.tokens import TokenChoice, Tokens


@dataclass(frozen=True, eq=False)
class At:
    """Where an edit acts: the input position of each row, and of each key where the last axis counts keys.

    index [batch, row] and key_index [batch, key] are positions in each example without its padding, −1 for padding.
    first_head is not 0 where a tensor holds later heads of a layer only.
    """

    index: Tensor
    key_index: Tensor | None = None
    tokens: Sequence[Tokens] | None = None
    key_tokens: Sequence[Tokens] | None = None
    first_head: int = 0

    def rows(self, chosen: TokenChoice) -> Tensor:
        """True for the rows whose tokens are chosen [batch, row]."""
        return _choice_mask(chosen, self.index, self.tokens)

    def keys(self, chosen: TokenChoice) -> Tensor:
        """True for the keys whose tokens are chosen [batch, key]."""
        if self.key_index is None:
            raise InterventionError("keys can be chosen only where scores or patterns are edited.")
        return _choice_mask(chosen, self.key_index, self.key_tokens)

    def to(self, device: torch.device) -> "At":
        """The same places on another device, where a model is spread over several."""
        if self.index.device == device:
            return self
        key_index = None if self.key_index is None else self.key_index.to(device)
        return At(self.index.to(device), key_index, self.tokens, self.key_tokens, self.first_head)

    @property
    def real(self) -> Tensor:
        """True for rows that are not padding [batch, row]."""
        return self.index >= 0


class Edit(Protocol):
    """A change to one tensor, with the arguments that say how."""

    def __call__(self, x: Tensor, at: At) -> Tensor:
        """The edited tensor [batch, head, row, last axis]."""
        ...


def _choice_mask(chosen: TokenChoice, index: Tensor, tokens: Sequence[Tokens] | None) -> Tensor:
    mask = torch.zeros_like(index, dtype=torch.bool)
    for example in range(index.shape[0]):
        positions = _plain_positions(chosen, index[example]) if tokens is None else tokens[example].positions(chosen)
        mask[example] = torch.isin(index[example], torch.tensor(positions, dtype=index.dtype, device=index.device))
    return mask


def _plain_positions(chosen: TokenChoice, index: Tensor) -> list[int]:
    """Positions without a tokenizer's help: only numbers, counted from the start. A range is not expanded."""
    if isinstance(chosen, int) and chosen >= 0:
        return [chosen]
    if isinstance(chosen, range) and (not chosen or min(chosen[0], chosen[-1]) >= 0):
        return [position for position in index.tolist() if position in chosen]
    if isinstance(chosen, list | tuple):
        positions = [position for position in chosen if isinstance(position, int) and position >= 0]
        if len(positions) == len(chosen):
            return positions
    raise InterventionError(
        f"tokens={chosen!r} cannot be looked up in a bare session: give positions counted from 0, or use model.run."
    )


def finite(value: Any, name: str) -> float:
    """The value as a float, if it is a finite number."""
    if isinstance(value, Tensor) and value.numel() == 1:
        value = float(value)
    try:
        number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else float("nan")
    except OverflowError:  # a whole number with hundreds of digits
        number = float("inf")
    if not abs(number) < float("inf"):
        raise InterventionError(f"{name} must be a finite number, got {value!r}.")
    return number


def check_finite(values: Tensor, name: str) -> None:
    """Refuse NaN and infinite values."""
    n_bad = values.numel() - int(values.detach().isfinite().sum())
    if n_bad:
        raise InterventionError(f"{name} holds NaN or infinite values: {n_bad} of {values.numel()}.")


def check_weights(weights: Tensor, name: str) -> None:
    """Refuse what no attention weight can be."""
    check_finite(weights, name)
    if bool((weights < 0).any()):
        raise InterventionError(f"{name} holds negative weights, the lowest {float(weights.min()):.4g}.")


@dataclass(frozen=True, eq=False)
class Scale:
    """Multiply by a number, or by one number per head (a tensor, which may carry a gradient)."""

    factor: float | Tensor

    def __post_init__(self):
        if isinstance(self.factor, Tensor):
            check_finite(self.factor, "gate")
        else:
            finite(self.factor, "factor")

    def __call__(self, x: Tensor, at: At) -> Tensor:
        """The scaled tensor."""
        if isinstance(self.factor, Tensor):
            return x * self.factor.to(x).reshape(1, -1, 1, 1)
        return x * self.factor


@dataclass(frozen=True, eq=False)
class Mean:
    """Put the mean in place of each row: of this run's own rows, or one that was measured before [head, dim]."""

    mean: Tensor | None = None

    def __post_init__(self):
        if self.mean is not None:
            check_finite(self.mean, "mean")

    def __call__(self, x: Tensor, at: At) -> Tensor:
        """The mean, in every row."""
        if self.mean is not None:
            return self.mean.to(x).reshape(1, -1, 1, x.shape[-1]).expand_as(x)
        real = at.real[:, None, :, None]
        return (x.masked_fill(~real, 0.0).sum(2, keepdim=True) / real.sum(2, keepdim=True)).expand_as(x)


@dataclass(frozen=True, eq=False)
class Patch:
    """Put rows from another run in place [head, row, last axis]; rows past its end stay as they are."""

    values: Tensor

    def __post_init__(self):
        check_finite(self.values, "patch")
        if self.values.ndim != 3:
            shape = tuple(self.values.shape)
            raise InterventionError(f"a patch is [token, dim] or [head, token, dim], got shape {shape}.")

    def __call__(self, x: Tensor, at: At) -> Tensor:
        """The other run's rows, where there are any."""
        n_heads, _, dim = self.values.shape
        if n_heads not in (1, x.shape[1]) or dim != x.shape[-1]:
            raise InterventionError(
                f"the patch has {n_heads} × {dim} numbers a token (heads × dimensions), and what it replaces has "
                f"{x.shape[1]} × {x.shape[-1]}."
            )
        values = self.values.to(x)
        inside = (at.index >= 0) & (at.index < values.shape[-2])
        rows = values[:, at.index.clamp(0, values.shape[-2] - 1)].transpose(0, 1)  # [batch, head, row, dim]
        return torch.where(inside[:, None, :, None], rows, x)


@dataclass(frozen=True, eq=False)
class Coordinate:
    """Change one coordinate of the last axis: x ← x · factor + amount."""

    index: int
    factor: float
    amount: float

    def __post_init__(self):
        if isinstance(self.index, bool) or not isinstance(self.index, int) or self.index < 0:
            raise InterventionError(f"a neuron's index counts from 0, got {self.index!r}.")
        finite(self.factor, "factor")
        finite(self.amount, "amount")

    def __call__(self, x: Tensor, at: At) -> Tensor:
        """The tensor with that coordinate changed."""
        if self.index >= x.shape[-1]:
            raise InterventionError(
                f"there is no neuron {self.index}: there are {x.shape[-1]}, 0 to {x.shape[-1] - 1}."
            )
        changed = x.clone()
        changed[..., self.index] = x[..., self.index] * self.factor + self.amount
        return changed


@dataclass(frozen=True, eq=False)
class Temperature:
    """Divide the scores: below 1 sharpens, above 1 flattens."""

    value: float

    def __post_init__(self):
        if finite(self.value, "temperature") <= 0:
            raise InterventionError(f"a temperature must be above 0, got {self.value}.")

    def __call__(self, x: Tensor, at: At) -> Tensor:
        """The divided scores."""
        return x / self.value


@dataclass(frozen=True, eq=False)
class Uniform:
    """Make all scores equal: each query looks at everything it may see alike."""

    def __call__(self, x: Tensor, at: At) -> Tensor:
        """Zero, but −inf where an edit before this one forbade to look."""
        return torch.where(torch.isneginf(x), x, 0.0)


@dataclass(frozen=True, eq=False)
class DistanceBias:
    """Add slope · |query − key| to the scores: negative favours near keys."""

    slope: float

    def __post_init__(self):
        finite(self.slope, "slope")

    def __call__(self, x: Tensor, at: At) -> Tensor:
        """The scores with the bias added."""
        assert at.key_index is not None  # scores always have keys
        distance = (at.index[:, :, None] - at.key_index[:, None, :]).abs()
        return x + self.slope * distance[:, None].to(x.dtype)


@dataclass(frozen=True, eq=False)
class Block:
    """Forbid some queries to see some keys."""

    queries: TokenChoice
    keys: TokenChoice

    def __call__(self, x: Tensor, at: At) -> Tensor:
        """The scores, −inf where forbidden."""
        forbidden = at.rows(self.queries)[:, None, :, None] & at.keys(self.keys)[:, None, None, :]
        return x.masked_fill(forbidden, float("-inf"))


@dataclass(frozen=True, eq=False)
class ReplacePattern:
    """Put a whole pattern in place [head or 1, query, key]."""

    weights: Tensor
    renormalise: bool = True

    def __post_init__(self):
        check_weights(self.weights, "pattern")
        if self.weights.ndim != 3:
            shape = tuple(self.weights.shape)
            raise InterventionError(f"a pattern is [query, key] or [head, query, key], got shape {shape}.")

    def __call__(self, x: Tensor, at: At) -> Tensor:
        """The new pattern, where it has rows."""
        assert at.key_index is not None  # patterns always have keys
        weights = self.weights.to(x)
        rows = at.index.clamp(0, weights.shape[-2] - 1)[:, :, None]
        keys = at.key_index.clamp(0, weights.shape[-1] - 1)[:, None, :]
        placed = weights[:, rows, keys].transpose(0, 1)  # [batch, head, row, key]
        inside = (at.index[:, :, None] >= 0) & (at.index[:, :, None] < weights.shape[-2])
        inside = inside & (at.key_index[:, None, :] >= 0)
        placed = torch.where(inside[:, None] & (at.key_index < weights.shape[-1])[:, None, None, :], placed, 0.0)
        placed = _renormalise(placed) if self.renormalise else placed
        return torch.where((at.index >= 0)[:, None, :, None] & inside.any(-1)[:, None, :, None], placed, x)


@dataclass(frozen=True, eq=False)
class SetWeight:
    """Give one query's weight on one key a new value; the rest of the row makes room for it, or does not."""

    query: TokenChoice
    key: TokenChoice
    weight: float
    renormalise: bool = True

    def __post_init__(self):
        if finite(self.weight, "weight") < 0 or (self.renormalise and self.weight > 1):
            raise InterventionError(f"an attention weight lies between 0 and 1, got {self.weight}.")

    def __call__(self, x: Tensor, at: At) -> Tensor:
        """The pattern with the new weight."""
        rows, keys = at.rows(self.query)[:, None, :, None], at.keys(self.key)[:, None, None, :]
        changed = torch.where(rows & keys, torch.as_tensor(self.weight, dtype=x.dtype, device=x.device), x)
        if not self.renormalise:
            return changed
        # The chosen cells keep exactly the weight asked for (unless they are so many that it adds up to more than one);
        # the others share what is left.
        changed = torch.where(
            keys, changed / torch.where(keys, changed, 0.0).sum(-1, keepdim=True).clamp_min(1), changed
        )
        fixed = torch.where(keys, changed, 0.0).sum(-1, keepdim=True)
        others = torch.where(keys, 0.0, changed)
        shared = others.sum(-1, keepdim=True)
        rest = torch.where(shared > 0, others * (1 - fixed).clamp_min(0) / shared.clamp_min(1e-30), others)
        return torch.where(rows, torch.where(keys, changed, rest), x)


@dataclass(frozen=True, eq=False)
class SetRow:
    """Give one query a new row of weights [key]."""

    query: TokenChoice
    weights: Tensor
    renormalise: bool = True

    def __post_init__(self):
        check_weights(self.weights, "row")
        if self.weights.ndim != 1:
            raise InterventionError(f"a row of weights has one axis [key], got shape {tuple(self.weights.shape)}.")

    def __call__(self, x: Tensor, at: At) -> Tensor:
        """The pattern with the new row."""
        assert at.key_index is not None  # patterns always have keys
        weights = self.weights.to(x)
        keys = at.key_index.clamp(0, len(weights) - 1)
        row = torch.where((at.key_index >= 0) & (at.key_index < len(weights)), weights[keys], 0.0)[:, None, None, :]
        row = _renormalise(row) if self.renormalise else row
        return torch.where(at.rows(self.query)[:, None, :, None], row, x)


@dataclass(frozen=True, eq=False)
class ReplaceToken:
    """Put another token in place before the run: an id, a text that is one token, or the mask token."""

    token: int | str | None

    def __post_init__(self):
        is_id = isinstance(self.token, int) and not isinstance(self.token, bool) and self.token >= 0
        if not (is_id or self.token is None or isinstance(self.token, str)):
            raise InterventionError(f"a token is an id or a text, got {self.token!r}.")


@dataclass(frozen=True, eq=False)
class Apply:
    """Call a function of the tensor: for research code; it cannot be saved."""

    function: Callable[[Tensor], Tensor] = field(repr=False)

    def __call__(self, x: Tensor, at: At) -> Tensor:
        """What the function gives."""
        return self.function(x)


def _renormalise(weights: Tensor) -> Tensor:
    return weights / weights.sum(-1, keepdim=True).clamp_min(torch.finfo(weights.dtype).tiny)
