"""From what the probe saw to the layout: stacks, layer numbers, blocks, MLP neurons, output projections."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import torch
from torch import Tensor, nn

from headscope.errors import CaptureError
from headscope.models.capture.expert_routing import routers_of
from headscope.models.capture.lens_chain import lens_of
from headscope.models.capture.no_attention import no_attention
from headscope.models.capture.probe import Probe, Seen
from headscope.models.layout import (
    AttentionLayer,
    Layout,
    OtherLayer,
    attention_modules,
    block_among,
    block_of,
    is_cross_attention,
    reads_pictures_in_text,
    stack_of,
)
from headscope.models.slim_layers import NoHeads
from headscope.sites import Kind, Site


def layout_of(probe: Probe, *, is_encoder_decoder: bool, inputs: frozenset[str]) -> Layout:
    """What the probe saw, put in order: layers by stack and kind, numbered as the model numbers its blocks."""
    if not probe.seen:
        raise CaptureError(no_attention(probe))
    computations = join_heads(probe.seen, probe.module)
    layers = _layers(probe, computations, is_encoder_decoder=is_encoder_decoder)
    blocks = _blocks(probe, layers)
    others = _other_layers(probe, layers, blocks)
    neurons, widths = _neurons(probe, layers, blocks, others)
    lens, no_lens = lens_of(probe, blocks)
    n_seen = Counter(seen.name for seen in computations)
    return Layout(
        tuple(layers),
        others,
        blocks,
        neurons,
        lens,
        widths,
        no_lens,
        _missed(probe.module, layers, others),
        inputs,
        tuple(name for name, count in n_seen.items() if count > probe.n_forwards.get(name, 1)),
        tuple(dict.fromkeys(probe.sdpa_is_causal)),
        routers_of(probe.routings, blocks, _n_rows(probe)),
    )


def _n_rows(probe: Probe) -> dict[str, int]:
    """How many tokens each module gave, those of the whole batch together."""
    return {name: out.numel() // out.shape[-1] for name, _, out in probe.calls if out is not None and out.numel()}


def join_heads(calls: Sequence[Seen], module: nn.Module) -> list[Seen]:
    """The attention computations of the probe, with modules of one head each (`heads.0`, `heads.1`, …) as one layer.

    They are side by side in a list and read the same tensor, which the layers of a stack do not.
    """
    joined: list[Seen] = []
    run: list[Seen] = []
    for seen in calls:
        if run and not _are_siblings(run[-1], seen, module):
            joined.append(_as_one_layer(run))
            run = []
        run.append(seen)
    return [*joined, _as_one_layer(run)] if run else joined


def _are_siblings(seen: Seen, following: Seen, module: nn.Module) -> bool:
    container, _, number = seen.name.rpartition(".")
    other, _, next_number = following.name.rpartition(".")
    shapes = [
        (call.way, call.n_heads, call.n_groups, call.head_dim, call.value_dim, call.n_queries, call.n_keys, call.batch)
        for call in (seen, following)
    ]
    return (
        container == other
        and number != next_number
        and number.isdigit()
        and isinstance(module.get_submodule(container), nn.ModuleList)
        and shapes[0] == shapes[1]
        and seen.n_heads == 1
        and seen.source is not None
        and seen.source is following.source
    )


def _as_one_layer(heads: list[Seen]) -> Seen:
    if len(heads) == 1:
        return heads[0]
    owner = heads[0].name.rpartition(".")[0].rpartition(".")[0]
    return replace(
        heads[0],
        name=owner,
        n_heads=len(heads),
        n_groups=len(heads),
        out=torch.cat([head.out for head in heads], 1),
        stores_patterns=any(head.stores_patterns for head in heads),
        head_modules=tuple(head.name for head in heads),
    )


def _layers(probe: Probe, calls: Sequence[Seen], *, is_encoder_decoder: bool) -> list[AttentionLayer]:
    """The attention layers, stack by stack in the order they run; cross-attention last."""
    stacks = {seen.name: stack_of(seen.name, is_encoder_decoder=is_encoder_decoder) for seen in calls}
    is_joined = reads_pictures_in_text(probe.module)
    if len(set(stacks.values())) == 1:
        stacks = dict.fromkeys(stacks, "main")
    elif is_joined and "main" not in stacks.values():
        stacks = {name: "main" if stack == "text" else stack for name, stack in stacks.items()}
    lengths = {stacks[seen.name]: seen.n_queries for seen in calls if seen.n_queries == seen.n_keys}
    places: dict[tuple[str, Kind], list[tuple[Seen, str]]] = {}
    for seen in calls:
        stack, kind, key_stack = _place(seen, stacks, lengths)
        places.setdefault((stack, kind), []).append((seen, key_stack))
    layers: list[AttentionLayer] = []
    for (stack, kind), placed in places.items():
        numbers = _layer_numbers([seen for seen, _ in placed], probe.module)
        for number, (seen, key_stack) in zip(numbers, placed, strict=True):
            layers.append(_layer(probe, seen, Site(stack, number, kind), key_stack))
    order = {stack: place for place, stack in enumerate(dict.fromkeys(stack for stack, _ in places))}
    if is_joined and "main" in order:
        order["main"] = -1  # the language model before the tower that it is given images by
    return sorted(layers, key=lambda layer: (layer.site.kind == "cross", order[layer.site.stack], layer.site.layer))


def _place(seen: Seen, stacks: dict[str, str], lengths: dict[str, int]) -> tuple[str, Kind, str]:
    """Stack, kind and stack of the keys of one attention computation."""
    stack = stacks[seen.name]
    if not is_cross_attention(seen.name, seen.module) and seen.n_queries == seen.n_keys:
        return stack, "self", stack
    others = [other for other, length in lengths.items() if length == seen.n_keys and other != stack]
    others = ["encoder"] if stack == "decoder" and "encoder" in stacks.values() else others
    key_stack = others[0] if others else stack
    if key_stack == stack == "main" and "vision" in stacks.values() and is_cross_attention(seen.name, seen.module):
        return stack, "cross", "image"  # what the tower gave, put together as no layer of it has it (Mllama)
    if key_stack == stack and stack in lengths:
        stack = f"{stack}_pool"  # queries of its own that look at the stack's tokens: a pooling head
    return stack, "cross", key_stack


def _layer_numbers(calls: Sequence[Seen], module: nn.Module) -> list[int]:
    """The numbers of the blocks in which attention was called; the order of calls where those do not tell them apart.

    (ALBERT calls one block for every layer, Swin numbers the blocks of each stage from 0.)
    """
    blocks = [_block(seen, module) or "" for seen in calls]
    containers = {block.rpartition(".")[0] for block in blocks}
    if "" in blocks or len(containers) > 1:
        return list(range(len(calls)))
    numbers = [int(block.rpartition(".")[2]) for block in blocks]
    in_order = all(number < following for number, following in pairwise(numbers))
    return numbers if in_order else list(range(len(calls)))


def _block(seen: Seen, module: nn.Module) -> str | None:
    """The block in which attention was called: where a module is shared (Zamba) its path names another one."""
    own = {seen.name, *seen.head_modules}
    return block_among([name for name in seen.running if name not in own], module) or block_of(seen.name, module)


def _layer(probe: Probe, seen: Seen, site: Site, key_stack: str) -> AttentionLayer:
    return AttentionLayer(
        site,
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
        _block(seen, probe.module),
        seen.is_looped,
        seen.head_modules,
        seen.window,
    )


def _missed(module: nn.Module, layers: list[AttentionLayer], others: tuple[OtherLayer, ...]) -> tuple[str, ...]:
    """The modules that look like attention and computed none."""
    seen = {layer.module for layer in layers} | {layer.module for layer in others}
    seen |= {name for name, part in module.named_modules() if isinstance(part, NoHeads)}
    names = [name for name in attention_modules(module) if not any(_covers(name, other) for other in seen)]
    return tuple(name for name in names if not any(_covers(other, name) for other in seen))


def _covers(name: str, inner: str) -> bool:
    return name == inner or inner.startswith(f"{name}.")


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


def _blocks(probe: Probe, layers: list[AttentionLayer]) -> dict[Site, str]:
    """The blocks of each stack that ran, those without attention among them."""
    blocks: dict[Site, str] = {}
    for layer in layers:
        if layer.site.kind == "self" and layer.block is not None:
            blocks[Site(layer.site.stack, layer.site.layer, "residual")] = layer.block
    for stack in dict.fromkeys(site.stack for site in blocks):
        own = {site: name for site, name in blocks.items() if site.stack == stack}
        if any(name.rpartition(".")[2] != str(site.layer) for site, name in own.items()):
            continue  # numbered by the order of calls
        container = next(iter(own.values())).rpartition(".")[0]
        for number, _ in probe.module.get_submodule(container).named_children():
            if probe.n_forwards.get(f"{container}.{number}"):
                blocks[Site(stack, int(number), "residual")] = f"{container}.{number}"
    return dict(sorted(blocks.items(), key=lambda site_and_name: site_and_name[0].layer))


def _other_layers(probe: Probe, layers: list[AttentionLayer], blocks: dict[Site, str]) -> tuple[OtherLayer, ...]:
    """The blocks of each stack in which nothing attends, with the module that mixes tokens there instead."""
    attending = {layer.block for layer in layers}
    others = []
    for site, name in blocks.items():
        if name not in attending:
            mixer = _mixer(probe.module, name, [layer for layer in layers if layer.site.stack == site.stack])
            part = probe.module.get_submodule(mixer)
            kind = "no heads left" if isinstance(part, NoHeads) else type(part).__name__
            others.append(OtherLayer(Site(site.stack, site.layer), mixer, kind))
    return tuple(others)


def _mixer(module: nn.Module, block: str, layers: list[AttentionLayer]) -> str:
    """The part of a block that stands where other blocks have attention: by its name, else the largest other part."""
    without = [name for name, part in module.get_submodule(block).named_modules() if isinstance(part, NoHeads)]
    if without:
        return f"{block}.{without[0]}"
    parts = dict(module.get_submodule(block).named_children())
    usual: set[str] = set()
    for layer in layers:
        if layer.block is None:
            continue
        name = layer.module.removeprefix(f"{layer.block}.").split(".")[0]
        if name in parts:
            return f"{block}.{name}"
        usual |= {child for child, _ in module.get_submodule(layer.block).named_children()}
    sizes = {
        name: sum(parameter.numel() for parameter in part.parameters())
        for name, part in parts.items()
        if name not in usual
    }
    return f"{block}.{max(sizes, key=lambda name: sizes[name])}" if sizes else block


def _neurons(
    probe: Probe, layers: list[AttentionLayer], blocks: dict[Site, str], others: tuple[OtherLayer, ...]
) -> tuple[dict[Site, str], dict[Site, int]]:
    """The linear layer in each block that MLP activations enter, and the widths of residual stream and activations."""
    neurons: dict[Site, str] = {}
    widths: dict[Site, int] = {}
    kinds = {layer.mixer for layer in others}
    mixers = {layer.module for layer in layers} | {
        name for name, part in probe.module.named_modules() if name and type(part).__name__ in kinds
    }
    projections = {layer.out_projection for layer in layers}
    for site, name in blocks.items():
        out = next((out for called, _, out in probe.calls if called == name and out is not None), None)
        if out is not None:
            widths[site] = out.shape[-1]
        inside = [
            (linear, linear_input)
            for linear, linear_input in probe.linear_inputs
            if linear.startswith(f"{name}.")
            and linear not in projections
            and not any(linear.startswith(f"{mixer}.") for mixer in mixers)
        ]
        # The way back down: as wide in as the MLP, as wide out as the stream. A gate of experts is neither.
        width = widths.get(site)
        back = [down for down in inside if _out_features(probe.module.get_submodule(down[0])) in (None, width)]
        inside = [down for down in back if down[1].shape[-1] != width] or back or inside
        if inside:
            linear, linear_input = inside[-1]
            if len(inside) > 1 or linear_input.shape[-1] != _out_features(probe.module.get_submodule(linear)):
                at = Site(site.stack, site.layer, "neurons")
                neurons[at], widths[at] = linear, linear_input.shape[-1]
    return neurons, widths


def _out_features(module: nn.Module) -> int | None:
    n_features = getattr(module, "out_features", None) or getattr(module, "nf", None)
    return n_features if isinstance(n_features, int) else None
