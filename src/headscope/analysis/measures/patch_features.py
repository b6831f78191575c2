"""What the patches of a picture look like: how bright they are, of which hue, how fine their stripes.

The whole picture is squeezed to the grid of patches, as processors do that do not crop.
"""

from typing import NamedTuple

import numpy as np

from headscope.models.inputs.media import picture

# A patch is looked at with this many pixels a side.
SIDE = 16
# Below this chroma (0 to 1) a patch has no hue to speak of; below this contrast no frequency.
GREY = 0.08
FLAT = 0.02
HUES = ("red", "yellow", "green", "cyan", "blue", "magenta")


class Looks(NamedTuple):
    """Of every patch, row by row: brightness 0 to 1, hue as an angle and spatial frequency in cycles a patch. NaN where
    a patch has no hue (grey) or no frequency (flat).
    """

    brightness: np.ndarray
    hue: np.ndarray
    frequency: np.ndarray


def looks(image, grid: tuple[int, int]) -> Looks:
    """How the patches of an image look: a path or a picture, cut into rows × columns."""
    n_rows, n_columns = grid
    resized = picture(image).resize((n_columns * SIDE, n_rows * SIDE))
    pixels = np.asarray(resized, np.float64).reshape(n_rows, SIDE, n_columns, SIDE, 3) / 255
    patches = pixels.transpose(0, 2, 1, 3, 4).reshape(n_rows * n_columns, SIDE, SIDE, 3)
    grey = patches @ np.array([0.299, 0.587, 0.114])  # Rec. 601 luma
    colour = patches.mean((1, 2))
    across = colour[:, 0] - colour[:, 1] / 2 - colour[:, 2] / 2
    up = np.sqrt(3) / 2 * (colour[:, 1] - colour[:, 2])
    hue = np.where(np.hypot(across, up) < GREY, np.nan, np.arctan2(up, across) % (2 * np.pi))
    return Looks(grey.mean((1, 2)), hue, _frequency(grey))


def hue_names(hue: np.ndarray) -> np.ndarray:
    """The nearest of six hues, as its number in `HUES`; −1 for grey."""
    return np.where(np.isnan(hue), -1, np.round(np.nan_to_num(hue) / (np.pi / 3)) % 6).astype(int)


def _frequency(grey: np.ndarray) -> np.ndarray:
    """The mean frequency of a patch's spectrum, weighted by power, in cycles a patch [patch]."""
    centred = grey - grey.mean((1, 2), keepdims=True)
    power = np.abs(np.fft.fft2(centred)) ** 2
    cycles = np.fft.fftfreq(SIDE) * SIDE
    radius = np.hypot(cycles[:, None], cycles)
    whole = power.sum((1, 2))
    mean = (power * radius).sum((1, 2)) / np.where(whole > 0, whole, 1.0)
    return np.where(centred.std((1, 2)) < FLAT, np.nan, mean)
