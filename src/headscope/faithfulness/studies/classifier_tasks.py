"""What the classifiers of the sentiment study learn: gold labels, or a base model's answers with other attention."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from headscope.attention.divergence import jensen_shannon, kullback_leibler_of_logs
from headscope.faithfulness.studies.sentiment_data import SentimentData, TextBatch, TextSplit
from headscope.faithfulness.studies.stack_parts import Parameters
from headscope.faithfulness.studies.stack_training import Rows, StackOptions
from headscope.faithfulness.studies.stacked_classifier import Classified, classify

# The attention [model or 1, text, 1 or row, word] that takes the place of the models' own; None: their own.
Attends = Callable[[TextBatch], Tensor | None]


@dataclass(frozen=True)
class ClassifierOptions:
    """The settings of Jain & Wallace: Adam with AMSGrad, weight decay on all but attention."""

    batch_size: int = 32
    rate: float = 1e-3
    weight_decay: float = 1e-5
    width: int = 128

    def stack_options(self, epochs: int, seed: int, settings: dict[str, Any]) -> StackOptions:
        """How a stack of classifiers is trained."""

        def optimizer(parameters: dict[str, Tensor]) -> torch.optim.Optimizer:
            attention = [tensor for name, tensor in parameters.items() if _is_of_attention(name)]
            others = [tensor for name, tensor in parameters.items() if not _is_of_attention(name)]
            groups = [{"params": others, "weight_decay": self.weight_decay}, {"params": attention, "weight_decay": 0.0}]
            return torch.optim.Adam(groups, lr=self.rate, amsgrad=True)

        return StackOptions(epochs, seed, optimizer, settings=settings)


def own_attention(_batch: TextBatch) -> None:
    """By the models' own attention."""


def uniform_attention(batch: TextBatch) -> Tensor:
    """The same weight on every word."""
    return batch.uniform


class GoldLabels:
    """Classifiers learn the labels; the epoch is chosen by the area under the ROC curve on dev."""

    def __init__(
        self, data: SentimentData, options: ClassifierOptions, attends: Attends = own_attention, *, seed: int = 0
    ):
        self.data, self.options, self.attends, self.seed = data, options, attends, seed
        positive = data.train.labels.sum()
        # Jain & Wallace: the number of texts over that of class 1, minus 1.
        self.weight = (len(data.train) / positive.clamp_min(1) - 1).clamp_min(1e-3)

    def batches(self, epoch: int) -> Sequence[TextBatch]:
        """The batches of an epoch."""
        return self.data.batches(self.data.train, self.options.batch_size, seed=self.seed, epoch=epoch)

    def losses(self, parameters: Parameters, batch: TextBatch, generator: torch.Generator) -> Tensor:
        """Cross-entropy of each model, the mean over texts."""
        logits = self.run(parameters, batch).logits
        labels = batch.labels.expand_as(logits)
        return binary_cross_entropy_with_logits(logits, labels, pos_weight=self.weight, reduction="none").mean(1)

    def dev_scores(self, parameters: Parameters) -> Rows:
        """Figures on dev; the score is the area under the ROC curve."""
        return [row | {"score": row["auc"]} for row in self.figures(parameters, self.data.dev)]

    def figures(self, parameters: Parameters, split: TextSplit, base: Parameters | None = None) -> Rows:
        """See `classifier_figures`."""
        return classifier_figures(self, parameters, split, base)

    def run(self, parameters: Parameters, batch: TextBatch) -> Classified:
        """The stack on a batch."""
        return classify(parameters, batch.inputs, batch.mask, batch.attended, self.attends(batch))


class BaseAnswers(GoldLabels):
    """Adversaries (Wiegreffe & Pinter): ½|Δp| − λ · KL(adversary ‖ base), the mean over texts, and over heads where
    there are several; p is that of class 1.

    The epoch is chosen by this objective on dev.
    """

    def __init__(
        self,
        data: SentimentData,
        options: ClassifierOptions,
        base: Parameters,
        lambdas: Sequence[float],
        *,
        seed: int,
    ):
        super().__init__(data, options, seed=seed)
        self.base, self.lambdas = base, torch.tensor(lambdas, device=data.device)
        self._of_base = self._run_base()

    def losses(self, parameters: Parameters, batch: TextBatch, generator: torch.Generator) -> Tensor:
        """The objective of each model, on a batch of training texts."""
        classified = self.run(parameters, batch)
        places = torch.tensor(batch.places, device=batch.mask.device)
        answers, log_attention = (tensor[places] for tensor in self._of_base)
        apart = (classified.logits.sigmoid() - answers).abs().mean(1) / 2
        divergence = kullback_leibler_of_logs(classified.log_attention, log_attention[..., : batch.mask.shape[1]])
        return apart - self.lambdas * divergence.mean((1, 2)).to(torch.float32)

    @torch.no_grad()
    def _run_base(self) -> tuple[Tensor, Tensor]:
        """The base's answers [text] and the logarithm of its attention [text, row, word], for every training text."""
        batches = list(self.data.all_batches(self.data.train))
        outcomes = [self.run(self.base, batch) for batch in batches]
        longest = max(batch.mask.shape[1] for batch in batches)
        pad = torch.nn.functional.pad
        answers = torch.cat([outcome.logits[0].sigmoid() for outcome in outcomes])
        attention = torch.cat([
            pad(outcome.log_attention[0], (0, longest - outcome.log_attention.shape[-1])) for outcome in outcomes
        ])  # fmt: skip
        order = torch.tensor([place for batch in batches for place in batch.places]).argsort().to(answers.device)
        return answers[order], attention[order]

    def dev_scores(self, parameters: Parameters) -> Rows:
        """Figures on dev; the score is the objective, with its sign turned."""
        rows = self.figures(parameters, self.data.dev, self.base)
        return [
            row | {"score": float(weight) * row["kl"] - row["tvd"] / 2}
            for weight, row in zip(self.lambdas, rows, strict=True)
        ]


@torch.no_grad()
def classifier_figures(
    task: GoldLabels, parameters: Parameters, split: TextSplit, base: Parameters | None = None
) -> Rows:
    """What each classifier of a stack does on a split: `accuracy`, `f1` of class 1, `auc`; and how far it is from a
    base: `tvd` of the answers, `jsd` and `kl` of attention, means over texts. A single row is compared with each head.
    """
    answers, labels, distances = [], [], []
    for batch in task.data.all_batches(split):
        classified = task.run(parameters, batch)
        answers.append(classified.logits.sigmoid())
        labels.append(batch.labels)
        if base is not None:
            own = classify(base, batch.inputs, batch.mask, batch.attended)
            attended = batch.attended[:, None]
            log_attention = classified.attention.clamp_min(1e-30).log().masked_fill(~attended, -torch.inf)
            apart = (answers[-1] - own.logits.sigmoid()).abs()
            divergence = jensen_shannon(classified.attention, own.attention, mask=attended).mean(-1)
            relative = kullback_leibler_of_logs(log_attention, own.log_attention).mean(-1)
            distances.append(torch.stack([apart, divergence, relative]).cpu())
    gold = torch.cat(labels).cpu()
    rows = [_scores(own, gold) for own in torch.cat(answers, 1).cpu()]
    if distances:
        means = torch.cat(distances, 2).mean(2)
        names = ("tvd", "jsd", "kl")
        rows = [row | dict(zip(names, means[:, model].tolist(), strict=True)) for model, row in enumerate(rows)]
    return rows


def _is_of_attention(name: str) -> bool:
    return name.split(".")[-2] in ("attention", "attention_vector", "query", "key")


def _scores(answers: Tensor, gold: Tensor) -> dict[str, float]:
    is_answer, is_yes = answers > 0.5, gold > 0.5
    both = float((is_answer & is_yes).sum())
    total = float(is_answer.sum() + is_yes.sum())
    accuracy = float((is_answer == is_yes).float().mean())
    return {"accuracy": accuracy, "f1": 2 * both / total if total else 0.0, "auc": area_under_curve(answers, gold)}


def area_under_curve(answers: Tensor, gold: Tensor) -> float:
    """The chance that a text of class 1 has the higher answer than one of class 0; ties count half.

    >>> area_under_curve(torch.tensor([0.1, 0.4, 0.35, 0.8]), torch.tensor([0.0, 0.0, 1.0, 1.0]))
    0.75
    """
    yes, no = answers[gold > 0.5], answers[gold <= 0.5]
    if not len(yes) or not len(no):
        return 0.5
    difference = yes[:, None] - no[None]
    return float((difference > 0).double().mean() + (difference == 0).double().mean() / 2)
