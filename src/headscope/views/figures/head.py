"""Heads of one layer: lines between tokens, or matrices."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from headscope.traces import Difference
from headscope.views.edited import edited_weights
from headscope.views.figures.arcs import draw_arcs
from headscope.views.figures.canvas import (
    Theme,
    canvas,
    colour_bar,
    how_read,
    letters,
    names_of,
    ramp_of,
    root_marks,
    signed_marks,
    signs_of,
)
from headscope.views.row_window import pool
from headscope.views.table import HeadWeights, lines

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from headscope.views.view import View

MOST_LINES = 20_000
MOST_CELLS = 512
TOKEN_INCHES = 0.19
LETTER_INCHES = 0.07
LONGEST_INCHES = 40.0


def draw_lines(view: "View", head_weights: HeadWeights, theme: Theme) -> Figure:
    """Tokens on two sides, and lines between them: a colour a head, as opaque as the weight."""
    heads, queries, keys, values = lines(view, head_weights)
    n_lines = len(values)
    if n_lines > MOST_LINES:
        strongest = np.argsort(-np.abs(values), kind="stable")[:MOST_LINES]
        heads, queries, keys, values = (
            values_of_lines[strongest] for values_of_lines in (heads, queries, keys, values)
        )
    sides = names_of(head_weights.weights.queries), names_of(head_weights.weights.keys)
    length = max(map(len, sides))
    is_upright = view.selection.axis == "vertical"
    figure, axes = canvas(view, theme, _lines_size(sides, is_upright))
    ends = np.stack([np.stack([np.zeros(len(keys)), queries], 1), np.stack([np.ones(len(keys)), keys], 1)], 1)
    colours = _line_colours(view, head_weights, heads, values, theme)
    order = np.argsort(colours[:, 3], kind="stable")
    dashed = np.array([_is_dashed(theme, head_weights, number) for number in range(len(head_weights.names))])[heads][
        order
    ]
    segments = (ends if is_upright else ends[..., ::-1])[order]
    for has_style, style in ((~dashed, "-"), (dashed, (0, (3, 1.5)))):
        if has_style.any():
            axes.add_collection(
                LineCollection(
                    list(segments[has_style]), colors=colours[order][has_style], linewidths=1.2, linestyles=[style]
                )
            )
    edited = [weight for name in head_weights.names for weight in _edited_weights(view, name)]
    for weight_ends in edited:
        points = ((0, 1), weight_ends) if is_upright else (weight_ends, (0, 1))
        axes.plot(*points, "--", color=theme["edited"], linewidth=1.4)
    step = max(1, math.ceil(length * TOKEN_INCHES / LONGEST_INCHES))
    for side, texts in enumerate(sides):
        for place in range(0, len(texts), step):
            _token(axes, texts[place], side, place, is_upright, theme)
    tree_note = draw_arcs(axes, view, head_weights, theme) if is_upright else ""
    span, across = (-0.7, length - 0.3), (-0.02, 1.02)
    axes.set(xlim=across if is_upright else span, ylim=span[::-1] if is_upright else across[::-1])
    axes.axis("off")
    edited_note = "dashed: edited weights" if edited else ""
    cut_note = f"{min(n_lines, MOST_LINES):,} of {n_lines:,} lines drawn" if n_lines > MOST_LINES else ""
    _legend(figure, view, head_weights, theme, "; ".join(note for note in (cut_note, tree_note, edited_note) if note))
    return figure


def _edited_weights(view: "View", head: str) -> list[tuple[int, int]]:
    """Query and key of each weight that an edit set in a head, where the tokens are the model's own."""
    selection = view.selection
    if selection.by != "tokens" or selection.hide or selection.off:
        return []
    return [
        (query, key)
        for weights in edited_weights(view.trace)
        if weights.head == head
        for query in weights.queries
        for key in weights.keys
    ]


def _lines_size(sides: tuple[list[str], list[str]], is_upright: bool) -> tuple[float, float]:
    """Width and height, in inches."""
    long_side = min(LONGEST_INCHES, max(2.2, TOKEN_INCHES * (max(map(len, sides)) + 1) + 0.6))
    # Names that stand upright need room over and under the lines.
    tall = max(3.6, 1.6 + 2 * LETTER_INCHES * max(map(letters, (*sides[0], *sides[1]))))
    return (5.2, long_side) if is_upright else (long_side, tall)


def _line_colours(
    view: "View", head_weights: HeadWeights, heads: np.ndarray, values: np.ndarray, theme: Theme
) -> np.ndarray:
    """The colour of every line [line, rgba]: that of its head, or of a difference that of its sign; the strongest are
    opaque."""
    strongest = float(np.abs(values).max(initial=0))
    strength = np.abs(values) / max(1e-30, 1.0 if view.selection.what == "pattern" else strongest)
    colours = np.array([_head_colour(theme, head_weights, number) for number in range(len(head_weights.names))])[heads]
    if isinstance(view.trace, Difference):
        strength /= max(0.01, strongest)
        colours = np.array([to_rgb(theme["signs"][0]), to_rgb(theme["signs"][2])])[(values > 0).astype(int)]
    return np.concatenate([colours.reshape(-1, 3), np.clip(strength, 0, 1)[:, None]], 1)


def _token(axes: "Axes", text: str, side: int, place: int, is_upright: bool, theme: Theme) -> None:
    common: dict[str, Any] = {"color": theme["ink"], "fontsize": 8, "parse_math": False}
    if is_upright:
        axes.text(-0.02 if side == 0 else 1.02, place, text, ha="right" if side == 0 else "left", va="center", **common)
    else:
        axes.text(
            place,
            -0.03 if side == 0 else 1.03,
            text,
            rotation=90,
            ha="center",
            va="bottom" if side == 0 else "top",
            **common,
        )


def _head_colour(theme: Theme, head_weights: HeadWeights, number: int) -> tuple[float, float, float]:
    if len(head_weights.names) == 1:
        return to_rgb(theme["accent"])
    return to_rgb(theme["heads"][head_weights.heads[number] % len(theme["heads"])])


def _is_dashed(theme: Theme, head_weights: HeadWeights, number: int) -> bool:
    """Whether the colours had to begin again for this head."""
    return len(head_weights.names) > 1 and head_weights.heads[number] // len(theme["heads"]) % 2 == 1


def _legend(figure: Figure, view: "View", head_weights: HeadWeights, theme: Theme, note: str) -> None:
    if len(head_weights.names) > 1 and not isinstance(view.trace, Difference):
        handles = [
            Line2D(
                [],
                [],
                color=_head_colour(theme, head_weights, number),
                linewidth=2,
                linestyle="--" if _is_dashed(theme, head_weights, number) else "-",
                label=name,
            )
            for number, name in enumerate(head_weights.names)
        ]
        figure.legend(
            handles=handles,
            loc="outside lower center",
            ncols=min(6, len(handles)),
            frameon=False,
            fontsize=7,
            labelcolor=theme["secondary"],
        )
    notes = [text for text in (how_read(view), note) if text]
    if notes:
        figure.supxlabel("; ".join(notes), fontsize=7, color=theme["secondary"], parse_math=False)


# Matrices

_QUANTITIES = {"pattern": "attention weight", "contribution": "contribution", "scores": "score before the softmax"}


def draw_matrices(view: "View", head_weights: HeadWeights, theme: Theme) -> Figure:
    """A matrix a head, queries down and keys across."""
    weights = head_weights.weights
    cell = tuple(math.ceil(length / MOST_CELLS) for length in (weights.n_queries, weights.n_keys))
    planes = [_plane(head_weights, head, cell) for head in head_weights.heads]
    planes = [np.mean(planes, 0)] if view.selection.average else planes
    n_columns = math.ceil(math.sqrt(len(planes)))
    n_rows = math.ceil(len(planes) / n_columns)
    longest = max(weights.n_queries, weights.n_keys)
    has_texts = longest <= 60 and len(planes) == 1
    side = max(4.0, 0.16 * longest + 1.5) if has_texts else (5.0 if len(planes) == 1 else 2.6)
    figure, _ = canvas(view, theme, (side * n_columns + 0.8, side * n_rows + 0.4), with_axes=False)
    is_signed = isinstance(view.trace, Difference)
    low, top = _extremes(view, planes)
    ramp = signs_of(theme) if is_signed else ramp_of(theme)
    image = None
    all_axes = []
    for number, plane in enumerate(planes):
        axes = figure.add_subplot(n_rows, n_columns, number + 1)
        all_axes.append(axes)
        # On the root scale, as on the page: a weight of 0.01 can still be seen.
        share = np.clip((np.where(np.isfinite(plane), plane, low) - low) / max(1e-30, top - low), 0, 1)
        shade = share if is_signed else np.sqrt(share)
        extent = (-0.5, weights.n_keys - 0.5, weights.n_queries - 0.5, -0.5)
        image = axes.imshow(shade, cmap=ramp, vmin=0, vmax=1, interpolation="nearest", extent=extent)
        axes.set_facecolor(theme["background"])
        if len(planes) > 1:
            axes.set_title(head_weights.names[number], fontsize=8, color=theme["ink"], parse_math=False)
        _ticks(axes, weights, has_texts, theme)
        for query, key in _edited_weights(view, head_weights.names[number]):
            corner = (key - 0.5, query - 0.5)
            axes.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor=theme["edited"], linewidth=1.4))
    assert image is not None
    marks = signed_marks(top, is_root=False) if is_signed else root_marks(low, top)
    scale = "linear" if is_signed else "square-root"
    quantity = _QUANTITIES[view.selection.what] + (", A − B" if is_signed else "")
    colour_bar(figure, image, all_axes, marks, f"{quantity}, {scale} scale", theme)
    notes = [how_read(view)] + ([f"max-pooled by {cell[0]} × {cell[1]} tokens"] if cell != (1, 1) else [])
    if any(notes):
        figure.supxlabel(
            "; ".join(note for note in notes if note), fontsize=7, color=theme["secondary"], parse_math=False
        )
    return figure


def _extremes(view: "View", planes: list[np.ndarray]) -> tuple[float, float]:
    """The numbers at both ends of the colours."""
    if isinstance(view.trace, Difference):
        largest = max(0.01, max(float(np.abs(plane).max()) for plane in planes))
        return -largest, largest
    finite = [np.where(np.isfinite(plane), plane, np.nan) for plane in planes]
    low = min(float(np.nanmin(plane)) for plane in finite) if view.selection.what == "scores" else 0.0
    return low, 1.0 if view.selection.what == "pattern" else max(float(np.nanmax(plane)) for plane in finite)


def _plane(head_weights: HeadWeights, head: int, cell: tuple[int, ...]) -> np.ndarray:
    weights = head_weights.weights
    return pool(weights, head, (0, weights.n_queries), (0, weights.n_keys), (cell[0], cell[1]))


def _ticks(axes: "Axes", weights: Any, has_texts: bool, theme: Theme) -> None:
    axes.tick_params(colors=theme["secondary"], labelsize=7, length=2)
    for spine in axes.spines.values():
        spine.set_color(theme["line"])
    if not has_texts:
        return
    axes.set_xticks(range(weights.n_keys), names_of(weights.keys), rotation=90)
    axes.set_yticks(range(weights.n_queries), names_of(weights.queries))
    for label in (*axes.get_xticklabels(), *axes.get_yticklabels()):
        label.set_parse_math(False)
