"""What a model's outputs say: next tokens, masked tokens, target tokens, or classes."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from headscope.models.capture.session import Session
from headscope.models.inputs.batch import Batch
from headscope.models.spans import answers_with_spans, span_logits
from headscope.traces import Inputs, Predictions
from headscope.traces.spans import NO_SPAN, span_text

if TYPE_CHECKING:
    from headscope.models.model import Model


def logits_of(model: "Model", outputs: Any, batch: Batch) -> Tensor | None:
    """The logits among a model's outputs: named so, or a bare tensor or tuple's first that has the size of answers.

    Of a model that answers with a span of its text: one for every span.
    """
    if answers_with_spans(model):
        return span_logits(outputs, batch)
    for name in ("logits", "prediction_logits"):  # the second from BERT with both of its training heads
        logits = outputs.get(name) if isinstance(outputs, Mapping) else getattr(outputs, name, None)
        if isinstance(logits, Tensor):
            return logits
    unnamed = (outputs,) if isinstance(outputs, Tensor) else outputs if isinstance(outputs, tuple | list) else ()
    batched = [part for part in unnamed if isinstance(part, Tensor) and part.is_floating_point() and part.ndim > 1]
    return batched[0] if batched and _has_size_of_answers(model, batched[0]) else None


def _has_size_of_answers(model: "Model", output: Tensor) -> bool:
    """Whether an output without a name is about classes or tokens; hidden states [batch, token, dim] are not."""
    labels = getattr(model.config, "id2label", None)
    size = output.shape[-1]
    if output.ndim == 2:
        return labels is None or size == len(labels)
    embeddings = [module.num_embeddings for module in model.module.modules() if isinstance(module, nn.Embedding)]
    vocabularies = {getattr(model.config, "vocab_size", None), max(embeddings, default=None)}
    if model.tokenizer is not None:
        vocabularies.add(len(model.tokenizer))
    return output.ndim == 3 and (size in vocabularies or (labels is not None and size == len(labels)))


def answers_of(model: "Model", batch: Batch, outputs: Any, session: Session) -> list[Predictions | None]:
    """The likely answers of each example, or None where the model gives none."""
    logits = logits_of(model, outputs, batch)
    n_examples = len(batch.examples)
    if logits is None or logits.shape[0] != n_examples:
        return [None] * n_examples
    labels = getattr(model.config, "id2label", None) or {}
    vocabulary = getattr(model.config, "vocab_size", None)
    is_class = logits.ndim == 2 or (logits.shape[-1] == len(labels) and logits.shape[-1] != vocabulary)
    names: Callable[[int], str] = (lambda index: str(labels.get(index, index))) if is_class else model.token_text
    answers: list[Predictions | None] = []
    for example in range(n_examples):
        if answers_with_spans(model):
            answers.append(_spans(logits[example], batch.examples[example]))
            continue
        if logits.ndim == 2:
            answers.append(Predictions.of(logits[example][None], stack="main", positions=(), names=names))
            continue
        stack, answer_rows, positions = _positions(model, batch, logits, example, session, is_class=is_class)
        if not positions:
            answers.append(None)
            continue
        rows = logits[example][answer_rows]
        answers.append(Predictions.of(rows, stack=stack, positions=tuple(positions), names=names))
    return answers


def _spans(logits: Tensor, inputs: Inputs) -> Predictions:
    """The likeliest spans of one example; the pairs that are no span count, and are not listed."""
    stack, tokens = next(iter(inputs.tokens.items()))
    names: Callable[[int], str] = lambda answer_id: span_text(tokens, answer_id)  # noqa: E731
    top = Predictions.of(logits[None], stack=stack, positions=(), names=names)
    is_span = (top.ids[0] != NO_SPAN) & top.logprobs[0].isfinite()
    texts = tuple(text for text, listed in zip(top.texts[0], is_span.tolist(), strict=True) if listed)
    return replace(top, ids=top.ids[:, is_span], logprobs=top.logprobs[:, is_span], texts=(texts,), are_spans=True)


def predicted_classes(model: "Model", outputs: Any, batch: Batch) -> list[str]:
    """The likeliest class of each example; empty where the model does not choose one class for the whole input."""
    if answers_with_spans(model):
        return []
    logits = logits_of(model, outputs, batch)
    labels = getattr(model.config, "id2label", None) or {}
    chooses_several = getattr(model.config, "problem_type", None) in ("regression", "multi_label_classification")
    if logits is None or logits.ndim != 2 or logits.shape[-1] < 2 or chooses_several:
        return []
    return [str(labels.get(index, index)) for index in logits.argmax(-1).tolist()]


def _positions(
    model: "Model", batch: Batch, logits: Tensor, example: int, session: Session, *, is_class: bool
) -> tuple[str, list[int], list[int]]:
    """Of which stack, in which rows of the logits, and for which tokens the model answers."""
    stack = "decoder" if model.is_encoder_decoder else next(iter(model.stacks))
    if "text" in model.stacks and stack != "decoder":
        stack = "text"
    length = logits.shape[1]
    real = session.positions.real.get(stack)
    if real is not None and real.shape[1] == length and example < real.shape[0]:
        rows = real[example].nonzero()[:, 0].tolist()
    else:
        rows = list(range(length))
    if model.is_encoder_decoder or is_class:
        return stack, rows, list(range(len(rows)))
    if model.is_causal:
        tokens = batch.examples[example].tokens.get(stack)
        last = (len(tokens) if tokens else len(rows)) - 1
        return stack, rows[-1:], [last]
    mask_id = getattr(model.tokenizer, "mask_token_id", None)
    ids = batch.model_inputs.get("input_ids")
    if mask_id is None or ids is None or ids.shape[1] != length:
        return stack, [], []
    masked = [(place, row) for place, row in enumerate(rows) if int(ids[example, row]) == mask_id]
    return stack, [row for _, row in masked], [place for place, _ in masked]
