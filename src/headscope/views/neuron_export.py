"""What a neuron view leaves in files: its numbers as a table, and the parts that a saved page needs."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from headscope.sites import Head
from headscope.traces import Trace
from headscope.views import neurons
from headscope.views.neurons import (
    BLOCK,
    WHOLE_CELLS,
    Terms,
    neuron_part,
    no_neurons,
    query_of,
    steadiness,
    vectors_part,
)
from headscope.views.part_keys import PartKey
from headscope.views.table import Table
from headscope.views.wire import Part

if TYPE_CHECKING:
    from headscope.views.neuron_differences import SignedTerms
    from headscope.views.view import View


def neuron_order(view: "View") -> np.ndarray:
    """The neurons of queries and keys in the order that the view draws them in."""
    selection, trace = view.selection, view.trace
    head = _head(view)
    if selection.every is not None:
        vectors = trace.tensor(selection.every, head).float()
        if selection.order != "spread":
            return np.arange(vectors.shape[-1])
        varied = steadiness(vectors.mean(0).cpu().numpy(), vectors.std(0, correction=0).cpu().numpy())
        return np.argsort(varied, kind="stable")
    terms = terms_of(view)
    if selection.order == "index":
        return np.arange(terms.query.shape[-1])
    sizes = terms.importance[0] if selection.against is None else terms.products[0, selection.against].abs()
    return np.argsort(-sizes.cpu().numpy(), kind="stable")


def terms_of(view: "View") -> "Terms | SignedTerms":
    """All terms of the query that a view shows."""
    query = query_of(view.trace.layer(view.selection.site), view.selection.token)
    return neurons.terms_of(view.trace, _head(view), query, query + 1)


def neuron_table(view: "View") -> Table:
    """One row a key, the strongest first, with every term of its weight; then query × key and weight × value by neuron.

    With `every`, one row a token and one column a neuron.
    """
    head, trace, selection = _head(view), view.trace, view.selection
    if selection.every is not None:
        vectors = trace.tensor(selection.every, head).float().cpu().numpy()
        is_key = selection.every in ("key", "value")
        texts = (trace.key_tokens(head) if is_key else trace.query_tokens(head)).texts
        columns = _head_column(str(head), len(texts)) | {"position": np.arange(len(texts)), "token": _texts(texts)}
        return Table(columns | {f"{selection.every} {index}": vectors[:, index] for index in neuron_order(view)})
    terms = terms_of(view)
    query, texts = terms.queries[0], trace.key_tokens(head).texts
    weights = terms.weights[0].nan_to_num(nan=0.0)
    contribution = terms.lengths[0]
    terms_by_name = {"q·k": terms.dots, "capped": terms.capped, "bias": terms.bias}
    columns = _head_column(str(head), len(texts)) | {
        "query position": np.full(len(texts), query),
        "query token": _texts([trace.query_tokens(head)[query].text] * len(texts)),
        "key position": np.arange(len(texts)),
        "key token": _texts(texts),
        **{name: tensor[0].cpu().numpy() for name, tensor in terms_by_name.items() if tensor is not None},
        **({} if terms.no_terms else {"score": terms.scores[0].cpu().numpy()}),
        "weight": weights.cpu().numpy(),
        "contribution": contribution.cpu().numpy(),
    }
    products, weighted = terms.products[0].cpu().numpy(), terms.weighted[0].nan_to_num(nan=0.0).cpu().numpy()
    columns |= {f"q×k {index}": products[:, index] for index in neuron_order(view)}
    columns |= {f"a·v {index}": weighted[:, index] for index in range(weighted.shape[1])}
    order = np.argsort(-np.abs(columns["weight"]), kind="stable")
    return Table({name: column[order] for name, column in columns.items()})


def saved_parts(trace: Trace, head: Head, query: int) -> Iterator[tuple[str, Part]]:
    """The parts of one head, by key, what is looked at first coming first."""
    layer = trace.layers[head.site]
    is_whole = layer.n_queries * layer.n_keys <= WHOLE_CELLS
    key = f"neuron/{head}" if is_whole else f"neuron/{head}?query={query}"
    yield key, neuron_part(trace, PartKey("neuron", str(head), query=None if is_whole else query))
    for of in ("key", "value", "query", "mixed"):
        length = layer.n_keys if of in ("key", "value") else layer.n_queries
        for first in range(0, length, BLOCK):
            rows = (first, min(first + BLOCK, length))
            part_key = PartKey("vectors", str(head), of=of, rows=rows)
            yield f"vectors/{head}?of={of}&rows={rows[0]}:{rows[1]}", vectors_part(trace, part_key)


def other_heads(trace: Trace, head: Head) -> list[Head]:
    """All other heads that have neurons to show, those of the same layer first."""
    others = [
        candidate for candidate in trace.heads if candidate != head and not no_neurons(trace.layers[candidate.site])
    ]
    return sorted(others, key=lambda candidate: candidate.site != head.site)


def _head(view: "View") -> Head:
    return view.trace.layer(view.selection.site).site.head(view.selection.head)


def _head_column(head: str, count: int) -> dict[str, np.ndarray]:
    return {"head": _texts([head] * count)}


def _texts(texts: list[str]) -> np.ndarray:
    return np.array([*texts, ""], object)[:-1]
