"""Which answer of a model is explained: one per text. The class of a text, the tag of a word, the next token at a
place, or a masked token. Places are drawn at random, the same for the same text and seed.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, get_args

import torch

from headscope.analysis.attribution.logit_target import Question
from headscope.choices import TrustTask as TaskName
from headscope.corpora import Example, align
from headscope.errors import InputError
from headscope.faithfulness.kendall_tau import LEAST_TOKENS
from headscope.faithfulness.token_selection import keep_tokens
from headscope.interventions import replace_token
from headscope.models import Model
from headscope.models.inputs.token_replacement import replace_tokens
from headscope.tasks import LearningTask
from headscope.tasks.all_tasks import fitting_tasks
from headscope.traces import Inputs

TASKS: tuple[TaskName, ...] = get_args(TaskName)
# What of a text can be explained: too short a text is passed over with this reason.
_TOO_SHORT = f"fewer than {LEAST_TOKENS} tokens to attend to, special ones and the answer's own aside"


def task_name(model: Model, task: "LearningTask | str | None" = None) -> TaskName:
    """The task that a model's answers are taken from: the one asked for, or the one that it can do."""
    wanted = task.name if isinstance(task, LearningTask) else task
    fitting: list[TaskName] = [name for name in TASKS if name in fitting_tasks(model)]
    if model.is_encoder_decoder or not fitting:
        kind = "is an encoder-decoder" if model.is_encoder_decoder else "has no head for such a task"
        raise InputError(
            f"attention is tested in models that classify texts, tag words or predict tokens; {model.name} "
            f"({type(model.module).__name__}) {kind}. Load a model with a task head, or fit one with headscope.tasks."
        )
    if wanted is not None and wanted not in TASKS:
        raise InputError(f"attention is not tested on {wanted!r}: choose one of {', '.join(TASKS)}.")
    if wanted is not None and wanted not in fitting:
        raise InputError(f"{model.name} cannot do {wanted}: it can do {', '.join(fitting)}.")
    name: TaskName = next(name for name in fitting if wanted in (None, name))
    if name in ("sequence_classification", "tagging"):
        _check_classes(model, name)
    return name


def question_of(
    model: Model, task: TaskName, inputs: Inputs, example: Example | None = None, *, seed: int = 0
) -> Question:
    """The answer of one text that is explained; an `InputError` says why there is none."""
    stack = "text" if "text" in inputs.tokens else next(iter(inputs.tokens))
    tokens = inputs.tokens[stack]
    if tokens.kind != "text" or "input_ids" not in inputs.model_inputs:
        raise InputError("attention is tested on texts.")
    mask = inputs.model_inputs.get("attention_mask")
    if mask is not None and not bool(mask.bool().all()):
        raise InputError("the input has padding of its own: give it without.")
    plain = [place for place, token in enumerate(tokens) if not token.special]
    if task == "sequence_classification":
        _check_length(len(plain))
        return Question(inputs, stack, (), inputs.tokens)
    _check_length(len(plain) - 1)
    if task == "language_modelling":
        # The last token has no next one in the text; what comes after the chosen one is not seen, and is cut off.
        place = _draw([place for place in plain[LEAST_TOKENS:] if place < len(tokens) - 1], inputs, seed)
        inputs = keep_tokens(inputs, stack, range(place + 1))
    elif task == "masked_language_modelling":
        place = _draw(plain, inputs, seed)
        inputs = replace_tokens(model, inputs, [replace_token(place, model.tokenizer.mask_token_id)])
    else:
        first_of_words = _first_tokens(tokens, example) if example is not None and example.spans else plain
        if model.is_causal:  # what comes after the word is not seen, and is cut off
            first_of_words = [place for place in first_of_words if place in plain[LEAST_TOKENS:]]
        place = _draw(first_of_words, inputs, seed)
        inputs = keep_tokens(inputs, stack, range(place + 1)) if model.is_causal else inputs
    return Question(inputs, stack, (place,), inputs.tokens)


def countable_tokens(question: Question) -> list[int]:
    """The tokens that attention may point out: not special, and not the one that answers."""
    tokens = question.tokens[question.stack]
    return [place for place, token in enumerate(tokens) if not token.special and place not in question.positions]


def with_inputs(question: Question, inputs: Inputs, positions: Sequence[int]) -> Question:
    """The same question about another input."""
    return replace(question, inputs=inputs, positions=tuple(positions), tokens=inputs.tokens)


def _check_classes(model: Model, task: TaskName) -> None:
    """Refuse models whose outputs are no distribution over classes, or that take no copies of an input."""
    config, class_name = model.config, type(model.module).__name__
    n_labels, problem = getattr(config, "num_labels", 2), getattr(config, "problem_type", None)
    if n_labels < 2 or problem in ("multi_label_classification", "regression"):
        raise InputError(
            f"attention is tested on answers of which exactly one is right: {model.name} ({class_name}) has num_labels="
            f"{n_labels} and problem_type={problem!r}. Choose a model with two or more classes that exclude each other."
        )
    if task == "sequence_classification" and model.is_causal and getattr(config, "pad_token_id", None) is None:
        raise InputError(
            f"{model.name} ({class_name}) has no padding token, without which it classifies one text at a time, and "
            "tests run copies of a text: set pad_token_id in the config of its module."
        )


def _check_length(n_tokens: int) -> None:
    if n_tokens < LEAST_TOKENS:
        raise InputError(f"the text has {_TOO_SHORT}.")


def _first_tokens(tokens: Any, example: Example) -> list[int]:
    return [group[0] for group in align(tokens, example.spans) if group]


def _draw(places: Sequence[int], inputs: Inputs, seed: int) -> int:
    if not places:
        raise InputError(f"the text has {_TOO_SHORT}.")
    digest = hashlib.sha256(repr((seed, inputs.model_inputs["input_ids"].tolist())).encode()).digest()
    generator = torch.Generator().manual_seed(int.from_bytes(digest[:7], "little"))
    return places[int(torch.randint(len(places), (1,), generator=generator))]
