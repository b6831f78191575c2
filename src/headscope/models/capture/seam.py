"""The one attention function: registered with Transformers, it is where every routed model is seen and touched.

Outside a session it is plain SDPA. Inside, the session that the calling context carries does the work.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import (
    bidirectional_mask_function,
    causal_mask_function,
    eager_mask,
    prepare_padding_mask,
    sdpa_mask,
)
from transformers.utils import logging

from headscope.attention import Bias, Formula, Mask, expand_heads, scores, softmax
from headscope.errors import CaptureError
from headscope.models.capture.mask_tensor import MaskTensor

if TYPE_CHECKING:
    from headscope.models.capture.session import Session

NAME = "headscope"

# A new thread starts without a session: copy the context into it (contextvars.copy_context) to carry one over.
current_session: ContextVar["Session | None"] = ContextVar("headscope_session", default=None)

# Arguments that models pass along and that change nothing in what we compute: windows are in the mask already, the rest
# speak to other kernels or to other parts of the model.
_HARMLESS = frozenset(
    {
        "sliding_window",
        "output_attentions",
        "output_hidden_states",
        "output_router_logits",
        "position_ids",
        "cache_position",
        "use_cache",
        "return_dict",
        "deterministic",
        "num_items_in_batch",
        "logits_to_keep",
        "past_key_values",
    }
)


@dataclass(frozen=True, eq=False)
class AttentionCall:
    """One call of the attention function: query [batch, head, query, dim], key and value [batch, group, key, dim].

    `sdpa_is_causal`: the model's own SDPA would hide what follows, though there is no mask and its eager code sees all.
    `window`: how many keys a query sees to one side, itself included, where the module says so.
    `is_global` [batch, query]: the queries whose output is the second half of mixed values twice as wide (Longformer).
    """

    module: nn.Module
    query: Tensor
    key: Tensor
    value: Tensor
    formula: Formula
    dropout: float = 0.0
    way: str = "routed"
    sdpa_is_causal: bool = False
    is_global: Tensor | None = None
    window: int | None = None


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    is_causal: bool | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    position_bias: Tensor | None = None,
    **others: Any,
) -> tuple[Tensor, Tensor | None]:
    """What Transformers calls for each attention layer; gives [batch, query, head, dim] and the pattern, if held."""
    session = current_session.get()
    watched = session is not None and session.watches(module)
    if not watched and softcap is None and s_aux is None:
        options = {"scaling": scaling, "dropout": dropout, "is_causal": is_causal, "position_bias": position_bias}
        dense = (
            attention_mask.mask.materialise().to(query.device)
            if isinstance(attention_mask, MaskTensor)
            else attention_mask
        )
        return sdpa_attention_forward(module, query, key, value, dense, **options, **others)
    refused = sorted(name for name, argument in others.items() if name not in _HARMLESS and argument is not None)
    if refused:
        raise CaptureError(
            f"{type(module).__name__} passes {', '.join(refused)} to its attention, which Headscope does not compute: "
            "what it would show could be wrong. Run the model outside a session, or report the model's name."
        )
    by = query.shape[-1] ** -0.5 if scaling is None else float(scaling)
    # Without a mask a model's own eager code hides nothing, whatever flag it has for SDPA: we follow eager.
    mask, bias = read_mask(attention_mask, query, key, is_causal=False)
    if position_bias is not None:
        extra = _shared_bias(position_bias, session if watched else None)
        bias = extra if bias is None else Bias("dense", bias.tile() + position_bias, query.shape[2], key.shape[2])
    flag = getattr(module, "is_causal", True) if is_causal is None else is_causal
    hides = attention_mask is None and bool(flag) and query.shape[2] > 1
    formula = Formula(by, softcap, s_aux, mask, bias)
    window = others.get("sliding_window")
    call = AttentionCall(module, query, key, value, formula, dropout, sdpa_is_causal=hides, window=window or None)
    if watched:
        assert session is not None
        return session.attend(call)
    return attend_plainly(call)


def attend_plainly(call: AttentionCall) -> tuple[Tensor, Tensor]:
    """The formula, whole: for models that SDPA cannot run (soft caps, sinks) outside a session."""
    key, value = expand_heads(call.key, call.query.shape[1]), expand_heads(call.value, call.query.shape[1])
    pattern = softmax(scores(call.query, key, call.formula), call.formula.sinks).to(call.query.dtype)
    pattern = nn.functional.dropout(pattern, p=call.dropout, training=call.module.training)
    return (pattern @ value).transpose(1, 2).contiguous(), pattern


def mask_of(
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: int = 0,
    kv_offset: int = 0,
    mask_function=causal_mask_function,
    attention_mask: Tensor | None = None,
    device: "torch.device | str" = "cpu",
    use_vmap: bool = False,
    **options: Any,
) -> Tensor | None:
    """What Transformers calls to make a mask: an object inside a session, the usual tensor for SDPA outside."""
    session = current_session.get()
    shape = {"batch_size": batch_size, "q_length": q_length, "kv_length": kv_length}
    if session is None or use_vmap:  # a function written for vmap cannot be read by rows
        tensor_mask = sdpa_mask if session is None else eager_mask
        return tensor_mask(
            **shape,
            q_offset=q_offset,
            kv_offset=kv_offset,
            mask_function=mask_function,
            attention_mask=attention_mask,
            device=device,
            use_vmap=use_vmap,
            **options,
        )
    q_offset, kv_offset = int(q_offset), int(kv_offset)
    padding = prepare_padding_mask(attention_mask, kv_length, kv_offset)
    padding = None if padding is None else padding[:, kv_offset : kv_offset + kv_length].to(device, torch.bool)
    padding = None if padding is None or bool(padding.all()) else padding
    dtype = options.get("dtype") or torch.float32
    place: dict[str, Any] = {"query_offset": q_offset, "key_offset": kv_offset, "batch": batch_size}
    if mask_function is bidirectional_mask_function:
        if padding is None and options.get("allow_is_bidirectional_skip"):
            return None  # as models expect: some add their bias to whatever mask they get
        return MaskTensor(Mask(q_length, kv_length, keys=padding, **place), dtype, device)
    if mask_function is causal_mask_function:
        stop = torch.arange(1, q_length + 1, device=device) + q_offset - kv_offset
        stop = stop.clamp(0, kv_length)[None]
        mask = Mask(q_length, kv_length, stop=stop, keys=padding, is_triangle=True, **place)
        return MaskTensor(mask, dtype, device)
    mask = Mask.from_function(
        mask_function,
        batch=batch_size,
        n_queries=q_length,
        n_keys=kv_length,
        query_offset=q_offset,
        key_offset=kv_offset,
        padding=padding,
        device=device,
    )
    return MaskTensor(mask, dtype, device)


def read_mask(
    attention_mask: Tensor | None, query: Tensor, key: Tensor, *, is_causal: bool
) -> tuple[Mask | None, Bias | None]:
    """The mask and the bias in what a model gives as its attention mask: an object, booleans, floats, or nothing."""
    n_queries, n_keys = query.shape[2], key.shape[2]
    if attention_mask is None:
        # The flag counts from the upper left, and a single query sees everything: as SDPA has it.
        return (Mask.causal(n_queries, n_keys, device=query.device) if is_causal and n_queries > 1 else None), None
    if isinstance(attention_mask, MaskTensor):
        return attention_mask.mask, None
    attention_mask = attention_mask[..., :n_keys]
    if attention_mask.dtype == torch.bool:
        return Mask.from_dense(attention_mask.expand(query.shape[0], -1, n_queries, n_keys)), None
    # Additive: what is far below any score forbids; the rest is a bias (Swin's and BEiT's tables arrive this way).
    forbids = attention_mask <= max(torch.finfo(attention_mask.dtype).min / 2, -1e30)
    free = attention_mask.masked_fill(forbids, 0.0)
    mask = Mask.from_dense((~forbids).expand(query.shape[0], -1, n_queries, n_keys)) if bool(forbids.any()) else None
    bias = Bias("dense", free.expand(-1, -1, n_queries, n_keys), n_queries, n_keys) if bool((free != 0).any()) else None
    return mask, bias


def _shared_bias(position_bias: Tensor, session: "Session | None") -> Bias:
    """A bias tensor as it came; a session describes one that several layers share only once."""
    if session is not None:
        return session.bias_of(position_bias)
    return Bias("dense", position_bias, *position_bias.shape[-2:])


def attention_configs(parts: Iterable[nn.Module]) -> list[Any]:
    """Every configuration that says which attention function some of these parts of a model call."""
    known = {id(part.config): part.config for part in parts if isinstance(part, PreTrainedModel)}
    configs = list(known.values())
    for config in configs:  # grows meanwhile
        for name in config.sub_configs:
            section = getattr(config, name, None)
            if section is not None and id(section) not in known:
                known[id(section)] = section
                configs.append(section)
    return configs


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silence the log line that says a model does not take an attention function: coverage says it better."""
    logger = logging.get_logger("transformers.modeling_utils")
    was_disabled, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = was_disabled


AttentionInterface.register(NAME, attend)
AttentionMaskInterface.register(NAME, mask_of)
