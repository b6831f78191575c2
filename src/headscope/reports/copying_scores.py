"""How well each head copies: measured where nothing but copying helps, and read from the weights."""

import contextlib

from headscope.analysis import copying, measure_all, repeated_tokens
from headscope.errors import HeadscopeError, InputError
from headscope.models import Model
from headscope.scores import Scores


def copying_scores(model: Model) -> dict[str, Scores]:
    """Induction where nothing but copying helps: random tokens given twice (Olsson et al., 2022)."""
    try:
        inputs = repeated_tokens(model, n_inputs=8, length=_length(model))
    except InputError:
        return {}
    traces = [model.run(repeated) for repeated in inputs]
    measures = measure_all(("induction", "duplicate_token"), traces)
    names = {"induction": "repeated_induction", "duplicate_token": "repeated_duplicate"}
    scores = {names[name]: measure for name, measure in measures.items()}
    with contextlib.suppress(HeadscopeError):  # a model whose weights it cannot follow is measured without
        scores["copying"] = copying(model)
    return scores


def _length(model: Model) -> int:
    """50 tokens, as is usual, unless the model is too short for two times that."""
    longest = getattr(model.config, "max_position_embeddings", None) or getattr(model.config, "n_positions", None)
    return min(50, (longest - 2) // 2) if longest else 50
