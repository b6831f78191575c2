"""Forward passes through the layers of the Hugging Face models, without their mask preparation.

The models build masks that keep the fast attention kernels from being used under torch.compile. Here the masks are
given as plain boolean tensors (or none at all), so that the same layers run at full speed. The parameters are the
models' own: what is trained is what is saved.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


def first(output: Tensor | tuple[Tensor, ...]) -> Tensor:
    return output[0] if isinstance(output, tuple) else output


NOT_SEEN = -10_000.0


def causal_mask(width: int, device: torch.device) -> Tensor:
    """[1, 1, query, key], added to the scores: a large negative number where the key lies ahead of the query."""
    at = torch.arange(width, device=device)
    return ((at[None, :] > at[:, None]).float() * NOT_SEEN)[None, None]


def layers_of(module: nn.Module) -> nn.ModuleList:
    """The list of layers of an encoder, under whatever name this version of the library has it."""
    return next(part for part in module.modules() if isinstance(part, nn.ModuleList))


def gpt_logits(model: nn.Module, tokens: Tensor) -> Tensor:
    body = model.transformer
    hidden = body.wte(tokens) + body.wpe(torch.arange(tokens.shape[1], device=tokens.device))
    hidden = body.drop(hidden)
    causal = causal_mask(tokens.shape[1], tokens.device)
    for block in body.h:
        hidden = first(block(hidden, attention_mask=causal))
    return model.lm_head(body.ln_f(hidden))


def bert_hidden(model: nn.Module, tokens: Tensor, segments: Tensor, allowed: Tensor | None) -> Tensor:
    """`allowed` is [batch, 1, 1, key], true where a key may be seen."""
    hidden = model.bert.embeddings(input_ids=tokens, token_type_ids=segments)
    for layer in layers_of(model.bert.encoder):
        hidden = first(layer(hidden, attention_mask=allowed))
    return hidden


def vit_logits(model: nn.Module, images: Tensor, drop_depth: float) -> Tensor:
    """With stochastic depth: each layer is skipped for some images, later layers more often."""
    hidden = model.vit.embeddings(images)
    layers = layers_of(model.vit)
    for index, layer in enumerate(layers):
        after = first(layer(hidden))
        rate = drop_depth * (index + 1) / len(layers)
        if model.training and rate > 0:
            gate = (torch.rand(hidden.shape[0], 1, 1, device=hidden.device) >= rate).to(hidden.dtype) / (1 - rate)
            after = hidden + gate * (after - hidden)
        hidden = after
    return model.classifier(model.vit.layernorm(hidden)[:, 0])


def marian_logits(model: nn.Module, source: Tensor, target_in: Tensor, padding: int) -> Tensor:
    encoder, decoder = model.model.encoder, model.model.decoder
    scale = math.sqrt(model.config.d_model)
    source_seen = (source == padding)[:, None, None, :].float() * NOT_SEEN
    hidden = encoder.embed_tokens(source) * scale + encoder.embed_positions.weight[: source.shape[1]]
    hidden = nn.functional.dropout(hidden, model.config.dropout, model.training)
    for layer in encoder.layers:
        hidden = first(layer(hidden, attention_mask=source_seen))
    memory = hidden
    width = target_in.shape[1]
    causal = causal_mask(width, source.device)
    hidden = decoder.embed_tokens(target_in) * scale + decoder.embed_positions.weight[:width]
    hidden = nn.functional.dropout(hidden, model.config.dropout, model.training)
    for layer in decoder.layers:
        hidden = first(
            layer(hidden, attention_mask=causal, encoder_hidden_states=memory, encoder_attention_mask=source_seen)
        )
    return model.lm_head(hidden) + model.final_logits_bias
