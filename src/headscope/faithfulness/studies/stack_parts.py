"""Layers of many small models at once: every parameter has the model as its first axis, [model, …].

Models of a stack take the same batches and learn apart: each has its own parameters and its own dropout.
"""

import functools
import math
import zlib
from collections.abc import Mapping

import torch
from torch import Tensor

from headscope.errors import InputError
from headscope.models.loading import check_device

Parameters = Mapping[str, Tensor]
# Random numbers of 16 bits are compared with the rate of dropout.
_LANES, _LANE_VALUES = 4, 2**16
# How many models a stack may have: on the CPU, and on a GPU at most, where each is allowed so many bytes.
_MOST_ON_CPU, _MOST_ON_GPU, _BYTES_PER_MODEL = 8, 64, 2**29


class Dropout:
    """Inverted dropout with a generator of its own; four masks come from one random number of 64 bits."""

    def __init__(self, rate: float, generator: torch.Generator):
        self.rate, self.generator = rate, generator

    def __call__(self, values: Tensor) -> Tensor:
        """The values with a share of them set to 0, and the others scaled up."""
        n_words = -(-values.numel() // _LANES)
        words = torch.empty(n_words, dtype=torch.int64, device=values.device)
        words.random_(-(2**63), None, generator=self.generator)
        lanes = words.view(torch.int16)[: values.numel()].view(values.shape)
        threshold = round(self.rate * _LANE_VALUES) - _LANE_VALUES // 2
        return values * (lanes >= threshold).to(values.dtype).mul_(1 / (1 - self.rate))


def no_dropout(values: Tensor) -> Tensor:
    """Evaluation: nothing is dropped."""
    return values


def linear(values: Tensor, parameters: Parameters, name: str) -> Tensor:
    """[model, row, in] times the weight [model, in, out], plus the bias if there is one."""
    bias = parameters.get(f"{name}.bias")
    weight = parameters[f"{name}.weight"]
    return torch.bmm(values, weight) if bias is None else torch.baddbmm(bias.unsqueeze(1), values, weight)


def layer_norm(values: Tensor, parameters: Parameters, name: str) -> Tensor:
    """Layer normalisation of [model, row, width]."""
    normalised = torch.nn.functional.layer_norm(values, values.shape[-1:])
    return normalised * parameters[f"{name}.weight"].unsqueeze(1) + parameters[f"{name}.bias"].unsqueeze(1)


def draw_linear(parameters: dict[str, Tensor], name: str, size: tuple[int, int], seed: int, *, bias: bool) -> None:
    """The weight [in, out] and bias of one model, uniform within ±1/√in as `nn.Linear` draws them.

    Each has a generator of its own from the seed and its name, so no parameter depends on which others exist.
    """
    bound = 1 / math.sqrt(size[0])
    parameters[f"{name}.weight"] = _uniform(size, bound, seed, f"{name}.weight")
    if bias:
        parameters[f"{name}.bias"] = _uniform(size[1:], bound, seed, f"{name}.bias")


def stack(models: list[dict[str, Tensor]], device: torch.device | str = "cpu") -> dict[str, Tensor]:
    """The parameters of several models as one set, ready to be trained on a device."""
    return {name: torch.stack([model[name] for model in models]).to(device).requires_grad_() for name in models[0]}


def training_device(name: str | None) -> torch.device:
    """The device with this name (None: the CPU), if there is one that can train a stack."""
    check_device(name or "cpu")
    device = torch.device(name or "cpu")
    if device.type == "mps":
        raise InputError("studies train on the CPU or on CUDA: mps has no double precision, in which they sum.")
    return device


def seeds_at_once(device: torch.device, models_per_seed: int = 1) -> int:
    """How many seeds, of so many models each, train as one stack on a device; at least one."""
    most = _MOST_ON_CPU
    if device.type == "cuda":
        most = min(_MOST_ON_GPU, torch.cuda.mem_get_info(device)[0] // _BYTES_PER_MODEL)
    return max(1, most // models_per_seed)


def pick(parameters: Parameters, model: int) -> dict[str, Tensor]:
    """The parameters of one model of a stack, still with a first axis (of 1)."""
    return {name: tensor[model : model + 1].detach() for name, tensor in parameters.items()}


@functools.lru_cache(maxsize=512)
def timing_signal(length: int, width: int, device: torch.device | None = None) -> Tensor:
    """Sines and then cosines of positions [position, width], wavelengths from 2π to 20,000π (Vaswani et al., 2017)."""
    half = width // 2
    rates = torch.exp(torch.arange(half, device=device) * (-math.log(10_000.0) / max(1, half - 1)))
    angles = torch.arange(length, device=device).unsqueeze(1) * rates
    return torch.cat([angles.sin(), angles.cos()], 1)


def _uniform(size: tuple[int, ...], bound: float, seed: int, name: str) -> Tensor:
    generator = torch.Generator().manual_seed(zlib.crc32(f"{seed}/{name}".encode()))  # only 32 bits of a seed count
    return torch.empty(size).uniform_(-bound, bound, generator=generator)
