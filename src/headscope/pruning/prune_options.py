"""Settings of pruning: gates, training, fine-tuning, baselines."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from headscope.errors import InputError
from headscope.pruning.head_gates import GateOptions
from headscope.tasks.fit_options import FitOptions

Trained = Literal["all", "gates", "encoder"]
Method = Literal["l0", "importance", "relevance", "confidence", "random"]
Allocation = Literal["own", "normalised", "l0"]


@dataclass(frozen=True)
class PruneOptions:
    """Settings of `hs.prune`.

    `training` is the L0 stage, where gates and `parameters` are trained together: "all" weights, "gates" alone, or
    gates and the "encoder" beside a frozen decoder. `training.start="scratch"` draws the weights anew. `tuning` is the
    training after it with the mask fixed; None leaves it out. `types` are the types of attention that are pruned: all
    by default, "encoder" alone beside a frozen decoder. `dev_metric` is the metric on dev during training (cheap:
    "loss"); by default the task's. `l0_seeds` repeats every λ.

    `baselines` choose as many heads in other ways, at each L0 point, with and without fine-tuning, `seeds` times each.
    They share heads out among layers by their own scores over the whole model ("own"), by scores divided by each
    layer's norm ("normalised"), or take as many of each type of attention as L0 ("l0"). Baseline "l0" is L0's mask on
    the weights from before L0. Scores are means over the first `ranking_examples` of train.

    `keep` is found to within `keep_tolerance` (a share of the heads) in at most `keep_trials` trainings. With gates for
    key-value groups a few heads less may survive. The chosen point is the smallest whose score on dev is at most
    `score_tolerance` (a share) worse than the untouched model's.
    """

    parameters: Trained = "all"
    types: tuple[str, ...] | None = None
    gates: GateOptions = field(default_factory=GateOptions)
    training: FitOptions = field(default_factory=FitOptions)
    tuning: FitOptions | None = field(default_factory=lambda: FitOptions(steps=500))
    dev_metric: str | None = None
    l0_seeds: int = 1
    baselines: tuple[Method, ...] = ()
    allocations: tuple[Allocation, ...] = ("own", "l0")
    seeds: int = 1
    ranking_examples: int = 200
    keep_tolerance: float = 0.02
    keep_trials: int = 6
    score_tolerance: float = 0.02

    def __post_init__(self) -> None:
        for name, choices in (("baselines", Method), ("allocations", Allocation)):
            unknown = [choice for choice in getattr(self, name) if choice not in get_args(choices)]
            if unknown:
                raise InputError(f"{name} are some of {', '.join(get_args(choices))}; got {unknown[0]!r}.")
        if self.parameters not in get_args(Trained):
            raise InputError(f"parameters are 'all', 'gates' or 'encoder', got {self.parameters!r}.")
        if self.training.start == "scratch" and self.parameters == "gates":
            raise InputError("start='scratch' draws the weights anew, and parameters='gates' trains none of them.")
        if self.tuning is not None and self.tuning.start == "scratch":
            raise InputError("fine-tuning goes on from the weights of L0: start='scratch' is for training=….")
        for name in ("l0_seeds", "seeds", "ranking_examples", "keep_trials"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is at least 1, got {getattr(self, name)}.")
        if not (self.keep_tolerance >= 0 and self.score_tolerance >= 0):
            raise InputError("keep_tolerance and score_tolerance are at least 0.")

    def tuned_parameters(self) -> str:
        """What fine-tuning trains: the encoder beside a frozen decoder, else all weights."""
        return "encoder" if self.parameters == "encoder" else "all"

    def gates_fall(self) -> float:
        """How far log α can fall in training: AdamW changes a gate by about its rate at each step."""
        rate = self.training.rate if self.gates.rate is None else self.gates.rate
        return rate * sum(self.training.rate_factor(step) for step in range(self.training.steps))

    def steps_to_close(self) -> int | None:
        """The least steps in which a gate could close, where those of `training` are too few; else None."""
        start = self.gates.log_alpha
        if isinstance(start, str) or start < self.gates_fall():
            return None
        return math.ceil(self.training.steps * start / self.gates_fall()) + 1

    def l0_settings(self, lambda_by_type: Mapping[str, float], seed: int) -> dict[str, Any]:
        """All that decides an L0 point."""
        training = self.training.to_json() | {"seed": seed}
        chosen = {"parameters": self.parameters, "gates": self.gates.to_json(), "dev_metric": self.dev_metric}
        return {"lambda": dict(lambda_by_type), "training": training, **chosen}
