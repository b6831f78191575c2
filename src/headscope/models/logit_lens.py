"""The logit lens: the model's own last norm and language-model head, applied to the residual stream of any place."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from headscope.errors import NotRecordedError
from headscope.progress import OnProgress, Steps
from headscope.traces.activations import Lens
from headscope.traces.activations_difference import LensDifference

if TYPE_CHECKING:
    from headscope.models.model import Model

# Logits that are held at a time: as many rows of the vocabulary as fit.
LOGITS = 2**24


def lens_stack(model: "Model") -> str:
    """The stack whose last residual stream becomes the model's answer."""
    return "decoder" if model.is_encoder_decoder else "main"


def why_no_lens(model: "Model", stack: str) -> str:
    """Why there is no logit lens of a stack; empty where there is one."""
    if not model.layout.lens:
        return model.layout.no_lens
    own = lens_stack(model)
    return "" if stack == own else f"the {own} predicts, the {stack} does not"


def logits_of(model: "Model", stream: Tensor) -> Tensor:
    """What the model would answer if this were its last residual stream [token, vocabulary]."""
    with torch.no_grad():
        part = stream.to(model.device, model.dtype)
        for name in model.layout.lens:
            part = model.module.get_submodule(name)(part)
    return part.float()


def read_lens(
    model: "Model",
    stream: Tensor,
    k: int = 5,
    *,
    check: Callable[[], None] | None = None,
    progress: OnProgress | None = None,
) -> Lens:
    """The logit lens of a residual stream [place, token, dim]; only some rows of logits are held at a time."""
    if not model.layout.lens:
        raise NotRecordedError(f"no logit lens for {model.name}: {model.layout.no_lens}.")
    n_places, length = stream.shape[:2]
    step = max(1, LOGITS // logits_of(model, stream[-1, :1]).shape[-1])
    best = torch.zeros(length, dtype=torch.long)
    ids, logprobs, ranks, answers = [], [], [], []
    steps = Steps("logit lens", n_places, progress)
    for place in reversed(range(n_places)):  # the last first: the others are compared with its answer
        rows: list[tuple[Tensor, ...]] = []
        for first in range(0, length, step):
            if check is not None:
                check()
            logp = logits_of(model, stream[place, first : first + step]).log_softmax(-1)
            if place == n_places - 1:
                best[first : first + step] = logp.argmax(-1).cpu()
            own = logp.gather(-1, best[first : first + step, None].to(logp.device))
            top = logp.topk(min(k, logp.shape[-1]), dim=-1)
            rows.append(tuple(tensor.cpu() for tensor in (top.indices, top.values, (logp > own).sum(-1), own[:, 0])))
        for into, at in ((ids, 0), (logprobs, 1), (ranks, 2), (answers, 3)):
            into.append(torch.cat([row[at] for row in rows]))
        steps.add()
    whole = [torch.stack(by_place[::-1]).numpy() for by_place in (ids, logprobs, ranks, answers)]
    name = model.token_text
    names = {int(token_id): name(int(token_id)) for token_id in np.unique(whole[0])}
    return Lens(whole[0].astype(np.int32), whole[1], whole[2].astype(np.int32), whole[3], names)


def read_lenses(
    models: "tuple[Model, Model]",
    streams: tuple[Tensor, Tensor],
    k: int = 5,
    *,
    check: Callable[[], None] | None = None,
    progress: OnProgress | None = None,
) -> LensDifference:
    """The logit lens of two residual streams [place, token, dim] whose tokens stand for the same, over one vocabulary:
    of every place the k likeliest candidates of either."""
    n_places, length = streams[0].shape[:2]
    step = max(1, LOGITS // (2 * logits_of(models[0], streams[0][-1, :1]).shape[-1]))
    best = torch.zeros(2, length, dtype=torch.long)
    places: list[tuple[Tensor, ...]] = []
    steps = Steps("logit lens", n_places, progress)
    for place in reversed(range(n_places)):  # the last first: the others are compared with its answers
        rows: list[tuple[Tensor, ...]] = []
        for first in range(0, length, step):
            if check is not None:
                check()
            cut = slice(first, first + step)
            left, right = (
                logits_of(model, stream[place, cut]).log_softmax(-1)
                for model, stream in zip(models, streams, strict=True)
            )
            right = right.to(left.device)
            if place == n_places - 1:
                best[:, cut] = torch.stack([left.argmax(-1), right.argmax(-1)]).cpu()
            logprobs, ranks = _answers(best[:, cut].to(left.device), left, right)
            rows.append(tuple(each.cpu() for each in (*_candidates(left, right, k), logprobs, ranks)))
        # Candidates are [token, candidate], answers [answer, run, token].
        places.append(tuple(torch.cat(each, 0 if at < 3 else 2) for at, each in enumerate(zip(*rows, strict=True))))
        steps.add()
    ids, left, right = (torch.stack([place[at] for place in places[::-1]]).numpy() for at in range(3))
    logprobs, ranks = (torch.stack([place[at] for place in places[::-1]], 2).numpy() for at in (3, 4))
    name = models[0].token_text
    known = np.unique(np.concatenate([ids.ravel(), best.numpy().ravel()]))
    names = {int(id): name(int(id)) for id in known if id >= 0}
    return LensDifference(
        ids.astype(np.int32), left, right, best.numpy().astype(np.int32), logprobs, ranks.astype(np.int32), names
    )


def _candidates(left: Tensor, right: Tensor, k: int) -> tuple[Tensor, Tensor, Tensor]:
    """The k likeliest of either, each once, by how far their probabilities differ; with both log-probabilities."""
    k = min(k, left.shape[-1])
    first, second = (side.topk(k, dim=-1).indices for side in (left, right))
    ids = torch.cat([first, second], -1)
    is_again = torch.cat([torch.zeros_like(first, dtype=torch.bool), (second[..., None] == first[:, None]).any(-1)], -1)
    both = [side.gather(-1, ids) for side in (left, right)]
    moved = (both[0].exp() - both[1].exp()).abs().masked_fill(is_again, -1.0)
    order = moved.argsort(dim=-1, descending=True, stable=True)
    is_again = is_again.gather(-1, order)
    logprobs = [side.gather(-1, order).masked_fill(is_again, float("nan")) for side in both]
    return ids.gather(-1, order).masked_fill(is_again, -1), logprobs[0], logprobs[1]


def _answers(best: Tensor, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """Of each run's answer [answer, token] the log-probability in both runs, and its rank [answer, run, token]."""
    logprobs, ranks = [], []
    for answer in best:
        own = [side.gather(-1, answer[:, None]) for side in (left, right)]
        logprobs.append(torch.stack([each[:, 0] for each in own]))
        ranks.append(torch.stack([(side > each).sum(-1) for side, each in zip((left, right), own, strict=True)]))
    return torch.stack(logprobs), torch.stack(ranks)
