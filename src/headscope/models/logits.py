"""What a model answers at every position of one input, with edits: logits alone, nothing recorded."""

from collections.abc import Sequence

from torch import Tensor

from headscope.errors import NotRecordedError
from headscope.interventions import Intervention
from headscope.models.capture.passes import Pass
from headscope.models.model import Model
from headscope.progress import Cancel
from headscope.traces import Inputs


def output_logits(
    model: Model,
    inputs: Inputs,
    interventions: Sequence[Intervention] = (),
    *,
    last: int | None = None,
    cancel: Cancel | None = None,
) -> Tensor:
    """Logits [position, candidate] of all positions, or of the `last` so many; a classifier's have one row."""
    passed = Pass.of(model, [inputs], interventions).run(logits="all" if last is None else last, cancel=cancel)
    logits = passed.logits
    if logits is None:
        raise NotRecordedError(
            f"{model.name} has no output that reads as a prediction: no language-model or class head."
        )
    logits = logits[0].detach() if logits.ndim == 3 else logits.detach()
    return logits if last is None else logits[-last:]
