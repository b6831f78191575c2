"""Watching attention that does not call our function: its softmax and the products around it, as torch runs them.

A `TorchFunctionMode` sees every torch call of the thread; frames, pushed by hooks on modules, say whose call it is.
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from headscope.attention import Formula
from headscope.errors import CaptureError
from headscope.models.capture.seam import AttentionCall, read_mask

# A softmax, written out or of no pattern that is multiplied with values.
_UNREAD = frozenset(("exp", "exp2", "logsumexp", "softmax", "log_softmax"))
_PRODUCTS = frozenset(("matmul", "__matmul__", "__rmatmul__", "bmm", "baddbmm", "einsum"))


@dataclass(eq=False)
class Product:
    """A matrix product that may be query · key: operands as [batch, head, token, dim], and its place in the frame."""

    ordinal: int
    out: Tensor
    query: Tensor | None
    key: Tensor | None


@dataclass(eq=False)
class Softmax:
    """An attention softmax: its scores and pattern [batch, head, query, key] and the product they came from."""

    scores: Tensor
    pattern: Tensor
    product: Product | None


@dataclass(eq=False)
class Frame:
    """One call of one module: what its forward has computed so far."""

    name: str
    module: nn.Module
    batch: int
    is_ignored: bool = False
    # How often the module attended before this call, and in it.
    n_before: int | None = None
    n_attended: int = 0
    products: list[Product] = field(default_factory=list)
    # How many of them came before the last softmax.
    n_used: int = 0
    # Tensors that are a pattern, or the pattern in another shape or after dropout; held, so that their ids stay theirs.
    patterns: dict[int, tuple[Tensor, Softmax]] = field(default_factory=dict)


class Watcher(Protocol):
    """What the tracer reports to: the probe, or a session."""

    def on_product(self, frame: Frame, product: Product) -> tuple[Tensor, Tensor] | None:
        """Query and key to use instead, or None to leave the product as it is."""
        ...

    def on_scores(self, frame: Frame, scores: Tensor, product: Product | None) -> Tensor:
        """The scores to use [batch, head, query, key]."""
        ...

    def on_pattern(self, frame: Frame, softmax: Softmax) -> Tensor:
        """The pattern to use [batch, head, query, key]."""
        ...

    def on_value(self, frame: Frame, softmax: Softmax, value: Tensor) -> Tensor | None:
        """Values to use instead, or None."""
        ...

    def on_mixed(self, frame: Frame, softmax: Softmax, value: Tensor, mixed: Tensor) -> Tensor:
        """The mixed values to use [batch, head, query, dim]."""
        ...

    def attend(self, call: AttentionCall) -> tuple[Tensor, Tensor | None]:
        """A whole attention call, as the seam would make it."""
        ...


class Tracer(TorchFunctionMode):
    """Turns torch calls inside watched modules into reports to a watcher."""

    def __init__(self, watcher: Watcher):
        super().__init__()
        self.watcher = watcher
        self.frames: list[Frame] = []
        # Calls that attention may be made of and that cannot be read, by the module that made them.
        self.unread: dict[str, set[str]] = {}

    def begin(self, name: str, module: nn.Module, arguments: tuple, *, ignore: bool = False) -> None:
        """A watched module begins; one to ignore hides what the modules inside it do as well."""
        tensors = [argument for argument in arguments if isinstance(argument, Tensor)]
        ignore = ignore or bool(self.frames and self.frames[-1].is_ignored)
        self.frames.append(Frame(name, module, tensors[0].shape[0] if tensors and tensors[0].ndim else 1, ignore))

    def end(self) -> None:
        """A watched module ends."""
        if self.frames:
            self.frames.pop()

    @contextmanager
    def ignoring(self, module: nn.Module) -> Iterator[None]:
        """Look away while our own attention function computes."""
        self.begin("", module, (), ignore=True)
        try:
            yield
        finally:
            self.end()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        frame = self.frames[-1] if self.frames else None
        if frame is None or frame.is_ignored:
            return func(*args, **kwargs)
        if func is functional.scaled_dot_product_attention:
            return self._sdpa(frame, *args, **kwargs)
        if func is functional.multi_head_attention_forward:
            return self._multi_head(frame, *args, **kwargs)
        name = getattr(func, "__name__", "")
        if name in _UNREAD:
            self.unread.setdefault(frame.name, set()).add(name)
        if name == "softmax" and _is_last_axis(args, kwargs):
            return self._softmax(frame, func, args, kwargs)
        if name in _PRODUCTS:
            return self._product(frame, func, name, args, kwargs)
        out = func(*args, **kwargs)
        if frame.patterns and isinstance(out, Tensor):
            for argument in args:
                marked = frame.patterns.get(id(argument))
                if marked is not None and out.numel() == marked[0].numel():
                    frame.patterns[id(out)] = (out, marked[1])
                    break
        return out

    def _softmax(self, frame: Frame, func: Callable, args: tuple, kwargs: dict) -> Tensor:
        raw_scores = args[0] if args else kwargs["input"]
        shape = _heads_first(raw_scores, frame.batch)
        if shape is None:
            return func(*args, **kwargs)
        product = _product_of(frame, raw_scores.numel(), shape)
        frame.n_used = len(frame.products)
        scores = self.watcher.on_scores(frame, raw_scores.reshape(shape), product)
        rest = args[1:]
        pattern = func(scores.reshape(raw_scores.shape), *rest, **{k: v for k, v in kwargs.items() if k != "input"})
        seen = Softmax(scores, pattern.reshape(shape), product)
        pattern = self.watcher.on_pattern(frame, seen).reshape(pattern.shape)
        frame.patterns[id(pattern)] = (pattern, seen)
        return pattern

    def _product(self, frame: Frame, func: Callable, name: str, args: tuple, kwargs: dict) -> Tensor:
        operands = [argument for argument in args if isinstance(argument, Tensor)]
        if name == "baddbmm":
            operands = [*operands[1:], *(kwargs[key] for key in ("batch1", "batch2") if key in kwargs)]
        elif name == "einsum" and len(args) == 2 and isinstance(args[1], tuple | list):
            operands = list(args[1])
        if len(operands) != 2:
            return func(*args, **kwargs)
        left, right = operands
        marked = frame.patterns.get(id(left))
        if marked is not None:
            return self._mix(frame, func, name, args, kwargs, marked[1], right)
        out = func(*args, **kwargs)
        if out.ndim < 3:
            return out
        query, key = _query_key(name, args, left, right, out, frame.batch)
        product = Product(len(frame.products), out, query, key)
        changed = self.watcher.on_product(frame, product)
        if changed is not None:
            product.query, product.key = changed
            new = changed[0] @ changed[1].transpose(-1, -2)
            old = query @ key.transpose(-1, -2) if query is not None and key is not None else 0.0
            # Whatever else the call did (a scale, an added bias) stays: a product is linear in what it multiplies.
            factor = float(kwargs.get("alpha", 1.0)) if name == "baddbmm" else 1.0
            out = out + factor * (new - old).reshape(out.shape)
            product.out = out
        frame.products.append(product)
        return out

    def _mix(
        self, frame: Frame, func: Callable, name: str, args: tuple, kwargs: dict, softmax: Softmax, right: Tensor
    ) -> Tensor:
        to_heads, from_heads, value = _mixed_axes(name, args, right, frame.batch)
        changed = self.watcher.on_value(frame, softmax, value)
        out = func(*args, **kwargs)
        mixed = to_heads(out)
        if changed is not None:
            value = changed
            mixed = softmax.pattern.to(value.dtype) @ value
        return from_heads(self.watcher.on_mixed(frame, softmax, value, mixed)).reshape(out.shape)

    def _sdpa(
        self,
        frame: Frame,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        shapes = [shape for tensor in (query, key, value) if (shape := _heads_first(tensor, frame.batch)) is not None]
        if len(shapes) < 3:
            raise CaptureError(
                f"{frame.name} calls scaled_dot_product_attention with shapes {tuple(query.shape)}, "
                "which are not heads of tokens."
            )
        q, k, v = (tensor.reshape(shape) for tensor, shape in zip((query, key, value), shapes, strict=True))
        if attn_mask is not None:
            attn_mask = (
                attn_mask.reshape((1,) * (4 - attn_mask.ndim) + tuple(attn_mask.shape))
                if attn_mask.ndim < 4
                else attn_mask
            )
        mask, bias = read_mask(attn_mask, q, k, is_causal=is_causal)
        scaling = q.shape[-1] ** -0.5 if scale is None else float(scale)
        call = AttentionCall(frame.module, q, k, v, Formula(scaling, mask=mask, bias=bias), dropout_p, "traced")
        mixed, _ = self.watcher.attend(call)
        return mixed.transpose(1, 2).reshape(*query.shape[:-1], value.shape[-1])

    def _multi_head(self, frame: Frame, query, key, value, embed_dim, num_heads, *args, **kwargs):
        """`nn.MultiheadAttention`, whose softmax is out of sight: its projections are applied here, as torch does."""
        names = list(inspect.signature(functional.multi_head_attention_forward).parameters)[5:]
        arguments: dict[str, Any] = dict(zip(names, args, strict=False)) | kwargs
        if any(
            arguments.get(name) is not None for name in ("bias_k", "bias_v", "static_k", "static_v")
        ) or arguments.get("add_zero_attn"):
            raise CaptureError(
                f"{frame.name} uses extra key and value rows (bias_k, add_zero_attn), which Headscope does not compute."
            )
        is_batched = query.ndim == 3
        if not is_batched:
            query, key, value = query[:, None], key[:, None], value[:, None]
        if arguments.get("use_separate_proj_weight"):
            weights = [arguments[f"{name}_proj_weight"] for name in "qkv"]
        else:
            weights = arguments["in_proj_weight"].chunk(3)
        bias = arguments.get("in_proj_bias")
        biases = [None] * 3 if bias is None else bias.chunk(3)
        # [token, batch, model] → [batch, head, token, dim]
        q, k, v = (
            functional.linear(tensor, weight, add).unflatten(-1, (num_heads, -1)).permute(1, 2, 0, 3)
            for tensor, weight, add in zip((query, key, value), weights, biases, strict=True)
        )
        mask, further = _torch_masks(arguments.get("attn_mask"), arguments.get("key_padding_mask"), q, k)
        formula = Formula(q.shape[-1] ** -0.5, mask=mask, bias=further)
        dropout = arguments.get("dropout_p", 0.0) if arguments.get("training", True) else 0.0
        call = AttentionCall(frame.module, q, k, v, formula, dropout, "traced")
        mixed, pattern = self.watcher.attend(call)  # [batch, token, head, dim]
        out = functional.linear(
            mixed.flatten(2).transpose(0, 1), arguments["out_proj_weight"], arguments["out_proj_bias"]
        )
        if arguments.get("need_weights", True) and pattern is not None:
            pattern = pattern.mean(1) if arguments.get("average_attn_weights", True) else pattern
            pattern = pattern if is_batched else pattern[0]
        else:
            pattern = None
        return (out if is_batched else out[:, 0]), pattern


def _product_of(frame: Frame, n_cells: int, shape: tuple[int, ...]) -> Product | None:
    """The product that scores came from: of those since the last softmax the first whose queries and keys give it.

    Others are terms of relative positions (SpeechT5), which may have as many cells.
    """
    candidates = [product for product in frame.products if product.out.numel() == n_cells]
    for product in candidates:
        query, key = product.query, product.key
        if product.ordinal < frame.n_used or query is None or key is None:
            continue
        if (*query.shape[:3], key.shape[2]) == shape:
            return product
    return candidates[-1] if candidates else None


def _torch_masks(attn_mask: Tensor | None, key_padding: Tensor | None, query: Tensor, key: Tensor):
    """torch's two masks (True or −inf forbids) as one."""
    batch, n_heads, n_queries = query.shape[:3]
    n_keys = key.shape[2]
    joined: Tensor | None = None
    if attn_mask is not None:
        attn_mask = attn_mask.reshape(-1, n_queries, n_keys)
        attn_mask = attn_mask[None] if attn_mask.shape[0] == 1 else attn_mask.reshape(batch, n_heads, n_queries, n_keys)
        joined = _additive(attn_mask)
    if key_padding is not None:
        padding = _additive(key_padding.reshape(batch, 1, 1, n_keys))
        joined = padding.expand(batch, 1, n_queries, n_keys) if joined is None else joined + padding
    if joined is None:
        return read_mask(None, query, key, is_causal=False)
    return read_mask(joined.expand(batch, -1, n_queries, n_keys), query, key, is_causal=False)


def _additive(mask: Tensor) -> Tensor:
    if mask.dtype == torch.bool:
        return torch.zeros(mask.shape, device=mask.device).masked_fill(mask, float("-inf"))
    return mask.float()


def _is_last_axis(args: tuple, kwargs: dict) -> bool:
    tensor = args[0] if args else kwargs.get("input")
    axis = kwargs.get("dim", args[1] if len(args) > 1 else None)
    return isinstance(tensor, Tensor) and tensor.ndim >= 3 and axis in (-1, tensor.ndim - 1)


def _heads_first(tensor: Tensor, batch: int) -> tuple[int, ...] | None:
    """The shape [batch, head, ·, ·] of a tensor that may have batch and heads in one axis."""
    if tensor.ndim == 4:
        return tuple(tensor.shape)
    if tensor.ndim == 3 and tensor.shape[0] % batch == 0:
        return (batch, tensor.shape[0] // batch, *tensor.shape[1:])
    return None


def _query_key(
    name: str, args: tuple, left: Tensor, right: Tensor, out: Tensor, batch: int
) -> tuple[Tensor | None, Tensor | None]:
    """The operands of a product, as queries and keys [batch, head, token, dim], where they can be read as such."""
    if name == "einsum":
        letters = _letters(args[0])
        if letters is None or len(letters[2]) != 4:
            return None, None
        first, second, result = letters
        shared = [letter for letter in first if letter in second and letter not in result]
        if len(shared) != 1:
            return None, None
        orders = [f"{result[:2]}{axis}{shared[0]}" for axis in result[2:]]
        if sorted(orders[0]) != sorted(first) or sorted(orders[1]) != sorted(second):
            return None, None
        return _permute(left, first, orders[0]), _permute(right, second, orders[1])
    key = right.transpose(-1, -2)
    shapes = _heads_first(left, batch), _heads_first(key, batch)
    if shapes[0] is None or shapes[1] is None or _heads_first(out, batch) is None:
        return None, None
    return left.reshape(shapes[0]), key.reshape(shapes[1])


def _mixed_axes(name: str, args: tuple, right: Tensor, batch: int):
    """How to read the output of pattern · value as [batch, head, token, dim], and the values."""
    if name == "einsum":
        letters = _letters(args[0])
        if letters is None or len(letters[0]) != 4 or len(letters[2]) != 4:
            raise CaptureError(f"the einsum {args[0]!r} of a pattern cannot be read as heads of tokens.")
        first, second, result = letters
        dim = next(letter for letter in result if letter not in first)
        order = f"{first[:3]}{dim}"
        value = _permute(right, second, f"{first[:2]}{first[3]}{dim}")
        return (lambda out: _permute(out, result, order)), (lambda mixed: _permute(mixed, order, result)), value

    def to_heads(out: Tensor) -> Tensor:
        shape = _heads_first(out, batch)
        assert shape is not None
        return out.reshape(shape)

    shape = _heads_first(right, batch)
    if shape is None:
        raise CaptureError(f"values of shape {tuple(right.shape)} cannot be read as heads of tokens.")
    return to_heads, (lambda mixed: mixed), right.reshape(shape)


def _letters(equation: Any) -> tuple[str, str, str] | None:
    if not isinstance(equation, str) or "..." in equation or "->" not in equation:
        return None
    inputs, result = equation.replace(" ", "").split("->")
    operands = inputs.split(",")
    return (operands[0], operands[1], result) if len(operands) == 2 else None


def _permute(tensor: Tensor, letters: str, order: str) -> Tensor:
    return tensor.permute([letters.index(letter) for letter in order])
