"""What the edits of a run did to the model's output, position by position; and to what it writes."""

from dataclasses import dataclass, replace
from math import isfinite

import numpy as np

from headscope.analysis import effect
from headscope.analysis.attribution.effect import MOST_BYTES
from headscope.errors import InputError
from headscope.models import Model
from headscope.progress import Steps
from headscope.server.runs import ServerRun
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
    change = effect(desk.model, run.trace.inputs, run.interventions, k=k, cancel=desk.cancel)
    known = sorted(change.names)
    places = np.searchsorted(known, change.ids.numpy()).astype(np.int32)
    places[change.ids.numpy() < 0] = -1
    loss = [None, None] if change.loss is None else [loss if isfinite(loss) else None for loss in change.loss]
    arrays = {
        "kl": change.kl.float().numpy(),
        "candidates": places,
        "before": change.before.numpy(),
        "after": change.after.numpy(),
    }
    first = change.positions[0] if change.positions else -1
    return Part(
        "effect",
        EffectProps(change.stack, first, [change.names[token] for token in known], float(change.kl.mean()), *loss),
        arrays,
    )


@dataclass(frozen=True)
class WrittenOptions:
    """How many tokens to write."""

    n: int = 20


def _write_both(desk: Desk, options: WrittenOptions) -> Part:
    run = desk.run
    assert run is not None
    count = max(1, min(options.n, MOST_TOKENS))
    inputs = run.trace.inputs
    if inputs is None:
        raise InputError("there is no text to go on from.")
    if desk.model.is_encoder_decoder:
        # The source alone: the target is what is written.
        encoder_inputs = {
            name: tensor for name, tensor in inputs.model_inputs.items() if not name.startswith("decoder_")
        }
        inputs = replace(inputs, model_inputs=encoder_inputs, tokens={"encoder": inputs.tokens["encoder"]}, target=None)
    texts, steps = [], Steps("texts", 2, desk.progress, desk.cancel)
    for edits in ((), run.interventions):
        steps.next()
        options_ = {"max_new_tokens": count, "record": "rows", "cancel": desk.cancel}
        texts.append(desk.model.generate(inputs, interventions=edits, **options_).text)
    return Part("written", WrittenProps(count, *texts))


def _working_bytes(model: Model, run: ServerRun) -> int:
    """All logits, of both runs, as long as `headscope.effect` compares them all."""
    n_tokens = max(map(len, run.trace.tokens.values()))
    return min(MOST_BYTES, 8 * n_tokens * (getattr(model.config, "vocab_size", None) or 1))


EFFECT = Task("effect", EffectOptions, _effect, working_bytes=_working_bytes)
WRITTEN = Task("written", WrittenOptions, _write_both)
