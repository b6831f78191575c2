"""Where an answer of a run came from: relevance of its tokens, patches and heads to one logit, by one backward pass."""

import re
from dataclasses import dataclass
from typing import Literal

import psutil

from headscope.errors import InputError
from headscope.models.memory_budget import SHARE
from headscope.server.tasks.task import Desk, Task
from headscope.traces import Trace
from headscope.views.wire import Part

# Of every weight the backward pass holds the score, the pattern and their slopes, as four bytes each.
_BYTES_A_CELL = 16


@dataclass(frozen=True)
class RelevanceOptions:
    """Which logit: the id of a token or class, at which position (−1: the whole input), less which other."""

    target: int
    position: int = -1
    other: int | None = None
    rule: Literal["cp", "attn"] = "cp"


def _relevance(desk: Desk, options: RelevanceOptions) -> Part:
    from headscope.analysis.attribution.relevance import relevance
    from headscope.views.relevance import relevance_part

    assert desk.run is not None
    trace = desk.run.trace
    check_size(trace, int(psutil.virtual_memory().available * SHARE))
    token_relevance = relevance(
        desk.model,
        trace.inputs,
        target=options.target if options.other is None else (options.target, options.other),
        position=None if options.position < 0 else options.position,
        rule=options.rule,
        interventions=desk.run.interventions,
        cancel=desk.cancel,
    )
    return relevance_part(token_relevance, trace)


def working_bytes(trace: Trace) -> int:
    """The attention of all layers, which is held whole for the backward pass."""
    return _BYTES_A_CELL * sum(layer.n_heads * layer.n_queries * layer.n_keys for layer in trace.layers.values())


def check_size(trace: Trace, free: int) -> None:
    """Refuse an input whose attention would not fit into the machine's memory."""
    needed = working_bytes(trace)
    if needed > free:
        raise InputError(
            f"relevance holds the attention of all layers at once, which for this input takes about "
            f"{needed / 1e9:,.1f} GB, and {free / 1e9:,.1f} GB are to be had: explain a shorter input."
        )


def options_of(address: str) -> dict[str, object] | None:
    """The options that the page's address stands for (`9:1234-77:attn`); None for none."""
    match = re.fullmatch(r"(all|\d{1,9}):(\d{1,9})(?:-(\d{1,9}))?(:attn)?", address)
    if match is None:
        return None
    position, target, other, is_attn = match.groups()
    return {
        "position": -1 if position == "all" else int(position),
        "target": int(target),
        "other": None if other is None else int(other),
        "rule": "attn" if is_attn else "cp",
    }


RELEVANCE = Task("relevance", RelevanceOptions, _relevance, working_bytes=lambda model, run: working_bytes(run.trace))
