"""A small run of a model, compared with its own attention: the promise that watching changes nothing."""

from typing import TYPE_CHECKING

from headscope.cli.load_model import one_thread
from headscope.errors import CaptureError

if TYPE_CHECKING:
    from headscope.models import Model
    from headscope.traces import Trace

TEXT = "The doctor asked the nurse a question."


def smoke(name: str | None) -> str:
    """Load a model (a tiny one without a name), trace and verify it; a line that says how it went, or an error."""
    if name is None:
        from headscope.cli.tiny_model import tiny_model

        model = tiny_model()
    else:
        from headscope.models import load

        model = load(name)
    with one_thread():
        trace = _trace(model)
        result = model.verify()
        _check_patterns(trace)
    if not result.is_equal:
        raise CaptureError(f"{result.line}: report this machine.")
    return f"loads, traces {len(trace.heads)} heads; {result.line}"


def _trace(model: "Model") -> "Trace":
    """A run of whatever the model takes."""
    import numpy as np

    from headscope.models.inputs.accepted import Intake

    intake = Intake.of(model.processor, model.module, model.stacks)
    if "text" in intake.kinds:
        return model.run(TEXT, target=TEXT if model.is_encoder_decoder else None)
    return model.run(image=np.arange(32 * 32 * 3, dtype=np.uint32).reshape(32, 32, 3).astype(np.uint8))


def _check_patterns(trace: "Trace") -> None:
    for head in trace.heads:
        sums = trace.pattern(head).sum(-1)
        if not abs(sums - 1).max() < 1e-4:
            raise CaptureError(f"the pattern of {head} does not sum to one: report this machine.")
