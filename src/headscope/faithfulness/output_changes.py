"""How far the output moves when rows of attention are replaced or permuted: total variation, 0 to 1."""

import torch
from torch import Tensor

from headscope.attention.divergence import total_variation
from headscope.errors import InputError
from headscope.faithfulness.attention_rows import Answer, AttentionRows
from headscope.faithfulness.replacements import REPLACEMENTS, permuted

N_PERMUTATIONS = 100
"""Permutations of each row (Jain & Wallace, 2019)."""


def output_change(before: Tensor, after: Tensor, answered: Tensor | None = None) -> Tensor:
    """The total variation distance of outputs [..., batch], the mean over answers where there are several.

    `before` is [batch, class] or [batch, answer, class], `after` the same behind any number of axes of copies.

    >>> output_change(torch.tensor([[0.5, 0.5]]), torch.tensor([[[0.5, 0.5]], [[1.0, 0.0]]])).tolist()
    [[0.0], [0.5]]
    """
    change = total_variation(before, after)
    if before.ndim == 2:
        return change
    if answered is None:
        return change.mean(-1)
    counts = answered.to(change)
    return (change * counts).sum(-1) / counts.sum(-1).clamp_min(1.0)


def answer_as_is(rows: AttentionRows, answer: Answer) -> Tensor:
    """The output with the rows as they are [batch, …]."""
    return answer(rows.pattern[None])[0]


def replacement_change(rows: AttentionRows, answer: Answer, kind: str, *, before: Tensor | None = None) -> Tensor:
    """The change of the output under "uniform", "identity", "previous_token" or "no_attention" [batch]."""
    if kind not in REPLACEMENTS:
        raise InputError(f"there is no replacement {kind!r}: choose one of {', '.join(REPLACEMENTS)}.")
    before = answer_as_is(rows, answer) if before is None else before
    return output_change(before, answer(REPLACEMENTS[kind](rows)[None])[0], rows.answered)


def permutations(rows: AttentionRows, n: int, seed: int = 0) -> Tensor:
    """The rows in n random orders [copy, batch, row, key]; the same for the same seed."""
    if n < 1:
        raise InputError(f"the number of permutations is at least 1, got {n}.")
    generator = torch.Generator().manual_seed(seed)
    return torch.stack([permuted(rows, generator) for _ in range(n)])


def median_change(changes: Tensor) -> Tensor:
    """The median over copies [copy, ...]: of an even number the mean of the two in the middle.

    >>> median_change(torch.tensor([0.1, 0.4, 0.2, 0.9])).item()
    0.30000001192092896
    """
    return changes.quantile(0.5, dim=0)


def permutation_changes(
    rows: AttentionRows, answer: Answer, *, n: int = N_PERMUTATIONS, seed: int = 0, before: Tensor | None = None
) -> Tensor:
    """The change of the output under each of n permutations [copy, batch]; Jain and Wallace take the median."""
    before = answer_as_is(rows, answer) if before is None else before
    return output_change(before, answer(permutations(rows, n, seed)), rows.answered)
