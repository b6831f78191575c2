"""The optimizer, and its state as named tensors."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from headscope.tasks.fit_options import FitOptions
from headscope.tasks.trained_parameters import ParameterGroup

_ROLE = "optimizer"


def make_optimizer(groups: Sequence[ParameterGroup], options: FitOptions) -> torch.optim.AdamW:
    """AdamW; weight decay on matrices only, unless a group has its own. `peak` is the highest rate of a group."""
    settings: list[dict[str, Any]] = []
    for group in groups:
        peak = options.rate if group.rate is None else group.rate
        matrices = [parameter for parameter in group.parameters.values() if parameter.ndim >= 2]
        others = [parameter for parameter in group.parameters.values() if parameter.ndim < 2]
        default = (options.weight_decay, 0.0)
        decays = default if group.weight_decay is None else (group.weight_decay, group.weight_decay)
        for parameters, decay in zip((matrices, others), decays, strict=True):
            if parameters:
                settings.append({"params": parameters, "lr": peak, "peak": peak, "weight_decay": decay})
    return torch.optim.AdamW(settings, lr=options.rate, betas=options.betas)


def optimizer_tensors(optimizer: torch.optim.Optimizer, trained: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The state of every parameter that has had a step: `optimizer/exp_avg/NAME` and so on."""
    tensors: dict[str, Tensor] = {}
    for name, parameter in trained.items():
        for key, value in optimizer.state.get(parameter, {}).items():
            tensors[f"{_ROLE}/{key}/{name}"] = value
    return tensors


def restore_optimizer(
    optimizer: torch.optim.Optimizer, trained: Mapping[str, Tensor], tensors: Mapping[str, Tensor]
) -> None:
    """Put back what `optimizer_tensors` gave."""
    for path, tensor in tensors.items():
        role, _, rest = path.partition("/")
        key, _, name = rest.partition("/")
        if role == _ROLE:
            parameter = trained[name]
            device = "cpu" if key == "step" else parameter.device
            optimizer.state[parameter][key] = tensor.to(device, copy=True)
