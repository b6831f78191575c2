"""How a model is trained: batches, learning rate, precision, evaluation."""

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from headscope.errors import InputError

Schedule = Literal["linear", "cosine", "inverse_sqrt", "constant"]
Precision = Literal["fp32", "bf16", "fp16"]
Start = Literal["trained", "scratch"]
Select = Literal["best", "last"]


@dataclass(frozen=True)
class FitOptions:
    """Settings of `fit`; the optimizer is AdamW.

    `rate` is the highest learning rate: it rises over `warmup` steps, then follows `schedule` (linear or cosine to 0
    at the last step, inverse_sqrt, or constant). `batch_tokens` bounds the positions of a batch, padding counted.
    `clip` is the largest norm of the gradient. `precision` is that of autocast; weights stay as they are. The model is
    evaluated on dev, and a checkpoint written, every `evaluate_every` steps; `select` says which of these weights count
    in the end: the "best" on dev, or the "last". `start="scratch"` draws the weights that are trained anew.
    """

    steps: int = 1000
    batch_size: int = 32
    batch_tokens: int | None = None
    rate: float = 1e-4
    warmup: int = 0
    schedule: Schedule = "linear"
    weight_decay: float = 0.01
    betas: tuple[float, float] = (0.9, 0.98)
    clip: float = 1.0
    precision: Precision = "fp32"
    evaluate_every: int = 100
    select: Select = "best"
    start: Start = "trained"
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("steps", "batch_size", "evaluate_every"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is at least 1, got {getattr(self, name)}.")
        if self.batch_tokens is not None and self.batch_tokens < 1:
            raise InputError(f"batch_tokens is at least 1, got {self.batch_tokens}.")
        are_finite = all(map(math.isfinite, (self.rate, self.clip, self.weight_decay)))
        if not are_finite or self.rate <= 0 or self.clip <= 0 or self.weight_decay < 0 or self.warmup < 0:
            raise InputError(
                f"rate ({self.rate}) and clip ({self.clip}) are above 0, weight_decay ({self.weight_decay}) and warmup "
                f"({self.warmup}) at least 0, and none is infinite."
            )
        if not 0 <= self.seed < 2**32:
            raise InputError(f"seed is from 0 to 2^32 − 1, got {self.seed}.")
        for name, choices in (("schedule", Schedule), ("precision", Precision), ("select", Select), ("start", Start)):
            if getattr(self, name) not in get_args(choices):
                raise InputError(f"{name} is one of {', '.join(get_args(choices))}; got {getattr(self, name)!r}.")

    def rate_factor(self, step: int) -> float:
        """By what the learning rates are multiplied at a step; the first is 0."""
        if step < self.warmup:
            return (step + 1) / self.warmup
        progress = (step - self.warmup) / max(1, self.steps - self.warmup)
        match self.schedule:
            case "linear":
                return 1.0 - progress
            case "cosine":
                return 0.5 * (1.0 + math.cos(math.pi * progress))
            case "inverse_sqrt":
                return math.sqrt(max(1, self.warmup) / (step + 1))
        return 1.0

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self) | {"betas": list(self.betas)}
