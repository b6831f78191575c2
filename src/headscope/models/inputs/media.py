"""Images and sound: from what a person has (a file, a picture, an array) to what a model takes, and their tokens."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor

from headscope.errors import InputError, TooLongError
from headscope.models.inputs.accepted import Intake
from headscope.models.inputs.display_media import picture_of, sound_of, spectrogram_picture
from headscope.models.inputs.paths import existing_file
from headscope.models.inputs.reading_warnings import warn_reader
from headscope.models.inputs.sounds import samples_of
from headscope.pictures import DamagedPictureError, opened_picture
from headscope.traces.media import Picture, Seen
from headscope.traces.tokens import Token, Tokens

_MODES = {1: "L", 3: "RGB", 4: "RGBA"}
_FRAME_SECONDS = 0.01  # between two spectrogram frames of the Audio Spectrogram Transformer


def picture(source: Any, n_channels: int = 3) -> Image.Image:
    """Any image as an 8-bit picture with as many channels as the model has: path, PIL image, array or tensor.

    Arrays are [H, W], [H, W, C] or [C, H, W]: bytes, or floats from 0 to 1. Transparent parts are put on white.
    """
    if n_channels not in _MODES:
        raise InputError(
            f"this model's images have {n_channels} channels, which no picture has: give `pixel_values=` instead."
        )
    if isinstance(source, str | Path):
        path = existing_file(source)
        try:
            with opened_picture(path) as opened:
                opened.load()
                source = ImageOps.exif_transpose(opened)
        except (DamagedPictureError, Image.DecompressionBombError) as error:
            raise InputError(
                f"{str(path)!r} cannot be read as an image ({error}): give a PNG, JPEG or the like."
            ) from error
    if not isinstance(source, Image.Image):
        source = _from_array(source, n_channels)
    if 0 in source.size:
        raise InputError(f"the image is empty: it measures {source.width}×{source.height} pixels.")
    if source.mode in ("I", "F") or source.mode.startswith("I;16"):
        source = _from_array(np.asarray(source), n_channels)
    mode = _MODES[n_channels]
    if mode != "RGBA" and (source.mode in ("RGBA", "LA", "PA") or "transparency" in source.info):
        source = _on_white(source.convert("RGBA"))
    return source if source.mode == mode else source.convert(mode)


def _on_white(image: Image.Image) -> Image.Image:
    if np.asarray(image.getchannel("A")).min() < 255:
        warn_reader("the image has transparent parts: the model sees them as white.")
    white = Image.new("RGBA", image.size, (255, 255, 255, 255))
    return Image.alpha_composite(white, image).convert("RGB")


def _from_array(array: Any, n_channels: int) -> Image.Image:
    is_tensor = isinstance(array, Tensor)
    values = array.detach().cpu().float().numpy() if is_tensor and array.is_floating_point() else np.asarray(array)
    if values.size == 0:
        raise InputError(f"the image array is empty: its shape is {list(values.shape)}.")
    if values.dtype.kind not in "buif":
        raise InputError(f"an image array must hold numbers; this one holds {values.dtype}.")
    values = _channels_last(values, n_channels, is_tensor)
    return Image.fromarray(_bytes(values))


def _channels_last(values: np.ndarray, n_channels: int, is_tensor: bool) -> np.ndarray:
    shape = list(values.shape)
    if values.ndim == 2:
        return values
    if values.ndim != 3 or not (shape[0] in _MODES or shape[-1] in _MODES):
        raise InputError(
            f"an image array has shape [H, W], [H, W, C] or [C, H, W] with 1, 3 or 4 channels; this one has {shape}. "
            "Several images are given as a list."
        )
    is_first, is_last = shape[0] in _MODES, shape[-1] in _MODES
    if is_first and is_last:
        agrees = (shape[0] == n_channels, shape[-1] == n_channels)
        is_first = is_tensor if agrees[0] == agrees[1] else agrees[0]
    if is_first:
        values = np.moveaxis(values, 0, -1)
    return values[..., 0] if values.shape[-1] == 1 else values


def _bytes(values: np.ndarray) -> np.ndarray:
    """0..255 from any range that can only mean one thing; anything else is refused."""
    if values.dtype == np.uint8:
        return np.ascontiguousarray(values)
    if values.dtype == bool:
        return values.astype(np.uint8) * 255
    if not np.isfinite(values).all():
        raise InputError(f"the image array has {int((~np.isfinite(values)).sum())} values that are NaN or infinite.")
    low, high = float(values.min()), float(values.max())
    is_fraction = values.dtype.kind == "f" and high <= 1
    top = 1 if is_fraction else 255 if high <= 255 else 65535
    if low < 0 or high > 65535 or (top == 65535 and values.dtype.kind == "f" and high != int(high)):
        raise InputError(
            f"the image array runs from {low:g} to {high:g}: give bytes 0..255 or floats 0..1. "
            "If it is already normalised for the model, give it as `pixel_values=`."
        )
    return np.rint(np.ascontiguousarray(values).astype(np.float64) * (255 / top)).astype(np.uint8)


def image_inputs(intake: Intake, source: Any) -> tuple[dict[str, Tensor], Tokens, Picture | None]:
    """One image as the model's inputs (`pixel_values` [C, H, W]), its patches as tokens, and as the model saw it."""
    config = intake.section("vision")
    processor = intake.image_processor
    mean = getattr(processor, "image_mean", None)
    stated = getattr(config, "num_channels", None)
    image = picture(source, stated or (len(mean) if mean else 3))
    name = intake.name_for("image")
    if processor is None:
        return _without_processor(intake, image, name)
    processed = processor(images=image, return_tensors="pt")
    inputs = {key: value for key, value in processed.items() if key in intake.arguments and isinstance(value, Tensor)}
    if "pixel_values" in processed and name not in inputs:
        inputs[name] = processed["pixel_values"]
    if "image_grid_thw" not in processed:
        inputs = {key: value[0] for key, value in inputs.items()}
    return inputs, *seen_patches(intake, inputs, name)


def seen_patches(intake: Intake, inputs: dict[str, Tensor], name: str) -> tuple[Tokens, Picture | None]:
    """The patches of one image, and the image as the model was given it."""
    shape = inputs.get("spatial_shapes")
    if shape is None or shape.ndim != 1 or inputs[name].ndim != 2:
        tokens = patches(intake, inputs[name])
        return tokens, picture_of(intake, inputs[name], tokens)
    grid = int(shape[0]), int(shape[1])  # SigLIP 2 takes rows of patches, and how many they were down and across
    return patches(intake, inputs[name], grid), _packed_picture(intake, inputs[name], grid)


def _packed_picture(intake: Intake, rows: Tensor, grid: tuple[int, int]) -> Picture | None:
    """The image of which these are the patches [patch, height · width · channel]."""
    config = intake.section("vision")
    size, n_channels = getattr(config, "patch_size", None), getattr(config, "num_channels", 3)
    if not isinstance(size, int) or rows.shape[1] != size * size * n_channels or len(rows) < grid[0] * grid[1]:
        return None
    cells = rows[: grid[0] * grid[1]].reshape(*grid, size, size, n_channels)
    pixels = cells.permute(4, 0, 2, 1, 3).reshape(n_channels, grid[0] * size, grid[1] * size)
    return picture_of(intake, pixels, patches(intake, rows, grid))


def _without_processor(
    intake: Intake, image: Image.Image, name: str
) -> tuple[dict[str, Tensor], Tokens, Picture | None]:
    size = getattr(intake.section("vision"), "image_size", None)
    if size is None:
        raise InputError(
            f"{intake.name} has no image processor and does not say how large its images are: give one to "
            f"`hs.Model(module, processor)`, or give the ready tensor: `inputs={{'{name}': …}}`."
        )
    height, width = _both(size)
    warn_reader(
        f"{intake.name} has no image processor: the image is resized to {height}×{width} and its values scaled to "
        "0..1, which may not be what the model was trained on."
    )
    values = np.asarray(image.resize((width, height), Image.Resampling.BICUBIC), dtype=np.float32) / 255
    pixels = torch.from_numpy(values[None] if values.ndim == 2 else np.moveaxis(values, -1, 0).copy())
    tokens = patches(intake, pixels)
    return {name: pixels}, tokens, picture_of(intake, pixels, tokens)


def patches(intake: Intake, pixels: Tensor, grid: tuple[int, int] | None = None) -> Tokens:
    """The positions of an image [C, H, W], as this model's own parameters say: special tokens and patches.

    An image that is cut into patches already has its `grid` beside it.
    """
    if grid is not None:
        return _patch_tokens(intake.section("vision"), grid, 0)
    if pixels.ndim != 3:
        return Tokens((), "patches")
    n_prefix = n_suffix = 0
    for path, weight in intake.module.named_parameters():
        leaf = path.rsplit(".", 1)[-1]
        if leaf in ("cls_token", "class_embedding", "class_token", "distillation_token", "dist_token"):
            n_prefix += 1
        elif leaf == "register_tokens":
            n_prefix += weight.shape[-2]
        elif leaf == "detection_tokens":
            n_suffix += weight.shape[-2]
    config = intake.section("vision")
    grid = _grid(config, (pixels.shape[-2], pixels.shape[-1]))
    if grid is None:
        return Tokens((), "patches")
    return _patch_tokens(config, grid, n_prefix, n_suffix)


def image_tokens(config: Any, n_positions: int, *, size: tuple[int, int] | None = None) -> Tokens:
    """Names for the positions of an image: special tokens, then patches by row and column ("0,3").

    `size` is the height and width of the image where it differs from the configuration's. Later stages of a
    hierarchical model have half the rows and columns of the one before. Where no grid fits, positions are numbered.
    """
    config = getattr(config, "vision_config", None) or config
    grid = _grid(config, size)
    n_suffix = getattr(config, "num_detection_tokens", None) or 0
    most = 2 + (getattr(config, "num_register_tokens", None) or 0)
    while grid and grid[0] * grid[1] > n_positions and max(grid) > 1:
        grid = (math.ceil(grid[0] / 2), math.ceil(grid[1] / 2))
    if grid is None or not 0 <= n_positions - grid[0] * grid[1] - n_suffix <= most:
        side = math.isqrt(n_positions)
        if side * side != n_positions:
            return Tokens.numbered(n_positions, "patches")
        grid, n_suffix = (side, side), 0
    return _patch_tokens(config, grid, n_positions - grid[0] * grid[1] - n_suffix, n_suffix)


def _grid(config: Any, size: tuple[int, int] | None) -> tuple[int, int] | None:
    size, patch = size or getattr(config, "image_size", None), getattr(config, "patch_size", None)
    if size is None or patch is None:
        return None
    (height, width), (down, across) = _both(size), _both(patch)
    # Windowed models fill up the image to whole patches; the others leave the rest out.
    rounded = math.ceil if getattr(config, "window_size", None) else math.floor
    return rounded(height / down), rounded(width / across)


def _both(size: Any) -> tuple[int, int]:
    if isinstance(size, dict):
        return size["height"], size["width"]
    return (size, size) if isinstance(size, int) else (size[-2], size[-1])


def _patch_tokens(config: Any, grid: tuple[int, int], n_prefix: int, n_suffix: int = 0) -> Tokens:
    n_registers = min(getattr(config, "num_register_tokens", None) or 0, max(n_prefix - 1, 0))
    names = ["[CLS]", "[DIST]", *(f"[EXTRA{k}]" for k in range(n_prefix))][: n_prefix - n_registers]
    names += [f"[REG{k}]" for k in range(n_registers)]
    first = [Token(name, special=True) for name in names]
    middle = [
        Token(f"{row},{column}", word=row * grid[1] + column) for row in range(grid[0]) for column in range(grid[1])
    ]
    last = [Token(f"[DET{k}]", special=True) for k in range(n_suffix)]
    return Tokens((*first, *middle, *last), "patches", grid)


def audio_inputs(
    intake: Intake, source: Any, *, sampling_rate: int | None = None, truncate: bool = False
) -> tuple[dict[str, Tensor], Tokens, Seen | None]:
    """One sound as the model's inputs (`input_values` or `input_features`), its frames as tokens, and how it looks."""
    extractor = intake.feature_extractor
    name = intake.name_for("audio")
    if extractor is None:
        raise InputError(
            f"{intake.name} has no feature extractor, so sound cannot be turned into what it takes: give one to "
            f"`hs.Model(module, feature_extractor)`, or give the ready tensor: `inputs={{'{name}': …}}`."
        )
    rate = int(getattr(extractor, "sampling_rate", 16000))
    samples = _within(samples_of(source, sampling_rate, rate), rate, extractor, truncate)
    extracted = extractor(samples, sampling_rate=rate, return_tensors="pt")
    inputs = {
        key: value[0] for key, value in extracted.items() if key in intake.arguments and isinstance(value, Tensor)
    }
    if name not in inputs:
        raise InputError(
            f"{type(extractor).__name__} makes {', '.join(extracted)} but {intake.name} takes {name!r}: "
            "they do not belong together."
        )
    tokens = frames(intake, inputs[name], seconds=len(samples) / rate)
    if not tokens and hasattr(intake.module, "_get_feat_extract_output_lengths"):
        raise InputError(f"the sound is too short: {len(samples)} samples give no frame. Give a longer one.")
    return inputs, tokens, sound_seen(intake, inputs[name], tokens, samples)


def _within(samples: np.ndarray, rate: int, extractor: Any, truncate: bool) -> np.ndarray:
    """Refuse what the extractor would cut off without a word."""
    limit = getattr(extractor, "n_samples", None)
    if limit is None and isinstance(most := getattr(extractor, "max_length", None), int):
        limit = round((most + 1.5) * _FRAME_SECONDS * rate)
    if limit is None or len(samples) <= limit:
        return samples
    problem = f"the sound is {len(samples) / rate:.2f} s long but the model hears {limit / rate:.2f} s"
    if not truncate:
        cut_to = f"{limit / rate:g} seconds"
        raise TooLongError(f"{problem}. Give a shorter one, or pass `truncate=True` to keep its beginning.", cut_to)
    warn_reader(f"{problem}: the rest was cut off.")
    return samples[:limit]


def sound_seen(intake: Intake, values: Tensor, tokens: Tokens, samples: np.ndarray | None = None) -> Seen | None:
    """How a sound looks, as the model was given it [samples], [band, time] or [time, band]; None without a time."""
    config = intake.section("audio")
    if tokens.kind == "patches":
        return spectrogram_picture(config, values, tokens)
    extractor = intake.feature_extractor
    rate = float(getattr(extractor, "sampling_rate", 16000))
    size = getattr(extractor, "feature_size", None)
    if values.ndim == 1:
        return sound_of(values.detach().float().cpu().numpy(), None, rate=rate, seconds=len(values) / rate)
    hop = getattr(extractor, "hop_length", None)
    length = values.shape[0 if values.shape[-1] == size else -1]
    seconds = length * hop / rate if hop else len(samples) / rate if samples is not None else length * _FRAME_SECONDS
    return sound_of(samples, values, rate=rate, seconds=seconds, feature_size=size)


def frames(intake: Intake, values: Tensor, *, seconds: float | None = None) -> Tokens:
    """The positions of a sound, named by the time at which they begin; a spectrogram cut into patches has a grid."""
    config = intake.section("audio")
    if values.ndim == 2 and hasattr(config, "time_stride"):
        across = (values.shape[0] - config.patch_size) // config.time_stride + 1
        down = (values.shape[1] - config.patch_size) // config.frequency_stride + 1
        return _patch_tokens(config, (down, across), 2)
    lengths = getattr(intake.module, "_get_feat_extract_output_lengths", None)
    encoder = getattr(intake.module, "encoder", None)
    lengths = lengths or getattr(encoder, "_get_feat_extract_output_lengths", None)
    if lengths is None:
        return Tokens((), "frames")
    # Whisper's features are [mel, time], Speech2Text's [time, mel].
    is_time_first = values.ndim == 2 and values.shape[-1] == getattr(intake.feature_extractor, "feature_size", None)
    length = values.shape[0 if is_time_first else -1]
    n = max(0, int(lengths(torch.tensor(length))))
    rate = getattr(intake.feature_extractor, "sampling_rate", 16000)
    hop = getattr(intake.feature_extractor, "hop_length", None) if values.ndim == 2 else 1
    whole = length * hop / rate if hop else seconds
    names = (f"{k * whole / n:.2f}s" if whole else str(k) for k in range(n))
    return Tokens(tuple(Token(name) for name in names), "frames")
