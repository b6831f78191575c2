"""What a model costs: parameters, bytes on disk, floating-point operations of a forward pass, and measured time."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from headscope.errors import InputError
from headscope.models import AttentionLayer, Model
from headscope.models.capture.probe_inputs import probe_inputs
from headscope.models.capture.recorder import Captured
from headscope.models.capture.session import Observer, Session
from headscope.sites import Site

Inputs = Mapping[str, Tensor]


@dataclass(frozen=True)
class ForwardFlops:
    """Floating-point operations of one forward pass, a multiplication and an addition counted as two.

    `projections` are those of queries, keys, values and attention outputs; `products` are query · key and
    pattern · value, which grow with the square of the length; `other` is all else (MLPs, embeddings, output layers).
    """

    projections: int
    products: int
    other: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.projections + self.products + self.other


def n_parameters(model: Model) -> int:
    """How many numbers there are in its parameters; shared ones count once."""
    return sum(parameter.numel() for parameter in model.module.parameters())


def weight_bytes(folder: Path) -> int:
    """The size of a model's weight files."""
    return sum(file.stat().st_size for file in folder.glob("*.safetensors"))


def sized_inputs(model: Model, *, batch: int = 1, length: int = 128) -> dict[str, Tensor]:
    """Dummy inputs: `batch` examples of `length` tokens, cut at the model's length; images and sound have their own."""
    inputs = probe_inputs(model.module)
    if inputs is None:
        raise InputError(f"{model.name}: no inputs could be made up to measure it with. Give inputs of your own.")
    sizes = [getattr(model.config, name, None) for name in ("max_position_embeddings", "n_positions")]
    longest = min([length, *(size for size in sizes if isinstance(size, int) and size > 0)])
    sized = {}
    for name, tensor in inputs.items():
        if not tensor.is_floating_point():
            tensor = tensor.repeat(1, -(-longest // tensor.shape[1]))[:, :longest]
        sized[name] = model.to_device(tensor.repeat(batch, *[1] * (tensor.ndim - 1)))
    return sized


def forward_flops(model: Model, inputs: Inputs) -> ForwardFlops:
    """Attention by its closed form, from the layout; what is outside of attention as torch counts it."""
    sizes = _Sizes()
    with Session(model, observers=[sizes]):
        model.module(**inputs)
    total, in_attention = _counted(model, inputs)
    flops = [_attention_flops(model.module, layer, *sizes.by_site[layer.site]) for layer in model.layout.layers]
    return ForwardFlops(sum(pair[0] for pair in flops), sum(pair[1] for pair in flops), total - in_attention)


def counted_flops(model: Model, inputs: Inputs) -> int:
    """All operations of a forward pass, as torch's `FlopCounterMode` counts its matrix products."""
    return _counted(model, inputs)[0]


def forward_seconds(
    models: Sequence[Model], inputs: Inputs, *, rounds: int = 7, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """The median time of a forward pass of each model, without gradients.

    The models take turns, in every round and after one round to warm up: what else the machine does slows all alike.
    On a busy machine `clock=time.process_time` counts the time on the CPU alone.
    """
    times: list[list[float]] = [[] for _ in models]
    with torch.inference_mode():
        for number in range(rounds + 1):
            for model, own_times in zip(models, times, strict=True):
                _wait(model)
                start = clock()
                model.module(**inputs)
                _wait(model)
                if number:
                    own_times.append(clock() - start)
    return [median(own_times) for own_times in times]


class _Sizes(Observer):
    """Notes the batch, queries and keys of every attention layer."""

    def __init__(self) -> None:
        self.by_site: dict[Site, tuple[int, int, int]] = {}

    def layer(self, captured: Captured) -> None:
        assert captured.query is not None
        batch, _, n_queries, _ = captured.query.shape
        self.by_site[captured.layer.site] = batch, n_queries, captured.n_keys


def _attention_flops(
    module: nn.Module, layer: AttentionLayer, batch: int, n_queries: int, n_keys: int
) -> tuple[int, int]:
    """Operations of a layer's projections and of its products."""
    names = [name for name, part in module.get_submodule(layer.module).named_modules() if _is_linear(part)]
    linear = {f"{layer.module}.{name}" for name in names} | {layer.out_projection}
    sizes = {name: _weight(module, name).numel() for name in linear if name is not None}
    output = sizes.get(layer.out_projection or "", 0)
    query = output // layer.value_dim * layer.head_dim  # both are of as many heads and of the stream's width
    of_keys = sum(sizes.values()) - output - query
    length = n_keys if layer.site.kind == "cross" else n_queries
    projections = 2 * batch * (n_queries * (output + query) + length * of_keys)
    products = 2 * batch * layer.n_heads * n_queries * n_keys * (layer.head_dim + layer.value_dim)
    return projections, products


def _counted(model: Model, inputs: Inputs) -> tuple[int, int]:
    """Operations that torch counts in all, and those in attention modules with their output projections."""
    counter = FlopCounterMode(display=False)
    # The kernel that is made of matrix products: torch does not count every fused one.
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), counter:
        model.module(**inputs)
    counts: dict[str, Any] = counter.get_flop_counts()
    by_module = {name.partition(".")[2]: sum(operations.values()) for name, operations in counts.items()}
    names: set[str] = set()
    for layer in model.layout.layers:
        names.add(layer.module)
        if layer.out_projection is not None and not layer.out_projection.startswith(f"{layer.module}."):
            names.add(layer.out_projection)
    return counter.get_total_flops(), sum(by_module.get(name, 0) for name in names)


def _is_linear(part: nn.Module) -> bool:
    return isinstance(part, nn.Linear) or type(part).__name__ == "Conv1D"


def _weight(module: nn.Module, name: str) -> Tensor:
    return module.get_submodule(name).get_parameter("weight")


def _wait(model: Model) -> None:
    if model.device.type == "cuda":
        torch.cuda.synchronize(model.device)
