"""A wall-clock budget that drives the learning rate: it reaches zero when the time is up, however fast the GPU is."""

from __future__ import annotations

import math
import time


class Budget:
    def __init__(self, seconds: float) -> None:
        self.started = time.monotonic()
        self.deadline = self.started + seconds
        self.first_step: float | None = None

    def elapsed(self) -> float:
        return time.monotonic() - self.started

    def spent(self) -> float:
        """The share of the training time used so far; reading and compiling before the first step do not count."""
        now = time.monotonic()
        if self.first_step is None:
            self.first_step = now
        return min(1.0, (now - self.first_step) / max(1e-6, self.deadline - self.first_step))

    def rate(self, warm_up: float = 0.03) -> float:
        """Learning-rate factor: linear warm-up, then a half cosine to zero."""
        spent = self.spent()
        if spent < warm_up:
            return max(1e-3, spent / warm_up)
        return 0.5 * (1.0 + math.cos(math.pi * (spent - warm_up) / (1.0 - warm_up)))


class Occasions:
    """Says when to look at the model: `count` times over the budget, more closely spaced at the start."""

    def __init__(self, budget: Budget, count: int) -> None:
        self.budget = budget
        self.due = [((index + 1) / count) ** 1.3 for index in range(count - 1)]

    def now(self) -> bool:
        if not self.due or self.budget.spent() < self.due[0]:
            return False
        while self.due and self.budget.spent() >= self.due[0]:
            self.due.pop(0)
        return True
