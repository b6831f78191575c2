"""What the taggers of the chunking study learn: gold tags, or a base tagger's tags with attention far from its own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from headscope.attention.divergence import (
    jensen_shannon,
    kullback_leibler_of_logs,
    total_variation,
)
from headscope.choices import StudyPrecision
from headscope.errors import InputError
from headscope.faithfulness.studies.chunking_data import ChunkingData, TagBatch, TagSplit
from headscope.faithfulness.studies.stack_parts import Dropout, Parameters, no_dropout
from headscope.faithfulness.studies.stack_training import Rows, StackOptions
from headscope.faithfulness.studies.stacked_chunk_f1 import stacked_f1
from headscope.faithfulness.studies.stacked_tagger import Attend, Drop, Tagged, tag
from headscope.faithfulness.studies.tagger_attention import own_attention

# How the taggers of a stack attend in a batch.
Attends = Callable[[TagBatch], Attend]
_NO_TAG = -1


@dataclass(frozen=True)
class TaggerOptions:
    """The settings of the report: dropout everywhere, Adam, a rate that rises for 500 steps and then falls.

    `cooldown` is the share of steps, the last, over which the rate falls to 0 besides (the report: 0); `precision` is
    that of training, "fp32" or "bf16" (autocast). Figures are always computed in fp32.
    """

    batch_size: int = 100
    dropout: float = 0.2
    rate: float = 0.2
    warmup: int = 500
    cooldown: float = 0.0
    precision: StudyPrecision = "fp32"
    width: int = 128
    n_heads: int = 4

    def __post_init__(self):
        if self.precision not in get_args(StudyPrecision):
            raise InputError(
                f"there is no precision {self.precision!r}: choose {' or '.join(get_args(StudyPrecision))}."
            )
        if self.batch_size < 1 or self.warmup < 1 or not 0 <= self.cooldown <= 1 or not 0 <= self.dropout < 1:
            raise InputError(
                f"batch_size and warmup are at least 1, cooldown 0 to 1, dropout 0 to below 1, got {self.batch_size}, "
                f"{self.warmup}, {self.cooldown} and {self.dropout}."
            )

    def stack_options(self, epochs: int, n_batches: int, seed: int, settings: dict[str, Any]) -> StackOptions:
        """How a stack of taggers is trained, with `n_batches` an epoch: the highest rate is 7.9e-3."""
        peak, n_steps = self.rate * 10 * self.width**-0.5, epochs * n_batches

        def optimizer(parameters: dict[str, Tensor]) -> torch.optim.Optimizer:
            return torch.optim.Adam(parameters.values(), lr=peak, betas=(0.9, 0.98), eps=1e-9)

        def rate_factor(step: int) -> float:
            remaining = (n_steps - step) / (self.cooldown * n_steps) if self.cooldown else 1.0
            return min(step * self.warmup**-1.5, step**-0.5) * min(1.0, remaining)

        return StackOptions(epochs, seed, optimizer, rate_factor, settings)


class GoldTags:
    """Taggers learn the gold tags; the epoch is chosen by chunk F1 on dev."""

    def __init__(self, data: ChunkingData, options: TaggerOptions, attends: Attends = own_attention, *, seed: int = 0):
        self.data, self.options, self.attends, self.seed = data, options, attends, seed

    def batches(self, epoch: int) -> Sequence[TagBatch]:
        """The batches of an epoch."""
        return self.data.batches(self.data.train, self.options.batch_size, seed=self.seed, epoch=epoch)

    def losses(self, parameters: Parameters, batch: TagBatch, generator: torch.Generator) -> Tensor:
        """Cross-entropy, the mean over words, beginnings and ends, for each model."""
        return _nll(self.train_pass(parameters, batch, generator).logits, batch.labels)

    def dev_scores(self, parameters: Parameters) -> Rows:
        """Figures on dev; the score is F1."""
        rows = self.figures(parameters, self.data.dev)
        return [row | {"score": row["f1"]} for row in rows]

    def figures(self, parameters: Parameters, split: TagSplit) -> Rows:
        """F1, accuracy and NLL against the gold tags, of each model."""
        return tagger_figures(self, parameters, split)

    def train_pass(self, parameters: Parameters, batch: TagBatch, generator: torch.Generator) -> Tagged:
        """The stack on a batch, with dropout, in the precision of training."""
        drop = Dropout(self.options.dropout, generator)
        is_half = self.options.precision == "bf16"
        with torch.autocast(batch.inputs.device.type, dtype=torch.bfloat16, enabled=is_half):
            return self.run(parameters, batch, drop)

    def run(self, parameters: Parameters, batch: TagBatch, drop: Drop = no_dropout) -> Tagged:
        """The stack on a batch."""
        return tag(parameters, batch.inputs, batch.mask, self.attends(batch), n_heads=self.options.n_heads, drop=drop)


class BaseTags(GoldTags):
    """Adversaries: NLL of the base tagger's own answers minus λ times KL(adversary ‖ base) of attention.

    KL is the mean over the cells of the patterns (query and key, padding left out): the unit in which the report prints
    it. The epoch is chosen by this objective on dev, so an adversary is chosen by what it was asked for.
    """

    def __init__(
        self, data: ChunkingData, options: TaggerOptions, base: Parameters, lambdas: Sequence[float], *, seed: int
    ):
        super().__init__(data, options, seed=seed)
        self.base, self.lambdas = base, torch.tensor(lambdas, device=data.device)

    def losses(self, parameters: Parameters, batch: TagBatch, generator: torch.Generator) -> Tensor:
        """The objective of each model."""
        tagged = self.train_pass(parameters, batch, generator)
        with torch.no_grad():
            base = self.run(self.base, batch)
        nll = _nll(tagged.logits, base.logits[0].argmax(-1).masked_fill(~batch.mask, _NO_TAG))
        assert tagged.log_pattern is not None and base.log_pattern is not None
        return nll - self.lambdas * _cell_means(kullback_leibler_of_logs(tagged.log_pattern, base.log_pattern), batch)

    def dev_scores(self, parameters: Parameters) -> Rows:
        """Figures on dev; the score is the objective, with its sign turned."""
        rows = self.figures(parameters, self.data.dev)
        return [
            row | {"score": float(weight) * row["kl_cell"] - row["nll_base"]}
            for weight, row in zip(self.lambdas, rows, strict=True)
        ]

    def figures(self, parameters: Parameters, split: TagSplit) -> Rows:
        """Those of a tagger, and how far it is from the base."""
        return tagger_figures(self, parameters, split, self.base)


@torch.no_grad()
def tagger_figures(task: GoldTags, parameters: Parameters, split: TagSplit, base: Parameters | None = None) -> Rows:
    """What each tagger of a stack does on a split, without dropout.

    `f1`, `accuracy` of words, `nll` (nats a word, against gold). Against a base: `nll_base` of its answers, `tvd` of
    the tags' probabilities, and of attention `jsd` and `kl_row` (means over rows) and `kl_cell` (mean over cells).
    """
    sums: dict[str, Tensor] = {}
    counts: dict[str, float] = {}
    n_models = len(parameters["projection.weight"])
    phrases = torch.zeros(n_models, 3, dtype=torch.int64)

    def add(name: str, total: Tensor, n: float) -> None:
        sums[name] = sums.get(name, torch.zeros(n_models, dtype=torch.float64)) + total.double().cpu()
        counts[name] = counts.get(name, 0.0) + n

    for batch in task.data.all_batches(split):
        tagged = task.run(parameters, batch)
        best, is_word = tagged.logits.argmax(-1), batch.is_word
        phrases += task.data.chunks.counts(batch.gold, best, is_word).cpu()
        n_words, n_tagged = int(is_word.sum()), int((batch.labels != _NO_TAG).sum())
        add("accuracy", ((best == batch.labels) & is_word).sum((1, 2)), n_words)
        add("nll", _nll(tagged.logits, batch.labels) * n_tagged, n_tagged)
        if base is not None:
            for name, (total, n) in _distances(task, tagged, base, batch).items():
                add(name, total, n)
    figures = [{name: float(sums[name][model]) / counts[name] for name in sums} for model in range(n_models)]
    return [row | {"f1": f1} for row, f1 in zip(figures, stacked_f1(phrases), strict=True)]


def _distances(task: GoldTags, tagged: Tagged, base: Parameters, batch: TagBatch) -> dict[str, tuple[Tensor, int]]:
    """Sums of each model's distances from the base, and of how many they are."""
    of_base = tag(base, batch.inputs, batch.mask, n_heads=task.options.n_heads)
    n_words, n_tokens = int(batch.is_word.sum()), int(batch.mask.sum())
    answers = of_base.logits[0].argmax(-1).masked_fill(~batch.mask, _NO_TAG)
    apart = total_variation(tagged.logits.softmax(-1), of_base.logits.softmax(-1)) * batch.is_word
    sums = {
        "nll_base": (_nll(tagged.logits, answers) * n_tokens, n_tokens),
        "tvd": (apart.sum((1, 2)), n_words),
    }
    if tagged.log_pattern is not None:
        assert of_base.log_pattern is not None
        n_heads = tagged.log_pattern.shape[2]
        rows = batch.mask[:, None, :]  # queries that count
        divergence = jensen_shannon(tagged.pattern, of_base.pattern) * rows
        per_row = kullback_leibler_of_logs(tagged.log_pattern, of_base.log_pattern) * rows
        n_rows, n_cells = n_tokens * n_heads, int((batch.mask.sum(1) ** 2).sum()) * n_heads
        sums["jsd"] = (divergence.sum((1, 2, 3)), n_rows)
        sums["kl_row"] = (per_row.sum((1, 2, 3)), n_rows)
        sums["kl_cell"] = (per_row.sum((1, 2, 3)), n_cells)
    return sums


def _nll(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of each model [model], the mean over places with a label."""
    flat, targets = logits.flatten(1, 2).transpose(1, 2), labels.reshape(1, -1).expand(len(logits), -1)
    total = cross_entropy(flat, targets, ignore_index=_NO_TAG, reduction="none").sum(1)
    return total / (labels != _NO_TAG).sum().clamp_min(1)


def _cell_means(rows: Tensor, batch: TagBatch) -> Tensor:
    """Sums over keys of [model, sentence, head, query] as a mean over cells [model], padding left out."""
    n_cells = (batch.mask.sum(1) ** 2).sum() * rows.shape[2]
    return ((rows * batch.mask[:, None, :]).sum((1, 2, 3)) / n_cells).to(torch.float32)
