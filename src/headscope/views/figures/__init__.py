"""Views as matplotlib figures, for papers: on white or on dark, in colours that colour-blind readers can tell apart."""

from typing import TYPE_CHECKING, Literal

from headscope.views.captions import edits_line
from headscope.views.figures.activations import draw_activations
from headscope.views.figures.canvas import THEMES, Figure, settings
from headscope.views.figures.head import draw_lines, draw_matrices
from headscope.views.figures.media import draw_picture, draw_time
from headscope.views.figures.model import draw_model
from headscope.views.figures.neuron import draw_neurons
from headscope.views.figures.paper import Width, fit, inches
from headscope.views.selection import choice, form_of
from headscope.views.table import weights_of

if TYPE_CHECKING:
    from headscope.views.view import View


def draw(view: "View", theme: Literal["light", "dark"] = "light", width: Width | None = None) -> Figure:
    """The figure of a view: as wide as it likes, or as a column or a page of a paper is."""
    choice("theme", theme, Literal["light", "dark"])
    if width is None:
        return _draw_unscaled(view, theme)
    inches(width)  # refused before anything is drawn
    with settings():
        return fit(_draw_unscaled(view, theme), width, edits_line(view.trace) if view.trace.edits else "")


def _draw_unscaled(view: "View", theme: str) -> Figure:
    with settings():
        if view.kind == "activations":
            return draw_activations(view, THEMES[theme])
        if view.kind == "model":
            return draw_model(view, THEMES[theme])
        if view.kind == "neuron":
            return draw_neurons(view, THEMES[theme])
        head_weights = weights_of(view)
        draw_form = {"matrix": draw_matrices, "image": draw_picture, "time": draw_time, "lines": draw_lines}
        return draw_form[form_of(view.trace, view.selection)](view, head_weights, THEMES[theme])
