"""The picture or the sound as the model takes it, turned back into what people can look at."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from headscope.models.inputs.accepted import Intake
from headscope.traces.media import Picture, Sound
from headscope.traces.tokens import Tokens

MOST_STRETCHES = 2000
MOST_COLUMNS = 3000
_GUESSED = "which numbers are black and white is not known: the darkest and brightest are taken for them"


def picture_of(intake: Intake, pixels: Tensor, tokens: Tokens) -> Picture | None:
    """The image that a model was given as `pixel_values` [channel, height, width]; None where it is none."""
    if pixels.ndim != 3 or tokens.grid is None:
        return None
    values, note = display_pixels(intake.image_processor, pixels.detach().float().cpu())
    patch = _patch(intake.section("vision"), values.shape[:2], tokens.grid)
    return Picture(values, patch, note)


def spectrogram_picture(config: Any, values: Tensor, tokens: Tokens) -> Picture | None:
    """A spectrogram [time, band] that a model cuts into patches: high bands up, as they are usually drawn."""
    if values.ndim != 2 or tokens.grid is None:
        return None
    drawn = _bytes(values.detach().float().cpu().T)
    patch = (int(config.frequency_stride), int(config.time_stride))
    return Picture(drawn[..., None].contiguous(), patch, "a spectrogram: bands down (low ones first), time across")


def sound_of(
    samples: np.ndarray | None, features: Tensor | None, *, rate: float, seconds: float, feature_size: int | None = None
) -> Sound:
    """A sound by its samples, and by the features [band, time] that the model was given, where it was given those."""
    heard = seconds if samples is None else len(samples) / rate
    envelope = None if samples is None else torch.from_numpy(_envelope(samples))
    spectrogram = None
    if features is not None and features.ndim == 2:
        bands = features.T if features.shape[-1] == feature_size else features  # Speech2Text's are [time, band]
        spectrogram = _bytes(_columns(bands.detach().float().cpu()))
    return Sound(envelope, spectrogram, seconds, heard)


def display_pixels(processor: Any, pixels: Tensor) -> tuple[Tensor, str]:
    """Bytes [height, width, 1 or 3]: normalisation undone as the processor did it."""
    mean, std = getattr(processor, "image_mean", None), getattr(processor, "image_std", None)
    is_normal = bool(getattr(processor, "do_normalize", False)) and mean is not None and std is not None
    note = ""
    if is_normal:
        shape = (-1, 1, 1)
        pixels = pixels * torch.tensor(std, dtype=torch.float32).view(shape)
        pixels = pixels + torch.tensor(mean, dtype=torch.float32).view(shape)
    is_scaled = bool(getattr(processor, "do_rescale", True))
    factor = float(getattr(processor, "rescale_factor", 1 / 255) or 1 / 255)
    values = pixels / factor if is_scaled else pixels
    low, high = float(values.min()), float(values.max())
    if (processor is None and not (low >= 0 and high <= 255.5)) or low < -2 or high > 257:
        values, note = (values - low) / max(1e-12, high - low) * 255, _GUESSED
    values = values.round().clamp(0, 255).to(torch.uint8).permute(1, 2, 0)
    return (values if values.shape[-1] in (1, 3) else values[..., :1]).contiguous(), note


def _patch(config: Any, size: Any, grid: tuple[int, int]) -> tuple[int, int]:
    """Height and width of a patch: as the model says, or as the grid would have it."""
    stated = getattr(config, "patch_size", None)
    if isinstance(stated, int):
        return stated, stated
    if isinstance(stated, list | tuple) and len(stated) >= 2:
        return int(stated[-2]), int(stated[-1])
    return max(1, size[0] // grid[0]), max(1, size[1] // grid[1])


def _bytes(values: Tensor) -> Tensor:
    low, high = float(values.min()), float(values.max())
    return ((values - low) / max(1e-12, high - low) * 255).round().to(torch.uint8)


def _columns(bands: Tensor) -> Tensor:
    """No more columns than a screen has: the strongest of those that share one."""
    step = -(-bands.shape[1] // MOST_COLUMNS)
    return bands if step == 1 else torch.nn.functional.max_pool1d(bands[None], step, ceil_mode=True)[0]


def _envelope(samples: np.ndarray) -> np.ndarray:
    step = max(1, -(-len(samples) // MOST_STRETCHES))
    starts = np.arange(0, len(samples), step)
    ends = np.minimum.reduceat(samples, starts), np.maximum.reduceat(samples, starts)
    return np.stack(ends, 1).astype(np.float32)
