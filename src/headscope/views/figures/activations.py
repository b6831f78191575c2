"""Layers × tokens: predictions of the logit lens, or norms of the residual stream; of one run or of two subtracted."""

from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.colors import Colormap
from matplotlib.figure import Figure

from headscope.sites import Head, Site, parse
from headscope.traces.activations import Activations
from headscope.traces.activations_difference import ActivationsDifference
from headscope.views.activation_differences import followed_candidate
from headscope.views.edited import edited_heads, edited_layer_notes, edited_layers
from headscope.views.figures.canvas import (
    BAR_ROOM,
    Marks,
    Theme,
    canvas,
    colour_bar,
    how_read,
    letters,
    names_of,
    one_line,
    ramp_of,
    root_marks,
    signed_marks,
    signs_of,
)
from headscope.views.selection import Selection

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from headscope.views.view import View

# Tokens whose predictions are still read in print.
_WORDS = 24
_NAMES = 60
# Of a note, to the inch.
_LETTERS = 15
_CAPTIONS = {
    "lens": "what each layer would predict, coloured by its probability",
    "norm": "norm of the residual stream",
    "attention": "norm of what attention wrote",
    "cross": "norm of what cross-attention wrote",
    "mlp": "norm of what the MLP wrote",
    "cosine": "cosine to the last layer's stream",
}
_WHOSE = {
    "either": "the prediction whose probability differs most",
    "A": "the probability of what A predicts in the end",
    "B": "the probability of what B predicts in the end",
}
# What is less than this share of the runs' own numbers is rounding, and stays pale.
_ROUNDING = 1e-5


@dataclass(frozen=True)
class _Grid:
    """What is drawn: a shade for each row and token, words where there is room, and what it says below."""

    rows: list[str]
    shade: np.ndarray
    """From 0 to 1, or of a difference from −1 to 1."""
    words: np.ndarray | None
    note: str
    marks: Marks
    legend: str
    """The quantity and its scale."""


def draw_activations(view: "View", theme: Theme) -> Figure:
    """The grid of a view of activations; of a long input the tokens whose lens was read."""
    activations, stream = view.activations, view.selection.stream
    assert activations is not None
    tokens = slice(activations.first, activations.first + activations.count) if stream == "lens" else slice(None)
    texts = names_of(activations.tokens)[tokens]
    is_two = isinstance(activations, ActivationsDifference)
    grid = _difference(activations, view.selection) if is_two else _one_run(activations, view.selection)
    has_words = grid.words is not None and len(texts) <= _WORDS
    width = max(3.3, min(14.0, len(texts) * (0.62 if has_words else 0.24) + 1.2))
    name_room = max(map(letters, texts), default=0) * 0.06 if len(texts) <= _NAMES else 0
    height = len(grid.rows) * (0.26 if has_words else 0.2) + 0.9 + BAR_ROOM + max(0.5, name_room)
    figure, axes = canvas(view, theme, (width, height))
    colours = signs_of(theme) if is_two else ramp_of(theme)
    low = -1 if is_two else 0
    first = tokens.start or 0
    extent = (first - 0.5, first + len(texts) - 0.5, len(grid.rows) - 0.5, -0.5)
    look = {"vmin": low, "vmax": 1, "aspect": "auto", "interpolation": "nearest", "extent": extent}
    image = axes.imshow(grid.shade, cmap=colours, **look)
    colour_bar(figure, image, axes, grid.marks, grid.legend, theme, is_below=True)
    if has_words and grid.words is not None:
        for (row, column), share in np.ndenumerate(grid.shade):
            colour = _contrast(colours, (share - low) / (1 - low)) if share or not is_two else theme["secondary"]
            word = one_line(str(grid.words[row, column]), 9)
            axes.text(first + column, row, word, ha="center", va="center", fontsize=6, color=colour, parse_math=False)
    axes.set_yticks(range(len(grid.rows)), grid.rows)
    axes.tick_params(colors=theme["secondary"], labelsize=7, length=0)
    _mark_rows(view, axes, activations.stack, theme)
    _name_tokens(axes, first, texts, has_words)
    for spine in axes.spines.values():
        spine.set_visible(False)
    note = "; ".join([grid.note, *edited_layer_notes(view.trace)])
    if len(texts) < len(activations.tokens):
        note += f"; tokens {first} to {first + len(texts) - 1} of {len(activations.tokens):,}"
    note = fill(f"{note}; {how_read(view)}", int(_LETTERS * width)) if is_two else note
    figure.supxlabel(note, fontsize=7, color=theme["secondary"], parse_math=False)
    return figure


def _mark_rows(view: "View", axes: "Axes", stack: str, theme: Theme) -> None:
    """The names of layers of which something was edited stand out: heads, the MLP or the residual stream."""
    sites = [Site(layer.stack, layer.layer) for layer in edited_layers(view.trace)]
    sites += [head.site for head in map(parse, edited_heads(view.trace)) if isinstance(head, Head)]
    edited = {str(Site(stack, site.layer)) for site in sites if site.stack == stack}
    for label in axes.get_yticklabels():
        if label.get_text() in edited:
            label.set(color=theme["edited"], fontweight="bold")


def _name_tokens(axes: "Axes", first: int, texts: list[str], has_words: bool) -> None:
    """Tokens over the columns, where there is room for all."""
    if len(texts) <= _NAMES:
        rotation, side = (45, "left") if has_words else (90, "center")
        axes.set_xticks(range(first, first + len(texts)), texts, rotation=rotation, ha=side)
        axes.xaxis.tick_top()
    for label in axes.get_xticklabels():
        label.set_parse_math(False)


def _one_run(activations: Activations, selection: Selection) -> _Grid:
    stream = selection.stream
    if stream == "lens":
        assert activations.lens is not None
        best = activations.lens.ids[:, :, 0]
        words = np.vectorize(lambda token_id: _word(activations.lens.names[int(token_id)]), otypes=[object])(best)  # type: ignore[union-attr]
        shade = np.sqrt(np.exp(activations.lens.logprobs[:, :, 0]))
        legend = "probability, square-root scale"
        return _Grid(activations.places, shade, words, _CAPTIONS["lens"], root_marks(0.0, 1.0), legend)
    rows, values = _rows(activations, stream), _values(activations, stream)
    extremes = f"{values.min():.3g} to {values.max():.3g}"
    if stream == "cosine":
        marks = [(place, f"{place:g}") for place in (0.0, 0.5, 1.0)]
        return _Grid(
            rows, np.clip(values, 0, 1), None, f"{_CAPTIONS[stream]}: {extremes}", marks, "cosine, linear scale"
        )
    logs = np.log(np.maximum(values, 1e-12))
    shade = (logs - logs.min()) / max(1e-9, float(logs.max() - logs.min()))
    ends = logs.min(), logs.max()
    marks = [(place, f"{np.exp(ends[0] + place * (ends[1] - ends[0])):.3g}") for place in (0.0, 0.5, 1.0)]
    note = f"{_CAPTIONS[stream]}, on the log scale: {extremes}"
    return _Grid(rows, shade, None, note, marks, "norm, log scale")


def _difference(difference: ActivationsDifference, selection: Selection) -> _Grid:
    """A − B on the root scale, as far as the largest difference."""
    stream, words = selection.stream, None
    if stream == "lens":
        assert difference.lens is not None
        ids, first, second = followed_candidate(difference.lens, selection.whose)
        first, second = np.exp(first), np.exp(second)
        words = np.vectorize(lambda id: _word(difference.lens.names[int(id)]), otypes=[object])(ids)  # type: ignore[union-attr]
        rows, caption = difference.places, _WHOSE[selection.whose]
    else:
        rows, caption = _rows(difference.a, stream), _CAPTIONS[stream]
        first, second = (_values(side, stream) for side in (difference.a, difference.b))
    values = first - second
    most = max(1e-12, float(np.abs(values).max()), _ROUNDING * float(np.abs(first).max()))
    shade = np.sign(values) * np.sqrt(np.abs(values) / most)
    note = f"A − B: {caption}; full colour: a difference of {most:.3g}"
    return _Grid(rows, shade, words, note, signed_marks(most, is_root=True), "A − B, square-root scale")


def _rows(activations: Activations, stream: str) -> list[str]:
    return activations.places if stream in ("norm", "cosine") else [str(site) for site in activations.layers]


def _values(activations: Activations, stream: str) -> np.ndarray:
    return {"norm": activations.norms, "cosine": activations.cosines}.get(
        stream, activations.written.get(stream, activations.norms)
    )


def _word(text: str) -> str:
    return text.strip() or text


def _contrast(colours: Colormap, share: float) -> str:
    """Ink or paper, whichever is read better on a colour."""
    red, green, blue, _ = colours(share)
    return "#1c1d1f" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.55 else "#ffffff"
