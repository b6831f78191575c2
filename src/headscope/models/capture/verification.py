"""Whether watching a model changes or misreads it: the same input through the model's own attention and observed.

Called for every model at load. A module's own eager attention is the reference; its own SDPA where it has no eager
path; its own code where it is no model of Transformers.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from headscope.errors import HeadscopeError
from headscope.models.capture import seam
from headscope.models.capture.passes import training_mode
from headscope.models.capture.recorder import Captured
from headscope.models.capture.session import Observer, Session
from headscope.models.capture.verification_inputs import (
    VerificationInput,
    decoding_inputs,
    load_inputs,
    whole_inputs,
)

if TYPE_CHECKING:
    from headscope.models.probed_module import ProbedModule

# A larger model is not verified unless asked for: the first run would wait too long.
MOST_PARAMETERS = 10**9
MOST_NUMBERS = 2**16
PATTERN_BYTES = 2**28
TOLERANCES = {torch.float16: 1e-2, torch.bfloat16: 4e-2}
TOLERANCE = 1e-4
_RANDOM_STATE = torch.Generator().manual_seed(0).get_state()
_CACHES = ("past_key_values", "cache_params", "mems", "attentions", "decoder_attentions", "cross_attentions")


@dataclass(frozen=True)
class Verification:
    """What a comparison of a model with itself, observed and not, came to.

    `is_equal` is None where nothing was compared; `notes` says why, and what else a user should know.
    """

    is_equal: bool | None = None
    difference: float = 0.0
    reference: str = ""
    compared: tuple[str, ...] = ()
    n_layers: int = 0
    n_patterns: int = 0
    first_difference: str = ""
    notes: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """The result in a few words, as `coverage` has it."""
        if self.is_equal is None:
            return f"not verified ({'; '.join(self.notes) or 'nothing was compared'})"
        if self.is_equal:
            return (
                f"verified, max difference {self.difference:.3g}" if self.difference else "verified, max difference 0.0"
            )
        return f"NOT VERIFIED: {self.first_difference}"

    def joined(self, other: "Verification") -> "Verification":
        """Two comparisons as one: equal only if both are; what could not be compared is left to the notes."""
        if other.is_equal is None or self.is_equal is None:
            compared = self if other.is_equal is None else other
            return replace(compared, notes=tuple(dict.fromkeys((*self.notes, *other.notes))))
        return Verification(
            self.is_equal and other.is_equal,
            max(self.difference, other.difference),
            self.reference,
            tuple(dict.fromkeys((*self.compared, *other.compared))),
            max(self.n_layers, other.n_layers),
            max(self.n_patterns, other.n_patterns),
            self.first_difference or other.first_difference,
            tuple(dict.fromkeys((*self.notes, *other.notes))),
        )


def verify_at_load(model: "ProbedModule", *, any_size: bool = False) -> Verification:
    """A padded batch of two texts, or what else the model reads, once by itself and once observed."""
    n_parameters = sum(parameter.numel() for parameter in model.module.parameters())
    if n_parameters > MOST_PARAMETERS and not any_size:
        return Verification(
            notes=(
                f"{n_parameters / 1e9:.1f} billion parameters, above 1 billion it is done on request: model.verify()",
            )
        )
    return _verify(model, [load_inputs(model.module)])


def verify_on(model: "ProbedModule", inputs: Mapping[str, Any]) -> Verification:
    """The inputs of a first run, which stand for what could not be made up, unless they are long."""
    tensors = [tensor for tensor in inputs.values() if isinstance(tensor, Tensor)]
    if any(tensor.numel() > MOST_NUMBERS for tensor in tensors):
        return Verification(notes=("its first input was too large to compare on: model.verify()",))
    return _verify(model, [[VerificationInput("its first input", inputs)]])


def verify_whole(model: "ProbedModule", inputs: Mapping[str, Any] | None = None) -> Verification:
    """Every kind of input that a model takes, cached decoding and its own SDPA; or ready `inputs` alone."""
    if inputs is not None:
        return _verify(model, [[VerificationInput("the inputs given", inputs)]], with_sdpa=True)
    return _verify(model, [[case] for case in whole_inputs(model.module)], with_sdpa=True)


def verify_decoding(model: "ProbedModule") -> Verification:
    """Cached decoding steps, which only models that write have."""
    return _verify(model, [[case] for case in decoding_inputs(model.module)])


def _verify(model: "ProbedModule", groups: list[list[VerificationInput]], *, with_sdpa: bool = False) -> Verification:
    """Compare on the first input of each group that the model can run by itself."""
    if any(parameter.device.type == "meta" for parameter in model.module.parameters()):
        return Verification(notes=("its weights are not in memory",))
    if not any(groups):
        return Verification(notes=("no input could be made up from its configuration: model.verify(inputs={…})",))
    result: Verification | None = None
    with _unchanged(model):
        for group in groups:
            compared = _compare_first(model, group, with_sdpa=with_sdpa)
            result = compared if result is None else result.joined(compared)
    assert result is not None
    return result


def _compare_first(model: "ProbedModule", group: Sequence[VerificationInput], *, with_sdpa: bool) -> Verification:
    problems: list[str] = []
    for case in group:
        case = case.to(model.device, model.dtype)
        try:
            model.probe_if_new((), case.inputs, verify=False)  # or the observed run would begin with a second one
            own = _run_plainly(model, case)
        except HeadscopeError as error:
            return Verification(False, first_difference=f"observing {case.name} was refused: {error}")
        except Exception as error:  # a model raises anything on an input that it does not take
            problems.append(f"it cannot run {case.name} by itself ({type(error).__name__}: {_short(error)})")
            continue
        return _compare(model, case, own, with_sdpa=with_sdpa)
    return Verification(notes=tuple(problems))


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:160]


@dataclass(eq=False)
class _Run:
    """What one run of a case gave: outputs by name, each attention module's outputs and patterns in order of calls."""

    reference: str = ""
    outputs: dict[str, Tensor] = field(default_factory=dict)
    module_outputs: list[tuple[str, Tensor]] = field(default_factory=list)
    patterns: dict[str, list[Tensor]] = field(default_factory=dict)


def _compare(model: "ProbedModule", case: VerificationInput, own: _Run, *, with_sdpa: bool) -> Verification:
    try:
        observed = _run_observed(model, case)
    except HeadscopeError as error:
        return Verification(False, first_difference=f"observing {case.name} was refused: {error}")
    except Exception as error:  # it ran by itself: whatever is raised now is ours
        line = f"observing {case.name} raised {type(error).__name__}: {_short(error)}"
        return Verification(False, first_difference=line)
    tolerance = TOLERANCES.get(model.dtype, TOLERANCE)
    difference, place = _largest_difference(model, case, own, observed, tolerance)
    if place:
        if _largest_difference(model, case, own, _run_plainly(model, case), tolerance)[1]:
            return Verification(notes=("its own run gives other numbers each time: it cannot be compared",))
        place = _first_module(model, case, tolerance) or place
    notes = _sdpa_note(model, case, own, tolerance) if with_sdpa and own.reference == "eager" else []
    n_patterns = sum(len(patterns) for patterns in own.patterns.values())
    n_layers = len(model.layout.layers)
    return Verification(not place, difference, own.reference, (case.name,), n_layers, n_patterns, place, tuple(notes))


def _sdpa_note(model: "ProbedModule", case: VerificationInput, own: _Run, tolerance: float) -> list[str]:
    """Where the model's two attentions disagree, that is said: what is shown follows eager."""
    try:
        sdpa = _run_plainly(model, case, "sdpa")
    except Exception:  # many models have no SDPA path, and say so with errors of many kinds
        return []
    if sdpa.reference != "sdpa":
        return []
    difference, _ = _compare_tensors(own.outputs, sdpa.outputs)
    if difference <= tolerance * _scale(own.outputs):
        return []
    return [
        f"the model's own SDPA attention differs from its own eager attention by {difference:.3g} on {case.name}: "
        "what is shown follows eager"
    ]


# Running


def _run_plainly(
    model: "ProbedModule", case: VerificationInput, implementation: str = "eager", *, with_modules: bool = False
) -> _Run:
    """The model by itself; it returns patterns in its eager attention alone."""
    run = _Run()
    with own_attention(model, implementation) as run.reference, _watch_modules(model, run, with_modules=with_modules):
        _forward(model, case, run)
    return run


def _run_observed(model: "ProbedModule", case: VerificationInput, *, with_modules: bool = False) -> _Run:
    """The model in a session that keeps every pattern."""
    run = _Run("observed")
    real = {} if case.n_steps else {stack: mask for stack, mask in case.real.items() if stack in model.stacks}
    session = Session(model, exact=True, real=real, observers=[_PatternObserver(run)])
    with session, _watch_modules(model, run, with_modules=with_modules) if with_modules else nullcontext():
        _forward(model, case, run)
    return run


def _forward(model: "ProbedModule", case: VerificationInput, run: _Run) -> None:
    """Run a case, with its decoding steps, under the seeds that every run of it has."""
    _seed(model.device)
    module: Any = model.module
    outputs = module(**case.prefill())
    # Padding is at the start where there are steps, so each step's own row is real.
    real = {stack: mask[:, : mask.shape[1] - case.n_steps] for stack, mask in case.real.items()}
    tensors = dict(_named_tensors(outputs, "prefill" if case.n_steps else ""))
    run.outputs |= _real_rows(tensors, real if case.target_name == "input_ids" else case.real)
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
def _unchanged(model: "ProbedModule") -> Iterator[None]:
    """Leaves random states, the module's mode and gradients as they were."""
    python_state, numpy_state = random.getstate(), np.random.get_state()
    devices = [model.device] if model.device.type == "cuda" else []
    is_training = any(part.training for part in model.module.modules())
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
    with seam.quiet_transformers():
        try:
            used = implementation
            try:
                module.set_attn_implementation(implementation)
            except (ValueError, ImportError):
                used = "sdpa" if implementation == "eager" else "eager"
                module.set_attn_implementation(used)
            yield used
        finally:
            module.set_attn_implementation(seam.NAME)


class _PatternObserver(Observer):
    """Keeps the pattern of every layer, up to a limit of memory."""

    def __init__(self, run: _Run):
        self.run, self.n_bytes = run, 0

    def layer(self, captured: Captured) -> None:
        """One layer is done."""
        pattern = captured.pattern
        if pattern is None or self.n_bytes > PATTERN_BYTES:
            return
        self.n_bytes += pattern.numel() * pattern.element_size()
        self.run.patterns.setdefault(captured.layer.module, []).append(pattern.detach())


@contextmanager
def _watch_modules(model: "ProbedModule", run: _Run, *, with_modules: bool) -> Iterator[None]:
    """Keep the pattern that each attention module returns; `with_modules` keeps what else it gives too."""
    n_heads = {layer.module: layer.n_heads for layer in model.layout.layers}

    def keep(name: str) -> Callable[[nn.Module, tuple, Any], None]:
        def hook(module: nn.Module, args: tuple, output: Any) -> None:
            parts = output if isinstance(output, tuple | list) else (output,)
            if with_modules and parts and isinstance(parts[0], Tensor):
                run.module_outputs.append((name, parts[0].detach().clone()))
            pattern = next((part for part in reversed(parts[1:]) if is_pattern(part, n_heads[name])), None)
            if run.reference != "observed" and pattern is not None:
                run.patterns.setdefault(name, []).append(pattern.detach())

        return hook

    with ExitStack() as hooks:
        for name in n_heads:
            handle = model.module.get_submodule(name).register_forward_hook(keep(name))
            hooks.callback(handle.remove)
        yield


def is_pattern(tensor: Any, n_heads: int) -> bool:
    """Whether a tensor holds attention weights [batch, head, query, key]."""
    if not isinstance(tensor, Tensor) or tensor.ndim != 4 or tensor.shape[1] != n_heads or not tensor.numel():
        return False
    if not tensor.is_floating_point() or bool((tensor < 0).any()):
        return False
    sums = tensor.sum(-1)
    return bool((sums < 1.05).all()) and bool((sums > 0.5).any())


# Comparing


def _largest_difference(
    model: "ProbedModule", case: VerificationInput, own: _Run, other: _Run, tolerance: float
) -> tuple[float, str]:
    """The largest difference of outputs and patterns, and where it is too large."""
    largest, name = _compare_tensors(own.outputs, other.outputs)
    place = ""
    if not largest <= tolerance and not largest <= tolerance * _scale(own.outputs):
        place = f"its output {name} differs by {largest:.3g}"
    for module, difference in _pattern_differences(model, own, other, case.real):
        if not difference <= max(tolerance, largest) and not place:
            place = f"{_layer_name(model, module)}: its pattern differs from the model's own by {difference:.3g}"
        largest = difference if not difference <= largest else largest
    return largest, place


def _first_module(model: "ProbedModule", case: VerificationInput, tolerance: float) -> str:
    """The first attention module, in the order they run, that does not give what it gives by itself: run once more."""
    own, other = (run(model, case, with_modules=True) for run in (_run_plainly, _run_observed))
    for (name, tensor), (other_name, other_tensor) in zip(own.module_outputs, other.module_outputs, strict=False):
        if name != other_name:
            return f"{_layer_name(model, other_name)} runs where {name} runs by itself"
        first, second = (_real_rows({"": part}, case.real) for part in (tensor, other_tensor))
        difference, _ = _compare_tensors(first, second)
        if not difference <= tolerance * _scale(first):
            return f"{_layer_name(model, name)} differs from the model's own run by {difference:.3g}"
    return ""


def _layer_name(model: "ProbedModule", module: str) -> str:
    sites = [str(layer.site) for layer in model.layout.of_module(module)]
    return f"layer {', '.join(sites)} ({module})"


def _pattern_differences(
    model: "ProbedModule", own: _Run, other: _Run, real: Mapping[str, Tensor]
) -> Iterator[tuple[str, float]]:
    """Module by module, where both runs have as many patterns of the same shape, real queries alone."""
    n_attentions = Counter(layer.module for layer in model.layout.layers)
    stacks = {layer.module: layer.site.stack for layer in model.layout.layers}
    for module, patterns in own.patterns.items():
        others = other.patterns.get(module, [])
        # Modules that attend several times a call and join the results return what no single attention computed.
        if len(patterns) != len(others) or (n_attentions[module] > 1 and module in model.layout.combined):
            continue
        for pattern, other_pattern in zip(patterns, others, strict=True):
            if pattern.shape != other_pattern.shape:
                continue
            mask = real.get(stacks[module])
            if mask is not None and mask.shape == (pattern.shape[0], pattern.shape[2]):
                pattern, other_pattern = (part.transpose(1, 2)[mask] for part in (pattern, other_pattern))
            yield module, _difference(pattern, _without_sinks(other_pattern, pattern))


def _without_sinks(observed: Tensor, own: Tensor) -> Tensor:
    """Observed weights, renormalised where the model's own sum to 1 and these do not: it takes the sinks' share off the
    output instead (Granite SWA)."""
    sums, own_sums = observed.float().sum(-1, keepdim=True), own.float().sum(-1, keepdim=True)
    takes_sinks_later = bool(((own_sums - 1).abs() < 1e-2).all()) and bool(((sums > 0) & (sums < 1 + 1e-2)).all())
    return observed / sums if takes_sinks_later and bool((sums < 1 - 1e-2).any()) else observed


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


def _real_rows(outputs: Mapping[str, Tensor], real: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Outputs without their padded rows: what a model computes for padding is used by nobody."""
    masks = list(real.values())

    def rows(tensor: Tensor) -> Tensor:
        for mask in masks:
            if tensor.ndim > 1 and tensor.shape[:2] == mask.shape:
                return tensor[mask.to(tensor.device)]
        return tensor

    return {name: rows(tensor) for name, tensor in outputs.items()}


def _compare_tensors(first: dict[str, Tensor], second: dict[str, Tensor]) -> tuple[float, str]:
    """The largest difference among tensors of equal name, and its name; infinite where one side lacks some."""
    if set(first) != set(second):
        return float("inf"), ", ".join(sorted(set(first) ^ set(second)))
    differences = {name: _difference(tensor, second[name]) for name, tensor in first.items()}
    name = max(differences, key=lambda key: differences[key], default="")
    return differences.get(name, 0.0), name


def _difference(first: Tensor, second: Tensor) -> float:
    """The largest absolute difference; equal infinities and NaNs do not differ."""
    if first.shape != second.shape:
        return float("inf")
    first, second = first.float(), second.float()
    same = (first == second) | (first.isnan() & second.isnan())
    apart = (first - second).abs().masked_fill(same, 0.0).nan_to_num(float("inf"), posinf=float("inf"))
    return float(apart.max()) if apart.numel() else 0.0


def _scale(outputs: dict[str, Tensor]) -> float:
    """How large numbers are, for a tolerance; 1 at least."""
    finite = [tensor.float()[tensor.isfinite()].abs() for tensor in outputs.values()]
    return max([1.0, *(float(values.max()) for values in finite if values.numel())])
