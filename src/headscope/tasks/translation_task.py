"""Translation: an encoder-decoder learns to write targets, and is judged by BLEU of what it writes alone."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from headscope.corpora import Example
from headscope.errors import InputError, MissingExtraError
from headscope.models import Model
from headscope.models.capture.passes import Pass, training_mode
from headscope.models.generation import longest_target
from headscope.models.inputs.display_tokens import encode
from headscope.progress import Steps
from headscope.tasks.data_order import evaluation_batches
from headscope.tasks.learning_task import LearningTask, TaskInput
from headscope.tasks.score import N_BOOTSTRAP, Score
from headscope.tasks.task_data import Columns


class Translation(LearningTask):
    """See `translation`."""

    name = "translation"
    takes = "an encoder-decoder with a tokenizer, as Marian or T5"
    metrics = ("bleu", "loss", "accuracy")
    kind = "translation"

    def __init__(self, *splits: Any, num_beams: int, max_target: int, **options: Any):
        super().__init__(*splits, **options)
        if num_beams < 1 or max_target < 1:
            raise InputError(f"num_beams and max_target are at least 1, got {num_beams} and {max_target}.")
        self.num_beams, self.max_target = num_beams, max_target

    @classmethod
    def fits(cls, model: Model) -> bool:
        """Whether it writes targets for texts."""
        return model.is_encoder_decoder and model.tokenizer is not None and model.can_write

    def read_examples(self, model: Model, examples: Sequence[Example]) -> Iterator[TaskInput]:
        """Source and target; the labels are the target's tokens with its end."""
        pairs = [(example, *_pair(example)) for example in examples]
        sources, targets = [source for _, source, _ in pairs], [target for _, _, target in pairs]
        read = model.read(sources, target=targets, truncate=True)
        for (example, _, target), inputs in zip(pairs, read, strict=True):
            n_positions = len(inputs.model_inputs["decoder_input_ids"])  # labels are these, not yet shifted
            ids = encode(model.tokenizer, target, as_target=True, max_length=n_positions).fields["input_ids"]
            yield TaskInput(example, inputs, torch.tensor(ids, dtype=torch.long))

    def evaluate(
        self, model: Model, examples: Any = "dev", interventions: Any = (), *, metric: str | None = None, **options: Any
    ) -> Score:
        """The score of the model; BLEU is of what it writes, by beam search."""
        if self.check_metric(metric or self.metric) != "bleu":
            return super().evaluate(model, examples, interventions, metric=metric, **options)
        interval = options.pop("interval", False)
        self.check(model)
        inputs = self._sources(model, examples)
        written = self.translate(model, inputs, interventions, **options)
        return bleu(written, [_pair(task_input.example)[1] for task_input in inputs], interval=interval)

    def translate(
        self,
        model: Model,
        examples: Any,
        interventions: Any = (),
        *,
        batch_size: int = 32,
        cancel: Any = None,
        progress: Any = None,
    ) -> list[str]:
        """What the model writes for each example, by beam search."""
        inputs = self._sources(model, examples)
        groups = self.batchable(model, inputs)
        steps = Steps("translating", len(inputs), progress, cancel)
        texts: dict[int, str] = {}
        most = min(self.max_target, longest_target(model, most=self.max_target))
        with training_mode(model.module, False), torch.no_grad():
            for batch in evaluation_batches(groups, inputs, batch_size):
                passing = Pass.of(model, [inputs[place].inputs for place in batch], interventions)
                ids = passing.generate(most, cancel=cancel, do_sample=False, num_beams=self.num_beams)
                texts |= zip(batch, model.tokenizer.batch_decode(ids, skip_special_tokens=True), strict=True)
                steps.add(len(batch))
        return [texts[place].strip() for place in range(len(inputs))]


def bleu(written: Sequence[str], references: Sequence[str], *, interval: bool = False) -> Score:
    """Corpus BLEU as sacreBLEU computes it (13a tokens, exponential smoothing), 0 to 100."""
    try:
        from sacrebleu.metrics.bleu import BLEU  # type: ignore[import-not-found]
    except ImportError as error:
        raise MissingExtraError("BLEU needs sacrebleu: pip install 'headscope[tasks]'.") from error
    resamples = N_BOOTSTRAP if interval and len(written) > 1 else 1
    result = BLEU().corpus_score(list(written), [list(references)], n_bootstrap=resamples)
    low, high = (min(max(result._mean + sign * result._ci, 0.0), 100.0) for sign in (-1, 1))
    bounds = (low, high) if resamples > 1 else None
    return Score("bleu", float(result.score), len(written), bounds)


def translation(
    train: Any = None,
    dev: Any = None,
    test: Any = None,
    *,
    metric: str | None = None,
    columns: Columns | None = None,
    label_smoothing: float = 0.0,
    num_beams: int = 4,
    max_target: int = 128,
) -> Translation:
    """Translate a source into a target: tab-separated files, lists of (source, target), or datasets.

    `metric` is "bleu" (default; beam search, `max_target` tokens at most), "loss" or "accuracy" (of target tokens).
    """
    options = {"metric": metric, "columns": columns, "label_smoothing": label_smoothing}
    return Translation(train, dev, test, num_beams=num_beams, max_target=max_target, **options)


def _pair(example: Example) -> tuple[str, str]:
    """Source and target; a list of pairs has the target as the second text."""
    target = example.target if example.target is not None else example.pair
    if not example.text or not target:
        raise InputError(f"{example.id} has no source and target: translation needs both.")
    return example.text, target
