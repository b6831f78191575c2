"""Image tokens within a text: which part of the picture each stands for, and the picture as the model was given it."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from headscope.models.inputs.accepted import Intake
from headscope.models.inputs.display_media import display_pixels
from headscope.models.inputs.media import patches, seen_patches
from headscope.models.inputs.picture_tiles import THUMBNAIL, Size, TileGrid, tile_grids
from headscope.traces.media import Picture, PictureArea
from headscope.traces.tokens import Box, ImagePatch, Token, Tokens

ROW_END, OUTSIDE = "[row end]", "[outside]"
# A thumbnail has a quarter of the tiles' area or more, so that it is drawn at half its size, this far from them.
_SHRINK, _GAP = 2, 0.03


def placed_image(
    intake: Intake, tokens: Tokens, inputs: dict[str, Tensor], size: Size | None = None
) -> dict[str, tuple[Tokens, Picture | None]]:
    """What a text with a picture is read as, by role: its tokens, those of the image with the patches that they stand
    for; the patches that the image tower reads; the keys of cross-attention to an image. Each with the picture.

    `size` is the width and height of the picture as it was given.
    """
    if "aspect_ratio_ids" in inputs:
        return {"text": (tokens, None)} | _keys(intake, inputs, size)
    ids = intake.image_ids
    places = [place for place, token in enumerate(tokens) if token.id in ids]
    layout = _layout(intake, inputs, _runs(tokens, places), size) if places else None
    if layout is None:
        return {"text": (tokens, None), "image": _plain_tower(intake, inputs)}
    named = list(tokens)
    for place, (name, patch) in zip(places, layout.cells, strict=True):
        named[place] = replace(named[place], text=name, special=patch is None, patch=patch)
    tower = _tower(intake, inputs, layout)
    return {"text": (Tokens(tuple(named), tokens.kind), layout.picture), "image": tower}


def _keys(intake: Intake, inputs: dict[str, Tensor], size: Size | None) -> dict[str, tuple[Tokens, Picture | None]]:
    """The keys of cross-attention to an image in tiles (Mllama)."""
    layout = _layout(intake, inputs, [], size)
    if layout is None:
        return {}
    tokens = (Token(name, special=patch is None, patch=patch) for name, patch in layout.cells)
    return {"keys": (Tokens(tuple(tokens), "patches"), layout.picture)}


def _plain_tower(intake: Intake, inputs: dict[str, Tensor]) -> tuple[Tokens, Picture | None]:
    """The image tower's own patches; positions that the model alone knows have no names."""
    if inputs["pixel_values"].ndim != 3:
        return Tokens((), "patches"), None
    return seen_patches(intake, inputs, "pixel_values")


def _tower(intake: Intake, inputs: dict[str, Tensor], layout: "_Layout") -> tuple[Tokens, Picture | None]:
    """The image tower's tokens: of a picture in tiles, each by itself, those of all tiles one after another."""
    if "image_grid_thw" in inputs:
        return _packed_tower(intake, inputs["image_grid_thw"], layout), layout.picture
    if inputs["pixel_values"].ndim == 3:
        return seen_patches(intake, inputs, "pixel_values")
    tokens: list[Token] = []
    for grid, frame in zip(layout.grids, layout.frames, strict=True):
        for number, tile in enumerate(grid.tiles):
            own = patches(intake, tile.pixels)
            if own.grid is None:
                return Tokens((), "patches"), None
            finer = replace(grid, cells=own.grid)
            first = number // grid.columns * own.grid[0], number % grid.columns * own.grid[1]
            for token in own:
                row, column = (0, 0) if token.word is None else divmod(token.word, own.grid[1])
                patch = _patch(finer, frame, first[0] + row, first[1] + column, layout.edge)
                if token.word is None or patch is None:
                    tokens.append(Token(token.text if token.word is None else OUTSIDE, special=True))
                else:
                    tokens.append(Token(layout.name_of(grid, patch), patch=patch))
    return Tokens(tuple(tokens), "patches"), layout.picture


def _packed_tower(intake: Intake, grid_thw: Tensor, layout: "_Layout") -> Tokens:
    """Patches four by four, as they are merged, and window by window where the tower has windows (Qwen2.5-VL)."""
    vision = intake.section("vision")
    merged = int(getattr(vision, "spatial_merge_size", 1))
    rows, columns = int(grid_thw[0, 1]), int(grid_thw[0, 2])
    groups = [(row, column) for row in range(rows // merged) for column in range(columns // merged)]
    if getattr(vision, "fullatt_block_indexes", None) is not None and isinstance(vision.window_size, int):
        side = vision.window_size // merged // vision.patch_size
        groups.sort(key=lambda group: (group[0] // side, group[1] // side))
    finer = replace(layout.grids[0], cells=(rows, columns))
    tokens: list[Token] = []
    for row, column in groups:
        for place in range(merged * merged):
            at = row * merged + place // merged, column * merged + place % merged
            tokens.append(Token(f"{at[0]},{at[1]}", patch=_patch(finer, layout.frames[0], *at, layout.edge)))
    return Tokens(tuple(tokens), "patches")


def with_places_of(tokens: Tokens, before: Tokens) -> Tokens:
    """Tokens that begin with others, whose image tokens keep their names and places."""
    known = (
        old if old.id == new.id and (old.patch is not None or old.special) else new
        for old, new in zip(before, tokens, strict=False)
    )
    return Tokens((*known, *tokens.items[len(before) :]), tokens.kind)


@dataclass(frozen=True, eq=False)
class _Layout:
    """Name and patch of each image token in order (no patch for separators), and the picture."""

    grids: list[TileGrid]
    frames: "list[_Frame]"
    edge: Box
    cells: list[tuple[str, ImagePatch | None]]
    picture: Picture

    def name_of(self, grid: TileGrid, patch: ImagePatch) -> str:
        """A patch by its row and column, and by the thumbnail that it is of."""
        return _name(self.grids, grid, patch)


def _runs(tokens: Tokens, places: Sequence[int]) -> list[tuple[int, str]]:
    """Stretches of image tokens: how many, and the text of the token before."""
    runs: list[tuple[int, str]] = []
    for place in places:
        is_new = not runs or tokens[place - 1].id != tokens[place].id
        if is_new:
            runs.append((0, tokens[place - 1].text if place else ""))
        runs[-1] = runs[-1][0] + 1, runs[-1][1]
    return runs


def _layout(
    intake: Intake, inputs: dict[str, Tensor], runs: Sequence[tuple[int, str]], size: Size | None
) -> _Layout | None:
    grids = tile_grids(intake, inputs, runs, size)
    if not grids:
        return None
    width, height = size or (math.inf, math.inf)
    edge = (0.0, 0.0, width, height) if size else (-math.inf, -math.inf, width, height)
    frames = _frames(grids, edge)
    cells: list[tuple[str, ImagePatch | None]] = []
    for grid, frame in zip(grids, frames, strict=True):
        for name, patch in _cells(grid, frame, edge):
            cells.append((_name(grids, grid, patch) if patch else name, patch))
    return _Layout(grids, frames, edge, cells, _picture(intake.image_processor, grids, frames))


def _name(grids: Sequence[TileGrid], grid: TileGrid, patch: ImagePatch) -> str:
    prefix = f"{grid.name} " if grid.name == THUMBNAIL and len(grids) > 1 else ""
    return f"{prefix}{patch.row},{patch.column}"


@dataclass(frozen=True)
class _Frame:
    """Where a grid's pixels are drawn: from this point on, smaller by this factor, without what lies before `cut`."""

    left: float
    top: float
    shrink: int
    cut: tuple[int, int, int, int]
    area: int

    def drawn(self, box: Box) -> Box:
        """A box of a grid's pixels as one of the picture's."""
        x, y = self.cut[:2]
        left, top, right, bottom = ((edge - at) / self.shrink for edge, at in zip(box, (x, y, x, y), strict=True))
        return left + self.left, top + self.top, right + self.left, bottom + self.top

    @property
    def box(self) -> Box:
        """The whole of it."""
        return self.drawn((self.cut[0], self.cut[1], self.cut[2], self.cut[3]))


def _frames(grids: Sequence[TileGrid], edge: Box) -> list[_Frame]:
    """The tiles in the corner, a thumbnail beside or below them, whichever leaves less of a strip."""
    cuts = [_cut(grid, edge) for grid in grids]
    if len(grids) == 1:
        return [_Frame(0, 0, 1, cuts[0], 0)]
    main = next(place for place, grid in enumerate(grids) if grid.name != THUMBNAIL)
    wide, tall = cuts[main][2] - cuts[main][0], cuts[main][3] - cuts[main][1]
    gap = max(4, round(_GAP * max(wide, tall)))
    beside = (0, tall + gap) if wide > tall else (wide + gap, 0)
    return [
        _Frame(0, 0, 1, cut, 0) if place == main else _Frame(*beside, _SHRINK, cut, 1) for place, cut in enumerate(cuts)
    ]


def _tile_size(grid: TileGrid) -> tuple[int, int]:
    """Height and width of a tile."""
    return grid.tiles[0].pixels.shape[-2], grid.tiles[0].pixels.shape[-1]


def _cell_size(grid: TileGrid) -> tuple[float, float]:
    """Height and width of the pixels behind a token, which are as high as wide but for squashed tiles."""
    height, width = _tile_size(grid)
    return height / grid.cells[0], width / grid.cells[1]


def _cut(grid: TileGrid, edge: Box) -> tuple[int, int, int, int]:
    """The pixels of the tiles together that have tokens, up to the picture's end: left, top, right, bottom."""
    height, width = _tile_size(grid)
    if grid.rows_of is not None:
        tall, wide = _cell_size(grid)
        left, top, right, bottom = grid.rows_of
        return round(left * wide), round(top * tall), round(right * wide), round(bottom * tall)
    left, top, right, bottom = grid.tiles[0].box
    ends = (edge[2] - left) * width / (right - left), (edge[3] - top) * height / (bottom - top)
    wide, tall = min(grid.columns * width, ends[0]), min(len(grid.tiles) // grid.columns * height, ends[1])
    return 0, 0, math.ceil(wide - 1e-6), math.ceil(tall - 1e-6)


def _cells(grid: TileGrid, frame: _Frame, edge: Box) -> Iterator[tuple[str, ImagePatch | None]]:
    """Each token's name and patch, in order."""
    rows, columns = grid.cells
    if grid.rows_of is not None:
        left, top, right, bottom = grid.rows_of
        for row in range(top, bottom):
            for column in range(left, right):
                patch = _patch(grid, frame, row, column, edge)
                yield OUTSIDE, patch and replace(patch, row=row - top, column=column - left)
            yield ROW_END, None
        return
    for number in range(len(grid.tiles)):
        yield from ((name, None) for name in grid.before)
        first_row, first_column = number // grid.columns * rows, number % grid.columns * columns
        for row in range(first_row, first_row + rows):
            for column in range(first_column, first_column + columns):
                yield OUTSIDE, _patch(grid, frame, row, column, edge)
    yield from ((name, None) for name in grid.after)


def _patch(grid: TileGrid, frame: _Frame, row: int, column: int, edge: Box) -> ImagePatch | None:
    """The patch at a row and column across all tiles; None where it lies outside of the picture."""
    rows, columns = grid.cells
    tile = grid.tiles[row // rows * grid.columns + column // columns]
    left, top, right, bottom = tile.box
    tall, wide = (bottom - top) / rows, (right - left) / columns
    x, y = left + column % columns * wide, top + row % rows * tall
    box = _within((x, y, x + wide, y + tall), edge)
    if box is None:
        return None
    height, width = _cell_size(grid)
    _, _, end_x, end_y = frame.cut
    pixels = column * width, row * height, min(end_x, (column + 1) * width), min(end_y, (row + 1) * height)
    return ImagePatch(row, column, _rounded(box), _rounded(frame.drawn(pixels)), frame.area)


def _within(box: Box, edge: Box) -> Box | None:
    left, top = max(box[0], edge[0]), max(box[1], edge[1])
    right, bottom = min(box[2], edge[2]), min(box[3], edge[3])
    return (left, top, right, bottom) if right - left > 1e-6 and bottom - top > 1e-6 else None


def _rounded(box: Box) -> Box:
    left, top, right, bottom = (round(edge, 3) for edge in box)
    return left, top, right, bottom


def _picture(processor: Any, grids: Sequence[TileGrid], frames: Sequence[_Frame]) -> Picture:
    """All that the model was given of the picture, on one canvas."""
    parts: list[tuple[_Frame, Tensor]] = []
    note = ""
    for grid, frame in zip(grids, frames, strict=True):
        left, top, right, bottom = frame.cut
        pixels, own_note = display_pixels(processor, _joined(grid)[:, top:bottom, left:right].detach().float().cpu())
        parts.append((frame, _smaller(pixels, frame.shrink)))
        note = note or own_note
    ends = [(round(frame.top) + part.shape[0], round(frame.left) + part.shape[1]) for frame, part in parts]
    n_channels = parts[0][1].shape[-1]
    canvas = torch.full((max(end[0] for end in ends), max(end[1] for end in ends), n_channels), 255, dtype=torch.uint8)
    for (frame, part), (bottom, right) in zip(parts, ends, strict=True):
        canvas[round(frame.top) : bottom, round(frame.left) : right] = part
    main = next(grid for grid, frame in zip(grids, frames, strict=True) if frame.area == 0)
    tall, wide = _cell_size(main)
    ordered = sorted(zip(frames, grids, strict=True), key=lambda pair: pair[0].area)
    areas = tuple(
        PictureArea(grid.name, _rounded(frame.box), _rounded(_source(grid, frame))) for frame, grid in ordered
    )
    return Picture(canvas, (max(1, round(tall)), max(1, round(wide))), note, areas)


def _source(grid: TileGrid, frame: _Frame) -> Box:
    """The part of the picture as it was given that a grid's drawn pixels show."""
    height, width = _tile_size(grid)
    left, top, right, bottom = grid.tiles[0].box
    across, down = (right - left) / width, (bottom - top) / height
    x, y, end_x, end_y = frame.cut
    return left + x * across, top + y * down, left + end_x * across, top + end_y * down


def _joined(grid: TileGrid) -> Tensor:
    """The pixels of all tiles side by side [channel, height, width]."""
    tiles = [tile.pixels for tile in grid.tiles]
    rows = [torch.cat(tiles[first : first + grid.columns], -1) for first in range(0, len(tiles), grid.columns)]
    return torch.cat(rows, -2)


def _smaller(pixels: Tensor, shrink: int) -> Tensor:
    """Pixels [height, width, channel] with fewer of them."""
    if shrink == 1:
        return pixels
    planes = torch.nn.functional.avg_pool2d(pixels.permute(2, 0, 1).float(), shrink, ceil_mode=True)
    return planes.round().to(torch.uint8).permute(1, 2, 0)
