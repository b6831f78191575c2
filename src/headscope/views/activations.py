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


def activations_part(found: Activations) -> Part:
    """Norms of all tokens; lens, neurons and heads of those that were read."""
    arrays: dict[str, np.ndarray | Coded] = {"norm": floats(found.norms), "cosine": floats(found.cosines)}
    arrays |= {name: floats(one) for name, one in found.written.items()}
    texts: list[str] = []
    if found.lens is not None:
        known = sorted(found.lens.names)
        texts = [plain(found.lens.names[one]) for one in known]
        arrays["lens"] = np.searchsorted(np.array(known), found.lens.ids).astype(np.int32)
        arrays["logprob"], arrays["answer"] = floats(found.lens.logprobs), floats(found.lens.answers)
        arrays["rank"] = found.lens.ranks.astype(np.int32)
    if found.neurons is not None and found.values is not None and found.shares is not None:
        arrays["neuron"] = found.neurons.astype(np.int32)
        arrays["value"], arrays["share"] = floats(found.values), floats(found.shares)
    arrays |= {f"heads/{site}": floats(one) for site, one in found.heads.items()}
    props = ActivationsProps(
        stack=found.stack,
        places=found.places,
        layers=[str(site) for site in found.layers],
        first=found.first,
        count=found.count,
        texts=texts,
        n_neurons=found.n_neurons,
        is_sum=found.is_sum,
        no_lens=found.no_lens,
        no_neurons=found.no_neurons,
        no_written=found.no_written,
    )
    return Part("activations", props, arrays)


def joined(windows: Sequence[Part]) -> Part:
    """Parts of one stack, each of some tokens, as one: of those that follow each other, as many as possible, if there
    is a choice with the last one.

    Props and arrays are as they were read off the wire; parts that hold other numbers than the last one are left out.
    """
    alike = [one for one in windows if _depths(one) == _depths(windows[-1])]
    by_first = {one.props["first"]: one for one in alike if one.props["count"]}
    best: list[Part] = []
    for first in sorted(by_first):
        run = [by_first[first]]
        while (end := run[-1].props["first"] + run[-1].props["count"]) in by_first:
            run.append(by_first[end])
        best = max(best, run, key=lambda some: (_count(some), any(one is windows[-1] for one in some)))
    if len(best) < 2:
        return (best or list(windows))[0]
    texts: dict[str, int] = {}
    for one in best:
        for text in one.props["texts"]:
            texts.setdefault(text, len(texts))
    arrays = dict(best[0].arrays)
    for name in arrays:
        own = name.rpartition(":")[2]  # of two runs, `one:logprob` and `other:logprob`
        if own in _OF_SOME or own.startswith("heads/"):
            arrays[name] = np.concatenate([_own(one, name, texts) for one in best], axis=1)
    return Part("activations", best[0].props | {"count": _count(best), "texts": list(texts)}, arrays)


# What belongs to single tokens, [row, token, …]; and what of it counts in `texts`, −1 for none.
_OF_SOME = ("lens", "candidate", "predicted", "logprob", "answer", "rank", "neuron", "value", "share")
_OF_TEXTS = ("lens", "candidate", "predicted")


def _count(windows: Sequence[Part]) -> int:
    return sum(one.props["count"] for one in windows)


def _depths(window: Part) -> dict[str, tuple[int, ...]]:
    """What it has of each token: so many candidates, so many neurons."""
    return {name: values.shape[2:] for name, values in window.arrays.items() if isinstance(values, np.ndarray)}


def _own(window: Part, name: str, texts: dict[str, int]) -> np.ndarray:
    values = window.arrays[name]
    assert isinstance(values, np.ndarray)
    if name not in _OF_TEXTS:
        return values
    places = np.array([texts[one] for one in window.props["texts"]], np.int32)[values]
    return np.where(values < 0, np.int32(-1), places)


def activations_table(view: "View") -> Table:
    """A row for each place and token, in their order: norms, and what the place would predict."""
    found = view.activations
    assert isinstance(found, Activations)  # an activations view has them
    n_places, n_tokens = found.norms.shape
    chosen = view.selection.token
    tokens = np.arange(n_tokens) if chosen is None else np.array([chosen.index])
    place, token = (one.ravel() for one in np.meshgrid(np.arange(n_places), tokens, indexing="ij"))
    columns = {
        "place": np.array(found.places, object)[place],
        "position": token,
        "token": np.array([*found.tokens.texts, ""], object)[:-1][token],
        "norm": found.norms[place, token],
        "cosine to last": found.cosines[place, token],
    }
    for name, values in found.written.items():
        padded = np.concatenate([np.full((1, n_tokens), np.nan, np.float32), values])
        columns[f"written by {name}"] = padded[place, token]
    if found.lens is not None:
        is_read = (token >= found.first) & (token < found.first + found.count)
        at = np.where(is_read, token - found.first, 0)
        best = found.lens.ids[place, at, 0]
        texts = [found.lens.names[int(one)] if known else "" for one, known in zip(best, is_read, strict=True)]
        columns["prediction"] = np.array([*texts, ""], object)[:-1]
        columns["probability"] = np.where(is_read, np.exp(found.lens.logprobs[place, at, 0]), np.nan)
        columns["rank of the last prediction"] = np.where(is_read, found.lens.ranks[place, at] + 1.0, np.nan)
    return Table(columns)


def floats(values: np.ndarray) -> np.ndarray:
    """As they travel."""
    return np.ascontiguousarray(values, np.float32)


def plain(text: str) -> str:
    """Without halves of surrogate pairs, which some tokens are."""
    return text.encode("utf-8", "replace").decode()
