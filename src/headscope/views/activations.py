"""Activations for the page, as a table, and as a view."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from headscope.traces.activations import Activations
from headscope.views.contract import ActivationsProps
from headscope.views.table import Table
from headscope.views.wire import Coded, Part

if TYPE_CHECKING:
    from headscope.views.view import View


def activations_part(activations: Activations) -> Part:
    """Norms of all tokens; lens, neurons and heads of those that were read."""
    arrays: dict[str, np.ndarray | Coded] = {"norm": floats(activations.norms), "cosine": floats(activations.cosines)}
    arrays |= {name: floats(norms) for name, norms in activations.written.items()}
    texts: list[str] = []
    if activations.lens is not None:
        ids = sorted(activations.lens.names)
        texts = [plain(activations.lens.names[token_id]) for token_id in ids]
        arrays["lens"] = np.searchsorted(np.array(ids), activations.lens.ids).astype(np.int32)
        arrays["logprob"], arrays["answer"] = floats(activations.lens.logprobs), floats(activations.lens.answers)
        arrays["rank"] = activations.lens.ranks.astype(np.int32)
    if activations.neurons is not None and activations.values is not None and activations.shares is not None:
        arrays["neuron"] = activations.neurons.astype(np.int32)
        arrays["value"], arrays["share"] = floats(activations.values), floats(activations.shares)
    arrays |= {f"heads/{site}": floats(norms) for site, norms in activations.heads.items()}
    props = ActivationsProps(
        stack=activations.stack,
        places=activations.places,
        layers=[str(site) for site in activations.layers],
        first=activations.first,
        count=activations.count,
        texts=texts,
        n_neurons=activations.n_neurons,
        is_sum=activations.is_sum,
        no_lens=activations.no_lens,
        no_neurons=activations.no_neurons,
        no_written=activations.no_written,
    )
    return Part("activations", props, arrays)


def join_windows(windows: Sequence[Part]) -> Part:
    """Parts of one stack, each of some tokens, as one: of those that follow each other, as many as possible, if there
    is a choice with the last one.

    Props and arrays are as they were read off the wire; parts that hold other numbers than the last one are left out.
    """
    alike = [window for window in windows if _depths(window) == _depths(windows[-1])]
    by_first = {window.props["first"]: window for window in alike if window.props["count"]}
    best: list[Part] = []
    for first in sorted(by_first):
        run = [by_first[first]]
        while (end := run[-1].props["first"] + run[-1].props["count"]) in by_first:
            run.append(by_first[end])
        best = max(
            best,
            run,
            key=lambda windows_in_order: (
                _count(windows_in_order),
                any(window is windows[-1] for window in windows_in_order),
            ),
        )
    if len(best) < 2:
        return (best or list(windows))[0]
    texts: dict[str, int] = {}
    for window in best:
        for text in window.props["texts"]:
            texts.setdefault(text, len(texts))
    arrays = dict(best[0].arrays)
    for name in arrays:
        kind = name.rpartition(":")[2]  # of two runs, `a:logprob` and `b:logprob`
        if kind in _OF_SOME or kind.startswith("heads/"):
            arrays[name] = np.concatenate([_values_of(window, name, texts) for window in best], axis=1)
    return Part("activations", best[0].props | {"count": _count(best), "texts": list(texts)}, arrays)


# What belongs to single tokens, [row, token, …]; and what of it counts in `texts`, −1 for none.
_OF_SOME = ("lens", "candidate", "predicted", "logprob", "answer", "rank", "neuron", "value", "share")
_OF_TEXTS = ("lens", "candidate", "predicted")


def _count(windows: Sequence[Part]) -> int:
    return sum(window.props["count"] for window in windows)


def _depths(window: Part) -> dict[str, tuple[int, ...]]:
    """What it has of each token: so many candidates, so many neurons."""
    return {name: values.shape[2:] for name, values in window.arrays.items() if isinstance(values, np.ndarray)}


def _values_of(window: Part, name: str, texts: dict[str, int]) -> np.ndarray:
    values = window.arrays[name]
    assert isinstance(values, np.ndarray)
    if name not in _OF_TEXTS:
        return values
    places = np.array([texts[text] for text in window.props["texts"]], np.int32)[values]
    return np.where(values < 0, np.int32(-1), places)


def activations_table(view: "View") -> Table:
    """A row for each place and token, in their order: norms, and what the place would predict."""
    activations = view.activations
    assert isinstance(activations, Activations)  # an activations view has them
    n_places, n_tokens = activations.norms.shape
    chosen = view.selection.token
    tokens = np.arange(n_tokens) if chosen is None else np.array([chosen.index])
    place, token = (indices.ravel() for indices in np.meshgrid(np.arange(n_places), tokens, indexing="ij"))
    columns = {
        "place": np.array(activations.places, object)[place],
        "position": token,
        "token": np.array([*activations.tokens.texts, ""], object)[:-1][token],
        "norm": activations.norms[place, token],
        "cosine to last": activations.cosines[place, token],
    }
    for name, values in activations.written.items():
        padded = np.concatenate([np.full((1, n_tokens), np.nan, np.float32), values])
        columns[f"written by {name}"] = padded[place, token]
    if activations.lens is not None:
        is_read = (token >= activations.first) & (token < activations.first + activations.count)
        at = np.where(is_read, token - activations.first, 0)
        best = activations.lens.ids[place, at, 0]
        texts = [
            activations.lens.names[int(token_id)] if is_known else ""
            for token_id, is_known in zip(best, is_read, strict=True)
        ]
        columns["prediction"] = np.array([*texts, ""], object)[:-1]
        columns["probability"] = np.where(is_read, np.exp(activations.lens.logprobs[place, at, 0]), np.nan)
        columns["rank of the last prediction"] = np.where(is_read, activations.lens.ranks[place, at] + 1.0, np.nan)
    return Table(columns)


def floats(values: np.ndarray) -> np.ndarray:
    """As they travel."""
    return np.ascontiguousarray(values, np.float32)


def plain(text: str) -> str:
    """Without halves of surrogate pairs, which some tokens are."""
    return text.encode("utf-8", "replace").decode()
