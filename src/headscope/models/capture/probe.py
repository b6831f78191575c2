"""One small forward pass that finds out where and how a model attends. Nothing is looked up by a model's name."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from headscope.attention import Bias, expand_heads, scores, softmax
from headscope.errors import CaptureError
from headscope.models.capture.longformer import is_banded
from headscope.models.capture.seam import Call, attend_plainly, current_session
from headscope.models.capture.traced_layers import describe_scores
from headscope.models.capture.tracer import Frame, Product, Softmax, Tracer
from headscope.models.layout import AttentionLayer, Layout, attention_modules, block_of, is_cross_attention, stack_of
from headscope.sites import Site


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


class Probe:
    """Takes the place of a session during the probe pass, and writes down what it sees."""

    def __init__(self, module: nn.Module):
        self.module = module
        self.names = {id(part): name for name, part in module.named_modules()}
        self.seen: list[Seen] = []
        self.linear_inputs: list[tuple[str, Tensor]] = []
        self.calls: list[tuple[str, Tensor | None, Tensor | None]] = []
        self.batch = 1
        self.n_forwards: dict[str, int] = {}
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
            if not name and tensors:
                self.batch = tensors[0].shape[0]
            if any(True for _ in module.children()):
                self.tracer.begin(name, module, tuple(tensors), ignore=is_banded(module))
            elif tensors and _is_linear(module):
                self.linear_inputs.append((name, tensors[0]))
            # A module that takes several tensors is no link in the chain from residual stream to logits.
            self.calls.append((name, tensors[0] if len(tensors) == 1 else None, None))

        return hook

    def _after(self, name: str):
        def hook(module: nn.Module, args: tuple, output: Any) -> None:
            tensor = _first_tensor(output)
            if any(True for _ in module.children()):
                self.tracer.end()
            if is_banded(module) and tensor is not None:
                n_heads = int(module.num_heads)  # type: ignore[arg-type]
                dim = tensor.shape[-1] // n_heads
                sizes = (n_heads, n_heads, dim, dim, tensor.shape[1], tensor.shape[1])
                self.seen.append(Seen(name, module, "weights", *sizes, tensor))
            self.calls.append((name, None, tensor))

        return hook

    # As the seam sees it

    def watches(self, module: nn.Module) -> bool:
        """Every module of the probed model."""
        return id(module) in self.names

    def bias_of(self, dense: Tensor):
        """Biases as they come."""
        return Bias("dense", dense, *dense.shape[-2:])

    def attend(self, call: Call) -> tuple[Tensor, Tensor | None]:
        """Compute attention plainly and write it down."""
        with self.tracer.ignoring(call.module):
            out, pattern = attend_plainly(call)
        name = self.names[id(call.module)]
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
                out,
                is_causal=mask is not None and mask.is_causal,
                scaling=call.formula.scaling,
                batch=call.query.shape[0],
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
            )
        )
        return mixed


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


def layout_of(probe: Probe, *, is_encoder_decoder: bool, inputs: frozenset[str]) -> Layout:
    """What the probe saw, put in order: layers by stack and kind in the order of their calls."""
    module = probe.module
    if not probe.seen:
        raise CaptureError(
            f"{type(module).__name__} computed no attention that Headscope can see: it may have none (a convolutional "
            "or recurrent model), or only fused attention inside a custom kernel."
        )
    stacks = {seen.name: stack_of(seen.name, is_encoder_decoder=is_encoder_decoder) for seen in probe.seen}
    if len(set(stacks.values())) == 1:
        stacks = dict.fromkeys(stacks, "main")
    counts: dict[tuple[str, str], int] = {}
    lengths = {stacks[seen.name]: seen.n_queries for seen in probe.seen if seen.n_queries == seen.n_keys}
    layers = []
    for seen in probe.seen:
        stack = stacks[seen.name]
        kind = "cross" if is_cross_attention(seen.name, seen.module) or seen.n_queries != seen.n_keys else "self"
        key_stack = stack
        if kind == "cross":
            others = [other for other, length in lengths.items() if length == seen.n_keys and other != stack]
            others = ["encoder"] if stack == "decoder" and "encoder" in stacks.values() else others
            key_stack = others[0] if others else stack
            if key_stack == stack and stack in lengths:
                stack = f"{stack}_pool"  # queries of its own that look at the stack's tokens: a pooling head
        index = counts[stack, kind] = counts.get((stack, kind), -1) + 1
        layers.append(
            AttentionLayer(
                Site(stack, index, kind),
                seen.name,
                seen.way,
                seen.n_heads,
                seen.n_groups,
                seen.head_dim,
                seen.value_dim,
                key_stack,
                _output_projection(probe, seen),
                seen.is_causal,
                seen.scaling,
                seen.product,
                seen.stores_patterns,
                seen.batch % probe.batch == 0 and seen.batch > probe.batch,
            )
        )
    order = {stack: place for place, stack in enumerate(dict.fromkeys(layer.site.stack for layer in layers))}
    layers.sort(key=lambda layer: (layer.site.kind == "cross", order[layer.site.stack], layer.site.layer))
    captured_modules = {layer.module for layer in layers}
    missed = tuple(
        name
        for name in attention_modules(module)
        if not any(captured == name or captured.startswith(f"{name}.") for captured in captured_modules)
    )
    missed = tuple(name for name in missed if not any(name.startswith(f"{captured}.") for captured in captured_modules))
    blocks, neurons, widths = _blocks(probe, layers)
    lens, no_lens = _lens(probe, blocks)
    n_seen = Counter(seen.name for seen in probe.seen)
    combined = tuple(name for name, count in n_seen.items() if count > probe.n_forwards.get(name, 1))
    return Layout(tuple(layers), blocks, neurons, lens, widths, no_lens, missed, inputs, combined)


def _output_projection(probe: Probe, seen: Seen) -> str | None:
    """The linear layer that reads the mixed values: the one whose input is the very memory that attention wrote."""
    for name, linear_input in probe.linear_inputs:
        if linear_input.data_ptr() == seen.out.data_ptr() and linear_input.numel() == seen.out.numel():
            return name
    if isinstance(seen.module, nn.MultiheadAttention):  # torch uses the weights of this one without calling it
        return f"{seen.name}.out_proj" if seen.name else "out_proj"
    # A traced layer reorders its output before the projection: the values tell.
    size = seen.n_heads * seen.value_dim
    for name, linear_input in probe.linear_inputs:
        if (
            linear_input.shape[-1] == size
            and linear_input.numel() == seen.out.numel()
            and _same_values(linear_input, seen.out)
        ):
            return name
    return None


def _same_values(linear_input: Tensor, out: Tensor) -> bool:
    """Whether a linear input [batch, token, head · dim] is the mixed values [batch, head, token, dim], reordered."""
    if out.ndim != 4:
        return False
    joined = out.transpose(1, 2).flatten(2)
    return torch.equal(linear_input.reshape(joined.shape), joined)


def _blocks(probe: Probe, layers: list[AttentionLayer]) -> tuple[dict[Site, str], dict[Site, str], dict[Site, int]]:
    """The blocks around the attention layers, the linear layer in each that MLP activations enter, and their widths."""
    blocks: dict[Site, str] = {}
    neurons: dict[Site, str] = {}
    widths: dict[Site, int] = {}
    for layer in layers:
        name = block_of(layer.module, probe.module)
        if layer.site.kind != "self" or name is None:
            continue
        site = Site(layer.site.stack, layer.site.layer, "residual")
        blocks[site] = name
        out = next((out for called, _, out in probe.calls if called == name and out is not None), None)
        if out is not None:
            widths[site] = out.shape[-1]
        attention = {other.module for other in layers}
        inside = [
            (linear, linear_input)
            for linear, linear_input in probe.linear_inputs
            if linear.startswith(f"{name}.")
            and not any(linear.startswith(f"{attention_module}.") for attention_module in attention)
            and linear not in {other.out_projection for other in layers}
        ]
        if inside:
            linear, linear_input = inside[-1]
            # The way back down: as wide in as the MLP, as wide out as the stream.
            if len(inside) > 1 or linear_input.shape[-1] != _out_features(probe.module.get_submodule(linear)):
                at = Site(layer.site.stack, layer.site.layer, "neurons")
                neurons[at], widths[at] = linear, linear_input.shape[-1]
    return blocks, neurons, widths


def _lens(probe: Probe, blocks: dict[Site, str]) -> tuple[tuple[str, ...], str]:
    """The chain of modules from the last block's output to the logits (final norm, language-model head)."""
    head = getattr(probe.module, "get_output_embeddings", lambda: None)()
    if head is None or not blocks:
        return (), "the model has no language-model head"
    head_name = probe.names.get(id(head))
    outputs = [(place, name, out) for place, (name, _, out) in enumerate(probe.calls) if out is not None]
    last = max((place for place, name, _ in outputs if name in set(blocks.values())), default=None)
    if last is None or head_name is None:
        return (), "the probe did not reach the language-model head"
    stream = next(out for place, _, out in outputs if place == last)

    def chain(place: int, stream: Tensor) -> tuple[str, ...] | None:
        """Modules, each reading what the one before it gave, that end in the head; poolers lead nowhere."""
        for later, (name, stream_in, _) in enumerate(probe.calls):
            if later <= place or stream_in is None or not _is_same(stream_in, stream):
                continue
            if _covers(name, head_name):
                return (name,)
            done, out = next((done, out) for done, called, out in outputs if done > later and called == name)
            rest = chain(done, out)
            if rest is not None:
                return (name, *rest)
        return None

    modules = chain(last, stream)
    if not modules:
        return (), "something between the last block and the language-model head is not a module"
    last_out = next(out for _, name, out in reversed(outputs) if name == modules[-1])
    logits = outputs[-1][2]  # the last module to end is the model itself
    if last_out.shape != logits.shape or not torch.allclose(last_out, logits, atol=1e-5):
        return (), "something follows the language-model head (a soft cap, a scale)"
    return modules, ""


def _covers(name: str, inner: str) -> bool:
    return name == inner or inner.startswith(f"{name}.")


def _is_same(tensor: Tensor, other: Tensor) -> bool:
    return tensor.data_ptr() == other.data_ptr() and tensor.shape == other.shape


def _is_linear(module: nn.Module) -> bool:
    """Linear layers of any make: torch's, GPT-2's transposed one, quantised ones."""
    return isinstance(module, nn.Linear) or "Linear" in type(module).__name__ or type(module).__name__ == "Conv1D"


def _out_features(module: nn.Module) -> int | None:
    n_features = getattr(module, "out_features", None) or getattr(module, "nf", None)
    return n_features if isinstance(n_features, int) else None


def _first_tensor(output: Any) -> Tensor | None:
    if isinstance(output, Tensor):
        return output
    if isinstance(output, tuple | list):
        return next((tensor for part in output if (tensor := _first_tensor(part)) is not None), None)
    for name in ("logits", "prediction_logits"):
        if isinstance(getattr(output, name, None), Tensor):
            return getattr(output, name)
    return None
