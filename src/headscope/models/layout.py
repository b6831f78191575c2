"""Where attention happens in a model: found by a probe, told to the user as coverage."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from torch import nn

from headscope.sites import Head, Site


@dataclass(frozen=True)
class AttentionLayer:
    """One attention layer: its address, the module that computes it, and how we see it.

    `way` is "routed" (the model calls our function), "traced" (its own torch calls are watched) or "banded" (window and
    global tokens, computed again from its projections). `window`: how many keys a query sees to one side, itself
    included; None: no window.
    """

    site: Site
    module: str
    way: str
    n_heads: int
    n_groups: int
    head_dim: int
    value_dim: int
    key_stack: str = ""
    out_projection: str | None = None
    is_causal: bool = False
    scaling: float = 1.0
    product: int = 0
    stores_patterns: bool = False
    is_windowed: bool = False
    block: str | None = None
    # It attends once a window, or image, in a loop within one forward pass; its windows lie on one pattern's diagonal.
    is_looped: bool = False
    # Modules side by side in a list that compute one head each; `module` is then what holds the list.
    head_modules: tuple[str, ...] = ()
    window: int | None = None

    @property
    def value_width(self) -> int:
        """Numbers in a value: banded layers have one for the window and one for global queries, side by side."""
        return self.value_dim * 2 if self.way == "banded" else self.value_dim


@dataclass(frozen=True)
class OtherLayer:
    """A layer that mixes tokens without softmax attention (Mamba, linear attention, a convolution), and its class."""

    site: Site
    module: str
    mixer: str


@dataclass(frozen=True)
class Router:
    """The module that chooses, for each token of a layer, `n_chosen` of `n_experts` experts (mixture of experts)."""

    site: Site
    module: str
    n_experts: int
    n_chosen: int


@dataclass(frozen=True)
class Layout:
    """All that the probe found. `blocks` and `neurons` name the modules whose input and output are the residual stream
    and the MLP activations; `lens` the modules that turn the last residual stream into logits. The model's own SDPA
    runs `sdpa_is_causal` modules causally, its eager code does not."""

    layers: tuple[AttentionLayer, ...] = ()
    other_layers: tuple[OtherLayer, ...] = ()
    blocks: dict[Site, str] = field(default_factory=dict)
    neurons: dict[Site, str] = field(default_factory=dict)
    lens: tuple[str, ...] = ()
    widths: dict[Site, int] = field(default_factory=dict)
    no_lens: str = "the model has no language-model head"
    missed: tuple[str, ...] = ()
    seen_inputs: frozenset[str] = frozenset()
    combined: tuple[str, ...] = ()
    sdpa_is_causal: tuple[str, ...] = ()
    routers: tuple[Router, ...] = ()

    @property
    def heads(self) -> list[Head]:
        """All heads, stack by stack in the order they run."""
        return [layer.site.head(index) for layer in self.layers for index in range(layer.n_heads)]

    @property
    def coverage(self) -> str:
        """What is captured, in one line; `combined` modules attend several times a pass and join the results."""
        modules = {layer.module for layer in self.layers}
        ways: dict[str, int] = {}
        for layer in self.layers:
            ways[layer.way] = ways.get(layer.way, 0) + 1
        counts = ", ".join(f"{count} {way}" for way, count in ways.items()) or "none"
        line = f"{len(modules)}/{len(modules) + len(self.missed)} attention modules captured (layers: {counts})"
        line += f"; not captured: {', '.join(self.missed)}" if self.missed else ""
        line += "".join(f"; {share}" for share in self._shares())
        return line + ("; several attentions a module, numbered one by one" if self.combined else "")

    def _shares(self) -> list[str]:
        """Which layers have softmax attention, for every stack in which some have not."""
        shares = []
        for stack in dict.fromkeys(layer.site.stack for layer in self.other_layers):
            numbers = sorted({layer.site.layer for layer in self.layers if layer.site.stack == stack})
            others = [layer.mixer for layer in self.other_layers if layer.site.stack == stack]
            plural = "s" if len(numbers) > 1 else ""
            shares.append(
                f"{len(numbers)} of {len(numbers) + len(others)} layers{'' if stack == 'main' else f' of {stack}'} "
                f"{'have' if plural else 'has'} softmax attention (layer{plural} {', '.join(map(str, numbers))}); "
                f"the others: {', '.join(dict.fromkeys(others))}"
            )
        return shares

    @property
    def covers(self) -> str:
        """The same for people who need not know how attention is captured."""
        there = len(self.layers)
        if not there:
            return "no attention layer of it can be seen"
        if self.missed:
            which = f"{there} of {there + len(self.missed)} attention layers"
        else:
            which = f"all {there} attention layers" if there > 1 else "its one attention layer"
        if self.other_layers:
            which += f" ({len(self.other_layers)} more layers have no softmax attention)"
        return f"{which} can be seen and edited"

    def of_module(self, name: str) -> list[AttentionLayer]:
        """The layers that one module computes, in the order of its calls: several where weights are shared (ALBERT)."""
        return [layer for layer in self.layers if name in (layer.head_modules or (layer.module,))]


def stack_of(name: str, *, is_encoder_decoder: bool) -> str:
    """The stack that a module belongs to, by the words of its path before the first number."""
    words: list[str] = []
    for part in name.split("."):
        if part.isdigit():
            break
        words.append(part)
    for stack, mark in (("vision", r"vision|visual|image"), ("text", r"text"), ("audio", r"(^|_)(audio|speech)(_|$)")):
        if any(re.search(mark, word) for word in words):
            return stack
    if is_encoder_decoder:
        for word in words:  # the FIRST one tells: bert2bert's decoder is `decoder.bert.encoder.layer.0`
            if word in ("encoder", "decoder"):
                return word
    return "main"


def reads_pictures_in_text(module: nn.Module) -> bool:
    """Whether a model reads images within a text, by tokens that stand for them."""
    config = getattr(module, "config", None)
    return any(isinstance(getattr(config, name, None), int) for name in ("image_token_id", "image_token_index"))


def is_cross_attention(name: str, module: nn.Module) -> bool:
    """Whether a module attends to another stack, by its own flag or by its names."""
    flag = getattr(module, "is_cross_attention", None)
    if isinstance(flag, bool) and flag:
        return True
    own = name.split(".")[-2:]
    return "Cross" in type(module).__name__ or any(re.search(r"cross|encoder_attn|EncDec", part) for part in own)


def attention_modules(module: nn.Module) -> dict[str, nn.Module]:
    """The modules that look like attention and hold no other such module."""
    named = {
        name: part
        for name, part in module.named_modules()
        if isinstance(part, nn.MultiheadAttention) or re.search(r"attention|attn", type(part).__name__, re.IGNORECASE)
    }
    outer = {
        name for name in named for other in named if other != name and other.startswith(f"{name}." if name else "")
    }
    # A wrapper may carry "attention" in its name without computing it: only those with parameters below count.
    return {name: part for name, part in named.items() if name not in outer and any(True for _ in part.parameters())}


def block_of(name: str, model: nn.Module) -> str | None:
    """The transformer block around a module, by its path."""
    parts = name.split(".")
    return block_among([".".join(parts[: place + 1]) for place in range(len(parts) - 1)], model)


def block_among(names: Sequence[str], model: nn.Module) -> str | None:
    """The transformer block among modules that lie within each other, the outermost first.

    It is the nearest member of a list of modules of one kind; T5 keeps the parts of a block in a list too, of different
    kinds. If there is none, it is the outermost member of a mixed list: Jamba's blocks are of two kinds.
    """
    mixed = None
    for name in reversed(names):
        container, _, number = name.rpartition(".")
        if not number.isdigit():
            continue
        siblings = model.get_submodule(container)
        if len({type(sibling) for sibling in siblings.children()}) == 1:
            return name
        if isinstance(siblings, nn.ModuleList):
            mixed = name
    return mixed
