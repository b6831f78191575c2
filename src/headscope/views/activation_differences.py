"""Activations of two runs, the first minus the second: for the page, as a table, and as what a figure draws.

The part `activations` of a difference has the arrays of both runs, on the tokens that both have, so that whoever draws
it subtracts, and can say what was subtracted: `a:norm` and `b:norm`, and likewise `cosine`, `attention`, `cross`,
`mlp` and `heads/L3`. Of the tokens from `first` on: `candidate` [place, token, candidate] with `a:logprob` and
`b:logprob`, the most changed first, −1 where there are no more; `predicted` [2, token], what the last place of
each run puts first, with `a:answer`, `b:answer` (log-probabilities) and `a:rank`, `b:rank`
[place, token, 2]; `neuron` [layer, token, k], the most changed first, with `a:value` and `b:value`.
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

_SIDES = ("a", "b")


def difference_part(difference: ActivationsDifference) -> Part:
    """Both runs, for the page."""
    arrays: dict[str, np.ndarray | Coded] = {}
    for side in _SIDES:
        activations = getattr(difference, side)
        arrays |= {f"{side}:norm": floats(activations.norms), f"{side}:cosine": floats(activations.cosines)}
        arrays |= {f"{side}:{name}": floats(activations.written[name]) for name in difference.written}
        arrays |= {f"{side}:heads/{site}": floats(activations.heads[site]) for site in difference.heads}
        if activations.values is not None:
            arrays[f"{side}:value"] = floats(activations.values)
    if difference.a.neurons is not None:
        arrays["neuron"] = difference.a.neurons.astype(np.int32)
    texts: list[str] = []
    if (lens := difference.lens) is not None:
        ids = sorted(lens.names)
        texts = [plain(lens.names[token_id]) for token_id in ids]
        places = np.searchsorted(np.array(ids), lens.ids).astype(np.int32)
        arrays["candidate"] = np.where(lens.ids < 0, -1, places).astype(np.int32)
        arrays["predicted"] = np.searchsorted(np.array(ids), lens.answers).astype(np.int32)
        for run, side in enumerate(_SIDES):
            arrays[f"{side}:logprob"] = floats(getattr(lens, side))
            arrays[f"{side}:answer"] = floats(np.moveaxis(lens.answer_logprobs[:, run], 0, -1))
            arrays[f"{side}:rank"] = np.ascontiguousarray(np.moveaxis(lens.answer_ranks[:, run], 0, -1), np.int32)
    props = ActivationsProps(
        stack=difference.stack,
        places=difference.places,
        layers=[str(site) for site in difference.layers],
        first=difference.first,
        count=difference.count,
        texts=texts,
        n_neurons=difference.n_neurons,
        is_sum=difference.is_sum,
        no_lens=difference.no_lens,
        no_neurons=difference.no_neurons,
        no_written=difference.no_written,
    )
    return Part("activations", props, arrays)


def followed_candidate(lens: LensDifference, whose: Whose) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The candidate that a view follows in each cell, and its log-probability in both runs [place, token]: the one
    whose probability differs most, or what the first or the second run answers in the end."""
    if whose == "either":
        return lens.ids[..., 0], lens.a[..., 0], lens.b[..., 0]
    answer = int(whose == "B")
    ids = np.broadcast_to(lens.answers[answer], lens.ids.shape[:2])
    return ids, lens.answer_logprobs[answer, 0], lens.answer_logprobs[answer, 1]


def difference_table(view: "View") -> Table:
    """A row for each place and token, in their order: A, B and A − B of everything."""
    difference = view.activations
    assert isinstance(difference, ActivationsDifference)
    n_places, n_tokens = difference.norms.shape
    chosen = view.selection.token
    tokens = np.arange(n_tokens) if chosen is None else np.array([chosen.index])
    place, token = (indices.ravel() for indices in np.meshgrid(np.arange(n_places), tokens, indexing="ij"))
    columns = {
        "place": np.array(difference.places, object)[place],
        "position": token,
        "token": np.array([*difference.tokens.texts, ""], object)[:-1][token],
    }
    columns |= _three("norm", difference.a.norms[place, token], difference.b.norms[place, token])
    columns |= _three("cosine to last", difference.a.cosines[place, token], difference.b.cosines[place, token])
    for name in difference.written:
        nothing = np.full((1, n_tokens), np.nan, np.float32)
        first_and_second = [np.concatenate([nothing, side.written[name]]) for side in (difference.a, difference.b)]
        columns |= _three(f"written by {name}", first_and_second[0][place, token], first_and_second[1][place, token])
    if difference.lens is not None:
        is_read = (token >= difference.first) & (token < difference.first + difference.count)
        at = np.where(is_read, token - difference.first, 0)
        ids, first, second = (cells[place, at] for cells in followed_candidate(difference.lens, view.selection.whose))
        texts = [difference.lens.names[int(id)] if known else "" for id, known in zip(ids, is_read, strict=True)]
        columns["prediction"] = np.array([*texts, ""], object)[:-1]
        columns |= _three("log-probability", np.where(is_read, first, np.nan), np.where(is_read, second, np.nan))
    return Table(columns)


def _three(name: str, first: np.ndarray, second: np.ndarray) -> dict[str, np.ndarray]:
    return {f"{name} A": first, f"{name} B": second, f"{name} A − B": first - second}
