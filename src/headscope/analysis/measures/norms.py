"""Value-weighted attention: weight × ‖value · W_O‖, what a key really adds (Kobayashi et al., 2020, section 2.3)."""

import numpy as np
import torch
from torch import Tensor

from headscope.analysis.measures.content_rows import once_per_batch, rows
from headscope.analysis.measures.targets import places_of
from headscope.errors import NotRecordedError
from headscope.runs import Layer, Refusal
from headscope.runs.measure import Tallies


def norm(layer: Layer) -> Tallies:
    """Σ_j a_ij ‖f(x_j)‖, the mean over queries; chance is even attention to all that they see."""
    norms = _norms(layer)
    if isinstance(norms, Refusal):
        yield norms
        return
    queries = layer.plain_queries
    means = norms.cumsum(-1) if layer.is_causal else norms.sum(-1, keepdim=True)
    seen = queries / layer.visible.clamp_min(1)
    yield layer.tally((rows(layer).received * norms).sum(-1), queries.sum(-1), (means * seen[:, None]).sum(-1))


def norm_share(layer: Layer, keys: str) -> Tallies:
    """Of all that, the share of the first token, of special tokens or of marks. Small beside the share of the weight
    where a head parks its attention. Chance is the share of these keys among all that queries see.
    """
    norms = _norms(layer)
    if isinstance(norms, Refusal):
        yield norms
        return
    chosen: Tensor = once_per_batch(layer, f"norm {keys}", lambda: _CHOSEN[keys](layer))
    if not chosen.any():
        return
    added = rows(layer).received * norms
    whole = added.sum(-1)

    def even() -> Tensor:
        count = chosen.cumsum(-1) if layer.is_causal else chosen.sum(-1, keepdim=True)
        queries = layer.plain_queries
        return (queries * count / layer.visible.clamp_min(1)).sum(-1) / queries.sum(-1).clamp_min(1)

    share = once_per_batch(layer, f"even norm {keys}", even)
    yield layer.tally((added * chosen[:, None]).sum(-1), whole, whole * share[:, None])


def _norms(layer: Layer) -> Tensor | Refusal:
    """‖f(x_j)‖ of real keys [example, head, key]; padded ones have no weight, but would count for chance."""
    try:
        return layer.value_norms() * layer.keys[:, None]
    except NotRecordedError as problem:
        return Refusal(str(problem))


def _first(layer: Layer) -> Tensor:
    return torch.zeros_like(layer.keys).index_fill_(1, torch.tensor([0], device=layer.keys.device), True)


def _special(layer: Layer) -> Tensor:
    return layer.keys & ~layer.plain_keys


def _marks(layer: Layer) -> Tensor:
    marks = np.zeros(layer.keys.shape, dtype=bool)
    for row, tokens in enumerate(layer.batch.tokens(layer.key_stack)[layer.rows]):
        row_marks = places_of(tokens, tokens, False).marks[: marks.shape[1]]
        marks[row, : len(row_marks)] = row_marks
    return torch.from_numpy(marks).to(layer.keys.device)


_CHOSEN = {"first": _first, "special": _special, "punctuation": _marks}
