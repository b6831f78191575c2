"""All heads of a model: a grid of their maps."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from headscope.errors import InputError
from headscope.sites import Head, Site
from headscope.traces import Difference
from headscope.views.edited import edited_heads, edited_layer_notes, edited_layers
from headscope.views.figures.canvas import (
    BAR_ROOM,
    Theme,
    canvas,
    colour_bar,
    how_read,
    ramp_of,
    root_marks,
    signed_marks,
    signs_of,
)
from headscope.views.parts import maps_part

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from headscope.views.view import View

Grid = dict[Head, tuple[int, int]]

# Every map is drawn in so many dots a side.
_TILE = 48
_STRONGEST = 300
# Between tiles, in dots; more between rows of heads that have their names over them.
_GAP = 4
NAME_ROOM = 16


def draw_model(view: "View", theme: Theme) -> Figure:
    """A map a head, layers down and heads across, or in the order of a score."""
    trace, selection = view.trace, view.selection
    maps = maps_part(trace, _TILE).arrays
    places = _places(view)
    n_rows, n_columns = 1 + max(row for row, _ in places.values()), 1 + max(column for _, column in places.values())
    step = _TILE + _GAP
    down = _TILE + (NAME_ROOM if selection.sort else _GAP)
    is_signed = isinstance(trace, Difference)
    full = _furthest(maps) if is_signed else 1.0
    mosaic = np.full((n_rows * down, n_columns * step), np.nan)
    for head, (row, column) in places.items():
        tile = np.zeros((_TILE, _TILE))
        if selection.thumbnails == "heat":
            coded: Any = maps[str(head.site)]
            shade = coded.bytes[head.index].astype(float)
            tile = _resize((shade - 128) / full if is_signed else shade / 255)
        mosaic[row * down : row * down + _TILE, column * step : column * step + _TILE] = tile
    inch = min(0.8, 24 / max(n_rows, n_columns))
    figure, axes = canvas(view, theme, (n_columns * inch + 1.2, n_rows * inch * down / step + 1.0 + BAR_ROOM))
    ramp, low = (signs_of(theme), -1) if is_signed else (ramp_of(theme), 0)
    image = axes.imshow(np.ma.masked_invalid(mosaic), cmap=ramp, vmin=low, vmax=1, interpolation="nearest")
    if selection.thumbnails == "heat":
        marks = signed_marks((full / 127) ** 2, is_root=True) if is_signed else root_marks(0.0, 1.0)
        label = f"attention weight{', A − B' if is_signed else ''}, square-root scale"
        colour_bar(figure, image, axes, marks, label, theme, is_below=True)
    if selection.thumbnails == "lines":
        _thumbnail_lines(view, axes, places, (down, step), theme)
    _frames(view, axes, places, (down, step), theme)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.tick_params(colors=theme["secondary"], labelsize=6 if max(n_rows, n_columns) > 16 else 8, length=0)
    if selection.sort:
        axes.set(xticks=[], yticks=[])
        for head, (row, column) in places.items():
            axes.text(column * step, row * down - 1, str(head), fontsize=6, color=theme["secondary"], va="bottom")
    else:
        sites = {row: head.site for head, (row, _) in places.items()}
        axes.set_xticks(
            [(column + 0.46) * step for column in range(n_columns)], [f"H{column}" for column in range(n_columns)]
        )
        axes.set_yticks([(row + 0.46) * down for row in sites], [str(site) for site in sites.values()])
        axes.xaxis.tick_top()
        _mark_layers(view, axes, list(sites.values()), theme)
    figure.supxlabel("; ".join(_notes(view, full)), fontsize=7, color=theme["secondary"], parse_math=False)
    return figure


def _notes(view: "View", full: float) -> list[str]:
    """What stands below: the scale, the order, what frames are."""
    selection = view.selection
    is_heat = selection.thumbnails == "heat"
    notes = ["max-pooled" if is_heat else f"the {_STRONGEST} strongest lines of each head"]
    if isinstance(view.trace, Difference):
        notes = [how_read(view), f"full colour: a difference of {(full / 127) ** 2:.2g}, square-root scale"]
    notes += [f"by {selection.sort}, the highest first"] if selection.sort else []
    notes += [f"frames: {selection.colour}"] if selection.colour else []
    notes += ["dashed frames: edited heads"] if edited_heads(view.trace) else []
    return notes + edited_layer_notes(view.trace)


def _mark_layers(view: "View", axes: "Axes", sites: list[Site], theme: Theme) -> None:
    """The names of layers whose MLP or residual stream was edited stand out."""
    edited = {(layer.stack, layer.layer) for layer in edited_layers(view.trace)}
    for site, label in zip(sites, axes.get_yticklabels(), strict=True):
        if (site.stack, site.layer) in edited:
            label.set(color=theme["edited"], fontweight="bold")


def _furthest(maps: Any) -> float:
    """How far the bytes of a difference are from nothing, at most; what is next to nothing is not blown up."""
    return max(13.0, *(float(np.abs(pattern_map.bytes.astype(float) - 128).max()) for pattern_map in maps.values()))


def _places(view: "View") -> Grid:
    """Row and column of every head that is shown: by layer, or in the order of a score."""
    heads, selection = view.trace.heads, view.selection
    if selection.least or selection.sort:
        names = view.table().columns["head"].tolist()
        by_name = {str(head): head for head in heads}
        heads = (
            [by_name[name] for name in names] if selection.sort else [head for head in heads if str(head) in set(names)]
        )
    if selection.sort:
        width = math.ceil(math.sqrt(len(heads)))
        return {head: divmod(number, width) for number, head in enumerate(heads)}
    rows = {site: row for row, site in enumerate(dict.fromkeys(head.site for head in heads))}
    return {head: (rows[head.site], head.index) for head in heads}


def _resize(tile: np.ndarray) -> np.ndarray:
    """A map in as many dots as every other has."""
    rows, columns = ((np.arange(_TILE) * length) // _TILE for length in tile.shape)
    return tile[np.ix_(rows, columns)]


def _thumbnail_lines(view: "View", axes: "Axes", places: Grid, steps: tuple[int, int], theme: Theme) -> None:
    ends, colours = [], []
    down, step = steps
    accent = to_rgb(theme["accent"])
    for head, (row, column) in places.items():
        layer = view.trace.layers[head.site]
        if isinstance(view.trace, Difference):
            raise InputError("a difference is drawn as heat maps: leave thumbnails='lines' out.")
        assert layer.summary.top_keys is not None and layer.summary.top_weights is not None  # there is a map
        keys, weights = (
            values[head.index].cpu().numpy() for values in (layer.summary.top_keys, layer.summary.top_weights)
        )
        weights = np.where(keys >= 0, np.nan_to_num(weights), 0)
        best = np.argsort(-weights, axis=None, kind="stable")[:_STRONGEST]
        query, rank = np.unravel_index(best[weights.flat[best] > 0.02], weights.shape)
        query_ends = row * down + (query + 0.5) / layer.n_queries * _TILE
        key_ends = row * down + (keys[query, rank] + 0.5) / layer.n_keys * _TILE
        edge = np.full(len(query), column * step)
        ends.append(np.stack([np.stack([edge, query_ends], 1), np.stack([edge + _TILE, key_ends], 1)], 1))
        colours += [(*accent, float(weight)) for weight in np.clip(weights[query, rank], 0, 1)]
    axes.add_collection(LineCollection(list(np.concatenate(ends)), colors=colours, linewidths=0.5))


def _frames(view: "View", axes: "Axes", places: Grid, steps: tuple[int, int], theme: Theme) -> None:
    """Every head in a frame, coloured by a score where one was chosen."""
    method = (
        next((measure for measure in view.scores_part.props.methods if measure.name == view.selection.colour), None)
        if view.selection.colour
        else None
    )
    edited = set(edited_heads(view.trace))
    positions = {str(head): place for place, head in enumerate(view.trace.heads)}
    ramp = LinearSegmentedColormap.from_list("score", [theme["line"], theme["accent"]])
    for head, (row, column) in places.items():
        colour, width = theme["line"], 0.4
        if method is not None:
            value = float(view.scores_part.arrays[method.name][positions[str(head)]])  # type: ignore[index]
            share = 0.0 if math.isnan(value) else (value - method.low) / (method.high - method.low)
            colour, width = ramp(share), 0.4 + 1.6 * min(1.0, max(0.0, share))
        is_edited = str(head) in edited
        if is_edited:
            colour, width = theme["edited"], 2.0
        corner = (column * steps[1] - 0.5, row * steps[0] - 0.5)
        style = "--" if is_edited else "-"
        frame = Rectangle(corner, _TILE, _TILE, fill=False, edgecolor=colour, linewidth=width, linestyle=style)
        axes.add_patch(frame)
