"""Relevance for the page: what every token and every head had to do with one answer."""

import math
from typing import TYPE_CHECKING

import numpy as np

from headscope.errors import InputError
from headscope.traces import Trace
from headscope.views.contract import RelevanceProps
from headscope.views.wire import Part

if TYPE_CHECKING:
    from headscope.analysis.attribution.relevance import Relevance


def relevance_part(relevance: "Relevance", trace: Trace) -> Part:
    """The relevance of one answer; of several positions, their mean.

    Arrays: `tokens/STACK` [token] for every stack that the trace shows, `share` and `raw` [head].
    """
    step = relevance.steps[0]
    is_one = len(relevance.steps) == 1 and step.position is not None
    carried = sum(float(relevance.by_token[stack].sum(1).mean()) for stack in relevance.input_stacks)
    heads = [head for head in trace.heads if head in relevance.by_head]
    arrays = {
        f"tokens/{stack}": relevance.by_token[stack].mean(0).astype(np.float32)
        for stack, tokens in trace.tokens.items()
        if stack in relevance.by_token and relevance.by_token[stack].shape[1] == len(tokens)
    }
    for name, scores in (("share", relevance.heads), ("raw", relevance.raw)):
        arrays[name] = np.array([scores[head] for head in heads], np.float32)
    props = RelevanceProps(
        rule=relevance.rule,
        position=step.position if is_one and step.position is not None else -1,
        text=_plain(step.text),
        other=None if step.other is None else _plain(step.other_text),
        logit=relevance.logit,
        carried=carried,
        bias_share=None if math.isnan(relevance.bias_share) else relevance.bias_share,
        heads=[str(head) for head in heads],
        stacks=[stack for stack in relevance.input_stacks if f"tokens/{stack}" in arrays],
    )
    return Part("relevance", props, arrays)


def address_of(relevance: "Relevance") -> str:
    """Which answer it is of, as the page's address writes it: `9:1234`, `9:1234-77:attn`, `all:3`."""
    step = relevance.steps[0]
    if len(relevance.steps) > 1:
        raise InputError(f"a view shows the relevance of one answer, this is of {len(relevance.steps)}: say position=.")
    where = "all" if step.position is None else str(step.position)
    less = "" if step.other is None else f"-{step.other}"
    return f"{where}:{step.id}{less}{':attn' if relevance.rule == 'attn' else ''}"


def _plain(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
