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


def relevance_part(found: "Relevance", trace: Trace) -> Part:
    """The relevance of one answer; of several positions, their mean.

    Arrays: `tokens/STACK` [token] for every stack that the trace shows, `share` and `raw` [head].
    """
    about = found.steps[0]
    is_one = len(found.steps) == 1 and about.position is not None
    carried = sum(float(found.by_token[stack].sum(1).mean()) for stack in found.input_stacks)
    heads = [head for head in trace.heads if head in found.by_head]
    arrays = {
        f"tokens/{stack}": found.by_token[stack].mean(0).astype(np.float32)
        for stack, tokens in trace.tokens.items()
        if stack in found.by_token and found.by_token[stack].shape[1] == len(tokens)
    }
    for name, scores in (("share", found.heads), ("raw", found.raw)):
        arrays[name] = np.array([scores[head] for head in heads], np.float32)
    props = RelevanceProps(
        rule=found.rule,
        position=about.position if is_one and about.position is not None else -1,
        text=_plain(about.text),
        other=None if about.other is None else _plain(about.other_text),
        logit=found.logit,
        carried=carried,
        bias_share=None if math.isnan(found.bias_share) else found.bias_share,
        heads=[str(head) for head in heads],
        stacks=[stack for stack in found.input_stacks if f"tokens/{stack}" in arrays],
    )
    return Part("relevance", props, arrays)


def address_of(found: "Relevance") -> str:
    """Which answer it is of, as the page's address writes it: `9:1234`, `9:1234-77:attn`, `all:3`."""
    about = found.steps[0]
    if len(found.steps) > 1:
        raise InputError(f"a view shows the relevance of one answer, this is of {len(found.steps)}: say position=.")
    where = "all" if about.position is None else str(about.position)
    less = "" if about.other is None else f"-{about.other}"
    return f"{where}:{about.id}{less}{':attn' if found.rule == 'attn' else ''}"


def _plain(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
