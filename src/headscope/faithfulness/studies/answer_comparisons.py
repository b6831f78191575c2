"""Attention of models of other seeds, and of single answers: how alike it is, and how far it can go."""

import itertools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from headscope.attention.divergence import jensen_shannon, total_variation
from headscope.faithfulness.adversary import AdversaryOptions, adversaries, epsilon_max
from headscope.faithfulness.attention_rows import AttentionRows
from headscope.faithfulness.output_changes import median_change, permutation_changes, replacement_change
from headscope.faithfulness.replacements import permuted
from headscope.faithfulness.studies.answer_data import AnswerBatch, AnswerData
from headscope.faithfulness.studies.answer_tasks import Answers, answers
from headscope.faithfulness.studies.stack_parts import Parameters
from headscope.faithfulness.studies.stacked_tagger import encode_below, read_answers
from headscope.faithfulness.studies.tagger_tasks import TaggerOptions
from headscope.progress import Cancel, OnProgress, Steps

_REPLACED = ("uniform", "no_attention")
_N_PERMUTATIONS = 20


@torch.no_grad()
def compare_seeds(bases: Parameters, data: AnswerData, options: TaggerOptions) -> list[dict[str, Any]]:
    """A line for each pair of seeds, means over the answers of the test set.

    `jsd` compares the rows of heads, paired so that they are closest; `jsd_numbered` head 0 with head 0, and so on;
    `jsd_mean` the means over heads. `chance` is `jsd` with the second model's weights in another order. `top1` is the
    share of answers whose largest weight (mean of heads) is on the same token, `tvd` the distance of the answers.
    """
    sums: dict[tuple[int, int], list[Tensor]] = {}
    n_answers = 0
    for batch in data.all_batches("test"):
        own = answers(bases, batch, options)
        n_answers += len(batch.labels)
        for pair in itertools.combinations(range(len(own.logits)), 2):
            parts = _pair_sums(own, *pair)
            sums[pair] = [before + part for before, part in zip(sums.get(pair, [0.0] * len(parts)), parts, strict=True)]
    return [
        {"first": first, "second": second, **_pair_figures([total / n_answers for total in totals])}
        for (first, second), totals in sums.items()
    ]


@torch.no_grad()
def closest_divergence(
    parameters: Parameters, bases: Parameters, of: Sequence[int], data: AnswerData, options: TaggerOptions
) -> list[float]:
    """The JSD of each model's rows from those of its base in the stack `bases`, as `jsd` in `compare_seeds`: the mean
    over the answers of the test set.
    """
    sums: list[Any] = [0.0] * len(of)
    n_answers = 0
    for batch in data.all_batches("test"):
        own, base = answers(parameters, batch, options), answers(bases, batch, options)
        n_answers += len(batch.labels)
        for model, place in enumerate(of):
            sums[model] = sums[model] + _between_heads(own.rows(model), base.rows(place))
    return [_closest(total.cpu() / n_answers) for total in sums]


def answer_adversaries(
    parameters: Parameters,
    data: AnswerData,
    options: TaggerOptions,
    adversary: AdversaryOptions,
    *,
    levels: Sequence[float],
    n_texts: int,
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> list[dict[str, Any]]:
    """For each level of change, how far the rows of one answer can go when it changes by at most that, the model as it
    is: `jsd` and `reachable`, means over answers, one of each of so many test texts (chosen at random, always alike).
    """
    columns: list[Tensor] = []
    texts = _single_answers(data, n_texts)
    steps = Steps("adversaries of answers", len(texts), progress, cancel)
    for batch in texts:
        own, respond = _answer_function(parameters, batch, options)
        outcome = adversaries(own.rows(), respond, adversary, before=own.logits[0].softmax(-1), cancel=cancel)
        far = [epsilon_max(outcome.divergence, outcome.change, level) for level in levels]
        columns.append(torch.stack([*far, outcome.reachable]).cpu())
        steps.add()
    means = torch.cat(columns, 1).mean(1).tolist()
    return [
        {"level": level, "jsd": mean, "reachable": means[-1]} for level, mean in zip(levels, means[:-1], strict=True)
    ]


@torch.no_grad()
def answer_needs(parameters: Parameters, data: AnswerData, options: TaggerOptions, *, n_texts: int) -> dict[str, float]:
    """How far answers change when their rows are replaced, means over the answers of `answer_adversaries`: by
    "uniform" rows, by "no_attention", and "permuted" (the median of 20 orders).
    """
    columns: list[Tensor] = []
    for batch in _single_answers(data, n_texts):
        own, respond = _answer_function(parameters, batch, options)
        rows, before = own.rows(), own.logits[0].softmax(-1)
        replaced = [replacement_change(rows, respond, kind, before=before) for kind in _REPLACED]
        permuted_rows = median_change(permutation_changes(rows, respond, n=_N_PERMUTATIONS, before=before))
        columns.append(torch.stack([*replaced, permuted_rows]).cpu())
    means = torch.cat(columns, 1).mean(1).tolist()
    return dict(zip((*_REPLACED, "permuted"), means, strict=True))


def _answer_function(parameters: Parameters, batch: AnswerBatch, options: TaggerOptions) -> tuple[Answers, "_Respond"]:
    """The answers of a batch with one of each text, and how they follow from other rows."""
    with torch.no_grad():
        own = answers(parameters, batch, options)
        stream = encode_below(parameters, batch.inputs, batch.mask, n_heads=options.n_heads)
    return own, _Respond(parameters, stream.view(1, *batch.mask.shape, -1), batch.tokens)


class _Respond:
    """Rows [copy, answer, head, key] to the probabilities [copy, answer, class], what the layer reads as it is."""

    def __init__(self, parameters: Parameters, stream: Tensor, tokens: Tensor):
        self.parameters = {name: tensor.detach() for name, tensor in parameters.items()}
        self.stream, self.tokens = stream.detach(), tokens

    def __call__(self, patterns: Tensor) -> Tensor:
        copies, n_answers = patterns.shape[:2]
        stream = self.stream.expand(copies, -1, -1, -1).flatten(0, 1)[None]
        logits = read_answers(self.parameters, stream, self.tokens.repeat(copies), patterns.flatten(0, 1)[None])
        return logits[0].softmax(-1).unflatten(0, (copies, n_answers))


def _single_answers(data: AnswerData, n_texts: int) -> list[AnswerBatch]:
    """One answer of each of the test texts, up to so many texts, in batches of like length."""
    generator = torch.Generator().manual_seed(0)
    total = data.n_texts["test"]
    chosen = torch.zeros(total, dtype=torch.bool)
    chosen[torch.randperm(total, generator=generator)[:n_texts]] = True
    batches, place = [], 0
    for batch in data.all_batches("test"):
        n_here = len(batch.mask)
        texts = chosen[place : place + n_here].nonzero().flatten()
        place += n_here
        own = batch.texts.cpu()
        answers_of = [(own == text).nonzero().flatten() for text in texts.tolist()]
        draws = [torch.randint(len(places), (1,), generator=generator) for places in answers_of]
        if answers_of:
            picked = torch.cat([places[draw] for places, draw in zip(answers_of, draws, strict=True)])
            picked, rows = picked.to(batch.mask.device), texts.to(batch.mask.device)
            order = torch.arange(len(rows), device=rows.device)
            batches.append(
                AnswerBatch(batch.inputs[rows], batch.mask[rows], batch.labels[picked], order, batch.tokens[picked])
            )
    return batches


def _pair_sums(own: Answers, first: int, second: int) -> list[Tensor]:
    """Sums over answers: the divergences between heads [head, head], of the means of heads, between heads with the
    second's weights in another order, same first tokens, and changes of the answers.
    """
    rows, others = own.rows(first), own.rows(second)
    shuffled = AttentionRows(permuted(others, torch.Generator().manual_seed(0)), others.visible)
    weights, other_weights = rows.pattern.mean(1), others.pattern.mean(1)
    chances = [own.logits[model].softmax(-1) for model in (first, second)]
    return [
        _between_heads(rows, others),
        jensen_shannon(weights, other_weights).sum(),
        _between_heads(rows, shuffled),
        (weights.argmax(-1) == other_weights.argmax(-1)).double().sum(),
        total_variation(*chances).sum(),
    ]


def _between_heads(rows: AttentionRows, others: AttentionRows) -> Tensor:
    return jensen_shannon(rows.pattern[:, :, None], others.pattern[:, None]).sum(0).double()


def _pair_figures(means: list[Tensor]) -> dict[str, float]:
    between, of_means, shuffled, top1, tvd = (mean.cpu() for mean in means)
    return {
        "jsd": _closest(between),
        "jsd_numbered": float(between.diagonal().mean()),
        "jsd_mean": float(of_means),
        "chance": _closest(shuffled),
        "top1": float(top1),
        "tvd": float(tvd),
    }


def _closest(between: Tensor) -> float:
    """The mean over pairs of heads, [head, head], when each has a partner so that the mean is least."""
    heads = range(len(between))
    return min(float(between[heads, partners].mean()) for partners in itertools.permutations(heads))
