"""Pictures made to find out what a head looks for: every patch has a colour, or stripes, of its own.

In photographs hue, brightness and stripes go together with what is shown; here they are drawn at random, patch by
patch, so that a head that follows one of them follows nothing else.
"""

import numpy as np
from PIL import Image

from headscope.corpora import Example


def colours(n_images: int = 64, *, grid: tuple[int, int] = (8, 8), side: int = 16, seed: int = 0) -> list[Example]:
    """Pictures of which every patch is one colour: hue and brightness at random."""
    rng = np.random.default_rng(seed)
    return [
        _example(f"colours:{at}", _colour(rng.random(grid) * 6, 0.15 + 0.85 * rng.random(grid)), side)
        for at in range(n_images)
    ]


def gratings(n_images: int = 64, *, grid: tuple[int, int] = (8, 8), side: int = 16, seed: int = 0) -> list[Example]:
    """Pictures of which every patch has grey stripes: one to four cycles a patch, upright or lying, any phase."""
    rng, at = np.random.default_rng(seed), np.arange(side) / side
    examples = []
    for number in range(n_images):
        cycles, is_upright = rng.integers(1, 5, grid), rng.random(grid) < 0.5
        phase = 2 * np.pi * rng.random(grid)
        waves = 0.5 + 0.5 * np.sin(2 * np.pi * cycles[..., None] * at + phase[..., None])  # [row, column, pixel]
        lying = np.broadcast_to(waves[..., :, None], (*grid, side, side))
        patches = np.where(is_upright[..., None, None], np.swapaxes(lying, -1, -2), lying)
        grey = patches.transpose(0, 2, 1, 3).reshape(grid[0] * side, grid[1] * side)
        examples.append(
            Example(f"gratings:{number}", image=Image.fromarray((grey * 255).astype(np.uint8)).convert("RGB"))
        )
    return examples


def _colour(hue: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Red, green and blue of a fully saturated hue (0 to 6) at a brightness [row, column, 3]."""
    place = (np.array([5, 3, 1]) + hue[..., None]) % 6
    return value[..., None] * (1 - np.clip(np.minimum(place, 4 - place), 0, 1))


def _example(name: str, colour: np.ndarray, side: int) -> Example:
    pixels = (colour.repeat(side, 0).repeat(side, 1) * 255).astype(np.uint8)
    return Example(name, image=Image.fromarray(pixels))
