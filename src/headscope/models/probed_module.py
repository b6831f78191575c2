"""A module whose attention is known: where it attends, what it has, and the probe that finds out."""

import threading
import warnings
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from headscope.errors import CaptureError, HeadscopeWarning, InputError
from headscope.models.capture import seam
from headscope.models.capture.hooks import watch_layers, watch_pass
from headscope.models.capture.picture_inputs import picture_inputs
from headscope.models.capture.probe import Probe
from headscope.models.capture.probe_inputs import forward_arguments, probe_inputs
from headscope.models.capture.probe_layout import layout_of
from headscope.models.capture.verification import (
    Verification,
    verify_at_load,
    verify_decoding,
    verify_on,
    verify_whole,
)
from headscope.models.layout import AttentionLayer, Layout, reads_pictures_in_text
from headscope.models.output_projection import OutputProjection
from headscope.models.slim_layers import slim_plan_of
from headscope.sites import Head


class ProbedModule:
    """A network (`module`) with its tokenizer or processor, probed for attention. `Model` adds the ways to run it."""

    def __init__(
        self, module: nn.Module, processor: Any = None, *, name: str | None = None, verify: bool | None = None
    ):
        """Wrap any `nn.Module`; `processor` is its tokenizer, image processor, feature extractor or processor.

        It is verified at load, unless it has more than a billion parameters; `verify` says always (True) or never.
        """
        if not isinstance(module, nn.Module):
            raise InputError(
                f"a model is made from a torch module, got {type(module).__name__}: "
                "use headscope.load for a name or folder."
            )
        self.module, self.processor = module, processor
        self.name = name or getattr(getattr(module, "config", None), "name_or_path", "") or type(module).__name__
        self.warnings: list[str] = []
        parts = dict(module.named_modules())
        self._names = {id(part): path for path, part in parts.items()}
        self.routed_configs = seam.attention_configs(parts.values())
        self._layout: Layout | None = None
        self.verification = Verification(notes=("verify=False",) if verify is False else ("its first run does it",))
        self._verify_at_load, self._has_verified_decoding = verify, False
        # Of output projections that are more than a weight: what they gave for some vectors, and the result.
        self._grams: dict[str, tuple[Tensor, Tensor]] = {}
        self._lock = threading.RLock()
        self._layer_hooks: list = []
        self._route()
        self._pass_hooks = watch_pass(self)
        self._probe_at_load()

    def __repr__(self) -> str:
        coverage = self.coverage if self.has_layout else "not probed yet: the first run does it"
        return f"Model({self.name!r}, {type(self.module).__name__} on {self.device}, {coverage})"

    @property
    def layout(self) -> Layout:
        """Where attention happens; known from the probe at load, or from the first run of a module without a config."""
        if self._layout is None:
            raise CaptureError(
                "this module was not probed yet: run it once, or call model.probe(inputs={…}) with inputs it takes."
            )
        return self._layout

    @property
    def has_layout(self) -> bool:
        """Whether the probe has run."""
        return self._layout is not None

    @property
    def heads(self) -> list[Head]:
        """All heads, layer by layer."""
        return self.layout.heads

    @property
    def coverage(self) -> str:
        """Which attention modules are captured, how, and whether that was verified, in one line."""
        plan = slim_plan_of(self.module)
        return f"{self.layout.coverage}; {self.verification.line}" + (f"; {plan.line}" if plan is not None else "")

    @property
    def original_heads(self) -> dict[Head, Head]:
        """For each head its place in the model that this one was made from with fewer heads: itself in any other."""
        plan = slim_plan_of(self.module)
        if plan is None:
            return {head: head for head in self.heads}
        originals: dict[Head, Head] = {}
        for module in dict.fromkeys(layer.module for layer in self.layout.layers):
            before = [layer for layer in plan.layers if layer.module == module]
            for layer, planned in zip(self.layout.of_module(module), before, strict=True):
                site = planned.original_site
                originals |= {layer.site.head(place): site.head(head) for place, head in enumerate(planned.heads)}
        return {head: originals[head] for head in self.heads}

    @property
    def verified(self) -> bool | None:
        """Whether it computes the same observed as by itself; None where that was not compared."""
        return self.verification.is_equal

    @property
    def stacks(self) -> tuple[str, ...]:
        """The names of its stacks, in the order they run."""
        return tuple(dict.fromkeys(layer.site.stack for layer in self.layout.layers))

    @property
    def tokenizer(self) -> Any:
        """The tokenizer, where there is one."""
        if hasattr(self.processor, "tokenizer"):
            return self.processor.tokenizer
        return self.processor if hasattr(self.processor, "convert_ids_to_tokens") else None

    @property
    def config(self) -> Any:
        """The module's configuration, if it has one."""
        return getattr(self.module, "config", None)

    @property
    def is_encoder_decoder(self) -> bool:
        """Whether it reads a source and writes a target."""
        return bool(getattr(self.config, "is_encoder_decoder", False))

    @property
    def is_causal(self) -> bool:
        """Whether it is a language model that sees only what came before (of pictures within its text, all)."""
        main = [layer for layer in self.layout.layers if layer.site.stack == "main" and layer.site.kind == "self"]
        if not main or self.is_encoder_decoder:
            return False
        writes = reads_pictures_in_text(self.module) and getattr(self.module, "can_generate", bool)()
        return writes or all(layer.is_causal for layer in main)

    @property
    def can_write(self) -> bool:
        """Whether it generates text: a language model, or one that writes a target."""
        can = getattr(self.module, "can_generate", None)
        return self.has_layout and (self.is_causal or self.is_encoder_decoder) and can is not None and bool(can())

    @property
    def device(self) -> torch.device:
        """Where its inputs belong."""
        return next(
            (parameter.device for parameter in self.module.parameters() if parameter.device.type != "meta"),
            torch.device("cpu"),
        )

    @property
    def dtype(self) -> torch.dtype:
        """The type of its first floating-point parameter."""
        return next(
            (parameter.dtype for parameter in self.module.parameters() if parameter.is_floating_point()), torch.float32
        )

    @property
    def needs_tracer(self) -> bool:
        """Whether some of its attention is watched from outside."""
        return self._layout is None or any(layer.way == "traced" for layer in self._layout.layers)

    def name_of(self, module: nn.Module) -> str | None:
        """The path of one of its modules."""
        return self._names.get(id(module))

    # Finding out

    def probe(self, *args: Any, inputs: Mapping[str, Any] | None = None) -> Layout:
        """Find out where the model attends, with ready inputs that reach all of it, by position or by name, and verify
        it on them. Called for you at load or at the first run.
        """
        named = dict(inputs or {})
        layout = self._find_layout(args, named)
        if self._verify_at_load is not False and not args:
            self._take(verify_on(self, named))
        return layout

    def probe_if_new(self, args: tuple, inputs: Mapping[str, Any], *, verify: bool = True) -> bool:
        """Probe with these inputs if nothing was probed yet, or if they may reach attention that was not seen."""
        names = {name for name, value in inputs.items() if isinstance(value, Tensor)}
        known = self._layout
        if known is not None and (not known.missed or names <= known.seen_inputs):
            return False
        outer = seam.current_session.get()
        token = seam.current_session.set(None)
        try:
            if verify:
                self.probe(*args, inputs=inputs)
            else:
                self._find_layout(args, dict(inputs))
        finally:
            seam.current_session.reset(token)
        return outer is not None

    def _find_layout(self, args: tuple, inputs: dict[str, Any]) -> Layout:
        if is_without_weights(self.module):
            raise CaptureError(
                f"the weights of {self.name} are on the 'meta' device, which holds shapes and no numbers, so it cannot "
                "run. Load them first: hs.load(…), from_pretrained(…), or module.to_empty(device='cpu') and "
                "load_state_dict(…)."
            )
        with self._lock:
            probe = Probe(self.module)
            was_training = self.module.training
            self.module.eval()
            try:
                probe.run(lambda: self.module(*args, **inputs))
            finally:
                self.module.train(was_training)
            names = frozenset(name for name, value in inputs.items() if value is not None)
            layout = layout_of(probe, is_encoder_decoder=self.is_encoder_decoder, inputs=names)
            for hook in self._layer_hooks:
                hook.remove()
            self._layout = layout
            self._layer_hooks = watch_layers(self)
        if layout.combined:
            self.warn(
                f"{layout.combined[0]} and its kind attend several times in one pass and combine the results: each "
                "attention is shown by itself, under a layer number of its own that is not the model's, and no pattern "
                "shown is the combined one."
            )
        if layout.sdpa_is_causal and getattr(self.module, "_supports_sdpa", False):
            self.warn(
                f"{layout.sdpa_is_causal[0]} and its kind see everything in the model's own eager attention, but only "
                "what came before in its own SDPA: what is shown follows eager."
            )
        return layout

    def verify(self, inputs: Mapping[str, Any] | None = None) -> Verification:
        """Compare the model, observed, with its own attention: on a padded batch, an input without padding, cached
        decoding steps and pictures of two sizes, and its own SDPA with its own eager code; or on ready `inputs` alone.

        >>> import headscope as hs
        >>> hs.load("builtin:gpt").verify().line
        'verified, max difference 0.0'
        """
        with self._lock:
            return self._take(verify_whole(self, inputs))

    def verify_decoding(self) -> None:
        """Compare cached decoding steps, before the model first writes."""
        with self._lock:
            if self._has_verified_decoding or self.verification.is_equal is None:
                return
            self._has_verified_decoding = True
            self._take(self.verification.joined(verify_decoding(self)))

    def _take(self, verification: Verification) -> Verification:
        """Keep the result of a comparison, and warn of a difference."""
        self.verification = verification
        if verification.is_equal is False:
            self.warn(
                f"Headscope does not read {self.name} correctly: {verification.first_difference}. What is shown of it "
                "may be wrong."
            )
        if verification.disagreement:
            self.warn(f"{self.name}: {verification.disagreement}.")
        return verification

    def output_gram(self, layer: AttentionLayer) -> tuple[Tensor | None, str]:
        """W_Oᵀ·W_O of each head [head, dim, dim], which gives ‖value · W_O‖; or why it cannot be had."""
        if layer.out_projection is None:
            return None, "no output projection was found for this attention"
        projection = OutputProjection(
            self.module.get_submodule(layer.out_projection), layer.n_heads * layer.value_dim, self.dtype
        )
        if projection.reason:
            return None, projection.reason
        name, outputs = layer.out_projection, projection.outputs
        if name in self._grams and torch.equal(self._grams[name][0], outputs):
            return self._grams[name][1], ""
        parts = projection.matrix().unflatten(1, (layer.n_heads, layer.value_dim)).transpose(0, 1)  # [head, model, dim]
        gram = parts.transpose(1, 2) @ parts
        if not projection.is_plain:
            self._grams[name] = outputs, gram  # it took running the module on the identity
        return gram, ""

    # Inside

    def _route(self) -> None:
        """Have Transformers call our function, where the model lets us choose."""
        if isinstance(self.module, PreTrainedModel):
            with seam.quiet_transformers():
                self.module.set_attn_implementation(seam.NAME)

    def _probe_at_load(self) -> None:
        inputs = probe_inputs(self.module) if self.config is not None else None
        inputs = picture_inputs(self) or inputs
        if inputs is None:
            return
        try:
            self._find_layout((), {name: self.to_device(value) for name, value in inputs.items()})
        except CaptureError:
            raise
        except Exception as error:  # whatever a model raises on inputs it does not like: the first run probes it then
            self.warn(
                f"the model could not be probed with made-up inputs ({type(error).__name__}: {error}); "
                "its first run does it."
            )
            return
        taken = set(forward_arguments(self.module))
        may_reach_more = taken & {"pixel_values", "input_features", "input_ids"} - self.layout.seen_inputs
        if self.layout.missed and not may_reach_more:  # otherwise an input of another kind may still reach the rest
            self.warn(f"not all attention is captured: {self.layout.coverage}.")
        if self._verify_at_load is not False:
            self._take(verify_at_load(self, any_size=bool(self._verify_at_load)))

    def to_device(self, value: Tensor) -> Tensor:
        """An input where the model is, in its own precision."""
        return value.to(self.device, self.dtype if value.is_floating_point() else None)

    def warn(self, message: str) -> None:
        """Note something the user should know, and say it once."""
        if message not in self.warnings:
            self.warnings.append(message)
            warnings.warn(message, HeadscopeWarning, stacklevel=3)

    def token_text(self, token_id: int) -> str:
        """Text of an id: the token, or the number itself where there is no tokenizer."""
        if self.tokenizer is None:
            return str(token_id)
        return self.tokenizer.decode([token_id], clean_up_tokenization_spaces=False)


def is_without_weights(module: nn.Module) -> bool:
    """Whether all parameters are on the meta device, and no hook of accelerate brings them when they are needed."""
    parameters = list(module.parameters())
    is_offloaded = any(hasattr(part, "_hf_hook") for part in module.modules())
    return bool(parameters) and not is_offloaded and all(parameter.is_meta for parameter in parameters)
