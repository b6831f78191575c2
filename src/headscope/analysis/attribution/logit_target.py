"""Questions: which answer of a model is meant, a logit at some positions of some input, and passes that give it."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from headscope.errors import CaptureError, InputError
from headscope.interventions import Intervention
from headscope.models import Model
from headscope.models.capture.passes import Pass
from headscope.models.capture.session import Session
from headscope.models.inputs.batch import batchable
from headscope.models.spans import answers_with_spans, span_logits, span_target
from headscope.progress import Cancel
from headscope.traces import Inputs, Tokens, Trace
from headscope.traces.spans import span_text
from headscope.traces.tokens import TokenChoice

# A token or class, by id or by text; two of them for the difference of their logits.
Target = int | str | tuple[int | str, int | str]

BATCH_SIZE = 16


@dataclass(frozen=True, eq=False)
class Question:
    """What a model answers to one input, at `positions` of `stack`; a classifier answers once, at no position."""

    inputs: Inputs
    stack: str
    positions: tuple[int, ...]
    tokens: dict[str, Tokens]

    def each(self) -> "list[Question]":
        """One question for each position."""
        return [replace(self, positions=(place,)) for place in self.positions] or [self]

    @property
    def length(self) -> int:
        """How many tokens its longest stack has."""
        return max((len(stack_tokens) for stack_tokens in self.tokens.values()), default=0)


def ask(
    model: Model,
    source: Any,
    position: TokenChoice | None,
    interventions: Sequence[Intervention] = (),
    *,
    cancel: Cancel | None = None,
) -> list[Question]:
    """The questions about one source or a list of them, as `model.run` takes them.

    Without a position, where the model answers: a causal model's last token, the masked ones, every step of a decoder.
    """
    traces = model.run(source, interventions, record="rows", cancel=cancel)
    return [_question(model, trace, position) for trace in (traces if isinstance(traces, list) else [traces])]


def _question(model: Model, trace: Trace, position: TokenChoice | None) -> Question:
    answers = trace.answers
    assert trace.inputs is not None  # runs always keep them
    if answers is not None and not answers.positions:
        if position is not None:
            raise InputError(f"{model.name} answers once for the whole input: leave out position={position!r}.")
        return Question(trace.inputs, answers.stack, (), trace.tokens)
    stack = answers.stack if answers is not None else _answer_stack(model)
    if position is not None:
        return Question(trace.inputs, stack, tuple(trace.tokens[stack].positions(position)), trace.tokens)
    if answers is None:
        raise InputError(
            f"{model.name} has no answer to explain in this input: mask a token, or say where with position=."
        )
    return Question(trace.inputs, stack, answers.positions, trace.tokens)


def _answer_stack(model: Model) -> str:
    """The stack whose positions a model's logits are about."""
    if model.is_encoder_decoder:
        return "decoder"
    return "text" if "text" in model.stacks else next(iter(model.stacks))


def batches(model: Model, questions: Sequence[Question], size: int = BATCH_SIZE) -> Iterator[list[int]]:
    """Places of questions that can share a pass, of like length."""
    for group in batchable([question.inputs for question in questions], model.module, model.processor):
        order = sorted(group, key=lambda place: questions[place].length)
        yield from (order[first : first + size] for first in range(0, len(order), size))


def answer(
    model: Model,
    questions: Sequence[Question],
    interventions: Sequence[Intervention] = (),
    *,
    grad: bool = False,
    cancel: Cancel | None = None,
    inside: AbstractContextManager | None = None,
    only_spans: bool = False,
) -> tuple[list[Tensor], Session]:
    """One pass over a batch: for each question its logits [position, candidate], and the session that saw them.

    `inside` is entered around the session; `only_spans` is that of `span_logits`.
    """
    passed = Pass.of(model, [question.inputs for question in questions], interventions).run(
        grad=grad, within=inside, cancel=cancel
    )
    has_spans = only_spans and answers_with_spans(model)
    logits = span_logits(passed.outputs, passed.batch, only_spans=True) if has_spans else passed.logits
    session = passed.session
    if logits is None or logits.shape[0] != len(questions):
        raise CaptureError(f"{model.name} gives no logits: there is no answer to explain.")
    answers = []
    for row, question in enumerate(questions):
        rows = None if logits.ndim == 2 else _rows(question, row, session, logits.shape[1])
        answers.append(logits[row][None] if rows is None else logits[row][rows])
    return answers, session


def _rows(question: Question, row: int, session: Session, length: int) -> list[int]:
    """Where the positions of a question stand in the logits, past any padding."""
    real = session.positions.real.get(question.stack)
    if real is None or real.shape[1] != length:
        return list(question.positions)
    places = real[row].nonzero()[:, 0]
    return [int(places[position]) for position in question.positions]


def each_target(target: "Target | list[Target] | None", n: int) -> list[Target | None]:
    """The target of each of n inputs: a list names them one by one, anything else is for all."""
    if not isinstance(target, list):
        return [target] * n
    if len(target) != n:
        raise InputError(f"there are {n} inputs but {len(target)} targets: give one for each, or one for all.")
    return list(target)


def target_ids(model: Model, target: Target | None, logits: Tensor, question: Question | None = None) -> Tensor:
    """The ids that a target names [position, 1], or [position, 2] for a contrast; without one, the top answers.

    A text names a span in the text of the `question`, where the model answers with spans.
    """
    if target is None:
        if answers_with_spans(model):
            return logits.detach()[:, 1:].argmax(-1, keepdim=True) + 1
        return logits.detach().argmax(-1, keepdim=True)
    wanted = target if isinstance(target, tuple) else (target,)
    if len(wanted) > 2:
        raise InputError(f"a contrast is of two targets, got {len(wanted)}.")
    if question is not None and answers_with_spans(model):
        tokens = question.tokens[question.stack]
        wanted = tuple(span_target(tokens, choice) if isinstance(choice, str) else choice for choice in wanted)
    ids = [_target_id(model, choice, logits.shape[-1]) for choice in wanted]
    return torch.tensor(ids, device=logits.device).expand(logits.shape[0], -1)


def _target_id(model: Model, target: int | str, size: int) -> int:
    if isinstance(target, int) and not isinstance(target, bool):
        if not 0 <= target < size:
            raise InputError(f"there is no answer {target}: the model has {size}, 0 to {size - 1}.")
        return target
    if not isinstance(target, str):
        raise InputError(f"a target is an id or a text, got {target!r}.")
    if is_classifier(model, size):
        labels = {str(name): int(class_id) for class_id, name in model.config.id2label.items()}
        if target not in labels:
            raise InputError(f"there is no class {target!r}: the classes are {', '.join(labels)}.")
        return labels[target]
    if model.tokenizer is None:
        raise InputError("the model has no tokenizer: name the target by its id.")
    vocabulary = model.tokenizer.get_vocab()
    for text in (target, f"Ġ{target}", f"▁{target}"):
        if text in vocabulary:
            return int(vocabulary[text])
    ids = model.tokenizer(target, add_special_tokens=False)["input_ids"]
    if len(ids) != 1:
        pieces = model.tokenizer.convert_ids_to_tokens(ids)
        raise InputError(f"{target!r} is not one token of this tokenizer but {len(pieces)}: {pieces}.")
    return int(ids[0])


def is_classifier(model: Model, size: int) -> bool:
    """Whether logits of this size are about classes rather than tokens."""
    labels = getattr(model.config, "id2label", None) or {}
    return size == len(labels) and size != getattr(model.config, "vocab_size", None)


def name_of(model: Model, answer_id: int, size: int, tokens: Tokens) -> str:
    """How a person reads an answer: a class label, a token, or a span of the `tokens` that the model answers from."""
    if answers_with_spans(model):
        return span_text(tokens, answer_id)
    return str(model.config.id2label[answer_id]) if is_classifier(model, size) else model.token_text(answer_id)
