"""Rules of relevance as a modified backward pass: with them, relevance at any tensor is activation × gradient.

Layer-wise relevance propagation written as gradient × input, after Achtibat et al. (2024), "AttnLRP", and Ali et al.
(2022), "XAI for Transformers" (CP-LRP). Numbers of the forward pass stay what they are, to the last bit.

| what a model computes        | what its gradient becomes                                                        |
|------------------------------|----------------------------------------------------------------------------------|
| linear maps, sums            | itself (the ε rule with ε = 0; biases keep their share)                          |
| an activation f(x)           | (f(x) − f(0)) / x, the identity rule; f(0) counts as a bias                      |
| LayerNorm, RMSNorm           | that of the norm with its scale 1/σ held fixed; the subtracted mean stays linear |
| a product of two activations | half of its own, for each factor (gated MLPs; scores and mixing under "attn")    |
| the softmax of attention     | "cp": none, patterns are held fixed; "attn": its own                             |

Nothing is looked up by a model's name: torch calls are seen as they are made, and afterwards the whole graph is walked
(`lrp_graph.py`), so that what has no rule is refused.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils.hooks import RemovableHandle

from headscope.analysis.attribution.lrp_graph import AttentionPattern, Halved, check, is_scale, reaches
from headscope.errors import CaptureError

Rule = Literal["cp", "attn"]

# fmt: off
ACTIVATIONS = frozenset((
    "relu", "relu6", "gelu", "silu", "mish", "elu", "selu", "celu", "leaky_relu", "hardswish", "hardtanh", "tanh",
    "sigmoid", "softsign", "square", "pow", "__pow__",
))
PRODUCTS = frozenset((
    "mul", "multiply", "__mul__", "__rmul__", "matmul", "__matmul__", "__rmatmul__", "bmm", "mm", "baddbmm", "einsum",
    "linear",
))
# fmt: on
EMBEDDINGS = frozenset(("embedding", "linear", "conv1d", "conv2d", "conv3d"))
NORMS = frozenset(("layer_norm", "rms_norm", "group_norm"))
CHOICES = frozenset(("topk", "sort", "argsort", "kthvalue"))
N_TRIED = 64


class Rules(TorchFunctionMode):
    """Replaces gradients in whatever runs inside, in this thread only.

    Relevance ends at the residual streams that enter the modules named in `entries`, by stack; everything else that
    asks for a gradient (parameters, gates) is held fixed, so a tensor that carries one depends on the input. `streams`
    are those tensors; a stack is `covered` if what it made enters another (patches among words): it is no input beside.
    """

    def __init__(self, rule: Rule, module: nn.Module, entries: dict[str, str]):
        super().__init__()
        self.rule, self.module, self.entries = rule, module, entries
        self.streams: dict[str, Tensor] = {}
        self.covered: set[str] = set()
        self._sources: list[Tensor] = []
        self._embedded: list[Tensor] = []
        self._arguments: list[Tensor] = []
        self._hooks: list[RemovableHandle] = []
        self._thread = -1
        self._is_atomic = False
        self._elementwise: dict[int, bool] = {}

    def __enter__(self) -> "Rules":
        self._thread = threading.get_ident()
        self._hooks.append(self.module.register_forward_pre_hook(self._begin, with_kwargs=True))
        for stack, name in self.entries.items():
            block = self.module.get_submodule(name)
            self._hooks.append(block.register_forward_pre_hook(self._entry_hook(stack), with_kwargs=True))
        for submodule in self.module.modules():
            if _may_be_activation(submodule):
                self._hooks.append(submodule.register_forward_pre_hook(self._before_activation))
                self._hooks.append(submodule.register_forward_hook(self._after_activation))
        return super().__enter__()

    def __exit__(self, *problem: Any) -> None:
        super().__exit__(*problem)
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()

    def check(self, answer: Tensor) -> None:
        """Raise if something on the way to the answer has no rule, or if part of the input goes around the streams."""
        check(answer, [*self._sources, *self._embedded])
        if reaches(answer, self._embedded, stop=list(self.streams.values())):
            blocks = ", ".join(self.entries.values())
            raise CaptureError(
                f"{type(self.module).__name__} carries its input around its blocks ({blocks}), so what enters them is "
                "not all there is to bring relevance back to."
            )

    def _begin(self, module: nn.Module, args: tuple, kwargs: dict[str, Any]) -> None:
        if self._thread == threading.get_ident():
            self._arguments = [argument for argument in (*args, *kwargs.values()) if isinstance(argument, Tensor)]

    def _entry_hook(self, stack: str) -> Callable[[nn.Module, tuple, dict[str, Any]], Any]:
        def hook(module: nn.Module, args: tuple, kwargs: dict[str, Any]) -> Any:
            if self._thread != threading.get_ident() or stack in self.streams:  # a block may serve many layers
                return None
            stream = next((argument for argument in (*args, *kwargs.values()) if _is_real(argument)), None)
            if stream is None:
                return None
            if reaches(stream, self._sources):
                self.covered.update(self.streams)
                self.streams[stack] = stream
                return None
            leaf = self.streams[stack] = stream.detach().clone().requires_grad_()
            self._sources.append(leaf)
            passed = leaf.clone()  # a block may write into it
            return _each(lambda argument: passed if argument is stream else argument, (args, kwargs))

        return hook

    def _is_input(self, argument: Any) -> bool:
        """Whether a tensor is one that the model was given, or a view of it; positions and the like are not."""
        place = argument.untyped_storage().data_ptr() if isinstance(argument, Tensor) else None
        return any(known.untyped_storage().data_ptr() == place for known in self._arguments)

    def _embed(self, out: Tensor) -> Tensor:
        """Embedded input, marked: it should reach the answer by way of the streams alone."""
        self._embedded.append(out.detach().requires_grad_())
        return self._embedded[-1].clone()

    def pattern(self, x: Tensor) -> Tensor:
        """An attention pattern as the rule lets it pass."""
        return x.detach() if self.rule == "cp" else AttentionPattern.apply(x)  # type: ignore[return-value]

    def __torch_function__(self, func, types, args=(), kwargs=None):
        args, kwargs = _each(self._as_constant, (args, kwargs or {}))
        name = getattr(func, "__name__", "")
        if self._is_atomic:
            return func(*args, **kwargs)
        if not args and "input" in kwargs:
            args = tuple([kwargs.pop("input")])
        if name in EMBEDDINGS and self._is_input(args[0]):
            return self._embed(func(*args, **kwargs))
        if name in ACTIVATIONS and _carries(args[0]) and _is_activation(name, args):
            return _activation(func, args, kwargs | ({"inplace": False} if kwargs.get("inplace") else {}))
        if name in NORMS and _carries(args[0]):
            return _exactly(func(*args, **kwargs), _fixed_scale_norm(name, *args, **kwargs))
        if (
            name in ("div", "true_divide", "__truediv__")
            and all(map(_carries, args[:2]))
            and is_scale(args[1], args[0])
        ):
            return func(args[0], args[1].detach(), *args[2:], **kwargs)
        if name in PRODUCTS:
            return _product(func, name, args, kwargs)
        if name in CHOICES and _carries(args[0]):
            raise CaptureError(
                f"{type(self.module).__name__} chooses by the size of its activations ({name}), as routers of experts "
                "do: relevance has no rule for that."
            )
        return func(*args, **kwargs)

    def _as_constant(self, leaf: Any) -> Any:
        """Parameters and other leaves as constants."""
        if isinstance(leaf, Tensor) and leaf.requires_grad and leaf.is_leaf:
            return leaf if any(leaf is own for own in (*self._sources, *self._embedded)) else leaf.detach()
        return leaf

    # Modules that compute an activation by several torch calls (GPT-2's GELU) are taken as one.

    def _before_activation(self, module: nn.Module, args: tuple) -> tuple | None:
        if self._thread != threading.get_ident() or self._is_atomic or not args or not _carries(args[0]):
            return None
        known = self._elementwise.get(id(module))
        if known is None:
            known = self._elementwise[id(module)] = _is_elementwise(module, args)
        self._is_atomic = known
        return (args[0].clone(), *args[1:]) if known and getattr(module, "inplace", False) else None

    def _after_activation(self, module: nn.Module, args: tuple, output: Any) -> Tensor | None:
        if self._thread != threading.get_ident() or not self._is_atomic:
            return None
        self._is_atomic = False
        x = args[0]
        at_zero = module.forward(x.new_zeros(1), *args[1:])
        return _exactly(output, x * _ratio(x, output, at_zero))


def _each(function: Callable[[Any], Any], arguments: Any) -> Any:
    """The same arguments with a function applied to each tensor in them."""
    if isinstance(arguments, Tensor):
        return function(arguments)
    if type(arguments) in (tuple, list):
        return type(arguments)(_each(function, argument) for argument in arguments)
    if type(arguments) is dict:
        return {key: _each(function, argument) for key, argument in arguments.items()}
    return arguments


def _is_real(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


def _carries(value: Any) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


def _exactly(out: Tensor, stand_in: Tensor) -> Tensor:
    """The numbers of `out`, to the last bit, with the gradient of `stand_in`."""
    return out.detach() + (stand_in - stand_in.detach()).to(out.dtype)


def _activation(func: Callable, args: tuple, kwargs: dict) -> Tensor:
    x = args[0]
    out = func(*args, **kwargs)
    at_zero = func(x.detach().new_zeros(1), *args[1:], **kwargs)
    return _exactly(out, x * _ratio(x, out, at_zero))


def _ratio(x: Tensor, out: Tensor, at_zero: Tensor) -> Tensor:
    """(f(x) − f(0)) / x; zero where x is."""
    x, rise = x.detach(), (out - at_zero).detach()
    return torch.where(x == 0, 0.0, rise / torch.where(x == 0, 1.0, x))


def _is_activation(name: str, args: tuple) -> bool:
    """A power is one from 1 up: roots and inverses are the scales of norms, left as they are for `is_scale` to find."""
    return name not in ("pow", "__pow__") or (isinstance(args[1], int | float) and args[1] >= 1)


def _product(func: Callable, name: str, args: tuple, kwargs: dict) -> Any:
    operands: Sequence[Any] = (*args, *kwargs.values())
    if name == "einsum":
        operands = [operand for part in args[1:] for operand in (part if isinstance(part, tuple | list) else [part])]
    elif name == "baddbmm":  # what is added is no factor
        operands = [operand for operand in operands if isinstance(operand, Tensor)][1:]
    elif name == "linear":
        operands = args[:2]
    if sum(map(_carries, operands)) < 2:
        return func(*args, **kwargs)
    if name in ("mul", "multiply", "__mul__", "__rmul__"):
        # A norm spelled out: x times a scale that was computed from x, held fixed.
        left, other = args[:2]
        if is_scale(other, left):
            return func(left, other.detach())
        if is_scale(left, other):
            return func(left.detach(), other)
    return Halved.apply(func(*args, **kwargs))


def _fixed_scale_norm(
    name: str, x: Tensor, shape: Any, weight: Tensor | None = None, bias: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """A norm without its bias, its scale held fixed."""
    eps = torch.finfo(x.dtype).eps if eps is None else eps
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    if name == "group_norm":
        wide = wide.unflatten(1, (shape, -1))
        axes = tuple(range(2, wide.ndim))
    else:
        axes = tuple(range(-len(shape), 0))
    centred = wide if name == "rms_norm" else wide - wide.mean(axes, keepdim=True)
    scaled = centred * torch.rsqrt(centred.square().mean(axes, keepdim=True) + eps).detach()
    if name == "group_norm":
        scaled = scaled.flatten(1, 2)
        weight = None if weight is None else weight.reshape(-1, *[1] * (scaled.ndim - 2))
    return (scaled if weight is None else scaled * weight).to(x.dtype)


def _may_be_activation(module: nn.Module) -> bool:
    holds_nothing = not any(True for _ in module.parameters()) and not any(True for _ in module.buffers())
    return holds_nothing and not any(True for _ in module.children())


def _is_elementwise(module: nn.Module, args: tuple) -> bool:
    """Whether a module computes one number from one number: tried out on some of those it was given."""
    some = args[0].detach().flatten()[:N_TRIED]
    with torch.no_grad():
        try:
            out = module.forward(some, *args[1:])
            turned = module.forward(some.flip(0), *args[1:]).flip(0)
            alone = module.forward(some[:1], *args[1:])
        except Exception:  # whatever a module raises on a shape it does not know: it is no plain activation then
            return False
    if not isinstance(out, Tensor) or out.shape != some.shape:
        return False
    return torch.allclose(out, turned, atol=1e-6) and torch.allclose(out[:1], alone, atol=1e-6)
