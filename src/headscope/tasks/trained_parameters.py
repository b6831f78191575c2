"""Which parameters are trained, by name; the rest is frozen for as long."""

import copy
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from headscope.errors import InputError
from headscope.models import Model


@dataclass(frozen=True, eq=False)
class ParameterGroup:
    """Parameters by name, with a learning rate and weight decay of their own where they are not those of the options.

    They need not be the model's: gates that interventions use are trained and saved in the same way.
    """

    parameters: Mapping[str, Tensor]
    rate: float | None = None
    weight_decay: float | None = None


Choice = str | Sequence[str] | Sequence[Tensor] | Sequence[ParameterGroup]


def choose_parameters(model: Model, choice: Choice) -> list[ParameterGroup]:
    """The parameters to train: "all" (that need gradients), "encoder" (of those, the ones that the decoder does not
    share), names (a name stands for all below it, as `model.encoder.layers.0`), tensors, or groups.
    """
    own: dict[str, Tensor] = dict(model.module.named_parameters())
    if isinstance(choice, str):
        groups = [ParameterGroup(_by_word(model, own, choice))]
    elif not choice:
        raise InputError("there are no parameters to train: name some, or give 'all'.")
    elif all(isinstance(chosen, ParameterGroup) for chosen in choice):
        groups = [chosen for chosen in choice if isinstance(chosen, ParameterGroup)]
    elif all(isinstance(chosen, str) for chosen in choice):
        groups = [ParameterGroup(_below(own, [str(name) for name in choice]))]
    elif all(isinstance(chosen, Tensor) for chosen in choice):
        names = {id(parameter): name for name, parameter in own.items()}
        tensors = [tensor for tensor in choice if isinstance(tensor, Tensor)]
        named = {names.get(id(tensor), f"extra.{number}"): tensor for number, tensor in enumerate(tensors)}
        groups = [ParameterGroup(named)]
    else:
        raise InputError("parameters are 'all', 'encoder', names, tensors, or ParameterGroups; not several of these.")
    _check(groups)
    _check_precision(model, groups)
    return groups


def _by_word(model: Model, own: dict[str, Tensor], choice: str) -> dict[str, Tensor]:
    trainable = {name: parameter for name, parameter in own.items() if parameter.requires_grad}
    if choice == "all":
        return trainable
    if choice != "encoder":
        return _below(own, [choice])
    if not model.is_encoder_decoder:
        raise InputError(f"{model.name} has no encoder beside a decoder: train 'all' of it, or name parameters.")
    module: Any = model.module
    in_encoder = {id(parameter) for parameter in module.get_encoder().parameters()}
    outside = [part for part in (module.get_decoder(), module.get_output_embeddings()) if part is not None]
    elsewhere = {id(parameter) for part in outside for parameter in part.parameters()}
    return {name: trainable[name] for name in trainable if id(trainable[name]) in in_encoder - elsewhere}


def _below(own: dict[str, Tensor], names: Sequence[str]) -> dict[str, Tensor]:
    """The parameters with these names, or below them."""
    chosen: dict[str, Tensor] = {}
    for name in names:
        below = {path: own[path] for path in own if path == name or path.startswith(f"{name}.")}
        if not below:
            raise InputError(f"there is no parameter {name!r}: there are {', '.join(list(own)[:6])} and so on.")
        chosen |= below
    return chosen


def _check(groups: Sequence[ParameterGroup]) -> None:
    names = [name for group in groups for name in group.parameters]
    if len(set(names)) != len(names):
        raise InputError("a parameter is in two groups: put it into one of them.")
    for group in groups:
        for name, parameter in group.parameters.items():
            if not parameter.is_leaf or not parameter.is_floating_point():
                raise InputError(f"{name!r} cannot be trained: give a leaf tensor of floating-point numbers.")


def _check_precision(model: Model, groups: Sequence[ParameterGroup]) -> None:
    dtypes = {parameter.dtype for group in groups for parameter in group.parameters.values()}
    halves = dtypes & {torch.float16, torch.bfloat16}
    if halves:
        raise InputError(
            f"the weights of {model.name} are {str(halves.pop()).removeprefix('torch.')}, in which small updates are "
            "lost: load it with dtype='float32', and train with precision='bf16' or 'fp16'."
        )


def named(groups: Sequence[ParameterGroup]) -> dict[str, Tensor]:
    """The parameters of all groups by name."""
    return {name: parameter for group in groups for name, parameter in group.parameters.items()}


@contextmanager
def training_only(module: nn.Module, trained: Mapping[str, Tensor]) -> Iterator[None]:
    """Only these need gradients inside; what needed them before does so again afterwards."""
    tensors = [*module.parameters(), *trained.values()]
    before = [(tensor, tensor.requires_grad) for tensor in tensors]
    chosen = {id(parameter) for parameter in trained.values()}
    try:
        for tensor in tensors:
            tensor.requires_grad_(id(tensor) in chosen)
        yield
    finally:
        for tensor, needed in before:
            tensor.requires_grad_(needed)
            tensor.grad = None


def draw_anew(model: Model, trained: Mapping[str, Tensor], seed: int) -> None:
    """Initialise the trained parameters of the model as its class does, from a seed."""
    module: Any = model.module
    if not hasattr(module, "init_weights") or model.config is None:
        raise InputError(
            f"start='scratch' needs a Transformers model, which knows how its weights are drawn; {model.name} is a "
            f"{type(module).__name__}: initialise it yourself and use start='trained'."
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        fresh = dict(type(module)(copy.deepcopy(module.config)).named_parameters())
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if name in trained:
                parameter.copy_(fresh[name])


def frozen_checksum(module: nn.Module, trained: Mapping[str, Tensor]) -> str:
    """The SHA-256 of the parameters that stay as they are."""
    digest = hashlib.sha256()
    for name, parameter in module.named_parameters():
        if name not in trained:
            digest.update(name.encode())
            digest.update(parameter.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def state_buffers(module: nn.Module) -> dict[str, Tensor]:
    """The buffers that are part of a module's state, as the running means of batch normalisation."""
    state, buffers = module.state_dict(keep_vars=True), dict(module.named_buffers())
    return {name: buffers[name] for name in buffers if name in state}
