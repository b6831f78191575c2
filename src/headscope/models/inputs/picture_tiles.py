"""How a picture reaches a model that reads it within a text: whole or in tiles, each of them a grid of image tokens.

What the model is given says how: a grid of patches beside the pixels (Qwen-VL), the size of a picture that was cut up
(LLaVA-NeXT), the id of an aspect ratio (Mllama), or else tiles of equal size (LLaVA, Gemma 3, PaliGemma, InternVL,
Idefics 3). Where tiles lie on the picture follows from its size, by the arithmetic of the image processors.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from transformers.image_processing_utils import select_best_resolution

from headscope.models.inputs.accepted import Intake
from headscope.traces.tokens import Box

# Width and height, in pixels.
Size = tuple[int, int]
WHOLE, THUMBNAIL = "picture", "thumbnail"
# Families of which it was checked that a change of the picture changes the tokens that lie there.
CHECKED_FAMILIES = {"llava", "llava_next", "qwen2_vl", "qwen2_5_vl", "qwen3_vl", "gemma3", "internvl", "idefics3"}
CHECKED_FAMILIES |= {"smolvlm", "mllama", "paligemma"}
# What goes with tiles of equal size; any other input may say that they are cut in another way.
_PLAIN = {"input_ids", "attention_mask", "token_type_ids", "mm_token_type_ids", "position_ids", "labels"}
_PLAIN |= {"pixel_values", "pixel_attention_mask", "logits_to_keep", "use_cache"}
# Learned queries that read the whole picture: their tokens are no part of it (Idefics 2, Kosmos-2, BLIP-2, Aria).
_LATENTS = {"latents", "latent_query", "latent_queries", "query_tokens", "query", "queries"}
_ROW_AND_COLUMN = re.compile(r"<row_(\d+)_col_(\d+)>")


@dataclass(frozen=True, eq=False)
class Tile:
    """The pixels of a tile [channel, height, width], and its box on the picture as it was given."""

    pixels: Tensor
    box: Box


@dataclass(frozen=True, eq=False)
class TileGrid:
    """Tiles row by row, and how their image tokens follow each other.

    Each tile has `cells` (rows and columns of tokens), after special tokens named `before`. Where `rows_of` is set,
    rows of tokens run across tiles instead, within that box of cells (left, top, right, bottom), and a separator ends
    each. `after` names tokens that stand for nothing of the picture.
    """

    name: str
    tiles: tuple[Tile, ...]
    columns: int
    cells: tuple[int, int]
    before: tuple[str, ...] = ()
    rows_of: tuple[int, int, int, int] | None = None
    after: tuple[str, ...] = ()

    @property
    def n_tokens(self) -> int:
        """How many image tokens it is."""
        if self.rows_of is not None:
            left, top, right, bottom = self.rows_of
            return (bottom - top) * (right - left + 1)
        per_tile = len(self.before) + self.cells[0] * self.cells[1]
        return len(self.tiles) * per_tile + len(self.after)


def tile_grids(
    intake: Intake, inputs: dict[str, Tensor], runs: Sequence[tuple[int, str]], size: Size | None
) -> list[TileGrid]:
    """The grids of a picture in the order of their tokens; none where these inputs do not tell.

    `runs` are the stretches of image tokens in the text: how many, and the text of the token before. `size` is that of
    the picture as it was given; without it, boxes are in pixels of what the model was given.
    """
    pixels = inputs.get("pixel_values")
    if pixels is None or _is_resampled(intake):
        return []
    if "image_grid_thw" in inputs:
        grids = _packed(intake, pixels, inputs["image_grid_thw"], size)
    elif "image_sizes" in inputs:
        grids = _any_resolution(intake, pixels, inputs["image_sizes"])
    elif "aspect_ratio_ids" in inputs:
        return _canvas(intake, pixels, inputs["aspect_ratio_ids"], size)
    elif set(inputs) <= _PLAIN:
        grids = _equal_tiles(intake, pixels, runs, size)
    else:
        return []  # there is more to say of this picture than is understood here
    return grids if sum(grid.n_tokens for grid in grids) == sum(count for count, _ in runs) else []


def _is_resampled(intake: Intake) -> bool:
    """Whether a model sums its image up in tokens of learned queries."""
    return any(path.rsplit(".", 1)[-1] in _LATENTS for path, _ in intake.module.named_parameters())


def _packed(intake: Intake, patches: Tensor, grid_thw: Tensor, size: Size | None) -> list[TileGrid]:
    """Patches in a row, those that become one token next to each other (Qwen-VL)."""
    vision = intake.section("vision")
    merged, side = getattr(vision, "spatial_merge_size", 1), getattr(vision, "patch_size", None)
    n_frames = getattr(vision, "temporal_patch_size", 1)
    if grid_thw.shape[0] != 1 or int(grid_thw[0, 0]) != 1 or not isinstance(side, int):
        return []  # several pictures, or a film
    down, across = int(grid_thw[0, 1]), int(grid_thw[0, 2])
    n_channels = patches.shape[-1] // (n_frames * side * side)
    cells = patches.reshape(down // merged, across // merged, merged, merged, n_channels, n_frames, side, side)
    pixels = cells[:, :, :, :, :, 0].permute(4, 0, 2, 5, 1, 3, 6).reshape(n_channels, down * side, across * side)
    box = _whole(size or (across * side, down * side))
    return [TileGrid(WHOLE, (Tile(pixels, box),), 1, (down // merged, across // merged))]


def _any_resolution(intake: Intake, pixels: Tensor, image_size: Tensor) -> list[TileGrid]:
    """The whole picture small, then tiles of it padded to a resolution that the model knows (LLaVA-NeXT)."""
    if pixels.ndim != 4 or image_size.numel() != 2:
        return []
    height, width = (int(number) for number in image_size.flatten())
    side = pixels.shape[-1]
    best = select_best_resolution((height, width), intake.config.image_grid_pinpoints)
    down, across = best[0] // side, best[1] // side
    if len(pixels) < 1 + down * across:
        return []
    scale = min(best[0] / height, best[1] / width)
    tall, wide = (min(math.ceil(length * scale), most) for length, most in ((height, best[0]), (width, best[1])))
    left, top = (best[1] - wide) // 2, (best[0] - tall) // 2

    def on_picture(x: float, y: float) -> tuple[float, float]:
        return (x - left) * width / wide, (y - top) * height / tall

    tiles = [
        Tile(
            pixels[1 + row * across + column],
            (*on_picture(column * side, row * side), *on_picture((column + 1) * side, (row + 1) * side)),
        )
        for row in range(down)
        for column in range(across)
    ]
    cells = side // intake.section("vision").patch_size
    base = TileGrid(THUMBNAIL, (Tile(pixels[0], _whole((width, height))),), 1, (cells, cells))
    kept_cells = _unpadded(down * cells, across * cells, height, width)
    return [base, TileGrid(WHOLE, tuple(tiles), across, (cells, cells), rows_of=kept_cells)]


def _unpadded(rows: int, columns: int, height: int, width: int) -> tuple[int, int, int, int]:
    """The cells that are not of padding alone: left, top, right, bottom, as LLaVA-NeXT's `unpad_image` cuts them."""
    if width / height > columns / rows:
        padding = (rows - int(round(height * columns / width, 7))) // 2
        return 0, padding, columns, rows - padding
    padding = (columns - int(round(width * rows / height, 7))) // 2
    return padding, 0, columns - padding, rows


def _canvas(intake: Intake, pixels: Tensor, ratio_ids: Tensor, size: Size | None) -> list[TileGrid]:
    """Tiles of a canvas that the picture fills from its upper left corner; keys of cross-attention (Mllama)."""
    vision = intake.section("vision")
    if ratio_ids.numel() != 1 or pixels.ndim != 5:
        return []
    down, across = vision.supported_aspect_ratios[int(ratio_ids) - 1]
    side = pixels.shape[-1]
    width, height = size or (across * side, down * side)
    wide, tall = min(max(width, side), across * side), min(max(height, side), down * side)
    scale = min(wide / width, tall / height)
    across_scale = width / min(math.floor(width * scale) or 1, wide) if wide / width > scale else width / wide
    down_scale = height / min(math.floor(height * scale) or 1, tall) if wide / width <= scale else height / tall
    tiles = [
        Tile(
            pixels[0, row * across + column],
            (
                column * side * across_scale,
                row * side * down_scale,
                (column + 1) * side * across_scale,
                (row + 1) * side * down_scale,
            ),
        )
        for row in range(down)
        for column in range(across)
    ]
    cells = side // vision.patch_size
    n_left = (pixels.shape[1] - len(tiles)) * (cells * cells + 1)
    return [TileGrid(WHOLE, tuple(tiles), across, (cells, cells), ("[CLS]",), after=("[no tile]",) * n_left)]


def _equal_tiles(intake: Intake, pixels: Tensor, runs: Sequence[tuple[int, str]], size: Size | None) -> list[TileGrid]:
    """Tiles of one size with as many tokens each."""
    tiles = pixels if pixels.ndim == 4 else pixels[None]
    n_tokens = sum(count for count, _ in runs)
    if tiles.ndim != 4 or n_tokens % len(tiles):
        return []
    layout = _cells(intake, n_tokens // len(tiles), tiles.shape[-2], tiles.shape[-1])
    if layout is None:
        return []
    cells, before = layout
    if len(tiles) == 1:
        box = _window(intake.image_processor, size) if size else _whole((tiles.shape[-1], tiles.shape[-2]))
        return [TileGrid(WHOLE, (Tile(tiles[0], box),), 1, cells, before)]
    named = [_ROW_AND_COLUMN.search(text) for _, text in runs]
    if len(runs) == len(tiles) and all(named[:-1]):  # Idefics 3: each tile is named, and the whole comes last
        down, across = (max(int(match[part]) for match in named if match) for part in (1, 2))
        return _split(tiles, down, across, cells, before, size)
    if size is None or len(runs) > 1:
        return []
    down, across = _arrangement(len(tiles) - 1, size)  # InternVL says nothing: it follows from the picture's shape
    return _split(tiles, down, across, cells, before, size)


def _split(
    tiles: Tensor, down: int, across: int, cells: tuple[int, int], before: tuple[str, ...], size: Size | None
) -> list[TileGrid]:
    """Tiles of the stretched picture, and the whole of it, small, after them."""
    if down * across + 1 != len(tiles):
        return []
    width, height = size or (across * tiles.shape[-1], down * tiles.shape[-2])
    wide, tall = width / across, height / down
    parts = tuple(
        Tile(tiles[row * across + column], (column * wide, row * tall, (column + 1) * wide, (row + 1) * tall))
        for row in range(down)
        for column in range(across)
    )
    whole = Tile(tiles[-1], _whole((width, height)))
    return [TileGrid(WHOLE, parts, across, cells, before), TileGrid(THUMBNAIL, (whole,), 1, cells, before)]


def _cells(intake: Intake, n_tokens: int, height: int, width: int) -> tuple[tuple[int, int], tuple[str, ...]] | None:
    """Rows and columns of a tile's tokens, and the special tokens before them."""
    for before in ((), ("[CLS]",)):
        rows = round(math.sqrt((n_tokens - len(before)) * height / width))
        if rows and (n_tokens - len(before)) % rows == 0:
            columns = (n_tokens - len(before)) // rows
            # The cells are as high as they are wide, but for what no whole patch fits into.
            if abs(height / rows - width / columns) < 0.1 * height / rows:
                return (rows, columns), before
    return None


def _arrangement(n_tiles: int, size: Size) -> tuple[int, int]:
    """Tiles down and across, of so many, that come closest to a picture's shape."""
    pairs = [(n_tiles // across, across) for across in range(1, n_tiles + 1) if n_tiles % across == 0]
    return min(pairs, key=lambda pair: abs(size[0] / size[1] - pair[1] / pair[0]))


def _window(processor: Any, size: Size) -> Box:
    """The part of a picture that an image processor leaves: all of it, or what its centre crop keeps."""
    width, height = size
    left, top, wide, tall = 0.0, 0.0, float(width), float(height)
    if getattr(processor, "do_pad", None) and hasattr(processor, "pad_to_square"):
        side = max(size)
        left, top, wide, tall = -float((side - width) // 2), -float((side - height) // 2), float(side), float(side)
    if getattr(processor, "do_center_crop", None):
        resized = _resized(processor, (wide, tall))
        crop = processor.crop_size["width"], processor.crop_size["height"]
        first = [(length - cut) // 2 for length, cut in zip(resized, crop, strict=True)]
        scales = wide / resized[0], tall / resized[1]
        left, top = left + first[0] * scales[0], top + first[1] * scales[1]
        wide, tall = crop[0] * scales[0], crop[1] * scales[1]
    return left, top, left + wide, top + tall


def _resized(processor: Any, size: tuple[float, float]) -> Size:
    """Width and height before the crop."""
    wanted = processor.size if getattr(processor, "do_resize", True) else None
    if wanted is None:
        return int(size[0]), int(size[1])
    if shortest := wanted.get("shortest_edge"):
        scale = shortest / min(size)
        return (shortest, int(size[1] * scale)) if size[0] <= size[1] else (int(size[0] * scale), shortest)
    return wanted["width"], wanted["height"]


def _whole(size: Size) -> Box:
    return 0.0, 0.0, float(size[0]), float(size[1])
