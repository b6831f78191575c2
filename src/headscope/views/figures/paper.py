"""Figures at the width of a paper's column or page: type of 7 to 9 points at that width, nothing that overlaps.

Works on a figure of any view: it is made narrower, its type is kept readable, labels that no longer fit are thinned out
or shortened, and what a caption says better (the title) is left out.
"""

import math
import textwrap
from typing import TYPE_CHECKING, Any, Literal

from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.text import Text

from headscope.errors import InputError
from headscope.views.figures.canvas import cut, letters
from headscope.views.figures.model import NAME_ROOM

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Width = Literal["column", "page"] | float

# The text widths of two-column conference papers, in inches.
WIDTHS = {"column": 3.33, "page": 6.9}
TALLEST = 9.0
SMALLEST, LARGEST = 7.0, 9.0
DPI = 400
# One line of the smallest type with its leading, and the mean width of its letters.
_LINE, _LETTER = SMALLEST * 1.15 / 72, SMALLEST * 0.62 / 72
# Rows drawn for 8 points and a screen may move together so far.
_CLOSEST = 0.68


def inches(width: Width) -> float:
    """A width by its name, or in inches."""
    if isinstance(width, str):
        if width not in WIDTHS:
            known = ", ".join(f"{name!r} ({size} in)" for name, size in WIDTHS.items())
            raise InputError(f"width={width!r} is not known: choose {known}, or give inches.")
        return WIDTHS[width]
    if isinstance(width, bool) or not isinstance(width, int | float) or not 1 <= width <= 40:
        raise InputError(f"width={width!r} is not between 1 and 40 inches: give 'column', 'page' or inches.")
    return float(width)


def fit(figure: Figure, width: Width, title: str = "") -> Figure:
    """The figure at this width, as a paper prints it. `title` is what a caption might forget: the edits of the run."""
    wide = inches(width)
    old_wide, old_tall = figure.get_size_inches()
    scale = wide / old_wide
    figure.suptitle("\n".join(textwrap.wrap(title, max(20, int(wide / _LETTER)))), parse_math=False)
    tall = old_tall * (scale if _is_picture(figure) else max(_CLOSEST, min(1.0, scale)))
    figure.set_size_inches(wide, min(TALLEST, max(1.2, tall)))
    figure.set_dpi(DPI)
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        text.set_fontsize(min(LARGEST, max(SMALLEST, text.get_fontsize())))
    for axes in figure.axes:
        axes.tick_params(labelsize=SMALLEST)
        axes.title.set_fontsize(8 if len(figure.axes) > 2 else SMALLEST)
    _notes(figure, wide)
    for legend in list(figure.legends):
        _rebuild_legend(figure, legend, wide)
    # Once to see what is cut and crowded, and once as it is then.
    for axes in figure.axes:
        _shorten(axes, wide)
    figure.draw_without_rendering()
    for axes in figure.axes:
        _thin(axes)
    figure.draw_without_rendering()
    return figure


def _is_picture(figure: Figure) -> bool:
    """Whether its shape is that of its pictures: square maps, which grow with the width."""
    return any(axes.images and axes.get_aspect() != "auto" for axes in figure.axes)


def _rebuild_legend(figure: Figure, legend: Legend, wide: float) -> None:
    """The legend once more, in as many columns as there is room for."""
    texts = legend.get_texts()
    n_columns = int(wide / (0.42 + max(len(text.get_text()) for text in texts) * _LETTER))
    legend.remove()
    figure.legend(
        handles=legend.legend_handles,
        labels=[text.get_text() for text in texts],
        loc="outside lower center",
        ncols=max(1, min(len(texts), n_columns)),
        frameon=False,
        fontsize=SMALLEST,
        labelcolor=texts[0].get_color(),
        handlelength=1.2,
        columnspacing=1.0,
    )


def _notes(figure: Figure, wide: float) -> None:
    note = figure.get_supxlabel()
    if note:
        label: Any = figure._supxlabel  # type: ignore[attr-defined]
        label.set_text("\n".join(textwrap.wrap(note, max(20, int(wide / _LETTER)))))


def _shorten(axes: "Axes", wide: float) -> None:
    """Tokens beside lines take at most a third of the width each, less where there are columns to see."""
    assert axes.figure is not None
    longest = max(6, int(wide * (0.3 if len(axes.figure.axes) <= 2 else 0.16) / _LETTER))
    for text in [] if axes.images else axes.texts:
        text.set_text(cut(text.get_text(), longest * SMALLEST / float(text.get_fontsize())))
    for axis in (axes.xaxis, axes.yaxis):
        labels = [label.get_text() for label in axis.get_ticklabels()]
        if any(letters(text) > longest for text in labels):
            axis.set_ticks(axis.get_ticklocs(), labels=[cut(text, longest) for text in labels])
            for label in axis.get_ticklabels():
                label.set_parse_math(False)


def _thin(axes: "Axes") -> None:
    """Every second label, or third, where all would overlap; words inside cells are cut to them."""
    box = axes.get_window_extent().transformed(axes.figure.dpi_scale_trans.inverted())  # type: ignore[union-attr]
    title = axes.get_title()
    if len(title) * _LETTER > box.width:
        middle = math.ceil(len(title) / 2)
        is_word = " " not in title and len(title) > 6
        wrapped = f"{title[:middle]}-\n{title[middle:]}" if is_word else title.replace("  ", "\n")
        axes.set_title(wrapped, fontsize=SMALLEST, color=axes.title.get_color(), pad=3, parse_math=False)
    for axis, length in ((axes.xaxis, box.width), (axes.yaxis, box.height)):
        labels = [label for label in axis.get_ticklabels() if label.get_text()]
        if len(labels) > 2:
            low, high = sorted(axis.get_view_interval())
            places = [place for place in axis.get_ticklocs() if low <= place <= high]
            gap = length * (max(places) - min(places)) / max(1e-9, high - low) / max(1, len(places) - 1)
            _every(labels, gap, _LINE if axis is axes.yaxis or labels[0].get_rotation() else _widest(labels))
    if axes.images:
        _cut(axes, box.width, box.height)
        return
    sides: dict[tuple[str, float], list[Text]] = {}
    for text in axes.texts:
        x, y = text.get_position()
        sides.setdefault(("x", float(y)) if text.get_rotation() else ("y", float(x)), []).append(text)
    for (way, _), texts in sides.items():
        if len(texts) > 2:
            length, span = (box.width, axes.get_xlim()) if way == "x" else (box.height, axes.get_ylim())
            places = [text.get_position()[0 if way == "x" else 1] for text in texts]
            step = (max(places) - min(places)) / (len(places) - 1)
            _every(texts, length * step / max(1e-9, abs(span[1] - span[0])), _LINE)


def _every(labels: list[Text], gap: float, needed: float) -> None:
    step = max(1, math.ceil(needed / max(1e-9, gap) - 0.05))
    for number, label in enumerate(labels):
        label.set_visible(label.get_visible() and number % step == 0)


def _widest(labels: list[Text]) -> float:
    return (1 + max(letters(label.get_text()) for label in labels)) * _LETTER


def _cut(axes: "Axes", wide: float, tall: float) -> None:
    """Words in cells: as much of each as its cell holds. Names over tiles: all where there is room, or none."""
    n_columns = max(1e-9, abs(axes.get_xlim()[1] - axes.get_xlim()[0]))
    centred = [text for text in axes.texts if text.get_horizontalalignment() == "center"]
    room = int(wide / n_columns / _LETTER / 1.08 - 0.4)  # some paper between neighbours
    for text in centred:
        word = text.get_text()
        text.set_text(cut(word, room) if letters(word) <= room or room > 2 else "")
    names = [text for text in axes.texts if text.get_horizontalalignment() == "left"]
    places = sorted({text.get_position()[0] for text in names})
    if len(places) > 1:
        gap = wide * (places[1] - places[0]) / n_columns
        room = NAME_ROOM * tall / abs(axes.get_ylim()[1] - axes.get_ylim()[0])
        for text in names:
            text.set_visible(_widest(names) <= gap * 1.1 and room > SMALLEST / 72)
