"""Hard Concrete gates of heads (Louizos et al., 2018; Voita et al., 2019): sampled, in closed form, and hardened."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from headscope.errors import InputError
from headscope.interventions import Intervention, gate
from headscope.pruning.attention_types import PrunableLayer
from headscope.pruning.head_mask import HeadMask
from headscope.sites import Site

GateUnit = Literal["head", "group"]
Penalty = Literal["sum", "mean"]
Evaluation = Literal["hard", "soft"]
# Noise stays this far from 0 and 1.
_MARGIN = 1e-6


@dataclass(frozen=True)
class GateOptions:
    """Settings of the gates. `log_alpha` is their start: a number, or "glorot" for the paper's draw around 0.

    `rate` is their learning rate (None: that of the model). `per="group"` shares a gate among the query heads of a
    key-value head. The penalty is λ times the number of heads expected to be open, as in the paper; "mean" divides it
    by the number of attention layers, as its code does. λ rises from 0 over the first `warmup` steps. Evaluations
    during training use 0 or 1 ("hard"), or the code's clip(1.2 · sigmoid(log α) − 0.1) ("soft").
    """

    log_alpha: float | Literal["glorot"] = 2.0
    rate: float | None = 0.05
    tau: float = 0.33
    stretch: tuple[float, float] = (-0.1, 1.1)
    per: GateUnit = "head"
    warmup: int = 0
    penalty: Penalty = "sum"
    evaluation: Evaluation = "hard"

    def __post_init__(self) -> None:
        if not 0 < self.tau < math.inf or not -math.inf < self.stretch[0] < 0 < 1 < self.stretch[1] < math.inf:
            raise InputError("tau is above 0, and the stretch reaches below 0 and above 1.")
        if self.warmup < 0 or (self.rate is not None and not 0 < self.rate < math.inf):
            raise InputError("the rate of gates is above 0, and warmup at least 0.")
        if self.log_alpha != "glorot" and (isinstance(self.log_alpha, str) or not math.isfinite(self.log_alpha)):
            raise InputError(f"log_alpha is a number or 'glorot', got {self.log_alpha!r}.")
        for name, choices in (("per", GateUnit), ("penalty", Penalty), ("evaluation", Evaluation)):
            if getattr(self, name) not in get_args(choices):
                raise InputError(f"{name} is one of {', '.join(get_args(choices))}; got {getattr(self, name)!r}.")

    @classmethod
    def voita(cls) -> "GateOptions":
        """The settings of the paper's code."""
        return cls(log_alpha="glorot", rate=None, penalty="mean", evaluation="soft")

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self) | {"stretch": list(self.stretch)}


def p_open(log_alpha: Tensor, options: GateOptions | None = None) -> Tensor:
    """P(gate > 0) = sigmoid(log α − τ · log(−low / high)).

    >>> round(float(p_open(torch.tensor(0.0))), 4)
    0.6881
    """
    options = options or GateOptions()
    low, high = options.stretch
    return torch.sigmoid(log_alpha - options.tau * math.log(-low / high))


def p_one(log_alpha: Tensor, options: GateOptions | None = None) -> Tensor:
    """P(gate = 1) = sigmoid(log α − τ · log((1 − low) / (high − 1)))."""
    options = options or GateOptions()
    low, high = options.stretch
    return torch.sigmoid(log_alpha - options.tau * math.log((1 - low) / (high - 1)))


def sample_gates(log_alpha: Tensor, options: GateOptions | None = None) -> Tensor:
    """A draw of every gate, from 0 to 1, with a gradient; the noise is of torch's generator for the CPU."""
    options = options or GateOptions()
    low, high = options.stretch
    noise = torch.rand(log_alpha.shape).clamp_(_MARGIN, 1 - _MARGIN).to(log_alpha.device)
    concrete = torch.sigmoid((torch.logit(noise) + log_alpha) / options.tau)
    return (concrete * (high - low) + low).clamp(0, 1)


def soft_gates(log_alpha: Tensor, options: GateOptions | None = None) -> Tensor:
    """The gates of the paper's code at evaluation, without noise and without τ."""
    low, high = (options or GateOptions()).stretch
    return (torch.sigmoid(log_alpha) * (high - low) + low).clamp(0, 1)


class HeadGates:
    """One log α for each head of some layers, or for each key-value group. A head is kept if its log α is above 0."""

    def __init__(
        self,
        layers: Sequence[PrunableLayer],
        options: GateOptions,
        *,
        seed: int = 0,
        device: torch.device | str = "cpu",
    ):
        self.layers, self.options = tuple(layers), options
        self.sizes = [layer.n_groups if options.per == "group" else layer.n_heads for layer in layers]
        self.log_alpha = _start(self.sizes, options.log_alpha, seed).to(device).requires_grad_()

    def by_layer(self, values: Tensor) -> dict[Site, Tensor]:
        """One value per gate as one per head, by layer."""
        parts = values.split(self.sizes)
        return {
            layer.site: part.repeat_interleave(layer.n_heads // len(part))
            for layer, part in zip(self.layers, parts, strict=True)
        }

    def sample(self) -> list[Intervention]:
        """Gates with fresh noise: one draw for each head, shared by the examples of a batch."""
        return self._interventions(sample_gates(self.log_alpha, self.options))

    def at_evaluation(self) -> list[Intervention]:
        """Gates without noise: 0 and 1, or "soft"."""
        if self.options.evaluation == "soft":
            return self._interventions(soft_gates(self.log_alpha.detach(), self.options))
        return self._interventions((self.log_alpha.detach() > 0).float())

    def _interventions(self, values: Tensor) -> list[Intervention]:
        return [gate(site, factor) for site, factor in self.by_layer(values).items()]

    def penalty(self, lambda_by_type: Mapping[str, float], step: int) -> Tensor:
        """Σ λ · P(open) over heads, at a step."""
        open_heads = self.by_layer(p_open(self.log_alpha, self.options))
        total = sum(lambda_by_type[layer.type] * open_heads[layer.site].sum() for layer in self.layers)
        rise = min(1.0, (step + 1) / self.options.warmup) if self.options.warmup else 1.0
        return torch.as_tensor(total) * rise / (len(self.layers) if self.options.penalty == "mean" else 1)

    def mask(self, whole: HeadMask) -> HeadMask:
        """The heads that survive; in layers without gates all that `whole` has."""
        kept_heads = {
            site: tuple(bool(survives) for survives in row.tolist())
            for site, row in self.by_layer((self.log_alpha.detach() > 0).cpu()).items()
        }
        return HeadMask({site: kept_heads.get(site, row) for site, row in whole.rows()})

    def values(self) -> dict[Site, tuple[float, ...]]:
        """log α of every head, by layer."""
        return {site: tuple(row.tolist()) for site, row in self.by_layer(self.log_alpha.detach().cpu()).items()}

    def open_probabilities(self) -> dict[Site, tuple[float, ...]]:
        """P(open) of every head, by layer."""
        rows = self.by_layer(p_open(self.log_alpha.detach().cpu(), self.options))
        return {site: tuple(row.tolist()) for site, row in rows.items()}


def _start(sizes: Sequence[int], log_alpha: float | str, seed: int) -> Tensor:
    """The same number for all gates, or Glorot's uniform draw for a layer's [1, gate, 1, 1]: ±√(6 / 2n)."""
    if not isinstance(log_alpha, str):
        return torch.full((sum(sizes),), float(log_alpha))
    generator = torch.Generator().manual_seed(seed)
    bounds = torch.cat([torch.full((size,), math.sqrt(3 / size)) for size in sizes])
    return (2 * torch.rand(len(bounds), generator=generator) - 1) * bounds
