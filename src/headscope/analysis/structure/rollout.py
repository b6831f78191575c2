"""Attention rollout and attention flow (Abnar & Zuidema, 2020): attention followed through all layers to the input."""

from dataclasses import dataclass, replace

import numpy as np

from headscope.analysis.structure.maximum_flow import Network
from headscope.errors import InputError, NotRecordedError
from headscope.progress import Cancel, OnProgress, Steps, stop_if
from headscope.sites import Head, Site
from headscope.traces import Tokens, Trace
from headscope.traces.tokens import TokenChoice

# Flow needs a search for every pair of tokens: some seconds at this length, and the fourth power of it.
MAX_FLOW_TOKENS = 30


@dataclass(frozen=True, eq=False)
class Rollout:
    """From each token of each layer to the tokens of the input: `weights` [layer, token, token], rows sum to one.

    `steps` [layer, token, token] are what was multiplied: ½ attention, averaged over heads, + ½ of the token itself.
    """

    sites: tuple[Site, ...]
    tokens: Tokens
    weights: np.ndarray
    steps: np.ndarray
    trace: Trace

    def __getitem__(self, layer: int | str | Site) -> np.ndarray:
        """The rollout up to and with a layer [token, token]."""
        return self.weights[self.place(layer)]

    def place(self, layer: int | str | Site) -> int:
        """The number of a layer among those rolled out; negative from the end."""
        if isinstance(layer, int):
            if not -len(self.sites) <= layer < len(self.sites):
                raise InputError(f"there is no layer {layer}: the rollout has {len(self.sites)} layers.")
            return layer % len(self.sites)
        return self.sites.index(self.trace.find(layer)[0].site)

    def head(self, head: str | Head) -> np.ndarray:
        """One head over the rollout of the layers below it [token, token]: where it looks, in terms of the input."""
        heads = self.trace.find(head)
        if len(heads) != 1:
            raise InputError(f"{head} names {len(heads)} heads: say which.")
        place = self.place(heads[0].site)
        pattern = self.trace.pattern(heads[0]).astype(np.float64)
        return pattern if place == 0 else pattern @ self.weights[place - 1]

    def without(self, tokens: TokenChoice) -> "Rollout":
        """The same with some input tokens left out, rows brought back to one: causal models pile weight on the first.

        A token that sees none but those is left with a row of zeros. Layers and steps stay what they are.
        """
        weights = self.weights.copy()
        weights[:, :, self.tokens.positions(tokens)] = 0.0
        sums = weights.sum(-1, keepdims=True)
        return replace(self, weights=np.divide(weights, sums, out=np.zeros_like(weights), where=sums > 0))

    def patches(self, layer: int | str | Site = -1, *, query: int = 0) -> np.ndarray:
        """What one token (a ViT's first is the class) draws from each patch of an image [row, column]."""
        return as_patches(self[layer][query], self.tokens)


def rollout(trace: Trace, *, stack: str | None = None) -> Rollout:
    """R_l = A_l · R_(l−1), where A_l = ½ W_l + ½ I and W_l is the mean over the heads of layer l.

    Rows that do not sum to one, of models with attention sinks, are brought to one after I is added, as the authors'
    code does. A decoder's rollout is of its attention to itself; what it draws from the source is left out.
    """
    sites, steps, tokens = _steps(trace, stack)
    weights = np.empty_like(steps)
    below = np.eye(steps.shape[1])
    for layer, step in enumerate(steps):
        weights[layer] = below = step @ below
    return Rollout(tuple(sites), tokens, weights, steps, trace)


def flow(
    trace: Trace,
    *,
    stack: str | None = None,
    layer: int = -1,
    queries: TokenChoice | None = None,
    normalised: bool = False,
    max_tokens: int = MAX_FLOW_TOKENS,
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> np.ndarray:
    """The maximum flow from tokens of a layer down to each token of the input [query, token], edges as in `rollout`.

    It is never less than the rollout. The authors' code brings each row to a sum of one: `normalised`. For short
    inputs only; `queries` chooses some of the rows, `progress` hears how many of them are done.
    """
    sites, steps, tokens = _steps(trace, stack)
    if len(tokens) > max_tokens:
        raise InputError(
            f"the input has {len(tokens)} tokens, and flow is for {max_tokens} at most: its time grows with the "
            "fourth power. Use the rollout, a shorter input, or raise max_tokens."
        )
    if not -len(sites) <= layer < len(sites):
        raise InputError(f"there is no layer {layer}: there are {len(sites)} layers.")
    steps = steps[: layer % len(sites) + 1]
    rows = range(len(tokens)) if queries is None else tokens.positions(queries)
    network, reach = Network(steps), np.eye(len(tokens))
    for step in steps:
        reach = step @ reach  # zero where no path leads
    flows, counter = np.zeros((len(rows), len(tokens))), Steps("flow", len(rows), progress)
    for at, row in enumerate(rows):
        for column in range(len(tokens)):
            stop_if(cancel)
            if reach[row, column] > 0:
                flows[at, column] = network.flow(row, column)
        counter.add()
    return flows / flows.sum(-1, keepdims=True) if normalised else flows


def as_patches(row: np.ndarray, tokens: Tokens) -> np.ndarray:
    """A row of a rollout or a flow as the patches of an image [row, column]; special tokens come before them."""
    if tokens.grid is None:
        raise InputError("these tokens are no patches of an image.")
    n_rows, n_columns = tokens.grid
    return row[len(row) - n_rows * n_columns :].reshape(n_rows, n_columns)


def _steps(trace: Trace, stack: str | None) -> tuple[list[Site], np.ndarray, Tokens]:
    """For each layer of self-attention the mean over heads with the residual added, rows that sum to one."""
    stack = stack or next(iter(site.stack for site in trace.layers if site.kind == "self"), "main")
    sites = [site for site in trace.layers if site.stack == stack and site.kind == "self"]
    if not sites:
        there = ", ".join(dict.fromkeys(site.stack for site in trace.layers))
        raise NotRecordedError(f"this trace has no self-attention in {stack!r}: its stacks are {there}.")
    tokens = trace.query_tokens(sites[0])
    shapes = {(trace.layers[site].n_queries, trace.layers[site].n_keys) for site in sites}
    if len(shapes) > 1 or len({length for shape in shapes for length in shape}) > 1:
        sizes = ", ".join(f"{n_queries} × {n_keys}" for n_queries, n_keys in sorted(shapes))
        raise InputError(f"the layers of {stack!r} attend over different grids ({sizes}): they cannot be multiplied.")
    steps = []
    for site in sites:
        mixed = trace.patterns(site).double().mean(0).cpu().numpy() + np.eye(len(tokens))
        steps.append(mixed / mixed.sum(-1, keepdims=True))
    return sites, np.stack(steps), tokens
