"""The traces of examples: those of like length run together, each recorded as asked."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, get_args

from headscope.choices import Keep, Record
from headscope.errors import HeadscopeWarning, InputError
from headscope.interventions import Intervention
from headscope.models.capture.passes import Pass
from headscope.models.inputs.batch import batchable, ready_inputs
from headscope.models.memory_budget import choose_record
from headscope.progress import Cancel, OnProgress
from headscope.traces import RECORDS, Inputs, Trace

if TYPE_CHECKING:
    from headscope.models.generation import Continuation
    from headscope.models.model import Model

BATCH_SIZE = 8


@dataclass(frozen=True)
class Recording:
    """How much a run keeps, and who follows it."""

    record: Record | None = None
    keep: Keep = "cpu"
    budget: int | None = None
    cancel: Cancel | None = None
    progress: OnProgress | None = None

    def __post_init__(self):
        if self.record is not None and self.record not in RECORDS:
            raise InputError(f"there is no record {self.record!r}: choose one of {', '.join(RECORDS)}.")
        if self.keep not in get_args(Keep):
            raise InputError(f"keep is 'cpu' or 'device', got {self.keep!r}.")

    def traces(self, forward: Pass) -> list[Trace]:
        """Run a pass; one trace per example."""
        model = forward.model
        notes = list(model.warnings)
        if model.module.training:
            notes.append("the module is in training mode, so dropout changes every run: call module.eval().")
            warnings.warn(notes[-1], HeadscopeWarning, stacklevel=3)
        chosen, note = choose_record(model, forward.batch, self.record, self.budget, forward.interventions)
        logits = "all" if chosen == "full" else "answers"
        passed = forward.run(record=chosen, keep=self.keep, logits=logits, cancel=self.cancel, progress=self.progress)
        return passed.traces([*notes, *([note] if note else [])])


def ready_traces(
    model: "Model", inputs: Mapping[str, Any], interventions: Sequence[Intervention], recording: Recording
) -> list[Trace]:
    """Run ready model inputs exactly as they were given, padding and all: one trace per row."""
    batch = ready_inputs(model.processor, model.module, inputs, stacks=model.stacks if model.has_layout else None)
    if any(edit.stage == "tokens" for edit in interventions):
        return example_traces(model, batch.examples, interventions, recording)
    return recording.traces(Pass(model, batch, interventions))


def example_traces(
    model: "Model", examples: Sequence[Inputs], interventions: Sequence[Intervention], recording: Recording
) -> list[Trace]:
    """Run examples, those of like length together; their traces in the order of the examples.

    Where an encoder-decoder has no target yet, it is generated first; the steps of the trace say so.
    """
    whole = list(examples)
    steps_by_place: dict[int, tuple[int | None, ...]] = {}
    for place, example in enumerate(examples):
        if example.needs_target:
            written = _with_target(model, example, recording.cancel)
            whole[place], steps_by_place[place] = written.inputs, written.target_steps
    traces: dict[int, Trace] = {}
    for places in _batches(model, whole):
        forward = Pass.of(model, [whole[place] for place in places], interventions)
        for place, trace in zip(places, recording.traces(forward), strict=True):
            traces[place] = replace(trace, steps=steps_by_place.get(place, trace.steps))
    return [traces[place] for place in range(len(whole))]


def _batches(model: "Model", examples: Sequence[Inputs]) -> Iterator[list[int]]:
    """Places of inputs of like length, so that little is padded."""
    for group in batchable(examples, model.module, model.processor):
        order = sorted(group, key=lambda place: examples[place].length)
        yield from (order[first : first + BATCH_SIZE] for first in range(0, len(order), BATCH_SIZE))


def _with_target(model: "Model", inputs: Inputs, cancel: Cancel | None) -> "Continuation":
    from headscope.models.generation import continue_inputs, longest_target

    return continue_inputs(model, inputs, max_new_tokens=longest_target(model), cancel=cancel)
