"""One small forward pass that finds out where and how a model attends. Nothing is looked up by a model's name."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from headscope.attention import Bias, expand_heads, scores, softmax
from headscope.models.capture.banded_attention import half_window, is_banded
from headscope.models.capture.expert_routing import Routing, routing_of
from headscope.models.capture.seam import AttentionCall, attend_plainly, current_session
from headscope.models.capture.traced_layers import describe_scores
from headscope.models.capture.tracer import Frame, Product, Softmax, Tracer


@dataclass(eq=False)
class Seen:
    """One attention computation of the probe pass."""

    name: str
    module: nn.Module
    way: str
    n_heads: int
    n_groups: int
    head_dim: int
    value_dim: int
    n_queries: int
    n_keys: int
    out: Tensor
    is_causal: bool = False
    scaling: float = 1.0
    product: int = 0
    stores_patterns: bool = False
    batch: int = 1
    running: tuple[str, ...] = ()
    """The modules that were running, the outermost first."""
    source: Tensor | None = None
    """The first tensor that the module was given."""
    is_looped: bool = False
    head_modules: tuple[str, ...] = ()
    window: int | None = None


class Probe:
    """Takes the place of a session during the probe pass, and writes down what it sees."""

    def __init__(self, module: nn.Module):
        self.module = module
        self.names = {id(part): name for name, part in module.named_modules()}
        self.seen: list[Seen] = []
        self.linear_inputs: list[tuple[str, Tensor]] = []
        # Linear layers made of others, whose parts are none of the model's: LoRA around a projection, weight norm.
        self._wrappers = [
            name for name, part in module.named_modules() if is_linear(part) and any(True for _ in part.children())
        ]
        self.calls: list[tuple[str, Tensor | None, Tensor | None]] = []
        self.routings: list[tuple[str, Routing]] = []
        self.batch = 1
        self.sdpa_is_causal: list[str] = []
        self.n_forwards: dict[str, int] = {}
        self.running: list[str] = []
        self.sources: list[tuple[int, Tensor | None]] = []
        self.record, self.grad = None, False
        self.tracer = Tracer(self)

    def run(self, forward: Callable[[], Any]) -> Any:
        """Run a forward pass under observation."""
        hooks = []
        for name, part in self.module.named_modules():
            hooks.append(part.register_forward_pre_hook(self._before(name), with_kwargs=True))
            hooks.append(part.register_forward_hook(self._after(name), always_call=True))
        context = current_session.set(self)  # type: ignore[arg-type]
        try:
            with torch.no_grad(), self.tracer:
                return forward()
        finally:
            current_session.reset(context)
            for hook in hooks:
                hook.remove()

    def _before(self, name: str):
        def hook(module: nn.Module, args: tuple, kwargs: dict) -> None:
            tensors = [argument for argument in (*args, *kwargs.values()) if isinstance(argument, Tensor)]
            self.n_forwards[name] = self.n_forwards.get(name, 0) + 1
            self.running.append(name)
            self.sources.append((len(self.seen), tensors[0] if tensors else None))
            if not name and tensors:
                self.batch = tensors[0].shape[0]
            if any(True for _ in module.children()):
                self.tracer.begin(name, module, tuple(tensors), ignore=is_banded(module))
            if tensors and is_linear(module) and not any(name.startswith(f"{outer}.") for outer in self._wrappers):
                self.linear_inputs.append((name, tensors[0]))
            # A module that takes several tensors is no link in the chain from residual stream to logits.
            self.calls.append((name, tensors[0] if len(tensors) == 1 else None, None))

        return hook

    def _after(self, name: str):
        def hook(module: nn.Module, args: tuple, output: Any) -> None:
            tensor = first_tensor(output)
            if self.running:
                self.running.pop()
                self._join_windows(name, module, *self.sources.pop())
            if any(True for _ in module.children()):
                self.tracer.end()
            if is_banded(module) and tensor is not None:
                n_heads = int(module.num_heads)  # type: ignore[arg-type]
                dim = tensor.shape[-1] // n_heads
                sizes = (n_heads, n_heads, 2 * dim, dim, tensor.shape[1], tensor.shape[1])
                about = {"scaling": dim**-0.5, "running": tuple(self.running), "window": half_window(module) + 1}
                self.seen.append(Seen(name, module, "banded", *sizes, tensor, **about))
            self.calls.append((name, None, tensor))
            routing = routing_of(output)
            if routing is not None:
                self.routings.append((name, routing))

        return hook

    def _join_windows(self, name: str, module: nn.Module, first: int, source: Tensor | None) -> None:
        """Attention that one forward pass of a module computed window by window is one computation."""
        windows = [seen for seen in self.seen[first:] if seen.name == name]
        if windows and (takes_lengths(module) or _are_windows(windows, source)):
            length = sum(seen.n_queries for seen in windows)
            joined = replace(
                windows[0],
                n_queries=length,
                n_keys=length,
                out=torch.cat([seen.out for seen in windows], 2),
                is_causal=windows[0].is_causal and len(windows) == 1,
                is_looped=True,
            )
            self.seen[first:] = [seen for seen in self.seen[first:] if seen.name != name] + [joined]

    # As the seam sees it

    def watches(self, module: nn.Module) -> bool:
        """Every module of the probed model."""
        return id(module) in self.names

    def bias_of(self, dense: Tensor):
        """Biases as they come."""
        return Bias("dense", dense, *dense.shape[-2:])

    def attend(self, call: AttentionCall) -> tuple[Tensor, Tensor | None]:
        """Compute attention plainly and write it down."""
        with self.tracer.ignoring(call.module):
            out, pattern = attend_plainly(call)
        name = self.names[id(call.module)]
        if call.sdpa_is_causal:
            self.sdpa_is_causal.append(name)
        mask = call.formula.mask
        self.seen.append(
            Seen(
                name,
                call.module,
                call.way,
                call.query.shape[1],
                call.key.shape[1],
                call.query.shape[-1],
                call.value.shape[-1],
                call.query.shape[2],
                call.key.shape[2],
                out.transpose(1, 2),
                is_causal=mask is not None and mask.is_causal,
                scaling=call.formula.scaling,
                window=call.window,
                batch=call.query.shape[0],
                running=tuple(self.running),
                source=self.sources[-1][1],
            )
        )
        return out, pattern

    # As the tracer reports it

    def on_product(self, frame: Frame, product: Product) -> None:
        """Products are written down by the tracer itself."""

    def on_scores(self, frame: Frame, scores: Tensor, product: Product | None) -> Tensor:
        """Scores stay as they are."""
        return scores

    def on_pattern(self, frame: Frame, softmax: Softmax) -> Tensor:
        """Patterns stay as they are."""
        return softmax.pattern

    def on_value(self, frame: Frame, softmax: Softmax, value: Tensor) -> None:
        """Values stay as they are."""

    def on_mixed(self, frame: Frame, softmax: Softmax, value: Tensor, mixed: Tensor) -> Tensor:
        """A softmax whose output weighs values: attention, in a module that does not call our function."""
        pattern, product = softmax.pattern, softmax.product
        batch, n_heads, n_queries, n_keys = pattern.shape
        scaling, stores = 1.0, True
        if product is not None and not _gives(product, n_queries, n_keys):
            product = None
        if product is not None and product.query is not None and product.key is not None:
            scaling, stores = read_scaling(softmax, product)
        has_query = product is not None and product.query is not None and product.key is not None
        upper = pattern.triu(1).abs().max() if n_queries == n_keys and n_queries > 1 else torch.ones(())
        self.seen.append(
            Seen(
                frame.name,
                frame.module,
                "traced",
                n_heads,
                product.key.shape[1] if has_query else n_heads,  # type: ignore[union-attr]
                product.query.shape[-1] if has_query else value.shape[-1],  # type: ignore[union-attr]
                value.shape[-1],
                n_queries,
                n_keys,
                mixed,
                is_causal=bool(upper == 0),
                scaling=scaling,
                product=product.ordinal if product is not None else -1,
                stores_patterns=stores,
                batch=batch,
                running=tuple(self.running),
                source=self.sources[-1][1],
            )
        )
        return mixed


def _gives(product: Product, n_queries: int, n_keys: int) -> bool:
    """Whether a product is of a pattern's queries and keys: Grounding DINO transposes one for its other direction."""
    if product.query is None or product.key is None:
        return True
    return (product.query.shape[2], product.key.shape[2]) == (n_queries, n_keys)


def takes_lengths(module: nn.Module) -> bool:
    """Whether a module takes its tokens as sequences one after another, by the name that Transformers gives this."""
    return "cu_seqlens" in inspect.signature(type(module).forward).parameters


def _are_windows(calls: list[Seen], source: Tensor | None) -> bool:
    """Whether the calls of one forward pass share its tokens among them, each attending within its own."""
    shapes = {(seen.n_heads, seen.n_groups, seen.head_dim, seen.value_dim, seen.batch) for seen in calls}
    is_square = all(seen.n_queries == seen.n_keys for seen in calls)
    if len(calls) < 2 or len(shapes) > 1 or not is_square or source is None or source.ndim < 2:
        return False
    n_tokens = source.numel() // source.shape[-1]
    return calls[0].batch * sum(seen.n_queries for seen in calls) == n_tokens


def read_scaling(observed: Softmax, product: Product) -> tuple[float, bool]:
    """By what the product was scaled before the softmax, and whether patterns must be stored because that does not give
    them.
    """
    query, key = product.query, product.key
    assert query is not None and key is not None
    plain = query.float() @ expand_heads(key, query.shape[1]).float().transpose(-1, -2)
    candidates = (1.0, query.shape[-1] ** -0.5, 1.0 / query.shape[-1])
    visible = observed.scores > -9e3

    def spread(scaling: float) -> float:
        """How much of the scores the scaled product leaves unexplained."""
        rest = (observed.scores.float() - scaling * plain)[visible]
        return float(rest.var()) if rest.numel() > 1 else 0.0

    scaling = min(candidates, key=spread)
    formula = describe_scores(observed.scores, query, key, scaling)
    again = softmax(scores(query.float(), expand_heads(key, query.shape[1]).float(), formula))
    return scaling, float((again - observed.pattern.float()).abs().max()) > 1e-5


def is_linear(module: nn.Module) -> bool:
    """Linear layers of any make: torch's, GPT-2's transposed one, quantised ones, those with an adapter around them."""
    kind = type(module).__name__
    if isinstance(module, nn.Linear) or kind == "Conv1D":
        return True
    children = dict(module.named_children())
    if not children:
        return "Linear" in kind
    return kind.endswith("Linear") or "base_layer" in children or any(name.startswith("lora_") for name in children)


def first_tensor(output: Any) -> Tensor | None:
    """The first tensor in what a module returned: logits, or the stream."""
    if isinstance(output, Tensor):
        return output
    if isinstance(output, tuple | list):
        return next((tensor for part in output if (tensor := first_tensor(part)) is not None), None)
    for name in ("logits", "prediction_logits"):
        if isinstance(getattr(output, name, None), Tensor):
            return getattr(output, name)
    return None
