"""How likely a language model finds a text: log-probabilities of tokens, perplexity; with edits or without."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from headscope.errors import InputError
from headscope.interventions import Intervention
from headscope.models import Model
from headscope.traces import Inputs

N_AT_ONCE = 16


def predicts_tokens(model: Model) -> bool:
    """Whether it is a causal or a masked language model: one that can be asked which token it expects."""
    find_head = getattr(model.module, "get_output_embeddings", None)
    has_head = find_head is None or find_head() is not None  # a module of one's own is taken at its word
    is_masked = getattr(model.tokenizer, "mask_token_id", None) is not None
    return has_head and not model.is_encoder_decoder and (model.is_causal or is_masked)


def logprobs(model: Model, inputs: Sequence[Inputs], interventions: Sequence[Intervention] = ()) -> Iterator[Tensor]:
    """Log-probabilities over the vocabulary at every position of each input [token, vocabulary]."""
    for first in range(0, len(inputs), N_AT_ONCE):
        for trace in model.run(list(inputs[first : first + N_AT_ONCE]), interventions, record="full"):
            if trace.logits is None or trace.logits.ndim != 2 or not trace.tokens["main"]:
                raise InputError(f"{model.name} gives no log-probabilities of tokens: it has no language-model head.")
            yield trace.logits.float().log_softmax(-1)


def token_logprobs(model: Model, inputs: Inputs, interventions: Sequence[Intervention] = ()) -> Tensor:
    """The log-probability of each token that the model can be asked about [token].

    A causal model is asked for each token after the first, given those before; a masked model for each token that is
    not special, given all others (Salazar et al., 2020: one run a token, batched).
    """
    ids = inputs.model_inputs.get("input_ids")
    if ids is None or not predicts_tokens(model):
        raise InputError(f"{model.name} is neither a causal nor a masked language model: it gives texts no likelihood.")
    if model.is_causal:
        token_rows = next(logprobs(model, [inputs], interventions))[:-1]
        return token_rows.gather(1, ids[1:, None])[:, 0]
    mask = model.tokenizer.mask_token_id
    positions = [place for place, token in enumerate(inputs.tokens["main"]) if not token.special]
    masked = [
        replace(inputs, model_inputs=inputs.model_inputs | {"input_ids": ids.index_fill(0, torch.tensor(place), mask)})
        for place in positions
    ]
    rows = logprobs(model, masked, interventions)
    return torch.stack([row[place, ids[place]] for row, place in zip(rows, positions, strict=True)])


def perplexity(model: Model, texts: Iterable[str], interventions: Sequence[Intervention] = ()) -> float:
    """The exponential of the mean negative log-probability of a token, over all texts; lower is better."""
    total, count = 0.0, 0
    for text in texts:
        logprobs_of_text = token_logprobs(model, model.read(text), interventions)
        total, count = total - float(logprobs_of_text.double().sum()), count + len(logprobs_of_text)
    if not count:
        raise InputError("perplexity needs at least one text with a token to predict.")
    return math.exp(total / count)
