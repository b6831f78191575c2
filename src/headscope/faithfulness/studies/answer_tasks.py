"""What the Transformers of the exclusiveness study learn: answers, or a base model's answers with other attention."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from headscope.attention.divergence import jensen_shannon, kullback_leibler_of_logs, total_variation
from headscope.faithfulness.adversary import reachable_divergence
from headscope.faithfulness.attention_rows import AttentionRows
from headscope.faithfulness.studies.answer_data import NO_ANSWER, AnswerBatch, AnswerData
from headscope.faithfulness.studies.stack_parts import Dropout, Parameters, no_dropout
from headscope.faithfulness.studies.stack_training import Rows
from headscope.faithfulness.studies.stacked_tagger import Drop, tag
from headscope.faithfulness.studies.tagger_tasks import TaggerOptions


class Answers(NamedTuple):
    """The answers of a batch: logits [model, answer, class], and the rows of the last layer by which their tokens
    attend: logarithms [model, answer, head, key]. `visible` [answer, key] is True for real tokens.
    """

    logits: Tensor
    log_rows: Tensor
    visible: Tensor

    def rows(self, model: int = 0) -> AttentionRows:
        """The rows of a model: those of an answer are its heads."""
        weights = self.log_rows[model].exp()
        return AttentionRows(weights, self.visible[:, None].expand_as(weights))


def answers(parameters: Parameters, batch: AnswerBatch, options: TaggerOptions, drop: Drop = no_dropout) -> Answers:
    """Run a stack on a batch."""
    tagged = tag(parameters, batch.inputs, batch.mask, n_heads=options.n_heads, drop=drop)
    assert tagged.log_pattern is not None
    log_rows = tagged.log_pattern.transpose(2, 3)[:, batch.texts, batch.tokens]
    return Answers(tagged.logits[:, batch.texts, batch.tokens], log_rows, batch.mask[batch.texts])


class GoldAnswers:
    """Models learn the gold answers; the epoch is chosen by accuracy on dev."""

    def __init__(self, data: AnswerData, options: TaggerOptions, *, seed: int = 0):
        self.data, self.options, self.seed = data, options, seed

    def batches(self, epoch: int) -> Sequence[AnswerBatch]:
        """The batches of an epoch."""
        return self.data.batches(self.options.batch_size, seed=self.seed, epoch=epoch)

    def losses(self, parameters: Parameters, batch: AnswerBatch, generator: torch.Generator) -> Tensor:
        """Cross-entropy of each model, the mean over answers."""
        logits = self.train_pass(parameters, batch, generator).logits
        labels = batch.labels.expand(len(logits), -1)
        total = cross_entropy(logits.transpose(1, 2), labels, ignore_index=NO_ANSWER, reduction="none").sum(1)
        return total / (labels[0] != NO_ANSWER).sum().clamp_min(1)

    def dev_scores(self, parameters: Parameters) -> Rows:
        """Figures on dev; the score is accuracy."""
        return [row | {"score": row["accuracy"]} for row in answer_figures(self, parameters, "dev")]

    def train_pass(self, parameters: Parameters, batch: AnswerBatch, generator: torch.Generator) -> Answers:
        """The stack on a batch, with dropout, in the precision of training."""
        drop = Dropout(self.options.dropout, generator)
        is_half = self.options.precision == "bf16"
        with torch.autocast(batch.inputs.device.type, dtype=torch.bfloat16, enabled=is_half):
            return answers(parameters, batch, self.options, drop)


class OtherAttention(GoldAnswers):
    """Adversaries: cross-entropy with the probabilities of a base model minus λ times KL(adversary ‖ base), the mean
    over the rows of attention by which answers are read. `of` names the base of each model in the stack `bases`.

    The epoch is chosen by this objective on dev.
    """

    def __init__(
        self,
        data: AnswerData,
        options: TaggerOptions,
        bases: Parameters,
        of: Sequence[int],
        lambdas: Sequence[float],
        *,
        seed: int,
    ):
        super().__init__(data, options, seed=seed)
        self.bases, self.of = bases, torch.tensor(of, device=data.device)
        self.lambdas = torch.tensor(lambdas, device=data.device)

    def losses(self, parameters: Parameters, batch: AnswerBatch, generator: torch.Generator) -> Tensor:
        """The objective of each model."""
        own = self.train_pass(parameters, batch, generator)
        with torch.no_grad():
            base = answers(self.bases, batch, self.options)
        entropy, divergence = _objective_parts(own, base, self.of)
        return entropy.mean(1) - self.lambdas * divergence.mean(1)

    def dev_scores(self, parameters: Parameters) -> Rows:
        """Figures on dev; the score is the objective, with its sign turned."""
        rows = answer_figures(self, parameters, "dev", (self.bases, self.of))
        return [
            row | {"score": float(weight) * row["kl"] - row["cross_entropy"]}
            for weight, row in zip(self.lambdas, rows, strict=True)
        ]


@torch.no_grad()
def answer_figures(
    task: GoldAnswers, parameters: Parameters, split: str, bases: tuple[Parameters, Tensor] | None = None
) -> Rows:
    """What each model does on a split: `accuracy`. Against bases (a stack, and the base of each model): `cross_entropy`
    with their probabilities, `tvd` of the answers, and of the rows of attention, head 0 with head 0 and so on,
    `jsd_numbered` and `kl`; `reachable` is the largest JSD that any rows have from the base's. All are means over
    answers.
    """
    columns: dict[str, list[Tensor]] = {}
    known = []
    for batch in task.data.all_batches(split):
        own = answers(parameters, batch, task.options)
        values = {"accuracy": (own.logits.argmax(-1) == batch.labels).double()}
        if bases is not None:
            values |= _distances(own, answers(bases[0], batch, task.options), bases[1])
        for name, numbers in values.items():
            columns.setdefault(name, []).append(numbers.cpu())
        known.append((batch.labels != NO_ANSWER).cpu())
    is_known = torch.cat(known)
    means = {name: torch.cat(numbers, 1) for name, numbers in columns.items()}
    means = {name: numbers[:, is_known] if name == "accuracy" else numbers for name, numbers in means.items()}
    n_models = len(parameters["projection.weight"])
    return [{name: float(numbers[model].mean()) for name, numbers in means.items()} for model in range(n_models)]


def _distances(own: Answers, base: Answers, of: Tensor) -> dict[str, Tensor]:
    """Distances of each model's answers and rows from its base's [model, answer]."""
    entropy, divergence = _objective_parts(own, base, of)
    reachable = torch.stack([reachable_divergence(base.rows(model)) for model in range(len(base.logits))])
    return {
        "cross_entropy": entropy,
        "kl": divergence,
        "tvd": total_variation(own.logits.softmax(-1), base.logits[of].softmax(-1)),
        "jsd_numbered": jensen_shannon(own.log_rows.exp(), base.log_rows[of].exp()).mean(-1),
        "reachable": reachable[of],
    }


def _objective_parts(own: Answers, base: Answers, of: Tensor) -> tuple[Tensor, Tensor]:
    """The cross-entropy with the base's probabilities, and KL of the rows, the mean over heads [model, answer]."""
    entropy = -(base.logits[of].softmax(-1) * own.logits.log_softmax(-1)).sum(-1)
    divergence = kullback_leibler_of_logs(own.log_rows, base.log_rows[of]).mean(-1)
    return entropy, divergence.to(torch.float32)
