"""Small made-up inputs that reach all of a model's attention."""

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn

N_TOKENS = 7
N_TARGET = 5


def forward_arguments(module: nn.Module) -> tuple[str, ...]:
    """The names of what a model's forward takes, in order."""
    return _arguments(type(module).forward)


@lru_cache(maxsize=64)  # every load asks for those of its model several times
def _arguments(forward: Callable) -> tuple[str, ...]:
    return tuple(name for name in inspect.signature(forward).parameters if name != "self")


def probe_inputs(module: nn.Module) -> dict[str, Tensor] | None:
    """Inputs by the model's own argument names, or None if its configuration does not tell how they look."""
    config = getattr(module, "config", None)
    names = forward_arguments(module)
    main = getattr(module, "main_input_name", "input_ids")
    main_names = [main] if isinstance(main, str) else list(main)
    inputs: dict[str, Tensor] = {}
    makers = {"input_ids": _ids, "pixel_values": _pixels, "input_features": _features, "input_values": _samples}
    of_towers = [name for name in ("input_ids", "pixel_values") if name in names and _has_tower(config, name)]
    for name in dict.fromkeys([*main_names, *of_towers]):
        if name in names and name in makers:
            tensor = makers[name](config)
            if tensor is None:
                return None
            inputs[name] = tensor
    if not inputs:
        return None
    if getattr(config, "is_encoder_decoder", False) and "decoder_input_ids" in names:
        target = _ids(getattr(config, "decoder", None) or config, N_TARGET)
        if target is not None:
            inputs["decoder_input_ids"] = target
    if "global_attention_mask" in names and "input_ids" in inputs:  # Longformer's own choice needs separators
        inputs["global_attention_mask"] = torch.zeros_like(inputs["input_ids"]).index_fill(1, torch.tensor(0), 1)
    return inputs


def config_field(config: Any, name: str) -> Any:
    """A field of a configuration; None where it has none, or one a layer instead."""
    try:
        return getattr(config, name, None)
    except Exception:  # configurations of mixed layers raise an error of their own
        return None


def _has_tower(config: Any, name: str) -> bool:
    """Whether a two-tower model (CLIP) takes this input beside its main one."""
    has_both = getattr(config, "text_config", None) is not None and getattr(config, "vision_config", None) is not None
    is_joined = any(hasattr(config, key) for key in ("image_token_id", "image_token_index"))  # one stream, as in LLaVA
    return has_both and not is_joined


def _section(config: Any, *names: str) -> Any:
    for name in names:
        if getattr(config, name, None) is not None:
            return getattr(config, name)
    return config


def _ids(config: Any, length: int = N_TOKENS) -> Tensor | None:
    text = _section(config, "text_config", "encoder") if not hasattr(config, "vocab_size") else config
    size = getattr(text, "vocab_size", None)
    if not isinstance(size, int):
        return None
    length = min(length, _positions(text) or length)
    # Neither padding nor any other special token, which stand at the two ends of most vocabularies.
    return ((torch.arange(length) * 7) % max(size // 2, 1) + size // 4)[None]


def _positions(config: Any) -> int | None:
    for name in ("max_position_embeddings", "n_positions"):
        if isinstance(getattr(config, name, None), int) and getattr(config, name) > 0:  # XLNet says -1: no limit
            return getattr(config, name)
    return None


def _pixels(config: Any) -> Tensor | None:
    vision = _section(config, "vision_config", "encoder")
    size, channels = getattr(vision, "image_size", None), getattr(vision, "num_channels", 3)
    if size is None:
        return None
    height, width = (size, size) if isinstance(size, int) else (size[0], size[1])
    generator = torch.Generator().manual_seed(0)
    return torch.randn(1, channels, height, width, generator=generator)


def _features(config: Any) -> Tensor | None:
    bins, frames = getattr(config, "num_mel_bins", None), getattr(config, "max_source_positions", None)
    if bins is None or frames is None:
        return None
    return torch.randn(1, bins, 2 * frames, generator=torch.Generator().manual_seed(0))


def _samples(config: Any) -> Tensor | None:
    strides = getattr(config, "conv_stride", None)
    kernels = getattr(config, "conv_kernel", None)
    if strides is None or kernels is None:
        return None
    # As many samples as give a few frames after the convolutions.
    length = 6
    for kernel, stride in zip(reversed(kernels), reversed(strides), strict=True):
        length = (length - 1) * stride + kernel
    return torch.randn(1, length, generator=torch.Generator().manual_seed(0))
