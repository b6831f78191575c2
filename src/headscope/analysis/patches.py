"""Heads of image models, by where on the image they look."""

from collections.abc import Iterator

import numpy as np

from headscope.analysis.tokens import Sample
from headscope.errors import InputError
from headscope.sites import Head
from headscope.traces import Trace


def neighbour(trace: Trace) -> Iterator[tuple[Head, Sample]]:
    """Weight from each patch on the up to eight patches around it; chance is their share of all patches and special
    tokens.
    """
    seen = False
    for head in trace.heads:
        tokens = trace.query_tokens(head)
        if tokens.kind != "patches" or tokens.grid is None or trace.layer(head).n_queries != len(tokens):
            continue
        seen = True
        rows, columns = tokens.grid
        patches = np.array([place for place, token in enumerate(tokens) if not token.special])
        row, column = np.divmod(np.arange(rows * columns), columns)
        near = (np.abs(row[:, None] - row) <= 1) & (np.abs(column[:, None] - column) <= 1)
        np.fill_diagonal(near, False)
        pattern = trace.pattern(head)
        weights = (pattern[np.ix_(patches, patches)] * near).sum()
        yield head, Sample(float(weights), len(patches), float(near.sum() / pattern.shape[1]))
    if not seen:
        raise InputError("patch_neighbour needs an image: this trace has no grid of patches.")
