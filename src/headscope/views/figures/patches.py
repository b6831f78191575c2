"""Where the patches of a layer's keys lie in a figure of their picture: in a grid, or each in a box of its own."""

import math
from dataclasses import dataclass

import numpy as np

from headscope.traces import LayerRecord, Tokens, Trace
from headscope.traces.media import Picture
from headscope.traces.patch_grids import Grid, grid_of
from headscope.traces.tokens import Box
from headscope.views.media import has_patches


@dataclass(frozen=True, eq=False)
class Patches:
    """The patches of a picture: `grid` where they are rows and columns of it, else the box of each in its pixels."""

    picture: Picture
    grid: Grid | None
    boxes: tuple[Box, ...] = ()

    @classmethod
    def of(cls, trace: Trace, layer: LayerRecord, picture: Picture) -> "Patches":
        """Those of a layer's keys, which can be shown over a picture."""
        tokens = trace.tokens[layer.key_stack]
        if not has_patches(trace, layer):
            return cls(picture, grid_of(tokens, layer))
        return cls(picture, None, tuple(token.patch.drawn for token in tokens if token.patch is not None))

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.boxes) if self.grid is None else self.grid[0] * self.grid[1]

    def box(self, patch: int) -> Box:
        """Left, top, right and bottom of a patch, where the middle of the first pixel is 0."""
        if self.grid is None:
            left, top, right, bottom = self.boxes[patch]
            return left - 0.5, top - 0.5, right - 0.5, bottom - 0.5
        tall, wide = self._cell()
        row, column = divmod(patch, self.grid[1])
        return column * wide - 0.5, row * tall - 0.5, (column + 1) * wide - 0.5, (row + 1) * tall - 0.5

    def places(self, tokens: Tokens) -> np.ndarray | None:
        """The patch of each token, −1 for a token without a patch; None where no token belongs to a picture."""
        if self.grid is None:
            numbers = iter(range(self.count))
            places = [-1 if token.patch is None else next(numbers) for token in tokens]
            return np.array(places) if max(places, default=-1) >= 0 else None
        if tokens.kind != "patches" and not any("," in text for text in tokens.texts):
            return None
        return np.array([-1 if token.special or token.word is None else token.word for token in tokens])

    def overlay(self, colours: np.ndarray) -> tuple[np.ndarray, tuple[float, float, float, float]]:
        """Colours of the patches [patch, rgba] as an image, and its extent: left, right, bottom, top."""
        if self.grid is not None:
            tall, wide = self._cell()
            extent = (-0.5, self.grid[1] * wide - 0.5, self.grid[0] * tall - 0.5, -0.5)
            return colours.reshape(*self.grid, 4), extent
        height, width = self.picture.pixels.shape[:2]
        image = np.zeros((height, width, 4))
        for (left, top, right, bottom), colour in zip(self.boxes, colours, strict=True):
            image[round(top) : round(bottom), round(left) : round(right)] = colour
        return image, (-0.5, width - 0.5, height - 0.5, -0.5)

    def is_picture(self) -> np.ndarray:
        """Which pixels are of the picture [height, width]: between copies of it there is nothing."""
        height, width = self.picture.pixels.shape[:2]
        inside = np.zeros((height, width), bool) if self.picture.areas else np.ones((height, width), bool)
        for area in self.picture.areas:
            left, top, right, bottom = (round(edge) for edge in area.box)
            inside[top:bottom, left:right] = True
        return inside

    def _cell(self) -> tuple[float, float]:
        """Height and width of a patch; of a coarser layer, two, four, … times those of the input."""
        assert self.grid is not None
        height, width = self.picture.pixels.shape[:2]
        sizes = []
        for length, count, patch in (
            (height, self.grid[0], self.picture.patch[0]),
            (width, self.grid[1], self.picture.patch[1]),
        ):
            first = max(1, length // patch)
            sizes.append(patch * 2.0 ** round(math.log2(max(1.0, first / count))))
        return sizes[0], sizes[1]
