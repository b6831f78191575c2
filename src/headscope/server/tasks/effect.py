"""What the edits of a run did to the model's output, position by position; and to what it writes."""

from dataclasses import dataclass, replace
from math import isfinite

import numpy as np

from headscope.analysis import effect
from headscope.analysis.attribution.effect import MOST_BYTES
from headscope.errors import InputError
from headscope.models import Model
from headscope.server.runs import Run
from headscope.server.tasks.task import Desk, Task
from headscope.views.contract import EffectProps, WrittenProps
from headscope.views.wire import Part

MOST_TOKENS = 100


@dataclass(frozen=True)
class EffectOptions:
    """How many candidates of each side a position."""

    k: int = 5


def _effect(desk: Desk, options: EffectOptions) -> Part:
    run = desk.run
    assert run is not None
    k = max(1, min(options.k, 20))
    found = effect(desk.model, run.trace.inputs, run.interventions, k=k, cancel=desk.cancel)
    known = sorted(found.names)
    places = np.searchsorted(known, found.ids.numpy()).astype(np.int32)
    places[found.ids.numpy() < 0] = -1
    loss = [None, None] if found.loss is None else [one if isfinite(one) else None for one in found.loss]
    arrays = {
        "kl": found.kl.float().numpy(),
        "candidates": places,
        "before": found.before.numpy(),
        "after": found.after.numpy(),
    }
    first = found.positions[0] if found.positions else -1
    return Part(
        "effect",
        EffectProps(found.stack, first, [found.names[one] for one in known], float(found.kl.mean()), *loss),
        arrays,
    )


@dataclass(frozen=True)
class WrittenOptions:
    """How many tokens to write."""

    n: int = 20


def _written(desk: Desk, options: WrittenOptions) -> Part:
    run = desk.run
    assert run is not None
    count = max(1, min(options.n, MOST_TOKENS))
    inputs = run.trace.inputs
    if inputs is None:
        raise InputError("there is no text to go on from.")
    if desk.model.is_encoder_decoder:
        # The source alone: the target is what is written.
        kept = {name: one for name, one in inputs.model_inputs.items() if not name.startswith("decoder_")}
        inputs = replace(inputs, model_inputs=kept, tokens={"encoder": inputs.tokens["encoder"]}, target=None)
    texts = []
    for place, edits in enumerate(((), run.interventions)):
        desk.progress(place, 2)
        options_ = {"max_new_tokens": count, "record": "rows", "cancel": desk.cancel}
        texts.append(desk.model.generate(inputs, interventions=edits, **options_).text)
    return Part("written", WrittenProps(count, *texts))


def _working_bytes(model: Model, run: Run) -> int:
    """All logits, of both runs, as long as `headscope.effect` compares them all."""
    n_tokens = max(map(len, run.trace.tokens.values()))
    return min(MOST_BYTES, 8 * n_tokens * (getattr(model.config, "vocab_size", None) or 1))


EFFECT = Task("effect", EffectOptions, _effect, working_bytes=_working_bytes)
WRITTEN = Task("written", WrittenOptions, _written)
