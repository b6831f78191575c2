"""Layers of which only the patterns are known, because they come from elsewhere."""

import torch
from torch import Tensor

from headscope.attention import summarise
from headscope.errors import InputError
from headscope.sites import Site
from headscope.traces.layer import LayerRecord
from headscope.traces.tokens import Tokens

NO_PATTERNS = (
    "the model returned no attention weights (None): load it with attn_implementation='eager', "
    "or let headscope.load trace it."
)


def layer_of_patterns(patterns: Tensor, site: Site, key_stack: str, tokens: dict[str, Tokens]) -> LayerRecord:
    """A layer of which only the patterns are known."""
    if patterns is None:
        raise InputError(NO_PATTERNS)
    weights = torch.as_tensor(patterns).detach().to("cpu", torch.float32, copy=True)  # a trace never changes
    weights = weights[0] if weights.ndim == 4 and weights.shape[0] == 1 else weights
    if weights.ndim == 4:
        raise InputError(f"{site} holds a batch of {weights.shape[0]}: give one example at a time.")
    if weights.ndim != 3:
        raise InputError(f"a layer's patterns are [head, query, key], got shape {tuple(weights.shape)} for {site}.")
    if not bool((weights >= 0).all()):  # NaN is not
        raise InputError(f"the patterns of {site} hold NaN or negative weights.")
    n_heads, n_queries, n_keys = weights.shape
    for stack, length, axis in ((site.stack, n_queries, "queries"), (key_stack, n_keys, "keys")):
        if stack not in tokens:
            raise InputError(f"no tokens were given for {stack!r}, which {site} needs: there are {', '.join(tokens)}.")
        if len(tokens[stack]) != length:
            raise InputError(f"{site} has {length} {axis} but {len(tokens[stack])} {stack} tokens were given.")
    scores = weights.clamp_min(torch.finfo(torch.float32).tiny).log()
    summary = summarise(weights, scores, lse=torch.zeros(n_heads, n_queries))
    reason = "only its patterns are known"
    stored = dict(enumerate(weights))
    return LayerRecord(
        site,
        n_heads,
        n_queries,
        n_keys,
        key_stack,
        "given",
        summary,
        stored=stored,
        no_scores=reason,
        no_norms=reason,
        is_causal=site.kind != "cross" and n_queries == n_keys and not bool(weights.triu(1).any()),
    )
