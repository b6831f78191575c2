"""Attention layers with fewer heads than their configuration says: cut out of a module, and loaded from a slim folder.

The same cuts are made in a model with weights, which is then slim, and in one that is about to read slim weights.
"""

import inspect
import json
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import Cache, EncoderDecoderCache

from headscope import files
from headscope.errors import LoadError
from headscope.models.slim_plan import FILE, Cut, SlimLayer, SlimPlan


class NoHeads(nn.Module):
    """What is left of attention that lost all its heads: the bias of its output projection, for every token.

    It has the weights of the original under their names, without any rows of heads, so that plain Transformers cannot
    read a slim checkpoint by mistake.
    """

    def __init__(self, original: nn.Module, layer: SlimLayer):
        super().__init__()
        plain = {name: field for name, field in vars(original).items() if not name.startswith("_")}
        self.__dict__.update(plain)  # blocks read some of them: is_causal, layer_idx
        self._parameters.update(original._parameters)
        self._buffers.update(original._buffers)
        self._modules.update(original._modules)
        self.headscope_output, self.headscope_n_outputs = layer.output, layer.n_outputs
        self.headscope_is_cross = layer.kind == "cross"

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The output bias [batch, token, dim]; None for what else the attention returned."""
        arguments = (*args, *kwargs.values())
        hidden = next(argument for argument in arguments if isinstance(argument, Tensor))
        self._note_length(hidden, next((argument for argument in arguments if isinstance(argument, Cache)), None))
        output = hidden.new_zeros(*hidden.shape[:-1], 0)  # the projection outside of the module adds its bias
        if self.headscope_output:
            projection: Any = self.get_submodule(self.headscope_output)
            bias = projection.bias
            n_outputs = projection.weight.shape[1 if type(projection).__name__ == "Conv1D" else 0]
            output = hidden.new_zeros(*hidden.shape[:-1], n_outputs)
            output = output if bias is None else output + bias
        if not self.headscope_n_outputs:
            return output
        return (output, *[None] * (self.headscope_n_outputs - 1))

    def _note_length(self, hidden: Tensor, cache: Cache | None) -> None:
        """Models ask a layer's cache how many tokens there were: it holds a number a token."""
        number = getattr(self, "layer_idx", None)
        if cache is None or number is None or self.headscope_is_cross:
            return
        if isinstance(cache, EncoderDecoderCache):
            cache = cache.self_attention_cache
        nothing = hidden.new_zeros(hidden.shape[0], 1, hidden.shape[1], 1)
        cache.update(nothing, nothing, number)


class RepeatedHeads(nn.Linear):
    """A projection of key-value heads that query heads share unevenly: each is computed once, then repeated."""

    order: tuple[int, ...]

    def forward(self, input: Tensor) -> Tensor:
        """Keys or values [batch, token, head · dim], with head `order[i]` of the weights as head i."""
        heads = super().forward(input).unflatten(-1, (max(self.order) + 1, -1))
        return heads[..., list(self.order), :].flatten(-2)


class _Slim:
    """What the class of a slim model adds to that of the original."""

    headscope_slim: SlimPlan

    def save_pretrained(self, save_directory: Any, *args: Any, **kwargs: Any) -> Any:
        """Save as Transformers does, with the plan that loading needs."""
        saved = super().save_pretrained(save_directory, *args, **kwargs)  # type: ignore[misc]
        plan = json.dumps(self.headscope_slim.to_json(), indent=1).encode()
        files.write_file(Path(save_directory) / FILE, plan)
        return saved


def slim_class(original: type, plan: SlimPlan) -> type:
    """The class of a slim model: the original's under its own name, which cuts the heads before weights are read."""
    if not issubclass(original, nn.Module):
        raise LoadError(f"{FILE} is there, but the configuration names no architecture that it could be of.")

    def init(self: Any, config: Any, *args: Any, **kwargs: Any) -> None:
        original.__init__(self, config, *args, **kwargs)
        if not plan.is_plain:
            cut_heads(self, plan)

    about = {"__module__": original.__module__, "__qualname__": original.__qualname__, "__doc__": original.__doc__}
    return type(original.__name__, (_Slim, original), about | {"__init__": init, "headscope_slim": plan})


def slim_plan_of(module: nn.Module) -> SlimPlan | None:
    """The plan of a slim model; None for any other."""
    return getattr(module, "headscope_slim", None)


def cut_heads(module: nn.Module, plan: SlimPlan) -> None:
    """Take heads out of a module as the plan says, in place. An error where the plan is of another model."""
    try:
        for layer in plan.layers:
            if layer.bias_of is not None:
                _copy_bias_table(module, layer)
        for layer in plan.layers:
            for cut in layer.cuts:
                _cut(module, cut)
            for name, order in (layer.repeats or {}).items():
                _repeat(module.get_submodule(name), order)
            _resize(module, layer)
    except (AttributeError, KeyError, IndexError, RuntimeError, TypeError, ValueError) as error:
        raise LoadError(
            f"{FILE} does not fit a {type(module).__name__}: {error}. It is damaged or belongs to another model."
        ) from error


def _cut(module: nn.Module, cut: Cut) -> None:
    owner_name, _, name = cut.parameter.rpartition(".")
    owner = module.get_submodule(owner_name)
    parameter = owner.get_parameter(name)
    if parameter.shape[cut.axis] != cut.size:
        raise ValueError(f"{cut.parameter} is {list(parameter.shape)}, not {cut.size} along axis {cut.axis}")
    if any(not 0 <= start < stop <= cut.size for start, stop in cut.ranges):
        raise ValueError(f"{cut.parameter} has no parts {cut.ranges}")
    pieces = [parameter.detach().narrow(cut.axis, start, stop - start) for start, stop in cut.ranges]
    rest = torch.cat(pieces, cut.axis) if pieces else parameter.detach().narrow(cut.axis, 0, 0).clone()
    owner.register_parameter(name, nn.Parameter(rest.contiguous(), requires_grad=parameter.requires_grad))
    _note_shape(owner)


def _note_shape(owner: nn.Module) -> None:
    """The sizes that a linear layer or an embedding states beside its weight."""
    weight = getattr(owner, "weight", None)
    names = {"Conv1D": ("nx", "nf"), "Embedding": ("num_embeddings", "embedding_dim")}
    first, second = names.get(type(owner).__name__, ("out_features", "in_features"))
    if isinstance(weight, Tensor) and weight.ndim == 2 and hasattr(owner, first):
        setattr(owner, first, weight.shape[0])
        setattr(owner, second, weight.shape[1])


def _repeat(projection: Any, order: tuple[int, ...]) -> None:
    if type(projection) is not nn.Linear or not order or sorted(set(order)) != list(range(max(order) + 1)):
        raise ValueError(f"heads {list(order)} of a {type(projection).__name__} cannot be repeated")
    repeated: Any = projection
    repeated.__class__ = RepeatedHeads
    repeated.order = order


def _resize(module: nn.Module, layer: SlimLayer) -> None:
    attention = module.get_submodule(layer.module)
    if isinstance(attention, NoHeads):  # a module that serves several layers
        return
    for name, size in (layer.sizes or {}).items():
        if type(vars(attention).get(name)) is not int:
            raise ValueError(f"{layer.module} has no size {name!r}")
        setattr(attention, name, size)
    if not layer.heads:
        owner_name, _, name = layer.module.rpartition(".")
        setattr(module.get_submodule(owner_name), name, NoHeads(attention, layer))
    elif layer.ignores_given_bias:
        attention.register_forward_pre_hook(_without_given_bias, with_kwargs=True)


def _copy_bias_table(module: nn.Module, layer: SlimLayer) -> None:
    """A table of position biases of the layer's own, where it was handed those of another layer's heads."""
    assert layer.bias_of is not None
    source: Any = module.get_submodule(layer.bias_of).relative_attention_bias
    weight = source.weight
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of tables without elements
        table = nn.Embedding(*weight.shape, device=weight.device, dtype=weight.dtype)
    table.weight = nn.Parameter(weight.detach().clone(), requires_grad=weight.requires_grad)
    attention: Any = module.get_submodule(layer.module)
    attention.relative_attention_bias, attention.has_relative_attention_bias = table, True


def _without_given_bias(module: nn.Module, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    """Have attention compute the position bias of its own heads: that of another layer is of other heads."""
    names = list(inspect.signature(module.forward).parameters)
    if "position_bias" not in names:  # UMT5: every layer computes its own anyway
        return args, kwargs
    place = names.index("position_bias")
    if place < len(args):
        args = (*args[:place], None, *args[place + 1 :])
    return args, kwargs | ({"position_bias": None} if "position_bias" in kwargs else {})
