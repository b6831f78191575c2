"""What a model answers at every position of one input, with edits: logits alone, nothing recorded."""

import inspect
import threading
from collections.abc import Sequence

from torch import Tensor

from headscope.errors import NotRecordedError
from headscope.interventions import Intervention
from headscope.models.answers import logits_of
from headscope.models.batches import collate
from headscope.models.blame import check_output
from headscope.models.model import Model
from headscope.models.session import Session
from headscope.models.validate import check_tokens, listed, resolve
from headscope.traces import Inputs


def output_logits(
    model: Model,
    inputs: Inputs,
    interventions: Sequence[Intervention] = (),
    *,
    last: int | None = None,
    cancel: threading.Event | None = None,
) -> Tensor:
    """Logits [position, candidate] of all positions, or of the `last` so many; a classifier's have one row."""
    interventions = listed(interventions)
    resolve(interventions, model.layout)
    check_tokens(interventions, inputs.tokens)
    shown = model.with_tokens_replaced(inputs, interventions)
    batch = collate([shown], model.module, model.processor).to(model.device, model.dtype)
    at_run = [one for one in interventions if one.stage != "tokens"]  # tokens are replaced already
    tokens = {stack: [one] for stack, one in inputs.tokens.items()}
    options = {}
    names = inspect.signature(type(model.module).forward).parameters
    if last is not None and "logits_to_keep" in names:
        options["logits_to_keep"] = last

    def outputs(edits: Sequence[Intervention]):
        with Session(model, edits, cancel=cancel, tokens=tokens, real=batch.real):
            return model.module(**batch.model_inputs, **options)

    found = outputs(at_run)
    check_output(found, at_run, outputs)
    logits = logits_of(model, found)
    if logits is None:
        raise NotRecordedError(
            f"{model.name} has no output that reads as a prediction: no language-model or class head."
        )
    logits = logits[0].detach() if logits.ndim == 3 else logits.detach()
    return logits if last is None else logits[-last:]
