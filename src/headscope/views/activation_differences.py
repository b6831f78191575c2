"""Activations of two runs, the first minus the second: for the page, as a table, and as what a figure draws.

The part `activations` of a difference has the arrays of both runs, on the tokens that both have, so that whoever draws
it subtracts, and can say what was subtracted: `one:norm` and `other:norm`, and likewise `cosine`, `attention`, `cross`,
`mlp` and `heads/L3`. Of the tokens from `first` on: `candidate` [place, token, candidate] with `one:logprob` and
`other:logprob`, the most changed first, −1 where there are no more; `predicted` [2, token], what the last place of
each run puts first, with `one:answer`, `other:answer` (log-probabilities) and `one:rank`, `other:rank`
[place, token, 2]; `neuron` [layer, token, k], the most changed first, with `one:value` and `other:value`.
"""

from typing import TYPE_CHECKING

import numpy as np

from headscope.choices import Whose
from headscope.traces.activations_difference import ActivationsDifference, LensDifference
from headscope.views.activations import floats, plain
from headscope.views.contract import ActivationsProps
from headscope.views.table import Table
from headscope.views.wire import Coded, Part

if TYPE_CHECKING:
    from headscope.views.view import View

_SIDES = ("one", "other")


def difference_part(found: ActivationsDifference) -> Part:
    """Both runs, for the page."""
    arrays: dict[str, np.ndarray | Coded] = {}
    for side in _SIDES:
        own = getattr(found, side)
        arrays |= {f"{side}:norm": floats(own.norms), f"{side}:cosine": floats(own.cosines)}
        arrays |= {f"{side}:{name}": floats(own.written[name]) for name in found.written}
        arrays |= {f"{side}:heads/{site}": floats(own.heads[site]) for site in found.heads}
        if own.values is not None:
            arrays[f"{side}:value"] = floats(own.values)
    if found.one.neurons is not None:
        arrays["neuron"] = found.one.neurons.astype(np.int32)
    texts: list[str] = []
    if (lens := found.lens) is not None:
        known = sorted(lens.names)
        texts = [plain(lens.names[one]) for one in known]
        places = np.searchsorted(np.array(known), lens.ids).astype(np.int32)
        arrays["candidate"] = np.where(lens.ids < 0, -1, places).astype(np.int32)
        arrays["predicted"] = np.searchsorted(np.array(known), lens.answers).astype(np.int32)
        for run, side in enumerate(_SIDES):
            arrays[f"{side}:logprob"] = floats(getattr(lens, side))
            arrays[f"{side}:answer"] = floats(np.moveaxis(lens.answer_logprobs[:, run], 0, -1))
            arrays[f"{side}:rank"] = np.ascontiguousarray(np.moveaxis(lens.answer_ranks[:, run], 0, -1), np.int32)
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


def followed(lens: LensDifference, whose: Whose) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The candidate that a view follows in each cell, and its log-probability in both runs [place, token]: the one
    whose probability differs most, or what the first or the second run answers in the end."""
    if whose == "either":
        return lens.ids[..., 0], lens.one[..., 0], lens.other[..., 0]
    answer = int(whose == "B")
    ids = np.broadcast_to(lens.answers[answer], lens.ids.shape[:2])
    return ids, lens.answer_logprobs[answer, 0], lens.answer_logprobs[answer, 1]


def difference_table(view: "View") -> Table:
    """A row for each place and token, in their order: A, B and A − B of everything."""
    found = view.activations
    assert isinstance(found, ActivationsDifference)
    n_places, n_tokens = found.norms.shape
    chosen = view.selection.token
    tokens = np.arange(n_tokens) if chosen is None else np.array([chosen.index])
    place, token = (one.ravel() for one in np.meshgrid(np.arange(n_places), tokens, indexing="ij"))
    columns = {
        "place": np.array(found.places, object)[place],
        "position": token,
        "token": np.array([*found.tokens.texts, ""], object)[:-1][token],
    }
    columns |= _three("norm", found.one.norms[place, token], found.other.norms[place, token])
    columns |= _three("cosine to last", found.one.cosines[place, token], found.other.cosines[place, token])
    for name in found.written:
        nothing = np.full((1, n_tokens), np.nan, np.float32)
        both = [np.concatenate([nothing, side.written[name]]) for side in (found.one, found.other)]
        columns |= _three(f"written by {name}", both[0][place, token], both[1][place, token])
    if found.lens is not None:
        is_read = (token >= found.first) & (token < found.first + found.count)
        at = np.where(is_read, token - found.first, 0)
        ids, one, other = (one[place, at] for one in followed(found.lens, view.selection.whose))
        texts = [found.lens.names[int(id)] if known else "" for id, known in zip(ids, is_read, strict=True)]
        columns["prediction"] = np.array([*texts, ""], object)[:-1]
        columns |= _three("log-probability", np.where(is_read, one, np.nan), np.where(is_read, other, np.nan))
    return Table(columns)


def _three(name: str, one: np.ndarray, other: np.ndarray) -> dict[str, np.ndarray]:
    return {f"{name} A": one, f"{name} B": other, f"{name} A − B": one - other}
