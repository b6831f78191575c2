"""Runs of a model for its verification: by itself, with its own attention, and observed."""

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from headscope.models.capture import seam
from headscope.models.capture.banded_attention import call_arguments, is_banded, own_pattern
from headscope.models.capture.passes import training_mode
from headscope.models.capture.recorder import Captured
from headscope.models.capture.session import Observer, Session
from headscope.models.capture.verification_inputs import VerificationInput

if TYPE_CHECKING:
    from headscope.models.probed_module import ProbedModule

PATTERN_BYTES = 2**28
_RANDOM_STATE = torch.Generator().manual_seed(0).get_state()
_CACHES = ("past_key_values", "cache_params", "mems", "attentions", "decoder_attentions", "cross_attentions")


@dataclass(eq=False)
class ObservedRun:
    """What one run of a case gave: outputs by name, each attention module's outputs and patterns in order of calls."""

    reference: str = ""
    outputs: dict[str, Tensor] = field(default_factory=dict)
    module_outputs: list[tuple[str, Tensor]] = field(default_factory=list)
    patterns: dict[str, list[Tensor]] = field(default_factory=dict)


def run_plainly(
    model: "ProbedModule", case: VerificationInput, implementation: str = "eager", *, with_modules: bool = False
) -> ObservedRun:
    """The model by itself; it returns patterns in its eager attention alone."""
    run = ObservedRun()
    with own_attention(model, implementation) as run.reference, _watch_modules(model, run, with_modules=with_modules):
        _forward(model, case, run)
    return run


def run_observed(model: "ProbedModule", case: VerificationInput, *, with_modules: bool = False) -> ObservedRun:
    """The model in a session that keeps every pattern."""
    run = ObservedRun("observed")
    real = {} if case.n_steps else {stack: mask for stack, mask in case.real.items() if stack in model.stacks}
    session = Session(model, exact=True, real=real, observers=[_PatternObserver(run)])
    with session, _watch_modules(model, run, with_modules=with_modules) if with_modules else nullcontext():
        _forward(model, case, run)
    return run


def _forward(model: "ProbedModule", case: VerificationInput, run: ObservedRun) -> None:
    """Run a case, with its decoding steps, under the seeds that every run of it has."""
    _seed(model.device)
    module: Any = model.module
    outputs = module(**case.prefill())
    # Padding is at the start where there are steps, so each step's own row is real.
    real = {stack: mask[:, : mask.shape[1] - case.n_steps] for stack, mask in case.real.items()}
    tensors = dict(_named_tensors(outputs, "prefill" if case.n_steps else ""))
    run.outputs |= real_rows(tensors, real if case.target_name == "input_ids" else case.real)
    for number in range(case.n_steps):
        outputs = module(**case.step(number, outputs))
        run.outputs |= dict(_named_tensors(outputs, f"step {number + 1}"))


def _seed(device: torch.device) -> None:
    """The same random numbers for every run."""
    random.seed(0)
    np.random.seed(0)
    torch.random.set_rng_state(_RANDOM_STATE)  # manual_seed takes a millisecond
    if device.type != "cpu":
        torch.manual_seed(0)


@contextmanager
def unchanged(model: "ProbedModule", *, is_training: bool) -> Iterator[None]:
    """Leaves random states, the module's mode and gradients as they were; `is_training`: some part of it is."""
    python_state, numpy_state = random.getstate(), np.random.get_state()
    device = model.device
    devices = [device] if device.type == "cuda" else []
    try:
        with (
            torch.random.fork_rng(devices=devices),
            torch.no_grad(),
            training_mode(model.module, False if is_training else None),
        ):
            yield
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)


@contextmanager
def own_attention(model: "ProbedModule", implementation: str) -> Iterator[str]:
    """The model with its own attention function for a while; gives which that is."""
    module = model.module
    if not isinstance(module, PreTrainedModel):
        yield "its own code"
        return
    chosen = [(config, config._attn_implementation) for config in model.routed_configs]
    used = implementation
    try:
        if implementation == "eager":  # which every model has that calls our function: no need to go through it
            for config, name in chosen:
                config._attn_implementation_internal = "eager" if name == seam.NAME else name
        else:
            used = _set_if_possible(module, implementation)
        yield used
    finally:
        for config, name in chosen:
            config._attn_implementation_internal = name  # set_attn_implementation goes through the whole model again


def _set_if_possible(module: PreTrainedModel, implementation: str) -> str:
    """Set the attention function that a model has of its own, or else eager; gives which."""
    with seam.quiet_transformers():
        try:
            module.set_attn_implementation(implementation)
        except (ValueError, ImportError):
            module.set_attn_implementation("eager")
            return "eager"
    return implementation


class _PatternObserver(Observer):
    """Keeps the pattern of every layer, up to a limit of memory."""

    def __init__(self, run: ObservedRun):
        self.run, self.n_bytes = run, 0

    def layer(self, captured: Captured) -> None:
        """One layer is done."""
        pattern = captured.pattern
        if pattern is None or self.n_bytes > PATTERN_BYTES:
            return
        self.n_bytes += pattern.numel() * pattern.element_size()
        self.run.patterns.setdefault(captured.layer.module, []).append(pattern.detach())


@contextmanager
def _watch_modules(model: "ProbedModule", run: ObservedRun, *, with_modules: bool) -> Iterator[None]:
    """Keep the pattern that each attention module returns; `with_modules` keeps what else it gives too."""
    n_heads = {layer.module: layer.n_heads for layer in model.layout.layers}

    def keep(name: str) -> Callable[[nn.Module, tuple, dict[str, Any], Any], None]:
        def hook(module: nn.Module, args: tuple, kwargs: dict[str, Any], output: Any) -> None:
            parts = output if isinstance(output, tuple | list) else (output,)
            if with_modules and parts and isinstance(parts[0], Tensor):
                run.module_outputs.append((name, parts[0].detach().clone()))
            if is_banded(module) and len(parts) > 1:
                pattern = own_pattern(module, args, kwargs, parts)
            else:
                pattern = next((part for part in reversed(parts[1:]) if is_pattern(part, n_heads[name])), None)
            if run.reference != "observed" and pattern is not None:
                run.patterns.setdefault(name, []).append(pattern.detach())

        return hook

    modules = {name: model.module.get_submodule(name) for name in n_heads}
    handles = [module.register_forward_hook(keep(name), with_kwargs=True) for name, module in modules.items()]
    if run.reference != "observed":
        handles += [
            module.register_forward_pre_hook(_with_weights, with_kwargs=True)
            for module in modules.values()
            if is_banded(module)
        ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _with_weights(module: nn.Module, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    """Have a banded module return its weights, as others do in eager attention."""
    return (), call_arguments(module, args, kwargs) | {"output_attentions": True}


def is_pattern(tensor: Any, n_heads: int) -> bool:
    """Whether a tensor holds attention weights [batch, head, query, key]."""
    if not isinstance(tensor, Tensor) or tensor.ndim != 4 or tensor.shape[1] != n_heads or not tensor.numel():
        return False
    if not tensor.is_floating_point() or float(tensor.min()) < 0:
        return False
    return 0.5 < float(tensor.sum(-1).max()) < 1.05  # a NaN is neither


def _named_tensors(outputs: Any, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
    """Every floating-point tensor of an output by its name, caches and attention apart."""
    if isinstance(outputs, Tensor):
        if outputs.is_floating_point():
            yield prefix or "output", outputs
        return
    if hasattr(outputs, "items"):
        pairs = outputs.items()
    elif isinstance(outputs, tuple | list):
        pairs = ((str(index), part) for index, part in enumerate(outputs))
    else:
        return
    for name, part in pairs:
        if name not in _CACHES:
            yield from _named_tensors(part, f"{prefix}.{name}" if prefix else str(name))


def real_rows(outputs: Mapping[str, Tensor], real: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Outputs without their padded rows: what a model computes for padding is used by nobody."""
    masks = list(real.values())

    def rows(tensor: Tensor) -> Tensor:
        for mask in masks:
            if tensor.ndim > 1 and tensor.shape[:2] == mask.shape:
                return tensor[mask.to(tensor.device)]
        return tensor

    return {name: rows(tensor) for name, tensor in outputs.items()}
