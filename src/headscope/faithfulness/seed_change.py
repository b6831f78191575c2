"""How far outputs of models that differ in their seed alone are apart: the noise that a change must exceed."""

from collections.abc import Iterable, Sequence

import numpy as np

from headscope.choices import TrustTask as TaskName
from headscope.corpora import Example
from headscope.errors import InputError
from headscope.faithfulness.answer_tokens import AnswerTokens
from headscope.faithfulness.output_changes import output_change
from headscope.faithfulness.questions import question_of
from headscope.models import Model
from headscope.progress import Cancel, OnProgress, Steps


def seed_change(
    model: Model,
    others: Sequence[Model],
    task: TaskName,
    examples: Iterable[Example],
    *,
    seed: int = 0,
    truncate: bool = False,
    progress: OnProgress | None = None,
    cancel: Cancel | None = None,
) -> float:
    """The mean total variation between the answers of a model and of others to the same questions."""
    texts = list(examples)
    steps = Steps("seeds", len(texts), progress, cancel)
    changes = []
    for example in texts:
        steps.next()
        try:
            inputs = model.read(example.text, pair=example.pair, truncate=truncate)
            question = question_of(model, task, inputs, example, seed=seed)
        except InputError:  # counted where the tests are run
            continue
        before = AnswerTokens(model, question, cancel=cancel).before
        for other in others:
            after = AnswerTokens(other, question, cancel=cancel).before
            if after.shape != before.shape:
                raise InputError(f"{other.name} has {len(after)} answers and {model.name} has {len(before)}.")
            changes.append(float(output_change(before, after)))
    if not changes:
        raise InputError("no text could be answered: the change between seeds is unknown.")
    return float(np.mean(changes))
