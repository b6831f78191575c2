"""Whether watching a model changes or misreads it: the same input through the model's own attention and observed.

Called for every model at load. A module's own eager attention is the reference; its own SDPA where it has no eager
path; its own code where it is no model of Transformers.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from headscope.errors import HeadscopeError
from headscope.models.capture.picture_inputs import picture_inputs
from headscope.models.capture.verification_inputs import (
    VerificationInput,
    decoding_inputs,
    load_inputs,
    whole_inputs,
)
from headscope.models.capture.verification_runs import ObservedRun, real_rows, run_observed, run_plainly, unchanged

if TYPE_CHECKING:
    from headscope.models.probed_module import ProbedModule

# A larger model is not verified unless asked for: the first run would wait too long.
MOST_PARAMETERS = 10**9
MOST_NUMBERS = 2**16
TOLERANCES = {torch.float16: 1e-2, torch.bfloat16: 4e-2}
TOLERANCE = 1e-4


@dataclass(frozen=True)
class Verification:
    """What a comparison of a model with itself, observed and not, came to.

    `is_equal` is None where nothing was compared; `notes` says why. `disagreement` is between the
    model's own SDPA and its own eager code, where those give different numbers.
    """

    is_equal: bool | None = None
    difference: float = 0.0
    reference: str = ""
    compared: tuple[str, ...] = ()
    n_layers: int = 0
    n_patterns: int = 0
    first_difference: str = ""
    notes: tuple[str, ...] = ()
    disagreement: str = ""

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
            disagreement = self.disagreement or other.disagreement
            notes = tuple(dict.fromkeys((*self.notes, *other.notes)))
            return replace(compared, notes=notes, disagreement=disagreement)
        return Verification(
            self.is_equal and other.is_equal,
            max(self.difference, other.difference),
            self.reference,
            tuple(dict.fromkeys((*self.compared, *other.compared))),
            max(self.n_layers, other.n_layers),
            max(self.n_patterns, other.n_patterns),
            self.first_difference or other.first_difference,
            tuple(dict.fromkeys((*self.notes, *other.notes))),
            self.disagreement or other.disagreement,
        )


def verify_at_load(model: "ProbedModule", *, any_size: bool = False) -> Verification:
    """A padded batch of two texts, or what else the model reads, once by itself and once observed; and a picture within
    a text, where it reads those."""
    return _verify(model, [*_with_picture(model), load_inputs(model.module)], any_size=any_size)


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
    return _verify(model, [*_with_picture(model), *([case] for case in whole_inputs(model.module))], with_sdpa=True)


def _with_picture(model: "ProbedModule") -> list[list[VerificationInput]]:
    inputs = picture_inputs(model)
    return [] if inputs is None else [[VerificationInput("a picture within a text", inputs)]]


def verify_decoding(model: "ProbedModule") -> Verification:
    """Cached decoding steps, which only models that write have."""
    return _verify(model, [[case] for case in decoding_inputs(model.module)])


def _verify(
    model: "ProbedModule", groups: list[list[VerificationInput]], *, with_sdpa: bool = False, any_size: bool = True
) -> Verification:
    """Compare on the first input of each group that the model can run by itself."""
    # One walk through the modules: of a small model each costs a tenth of a forward.
    parts = list(model.module.modules())
    parameters = {id(tensor): tensor for part in parts for tensor in part._parameters.values() if tensor is not None}
    n_parameters = sum(parameter.numel() for parameter in parameters.values())
    if n_parameters > MOST_PARAMETERS and not any_size:
        note = f"{n_parameters / 1e9:.1f} billion parameters, above 1 billion it is done on request: model.verify()"
        return Verification(notes=(note,))
    if any(parameter.is_meta for parameter in parameters.values()):
        return Verification(notes=("its weights are not in memory",))
    if not any(groups):
        return Verification(notes=("no input could be made up from its configuration: model.verify(inputs={…})",))
    result: Verification | None = None
    with unchanged(model, is_training=any(part.training for part in parts)):
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
            own = run_plainly(model, case)
        except HeadscopeError as error:
            return Verification(False, first_difference=f"observing {case.name} was refused: {error}")
        except Exception as error:  # a model raises anything on an input that it does not take
            problems.append(f"it cannot run {case.name} by itself ({type(error).__name__}: {_short(error)})")
            continue
        if any(_has_nan(tensor) for tensor in own.outputs.values()):
            problems.append(f"by itself it gives NaN for {case.name}")
            continue
        return _compare(model, case, own, with_sdpa=with_sdpa)
    return Verification(notes=tuple(problems))


def _has_nan(tensor: Tensor) -> bool:
    # One NaN makes the sum NaN, and a sum is cheaper; so do two infinities.
    return not bool(tensor.sum().isfinite()) and bool(tensor.isnan().any())


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:160]


def _compare(model: "ProbedModule", case: VerificationInput, own: ObservedRun, *, with_sdpa: bool) -> Verification:
    try:
        observed = run_observed(model, case)
    except HeadscopeError as error:
        return Verification(False, first_difference=f"observing {case.name} was refused: {error}")
    except Exception as error:  # it ran by itself: whatever is raised now is ours
        line = f"observing {case.name} raised {type(error).__name__}: {_short(error)}"
        return Verification(False, first_difference=line)
    tolerance = TOLERANCES.get(model.dtype, TOLERANCE)
    difference, place = _largest_difference(model, case, own, observed, tolerance)
    reference, disagreement = own.reference, ""
    if place:
        if _largest_difference(model, case, own, run_plainly(model, case), tolerance)[1]:
            return Verification(notes=("its own run gives other numbers each time: it cannot be compared",))
        place = _first_module(model, case, tolerance) or place
    sdpa = _run_sdpa(model, case) if own.reference == "eager" and (with_sdpa or place) else None
    if sdpa is not None:
        apart, _ = _compare_tensors(own.outputs, sdpa.outputs)
        if not apart <= tolerance * _scale(own.outputs):
            if place and not _largest_difference(model, case, sdpa, observed, tolerance)[1]:
                difference, place, reference = _compare_tensors(sdpa.outputs, observed.outputs)[0], "", "sdpa"
            disagreement = (
                f"the model's own SDPA attention differs from its own eager attention by {apart:.3g} on {case.name}: "
                f"what is shown follows {reference}"
            )
    n_patterns = sum(len(patterns) for patterns in own.patterns.values())
    return Verification(
        not place,
        difference,
        reference,
        (case.name,),
        len(model.layout.layers),
        n_patterns,
        place,
        disagreement=disagreement,
    )


def _run_sdpa(model: "ProbedModule", case: VerificationInput) -> "ObservedRun | None":
    """The model by itself with its own SDPA, where it has one."""
    try:
        run = run_plainly(model, case, "sdpa")
    except Exception:  # many models have no SDPA path, and say so with errors of many kinds
        return None
    return run if run.reference == "sdpa" else None


def _largest_difference(
    model: "ProbedModule", case: VerificationInput, own: ObservedRun, other: ObservedRun, tolerance: float
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
    own, other = (run(model, case, with_modules=True) for run in (run_plainly, run_observed))
    for (name, tensor), (other_name, other_tensor) in zip(own.module_outputs, other.module_outputs, strict=False):
        if name != other_name:
            return f"{_layer_name(model, other_name)} runs where {name} runs by itself"
        first, second = (real_rows({"": part}, case.real) for part in (tensor, other_tensor))
        difference, _ = _compare_tensors(first, second)
        if not difference <= tolerance * _scale(first):
            return f"{_layer_name(model, name)} differs from the model's own run by {difference:.3g}"
    return ""


def _layer_name(model: "ProbedModule", module: str) -> str:
    sites = [str(layer.site) for layer in model.layout.of_module(module)]
    return f"layer {', '.join(sites)} ({module})"


def _pattern_differences(
    model: "ProbedModule", own: ObservedRun, other: ObservedRun, real: Mapping[str, Tensor]
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
            if _is_same(pattern, other_pattern):
                yield module, 0.0
                continue
            if pattern.shape[1] > 1 and bool((pattern == pattern[:, :1]).all()):
                other_pattern = other_pattern.mean(1, keepdim=True).expand_as(pattern)  # WavLM returns the heads' mean
            mask = real.get(stacks[module])
            n_queries = pattern.shape[2]
            # Before decoding steps there are as many rows fewer; a step's own row is always real.
            if mask is not None and mask.shape[0] == pattern.shape[0] and 1 < n_queries <= mask.shape[1]:
                rows = mask[:, :n_queries]
                pattern, other_pattern = (part.transpose(1, 2)[rows] for part in (pattern, other_pattern))
            other_pattern = other_pattern.masked_fill(~pattern.any(-1, keepdim=True), 0.0)  # Longformer's own padding
            yield module, _difference(pattern, _without_sinks(other_pattern, pattern))


def _without_sinks(observed: Tensor, own: Tensor) -> Tensor:
    """Observed weights, renormalised where the model's own sum to 1 and these do not: it takes the sinks' share off the
    output instead (Granite SWA)."""
    sums, own_sums = observed.float().sum(-1, keepdim=True), own.float().sum(-1, keepdim=True)
    takes_sinks_later = bool(((own_sums - 1).abs() < 1e-2).all()) and bool(((sums > 0) & (sums < 1 + 1e-2)).all())
    return observed / sums if takes_sinks_later and bool((sums < 1 - 1e-2).any()) else observed


def _compare_tensors(first: dict[str, Tensor], second: dict[str, Tensor]) -> tuple[float, str]:
    """The largest difference among tensors of equal name, and its name; infinite where one side lacks some."""
    if set(first) != set(second):
        return float("inf"), ", ".join(sorted(set(first) ^ set(second)))
    differences = {name: _difference(tensor, second[name]) for name, tensor in first.items()}
    name = max(differences, key=lambda key: differences[key], default="")
    return differences.get(name, 0.0), name


def _is_same(first: Tensor, second: Tensor) -> bool:
    """Whether tensors are equal to the last bit, as they nearly always are; a NaN equals none."""
    return first.dtype == second.dtype and torch.equal(first, second)


def _difference(first: Tensor, second: Tensor) -> float:
    """The largest absolute difference; equal infinities and NaNs do not differ."""
    if first.shape != second.shape:
        return float("inf")
    if _is_same(first, second):
        return 0.0
    first, second = first.float(), second.float()
    same = (first == second) | (first.isnan() & second.isnan())
    apart = (first - second).abs().masked_fill(same, 0.0).nan_to_num(float("inf"), posinf=float("inf"))
    return float(apart.max()) if apart.numel() else 0.0


def _scale(outputs: dict[str, Tensor]) -> float:
    """How large numbers are, for a tolerance; 1 at least."""
    finite = [tensor.float()[tensor.isfinite()].abs() for tensor in outputs.values()]
    return max([1.0, *(float(values.max()) for values in finite if values.numel())])
