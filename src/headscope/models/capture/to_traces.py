"""From a session to traces: one for each example, without its padding."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from headscope.errors import CaptureError
from headscope.interventions import Intervention
from headscope.models.capture.expert_routing import Routing, choices_of
from headscope.models.capture.session import Session
from headscope.models.inputs.batch import Batch
from headscope.models.predictions import logits_of
from headscope.sites import Site
from headscope.traces import ExpertChoices, Inputs, LayerRecord, Predictions, Tokens, Trace

if TYPE_CHECKING:
    from headscope.models.model import Model


def traces_of(
    model: "Model",
    session: Session,
    batch: Batch,
    tokens_read: Sequence[dict[str, Tokens]],
    outputs: Any,
    answers: list[Predictions | None],
    interventions: Sequence[Intervention],
    notes: Sequence[str] = (),
) -> list[Trace]:
    """What the session saw, example by example. `tokens_read` are those of each example by stack, as edited."""
    assert session.record is not None  # runs always record
    n_recorded = max((len(captured.records) for captured in session.captured.values()), default=len(batch.examples))
    if n_recorded < len(batch.examples):
        raise CaptureError(
            f"{type(model.module).__name__} makes {n_recorded} example{'s' * (n_recorded > 1)} of the "
            f"{len(batch.examples)} rows of its input (as MusicGen does of its codebooks), so a trace cannot hold the "
            "rows apart. Watch the module itself: with model.session(record='heads') as session: model.module(…)."
        )
    traces = []
    logits = logits_of(model, outputs, batch) if session.record == "full" else None
    for example, inputs in enumerate(batch.examples):
        layers = _records(model, session, example)
        tokens = _tokens(model, dict(tokens_read[example]), layers)
        note = uniform_note(layers)
        if note:
            model.warn(note)
        warnings: list[str] = [*notes, *inputs.warnings, *([note] if note else [])]
        traces.append(
            Trace(
                model=model.name,
                record=session.record,
                layers=layers,
                tokens=tokens,
                inputs=_of_stacks(model, inputs),
                edits=tuple(repr(intervention) for intervention in interventions),
                answers=answers[example],
                residuals=_streams(session, example),
                activations={
                    site: _out(session, site.stack, activations, example)
                    for site, activations in session.activations.items()
                },
                logits=None
                if logits is None or example >= logits.shape[0]
                else _own_logits(model, session, logits, example),
                warnings=tuple(dict.fromkeys(warnings)),
                expert_choices=_experts(session, tokens, example),
                other_layers={other.site: other.mixer for other in model.layout.other_layers},
            )
        )
    return traces


def _records(model: "Model", session: Session, example: int) -> dict[Site, LayerRecord]:
    """What was recorded of one example, in the order of the layers."""
    places = {layer.site: place for place, layer in enumerate(model.layout.layers)}
    records = {
        site: captured.records[example]
        for site, captured in session.captured.items()
        if example < len(captured.records)
    }
    return dict(sorted(records.items(), key=lambda site_and_record: places[site_and_record[0]]))


def uniform_note(layers: dict[Site, LayerRecord]) -> str:
    """A warning if every head attends equally everywhere: weights that were never trained, or a lost input."""
    for layer in layers.values():
        entropy, largest = layer.summary.entropy, layer.summary.max
        # Of n equal weights the largest is 1/n and the entropy log n, whatever the mask lets a query see.
        is_uniform = bool((largest * entropy.exp() < 1.01).all()) and bool((entropy > 0.69).any())
        if not is_uniform:
            return ""
    return "attention is uniform everywhere, in every head: are these weights trained?" if layers else ""


def _streams(session: Session, example: int) -> dict[str, Tensor]:
    """The residual stream of each stack [layer + 1, token, dim], where all of its layers were seen and are as wide."""
    streams: dict[str, list[Tensor]] = {}
    for site in sorted(session.residuals):
        parts = streams.setdefault(site.stack, [])
        if site.layer == len(parts):
            parts.append(_out(session, site.stack, session.residuals[site], example))
    n_places = Counter(site.stack for site in session.residuals)
    return {
        stack: torch.stack(parts)
        for stack, parts in streams.items()
        if len(parts) == n_places[stack] and len({part.shape for part in parts}) == 1
    }


def _out(session: Session, stack: str, tensor: Tensor, example: int) -> Tensor:
    part = tensor[example] if tensor.ndim == 3 else tensor
    real = session.positions.real.get(stack)
    if real is not None and real.shape[1] == part.shape[0] and example < real.shape[0]:
        part = part[real[example].to(part.device)]
    return part.to("cpu") if session.keep == "cpu" else part


def _experts(session: Session, tokens: dict[str, Tokens], example: int) -> dict[Site, ExpertChoices]:
    """Which experts the tokens of an example took, where a router saw them all and nothing else."""
    choices = {}
    for site, routing in session.routings.items():
        rows = [
            session.positions.with_batch_axis(part.detach()) for part in (routing.logits, routing.ids, routing.weights)
        ]
        if example >= len(rows[0]):
            continue
        own = Routing(*(_out(session, site.stack, part, example) for part in rows))
        if len(own.ids) == len(tokens.get(site.stack, ())):
            choices[site] = choices_of(own, with_logits=session.record == "full")
    return choices


def _own_logits(model: "Model", session: Session, logits: Tensor, example: int) -> Tensor:
    if logits.ndim == 2:
        return logits[example].detach().cpu()
    stack = "decoder" if model.is_encoder_decoder else next(iter(model.stacks))
    return _out(session, stack, logits.detach(), example)


def _tokens(model: "Model", tokens: dict[str, Tokens], layers: dict[Site, LayerRecord]) -> dict[str, Tokens]:
    """Tokens for every stack; numbered positions where only the model knew how many there are.

    Before the first probe, the text of a model with several towers is read as "text"; its stack may be "main".
    """
    if "text" in tokens and "text" not in model.stacks and "main" in model.stacks:
        tokens.setdefault("main", tokens.pop("text"))
    for layer in layers.values():
        for stack, length in ((layer.site.stack, layer.n_queries), (layer.key_stack, layer.n_keys)):
            known = tokens.get(stack)
            if known is None or (len(known) != length and not _is_coarser(known, length)):
                tokens[stack] = Tokens.numbered(length)
    return tokens


def _of_stacks(model: "Model", inputs: Inputs) -> Inputs:
    """The input, with the picture of its text under the name that the text's stack has."""
    if "text" not in inputs.seen or "text" in model.stacks or "main" not in model.stacks:
        return inputs
    return replace(inputs, seen={"main" if name == "text" else name: seen for name, seen in inputs.seen.items()})


def _is_coarser(tokens: Tokens, length: int) -> bool:
    """Whether a layer sees a coarser grid of the same image (Swin's later stages)."""
    return tokens.kind == "patches" and length < len(tokens)
