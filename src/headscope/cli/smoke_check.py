"""A small run of a model, compared with what its own eager code computes: the promise that watching changes nothing."""

from typing import TYPE_CHECKING, Any

from headscope.cli.load_model import one_thread
from headscope.errors import CaptureError

if TYPE_CHECKING:
    from torch import Tensor

    from headscope.models import Model
    from headscope.traces import Trace

TEXT = "The doctor asked the nurse a question."
TOLERANCE = 1e-5


def smoke(name: str | None) -> str:
    """Load a model (a tiny one without a name), trace it and check it; a line that says how it went, or an error."""
    if name is None:
        from headscope.cli.tiny_model import tiny_model

        model = tiny_model()
    else:
        from headscope.models import load

        model = load(name)
    with one_thread():
        trace = _trace(model)
        apart = _difference_from_eager(model, trace)
        _check_patterns(trace)
    if not apart <= TOLERANCE:
        raise CaptureError(
            f"outputs under observation differ from the model's own by {apart:.2g}: report this machine."
        )
    agreement = "equal to those" if apart == 0 else f"within {apart:.0e} of those"
    return f"loads, traces {len(trace.heads)} heads, outputs {agreement} of its own eager code"


def _trace(model: "Model") -> "Trace":
    """A run of whatever the model takes."""
    import numpy as np

    from headscope.models.inputs.accepted import Intake

    intake = Intake.of(model.processor, model.module, model.stacks)
    if "text" in intake.kinds:
        return model.run(TEXT, target=TEXT if model.is_encoder_decoder else None)
    return model.run(image=np.arange(32 * 32 * 3, dtype=np.uint32).reshape(32, 32, 3).astype(np.uint8))


def _difference_from_eager(model: "Model", trace: "Trace") -> float:
    """The largest difference between watched outputs and those of the model's own eager attention."""
    import torch

    assert trace.inputs is not None  # a run keeps its inputs
    inputs = {name: tensor[None].to(model.device) for name, tensor in trace.inputs.model_inputs.items()}
    module: Any = model.module
    with model.session(record="heads", exact=True):
        watched = _first(module(**inputs))
    module.set_attn_implementation("eager")
    with torch.no_grad():
        own = _first(module(**inputs))
    return float((watched.float() - own.float()).abs().max())


def _first(outputs: Any) -> "Tensor":
    return outputs[0]


def _check_patterns(trace: "Trace") -> None:
    for head in trace.heads:
        sums = trace.pattern(head).sum(-1)
        if not abs(sums - 1).max() < 1e-4:
            raise CaptureError(f"the pattern of {head} does not sum to one: report this machine.")
