"""How well a model does at a task: one number, and how it is computed from counts of examples."""

import math
from dataclasses import dataclass

import numpy as np

# Metrics by whether more is better.
HIGHER_IS_BETTER = {"bleu": True, "f1": True, "accuracy": True, "loss": False, "bits_per_byte": False}
N_BOOTSTRAP = 1000
# Counts of an example, in this order; tasks add columns after them.
COLUMNS = ("nats", "targets", "correct")


@dataclass(frozen=True)
class Score:
    """The value of a metric over `n` examples, with a 95 % bootstrap interval over examples where asked for.

    bleu: 0 to 100. f1 and accuracy: 0 to 1. loss: nats per target. bits_per_byte: bits per byte of UTF-8 text.
    """

    metric: str
    value: float
    n: int
    interval: tuple[float, float] | None = None

    def is_better_than(self, value: float) -> bool:
        """Whether it beats another value of the same metric; NaN never does."""
        return self.value > value if HIGHER_IS_BETTER[self.metric] else self.value < value


def value_of(metric: str, totals: np.ndarray) -> np.ndarray:
    """The metric from totals [..., column] of the counts: nats, targets and correct, then what the metric adds."""
    with np.errstate(invalid="ignore", divide="ignore"):
        if metric == "f1":  # correct, predicted and gold phrases
            correct, predicted, gold = (totals[..., column] for column in (3, 4, 5))
            return np.where(correct > 0, 2 * correct / (predicted + gold), 0.0)
        if metric == "bits_per_byte":
            return totals[..., 0] / math.log(2) / totals[..., 3]
        return totals[..., 2 if metric == "accuracy" else 0] / totals[..., 1]


def score_of(metric: str, counts: np.ndarray, *, interval: bool = False) -> Score:
    """The score of counts [example, column]; the interval resamples examples, the same way at every call."""
    value = float(value_of(metric, counts.sum(0)))
    if not interval or len(counts) < 2:
        return Score(metric, value, len(counts))
    rng = np.random.default_rng(0)
    draws = (rng.multinomial(len(counts), np.full(len(counts), 1 / len(counts))) @ counts for _ in range(N_BOOTSTRAP))
    low, high = np.nanquantile(value_of(metric, np.stack(list(draws))), [0.025, 0.975])
    return Score(metric, value, len(counts), (float(low), float(high)))
