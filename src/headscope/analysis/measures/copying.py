"""Copying: whether a head writes what it reads, by its weights (after Olsson et al., 2022, "copying score").

An induction head finds what followed last time; that it also makes it more likely is another matter, and needs the
weights: what each head adds to the logits directly, its output through W_O and the unembedding.
"""

import torch
from torch import Tensor

from headscope.analysis.measures.measure import scores_of
from headscope.analysis.measures.repeated_tokens import repeated_tokens
from headscope.errors import InputError
from headscope.models import Model
from headscope.models.layout import AttentionLayer
from headscope.models.output_projection import OutputProjection
from headscope.runs.measure import Sample
from headscope.scores import Scores
from headscope.sites import Head


def copying(model: Model, *, n_inputs: int = 8, length: int = 25, seed: int = 0) -> Scores:
    """Of all that a head raises the logits of the tokens in sight, the share of those it attends to.

    On random tokens, none twice. Logits are counted above their mean over the vocabulary, and only where they are
    raised; the last normalisation is left out, but for its gain. From 0 to 1, chance one in as many as are in sight.
    The paper then stretches a ratio of its own to [−1, 1]; this is the plain share.
    """
    table = _unembedding(model)
    samples_by_head: dict[Head, list[Sample]] = {}
    for inputs in repeated_tokens(model, n_inputs=n_inputs, length=length, n_repeats=1, seed=seed):
        trace = model.run(inputs)
        ids = inputs.model_inputs["input_ids"]
        ordinary = ids.shape[0] - length
        columns = (table[ids[ordinary:]] - table.mean(0)).T  # [model, token]
        for layer in model.layout.layers:
            written = _output(model, layer)
            mixed = torch.stack([trace.tensor("mixed", layer.site.head(at)) for at in range(layer.n_heads)]).float()
            raised = (mixed[:, ordinary:] @ written) @ columns  # [head, query, token]
            pattern = trace.patterns(layer.site)[:, ordinary:, ordinary:]
            for at, sample in enumerate(copying_samples(pattern, raised)):
                samples_by_head.setdefault(layer.site.head(at), []).append(sample)
    return scores_of("copying", samples_by_head, n_inputs, {"length": length, "seed": seed})


def copying_samples(pattern: Tensor, effects: Tensor) -> list[Sample]:
    """Σ_j a_ij r_ij / Σ_j r_ij of every query, r being what it raises of the tokens up to itself [head, query, key]."""
    raised = effects.clamp_min(0).tril().double()
    share = (pattern.double() * raised).sum(-1) / raised.sum(-1).clamp_min(1e-30)
    n_queries = pattern.shape[1]
    even = pattern.double().tril().sum(-1) / torch.arange(1, n_queries + 1)
    return [
        Sample(float(total), float(n_queries), float(other))
        for total, other in zip(share.sum(1), even.sum(1), strict=True)
    ]


def _unembedding(model: Model) -> Tensor:
    """The rows of the unembedding, the gain of the last normalisation taken in [token, model]."""
    read = getattr(model.module, "get_output_embeddings", lambda: None)()
    weight = getattr(read, "weight", None)
    if not isinstance(weight, Tensor) or not weight.is_floating_point():
        raise InputError(f"{model.name} has no unembedding to read: copying is for language models.")
    table = weight.detach().float().cpu()
    gains = [getattr(model.module.get_submodule(name), "weight", None) for name in model.layout.lens]
    for gain in gains:
        if isinstance(gain, Tensor) and gain.ndim == 1 and len(gain) == table.shape[1]:
            table = table * gain.detach().float().cpu()
    return table


def _output(model: Model, layer: AttentionLayer) -> Tensor:
    """W_O of each head [head, dim, model]."""
    if layer.out_projection is None:
        raise InputError(f"no output projection was found for {layer.site}: copying needs it.")
    module = model.module.get_submodule(layer.out_projection)
    projection = OutputProjection(module, layer.n_heads * layer.value_dim, model.dtype)
    if projection.reason:
        raise InputError(f"copying needs the weights that {layer.site} writes with: {projection.reason}.")
    return projection.matrix().T.cpu().unflatten(0, (layer.n_heads, layer.value_dim))
