"""Models that answer with a span of the text (extractive question answering): their start and end logits as answers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from headscope.errors import InputError
from headscope.traces import Tokens
from headscope.traces.spans import LONGEST, answer_places, span_id

if TYPE_CHECKING:
    from headscope.models.inputs.batch import Batch
    from headscope.models.probed_module import ProbedModule


def answers_with_spans(model: "ProbedModule") -> bool:
    """Whether a model has a head for the start and the end of an answer in its own text."""
    return isinstance(getattr(model.module, "qa_outputs", None), nn.Module) and not model.is_encoder_decoder


def span_logits(outputs: Any, batch: "Batch", *, only_spans: bool = False) -> Tensor | None:
    """One logit for every span that may be an answer [example, candidate], by `span_id`: start plus end logit.

    Candidate 0 is all other pairs of a start and an end, so the softmax of these logits gives what the model's own two
    softmaxes give: p(start) · p(end). `only_spans` leaves the gradient of candidate 0 out. None where the model gives
    no start and end logits.
    """
    start, end = (getattr(outputs, name, None) for name in ("start_logits", "end_logits"))
    if not isinstance(start, Tensor) or not isinstance(end, Tensor) or start.ndim != 2:
        return None
    rows = []
    for example, inputs in enumerate(batch.examples):
        stack, tokens = next(iter(inputs.tokens.items()))
        places = _positions(batch, stack, example, start.shape[1]).to(start.device)
        rows.append(_example_logits(start[example, places], end[example, places], tokens, only_spans=only_spans))
    width = max(len(row) for row in rows)
    lowest = float("-inf")
    return torch.stack([nn.functional.pad(row, (0, width - len(row)), value=lowest) for row in rows])


def _positions(batch: "Batch", stack: str, example: int, length: int) -> Tensor:
    """Where the tokens of an example stand in its row, past any padding."""
    real = batch.real.get(stack)
    if real is None or real.shape[1] != length:
        return torch.arange(length)
    return real[example].nonzero()[:, 0]


def _example_logits(start: Tensor, end: Tensor, tokens: Tokens, *, only_spans: bool) -> Tensor:
    length = len(start)
    allowed = torch.zeros(length, dtype=torch.bool, device=start.device)
    allowed[[place for place in answer_places(tokens) if place < length]] = True
    first = torch.arange(length, device=start.device)[:, None]
    last = first + torch.arange(LONGEST, device=start.device)
    ends = last.clamp_max(length - 1)
    is_span = allowed[:, None] & allowed[ends] & (last < length)
    is_span[0, 0] |= bool(tokens) and tokens[0].special  # models that may refuse point at the first token
    wide = torch.promote_types(start.dtype, torch.float32)
    sums = start[:, None].to(wide) + end[ends].to(wide)
    spans = sums.masked_fill(~is_span, float("-inf")).flatten()
    # log(1 − the share of all spans), kept finite: where spans hold everything, rounding leaves next to nothing.
    total = start.to(wide).logsumexp(0) + end.to(wide).logsumexp(0)
    share = (spans.logsumexp(0) - total).exp().clamp_max(1 - torch.finfo(wide).eps)
    rest = total + torch.log1p(-share)
    return torch.cat([(rest.detach() if only_spans else rest)[None], spans])


def span_target(tokens: Tokens, target: str) -> int:
    """The id of a phrase of the text that answers may be taken from."""
    places = answer_places(tokens)
    wanted = "".join(target.split()).casefold()
    for first in places:
        text = ""
        for last in range(first, min(first + LONGEST, len(tokens))):
            text += "".join(tokens[last].text.split()).casefold()
            if text == wanted and last in places:
                return span_id(first, last)
    words = " ".join(_words(tokens, places))
    raise InputError(f"{target!r} is no span of at most {LONGEST} tokens of the text to answer from: {words}")


def _words(tokens: Tokens, places: Sequence[int]) -> list[str]:
    return [tokens[place].text.strip() for place in places[:LONGEST]] + ["…"] * (len(places) > LONGEST)
