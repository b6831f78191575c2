"""Jain & Wallace's tests on a trained classifier: rank agreement, permutations, and adversaries for each text.

The tests themselves are those of `headscope.faithfulness`; here a classifier is put in their terms.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from headscope.faithfulness.adversary import AdversaryOptions, adversaries
from headscope.faithfulness.attention_rows import AttentionRows
from headscope.faithfulness.kendall_tau import rank_agreement
from headscope.faithfulness.output_changes import median_change, permutation_changes
from headscope.faithfulness.studies.sentiment_data import SentimentData, TextBatch
from headscope.faithfulness.studies.stack_parts import Parameters
from headscope.faithfulness.studies.stacked_classifier import answer, classify
from headscope.faithfulness.token_importance import gradient_times_input, leave_one_out
from headscope.progress import Cancel, OnProgress, Steps

_LEVEL = 0.05


def classifier_tests(
    parameters: Parameters,
    data: SentimentData,
    *,
    n_texts: int,
    n_permutations: int = 100,
    adversary: AdversaryOptions | None = None,
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> list[dict[str, Any]]:
    """A line for each of the first test texts: τ-b of attention (the mean of heads) with gradient × input and with
    leave-one-out, and of those two with each other (None where there is nothing to rank, with the reason), the median
    change under permutation, and, with `adversary`, the largest JSD at almost the same answer.
    """
    lines: list[dict[str, Any]] = []
    steps = Steps("testing texts", min(n_texts, len(data.test)), progress, cancel)
    for batch in data.all_batches(data.test, n_texts, batch_size=32):
        lines += _batch_lines(parameters, batch, n_permutations, adversary)
        steps.add(len(batch.places))
    return lines


def _batch_lines(
    parameters: Parameters, batch: TextBatch, n_permutations: int, adversary: AdversaryOptions | None
) -> list[dict[str, Any]]:
    with torch.no_grad():
        classified = classify(parameters, batch.inputs, batch.mask, batch.attended)
        before = _two_classes(classified.logits[0].sigmoid())
    attention, words = classified.attention[0], batch.attended  # [text, row, word]
    gradient, without = _gradient(parameters, batch, attention), _without_each(parameters, batch)
    importance = {"gradient": gradient, "leave_one_out": leave_one_out(before, without)}
    rows = AttentionRows(attention, words[:, None].expand_as(attention))
    weights = rows.weights.cpu()
    ranked = {name: (weights, values.cpu()) for name, values in importance.items()}
    ranked["gradient_with_leave_one_out"] = (ranked["gradient"][1], ranked["leave_one_out"][1])
    agreements = {name: rank_agreement(*values, words.cpu()) for name, values in ranked.items()}
    respond = _answers(parameters, classified.states)
    changes = median_change(permutation_changes(rows, respond, n=n_permutations, before=before))
    columns: dict[str, list] = {
        "place": list(batch.places),
        "predicted": (before[:, 1] > 0.5).int().tolist(),
        "words": words.sum(1).tolist(),
        "largest_weight": weights.amax(1).tolist(),
        "permutation": changes.tolist(),
    }
    for name, agreement in agreements.items():
        columns |= {f"tau_{name}": _values(agreement.tau), f"p_{name}": _values(agreement.p)}
    columns["reason"] = list(agreements["gradient"].reasons)
    if adversary is not None:
        found_patterns = adversaries(rows, respond, adversary, before=before)
        is_same = found_patterns.change <= adversary.epsilon
        best = torch.where(is_same, found_patterns.divergence, -1.0).argmax(0)
        change = found_patterns.change.gather(0, best[None])[0]
        columns["adversary_jsd"] = found_patterns.epsilon_max_divergence.tolist()
        columns["adversary_tvd"] = torch.where(is_same.any(0), change, 0.0).tolist()
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def summary(lines: list[dict[str, Any]], name: str, predicted: int | None = None) -> dict[str, float]:
    """The mean and deviation of a τ-b over texts (of a predicted class), and the share with p ≤ .05."""
    taus = torch.tensor([
        [line[f"tau_{name}"], line[f"p_{name}"]]
        for line in lines
        if line[f"tau_{name}"] is not None and predicted in (None, line["predicted"])
    ])  # fmt: skip
    if not len(taus):
        return {"mean": float("nan"), "deviation": float("nan"), "significant": float("nan"), "texts": 0}
    deviation = float(taus[:, 0].std(correction=0))
    significant = float((taus[:, 1] <= _LEVEL).float().mean())
    return {"mean": float(taus[:, 0].mean()), "deviation": deviation, "significant": significant, "texts": len(taus)}


def _gradient(parameters: Parameters, batch: TextBatch, attention: Tensor) -> Tensor:
    """|input × gradient| of each word with attention held fixed [text, word]."""
    embeddings = batch.inputs.clone().requires_grad_()
    with torch.enable_grad():
        classified = classify(parameters, embeddings, batch.mask, batch.attended, attention[None])
        return gradient_times_input(classified.logits[0].sigmoid(), embeddings)


@torch.no_grad()
def _without_each(parameters: Parameters, batch: TextBatch) -> Tensor:
    """The answer when each word is deleted [text, word, class]; where there is no word, the answer as it is."""
    answers = _two_classes(classify(parameters, batch.inputs, batch.mask, batch.attended).logits[0].sigmoid())
    without = answers[:, None].expand(-1, batch.mask.shape[1], -1).clone()
    length = batch.mask.shape[1]
    for text in range(len(batch.places)):
        places = batch.attended[text].nonzero().flatten()
        if len(places) < 2:
            continue
        others = torch.arange(length - 1, device=places.device)[None].expand(len(places), -1)
        others = others + (others >= places[:, None])  # every position but that of the word
        inputs, mask = batch.inputs[text][others], batch.mask[text][others]
        shorter = TextBatch(inputs, mask, batch.labels[text].expand(len(places)), ())
        logits = classify(parameters, inputs, mask, shorter.attended).logits[0]
        without[text, places] = _two_classes(logits.sigmoid())
    return without


def _answers(parameters: Parameters, states: Tensor) -> Callable[[Tensor], Tensor]:
    """Patterns [copy, text, row, word] to the probabilities of both classes, the states of the encoder as they are."""
    frozen = {name: tensor.detach() for name, tensor in parameters.items()}

    def respond(patterns: Tensor) -> Tensor:
        copies, texts = patterns.shape[:2]
        weights = patterns.flatten(0, 1)[None]
        repeated = states[0].detach()[None].expand(copies, -1, -1, -1).reshape(1, copies * texts, *states.shape[2:])
        return _two_classes(answer(frozen, repeated, weights)[0].sigmoid()).view(copies, texts, 2)

    return respond


def _two_classes(probability: Tensor) -> Tensor:
    return torch.stack([1 - probability, probability], -1)


def _values(numbers: Tensor) -> list[float | None]:
    """Numbers for JSON: None for NaN."""
    return [None if number != number else number for number in numbers.tolist()]
