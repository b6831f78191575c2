"""Inputs for models whose configuration does not tell what they read."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

Maker = Callable[[Any], Tensor]
N_TOKENS, N_TARGET = 7, 5
GRID = 4


def made_up_inputs(module: Any) -> Iterator[dict[str, Any]]:
    """Inputs that some model of this kind takes, the likeliest first; the first that it runs by itself is used."""
    names = inspect.signature(type(module).forward).parameters
    texts = _texts(module.config, set(names))
    needed = {
        name: EXTRAS[name](module.config)
        for name, parameter in names.items()
        if name in EXTRAS and (parameter.default is inspect.Parameter.empty or name in ALWAYS)
    }
    if "query_embeds" in needed:
        needed["encoder_hidden_states"] = EXTRAS["encoder_hidden_states"](module.config)
    for inputs in _combinations(module.config, set(names), texts):
        if needed:
            yield needed | inputs
        yield inputs


def _combinations(config: Any, names: set[str], texts: dict[str, Tensor]) -> Iterator[dict[str, Any]]:
    """Text alone, then with images, patches, sound or series, then each of these alone."""
    target = {name: tensor for name, tensor in texts.items() if name.startswith("decoder_")}
    if "input_ids" in texts:
        yield texts
    for media in (_images, _patches, _bins, _samples, _series, _others):
        for inputs in media(config, names):
            yield target | inputs
            if "input_ids" in texts:
                yield texts | inputs
                yield texts | inputs | _placeholders(config, texts["input_ids"])


def noise(*shape: int) -> Tensor:
    """Seeded random numbers."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def field(config: Any, *names: str, default: int) -> int:
    """The first number among these fields, in the configuration or the parts that read images and sounds."""
    sections = [config]
    for part in ("vision_config", "audio_config", "encoder", "encoder_config", "backbone_config", "text_config"):
        section = getattr(config, part, None)
        if section is not None and not isinstance(section, dict):
            sections += [section, getattr(section, "vision_config", None)]
    for section in sections:
        for name in names:
            size = getattr(section, name, None)
            size = size[0] if isinstance(size, list | tuple) and size else size
            if isinstance(size, int) and not isinstance(size, bool):
                return size
    return default


def _texts(config: Any, names: set[str]) -> dict[str, Tensor]:
    ids = (torch.arange(N_TOKENS) * 5 % 60 + 20)[None]
    texts: dict[str, Tensor] = {}
    if "input_ids" in names:
        texts["input_ids"] = ids
        if "attention_mask" in names:
            texts["attention_mask"] = torch.ones_like(ids)
    if "decoder_input_ids" in names:
        target = ids[:, :N_TARGET]
        channels = field(getattr(config, "decoder_config", config), "num_channels", default=0)
        n_books = field(getattr(config, "decoder", None), "num_codebooks", default=0)
        if channels > 3:  # codes of each codebook side by side, as in Dia
            target = target[..., None].expand(-1, -1, channels).contiguous()
        texts["decoder_input_ids"] = target.repeat(n_books, 1) if n_books else target
    return texts


def _placeholders(config: Any, ids: Tensor) -> dict[str, Tensor]:
    """A text that begins with as many image tokens as the model puts in for a small image."""
    tokens = ("image_token_id", "image_token_index", "audio_token_id", "audio_token_index", "video_token_index")
    token = field(config, *tokens, default=-1)
    if token < 0:
        return {}
    n_images = field(config, "image_seq_length", "num_query_tokens", "mm_tokens_per_image", default=8)
    text = torch.cat([torch.full((1, n_images), token), ids], dim=1)
    return {"input_ids": text, "attention_mask": torch.ones_like(text)}


def _images(config: Any, names: set[str]) -> Iterator[dict[str, Any]]:
    sections = [config, *(getattr(config, name, None) for name in ("vision_config", "encoder", "backbone_config"))]
    sizes = [getattr(section, "image_size", None) for section in sections]
    sides = [size if isinstance(size, int) else size[0] for size in sizes if isinstance(size, int | list | tuple)]
    for side in dict.fromkeys([*sides, 32, 64, 224]):
        if "image_attention_mask" in names:
            yield {"pixel_values": noise(1, 1, 3, side, side), "image_attention_mask": torch.ones(1, N_TOKENS, 1)}
        for channels in dict.fromkeys([field(config, "num_channels", "in_channels", default=3), 3]):
            pixels = noise(1, channels, side, side)
            if "pixel_values" in names:
                yield {"pixel_values": pixels}
                yield {"pixel_values": pixels[:, None].repeat(1, 2, 1, 1, 1)}
                yield {"pixel_values": pixels, "pixel_mask": torch.ones(1, side, side).long()}
                yield {"pixel_values": pixels[:, None].repeat(1, 8, 1, 1, 1)}
        if "pixel_values_videos" in names:
            yield {"pixel_values_videos": noise(1, 2, 3, side, side)}
            yield {"pixel_values_videos": noise(1, 16, 3, side, side)}


def _patches(config: Any, names: set[str]) -> Iterator[dict[str, Any]]:
    """Images cut into patches before they come, as Qwen-VL and SigLIP 2 read them."""
    patch = field(config, "patch_size", "spatial_patch_size", default=8)
    channels = field(config, "in_channels", "in_chans", "num_channels", default=3)
    for n_frames in dict.fromkeys([field(config, "temporal_patch_size", default=1), 1, 2]):
        size = channels * n_frames * patch**2
        grid = torch.tensor([[1, GRID, GRID]])
        for name in ("hidden_states", "pixel_values"):
            if name not in names:
                continue
            for grid_name in ("grid_thw", "image_grid_thw", "image_grid_hw"):
                if grid_name in names:
                    shape = grid[:, 1:] if grid_name.endswith("_hw") else grid
                    yield {name: noise(GRID**2, size), grid_name: shape}
                    yield {name: noise(1, GRID**2, size), grid_name: shape}
                    yield {name: noise(GRID**2, channels, patch, patch), grid_name: shape}
        if "pixel_values" in names and "spatial_shapes" in names:
            yield {
                "pixel_values": noise(1, GRID**2, size),
                "pixel_attention_mask": torch.ones(1, GRID**2).long(),
                "spatial_shapes": grid[:, 1:],
            }
        if "pixel_position_ids" in names:
            places = torch.stack(torch.meshgrid(torch.arange(GRID), torch.arange(GRID), indexing="ij"), dim=-1)
            for size in (patch**2 * channels,):
                yield {
                    "pixel_values": noise(1, GRID**2, size),
                    "pixel_position_ids": places.view(1, GRID**2, 2),
                }


def _bins(config: Any, names: set[str]) -> Iterator[dict[str, Any]]:
    """Spectrograms, with the frames before or after the bins."""
    bins = ("num_mel_bins", "feature_size", "input_feat_per_channel", "input_dim", "n_mels", "input_channels")
    bins += ("feature_projection_input_dim", "input_feat_size")
    lengths = [field(config, "max_length", default=64), 2 * field(config, "max_source_positions", default=32)]
    lengths += [56, 200, 256]
    width = field(config, *bins, default=80)
    # Some read several frames of 80 bins as one.
    for n_bins in dict.fromkeys([width, 80, 128, 4 * width, field(config, "num_stacked_frames", default=2) * width]):
        for n_frames in dict.fromkeys(length for length in lengths if length <= 4096):
            for name in ("input_features", "audio_values", "input_values", "audio_mel"):
                if name not in names:
                    continue
                for features in (noise(1, n_bins, n_frames), noise(1, n_frames, n_bins)):
                    yield {name: features}
                    for mask in ("input_features_mask", "attention_mask", "feature_attention_mask", "audio_mel_mask"):
                        if mask in names:
                            for dtype in (torch.long, torch.bool):
                                yield {name: features, mask: torch.ones(1, n_frames, dtype=dtype)}
                    if "feature_lens" in names:
                        yield {name: features[0], "feature_lens": torch.tensor([n_frames])}
                yield {name: noise(1, 1, n_frames, n_bins)}
                yield {name: noise(1, 4, n_frames, n_bins)}


def _samples(config: Any, names: set[str]) -> Iterator[dict[str, Any]]:
    """Sounds as samples."""
    for name in ("input_values", "audio_values", "input_features"):
        if name not in names:
            continue
        for length in (3200, 16000, 23040, 20480):
            yield {name: noise(1, length)}
            yield {name: noise(1, 1, length)}
            if "input_features" in names:
                yield {name: noise(1, 1, length), "input_features": noise(1, length // 320, 160)}
            if "padding_mask" in names:
                yield {name: noise(1, 1, length), "padding_mask": torch.ones(1, length).bool()}
                yield {name: noise(1, 1, length), "padding_mask": torch.ones(1, 1, length).bool()}


def _series(config: Any, names: set[str]) -> Iterator[dict[str, Any]]:
    """Time series: as long as the context and the longest lag together."""
    if "past_values" not in names:
        return
    length = field(config, "context_length", default=32)
    lags = getattr(config, "lags_sequence", None) or [0]
    length += max(lags)
    ahead = field(config, "prediction_length", default=4)
    if "past_time_features" in names:
        n_features = field(config, "num_time_features", default=0)
        yield {
            "past_values": noise(1, length),
            "past_time_features": noise(1, length, max(n_features, 0)),
            "past_observed_mask": torch.ones(1, length),
            "future_values": noise(1, ahead),
            "future_time_features": noise(1, ahead, max(n_features, 0)),
        }
    yield {"past_values": noise(1, length, field(config, "num_input_channels", default=1))}
    yield {"past_values": noise(1, length)}
    yield {
        "past_values": noise(1, length),
        "past_values_padding": torch.zeros(1, length).long(),
        "freq": torch.zeros(1, 1).long(),
    }


def _others(config: Any, names: set[str]) -> Iterator[dict[str, Any]]:
    """Vectors, and what goes by the name of inputs alone."""
    hidden = field(config, "hidden_size", "d_model", default=32)
    if "inputs" in names:
        yield {"inputs": (torch.arange(N_TOKENS) * 5 % 60 + 20)[None]}
        yield {"inputs": noise(1, 3, 32, 32)}
    for name in ("inputs_embeds", "hidden_states"):
        if name in names:
            yield {name: noise(1, N_TOKENS, hidden)}
            yield {name: noise(1, hidden, N_TOKENS)}
    if EXTRAS.keys() & names:
        yield {}


def _boxes(config: Any) -> Tensor:
    return torch.tensor([[[10 * place, 10, 10 * place + 8, 20] for place in range(N_TOKENS)]])


def _shape(*sizes: int | str, value: float | None = None) -> Maker:
    """A maker of a tensor, some of its sizes fields of the configuration."""

    def make(config: Any) -> Tensor:
        shape = [size if isinstance(size, int) else field(config, *size.split("|"), default=32) for size in sizes]
        return noise(*shape) if value is None else torch.full(shape, value).long()

    return make


# What some models need beside their main input.
EXTRAS: dict[str, Maker] = {
    "bbox": _boxes,
    "visual_feats": _shape(1, 3, "visual_feat_dim"),
    "visual_pos": _shape(1, 3, "visual_pos_dim"),
    "states": _shape(1, 5, "state_dim"),
    "actions": _shape(1, 5, "act_dim"),
    "rewards": _shape(1, 5, 1),
    "returns_to_go": _shape(1, 5, 1),
    "timesteps": lambda config: torch.arange(5)[None],
    "image_embeds_position_mask": lambda config: (torch.arange(N_TOKENS) < 4).long()[None],
    "merge_sizes": lambda config: torch.tensor([2]),
    "query_embeds": _shape(1, 8, "hidden_size"),
    "encoder_hidden_states": _shape(1, 6, "encoder_hidden_size|hidden_size"),
    "noise_embeds": _shape(1, 6, "hidden_size"),
    "context_hidden_states": lambda config: noise(1, 6, config.hidden_size * 5),
    "target_sizes": lambda config: torch.tensor([[GRID, GRID]]),
    "is_longer": lambda config: torch.tensor([[False]]),
    "qformer_input_ids": _shape(1, N_TOKENS, value=21),
    "conditional_pixel_values": _shape(1, 3, "image_size", "image_size"),
    "prompt_pixel_values": _shape(1, 3, 32, 32),
    "prompt_masks": _shape(1, 3, 32, 32),
    "latents": _shape(1, "hidden_size", 6),
}
# Their defaults are None, and then an error.
ALWAYS = {"bbox", "visual_feats", "visual_pos", "query_embeds", "states"}
ALWAYS |= {
    "actions",
    "rewards",
    "returns_to_go",
    "timesteps",
    "is_longer",
    "target_sizes",
    "image_embeds_position_mask",
}
