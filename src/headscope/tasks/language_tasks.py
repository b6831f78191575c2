"""Language modelling: the next token of a text, or tokens that were hidden in it."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headscope.corpora import Example
from headscope.errors import InputError
from headscope.models import Model
from headscope.tasks.learning_task import NO_LABEL, LearningTask, TaskInput
from headscope.tasks.task_data import Columns
from headscope.traces import Inputs, Tokens

# Of the chosen tokens these shares become the mask token, and a random token; the rest stays (Devlin et al., 2019).
MASKED, RANDOM = 0.8, 0.1


class LanguageModelling(LearningTask):
    """See `language_modelling`."""

    name = "language_modelling"
    takes = "a causal language model with a tokenizer, as GPT-2 or Llama"
    metrics = ("bits_per_byte", "loss", "accuracy")
    kind = "text"
    cuts = False

    @classmethod
    def fits(cls, model: Model) -> bool:
        """Whether it reads text from left to right and answers with the next token."""
        return model.has_layout and model.is_causal and model.tokenizer is not None and _has_token_logits(model)

    def read_examples(self, model: Model, examples: Sequence[Example]) -> Iterator[TaskInput]:
        """Each text; one longer than the model's positions in parts."""
        for example in examples:
            for text, inputs in _parts(model, example):
                tokens = _text_tokens(inputs)
                ids = inputs.model_inputs["input_ids"]
                labels = torch.cat([ids[1:], torch.tensor([NO_LABEL])])
                for place, token in enumerate(tokens.items[1:]):
                    if token.special:
                        labels[place] = NO_LABEL
                yield TaskInput(example, inputs, labels, n_bytes=_n_bytes(text, tokens))

    def counts(
        self, model: Model, logits: Tensor, labels: Tensor, batch: Sequence[TaskInput], metric: str
    ) -> np.ndarray:
        """With the bytes that the targets stand for."""
        n_bytes = np.array([[task_input.n_bytes] for task_input in batch], dtype=float)
        return np.concatenate([super().counts(model, logits, labels, batch, metric), n_bytes], 1)


class MaskedLanguageModelling(LearningTask):
    """See `masked_language_modelling`."""

    name = "masked_language_modelling"
    takes = "a masked language model with a tokenizer that has a mask token, as BERT"
    metrics = ("loss", "accuracy")
    kind = "text"
    cuts = False

    def __init__(self, *splits: Any, share: float, seed: int, **options: Any):
        super().__init__(*splits, **options)
        if not 0 < share < 1:
            raise InputError(f"share is between 0 and 1, got {share}: it is the share of tokens to predict.")
        self.share, self.seed = share, seed

    @classmethod
    def fits(cls, model: Model) -> bool:
        """Whether it predicts tokens from both sides."""
        is_bidirectional = model.has_layout and not model.is_causal and not model.is_encoder_decoder
        has_mask = getattr(model.tokenizer, "mask_token_id", None) is not None
        return is_bidirectional and has_mask and _has_token_logits(model)

    def read_examples(self, model: Model, examples: Sequence[Example]) -> Iterator[TaskInput]:
        """Each text, without labels yet; one longer than the model's positions in parts."""
        for example in examples:
            for _, inputs in _parts(model, example):
                yield TaskInput(example, inputs, torch.full_like(inputs.model_inputs["input_ids"], NO_LABEL))

    def prepare_batch(self, model: Model, batch: Sequence[TaskInput], *, training: bool) -> Sequence[TaskInput]:
        """Hide tokens: anew in training, from torch's random numbers; in evaluation the same in the same text."""
        return [self.mask(model, task_input, None if training else self._generator(task_input)) for task_input in batch]

    def mask(self, model: Model, task_input: TaskInput, generator: torch.Generator | None) -> TaskInput:
        """Hide a share of the tokens, at least one: 80 % as the mask token, 10 % as a random one, 10 % unchanged."""
        ids = task_input.inputs.model_inputs["input_ids"]
        is_text = torch.tensor([not token.special for token in _text_tokens(task_input.inputs)])
        draws = torch.rand(3, len(ids), generator=generator)
        n_chosen = max(1, round(self.share * int(is_text.sum())))
        order = torch.where(is_text, draws[0], 2.0).argsort()[:n_chosen]
        is_chosen = torch.zeros_like(is_text).index_fill(0, order, True) & is_text
        special = torch.tensor(sorted(model.tokenizer.all_special_ids))
        ordinary = torch.arange(len(model.tokenizer))
        ordinary = ordinary[~torch.isin(ordinary, special)]
        random_ids = ordinary[(draws[2] * len(ordinary)).long().clamp_max(len(ordinary) - 1)]
        hidden = torch.where(draws[1] < MASKED, model.tokenizer.mask_token_id, random_ids)
        hidden = torch.where(draws[1] < MASKED + RANDOM, hidden, ids)
        model_inputs = task_input.inputs.model_inputs | {"input_ids": torch.where(is_chosen, hidden, ids)}
        labels = torch.where(is_chosen, ids, NO_LABEL)
        return replace(task_input, inputs=replace(task_input.inputs, model_inputs=model_inputs), labels=labels)

    def _generator(self, task_input: TaskInput) -> torch.Generator:
        """Random numbers that depend on the tokens and the task's seed alone."""
        digest = hashlib.sha256(repr((self.seed, task_input.inputs.model_inputs["input_ids"].tolist())).encode())
        return torch.Generator().manual_seed(int.from_bytes(digest.digest()[:7], "little"))


def language_modelling(
    train: Any = None,
    dev: Any = None,
    test: Any = None,
    *,
    metric: str | None = None,
    columns: Columns | None = None,
    label_smoothing: float = 0.0,
) -> LanguageModelling:
    """Predict the next token of texts: files with a text per line, lists of texts, or datasets.

    `metric` is "bits_per_byte" (default), "loss" or "accuracy". Special tokens are not predicted. Where the tokenizer
    puts none first, the first token of a text is not predicted and its bytes are not counted.
    """
    return LanguageModelling(train, dev, test, metric=metric, columns=columns, label_smoothing=label_smoothing)


def masked_language_modelling(
    train: Any = None,
    dev: Any = None,
    test: Any = None,
    *,
    metric: str | None = None,
    columns: Columns | None = None,
    label_smoothing: float = 0.0,
    share: float = 0.15,
    seed: int = 0,
) -> MaskedLanguageModelling:
    """Predict hidden tokens of texts. `share` of the tokens are hidden. Default: 0.15.

    `metric` is "loss" (default) or "accuracy". Evaluation hides the same tokens every time, whatever the batches;
    another `seed` hides others.
    """
    options = {"metric": metric, "columns": columns, "label_smoothing": label_smoothing}
    return MaskedLanguageModelling(train, dev, test, share=share, seed=seed, **options)


def _parts(model: Model, example: Example) -> Iterator[tuple[str, Inputs]]:
    """A text in parts that fit the model's positions, with what each is as inputs; none of it is left out."""
    if not example.text or not example.text.strip():
        raise InputError(f"{example.id} has no text: language modelling needs one.")
    rest = example.text
    while rest.strip():
        inputs = model.read(rest, truncate=True)
        ends = [token.end for token in _text_tokens(inputs) if token.end is not None and not token.special]
        end = max(ends, default=len(rest))
        end = len(rest) if not rest[end:].strip() else end
        yield rest[:end], inputs
        rest = rest[end:]


def _text_tokens(inputs: Inputs) -> Tokens:
    return inputs.tokens["text"] if "text" in inputs.tokens else next(iter(inputs.tokens.values()))


def _n_bytes(text: str, tokens: Tokens) -> int:
    """The bytes of a text that its predicted tokens stand for: all but those of a first token that is text."""
    first = tokens[0]
    return len(text[0 if first.special or first.end is None else first.end :].encode())


def _has_token_logits(model: Model) -> bool:
    """Whether it has a head over the vocabulary; a module that does not say is taken at its word."""
    head = getattr(model.module, "get_output_embeddings", None)
    return head is None or head() is not None
