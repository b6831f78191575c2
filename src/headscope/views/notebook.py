"""How a view shows itself: a live widget where a notebook's kernel can drive one, a page in a frame elsewhere.

A notebook keeps a picture beside the widget, of some 30 to 100 kB: what readers see where no kernel runs (on the web,
in an exported page). A whole page would be up to 18 MB in each output.
"""

import base64
import importlib.util
import io
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from headscope.errors import HeadscopeError
from headscope.views.saved_page import frame
from headscope.views.selection import form_of

if TYPE_CHECKING:
    from headscope.views.atlas_views import AtlasView
    from headscope.views.view import View

# Lines between more tokens than this take seconds to draw and are a blur: a matrix is not.
_MOST_LINED = 48
_MOST_TOKENS = 2048
_DPI = 100


def bundle(view: "View") -> Any:
    """What IPython is to show of a view, by type."""
    plain = {"text/plain": repr(view)}
    if (page := page_in_frame(view)) is not None:
        return {"text/html": page, **plain}
    if not is_live():
        return plain  # a terminal
    live = view.widget
    bundle_of_widget = live._repr_mimebundle_()
    assert bundle_of_widget is not None  # it has a view to show
    data, metadata = bundle_of_widget
    picture = base64.b64encode(live._picture).decode()
    return data | ({"image/png": picture} if picture else {}) | plain, metadata


def page_in_frame(view: "View | AtlasView") -> str | None:
    """The page, for what shows HTML and is no notebook that drives widgets; None for a terminal, and for that."""
    shell = _shell()
    if is_live() or (shell is not None and getattr(shell, "kernel", None) is None):
        return None
    return frame(view.html(), view.title)


def is_live() -> bool:
    """Whether there is what a live view needs: a kernel, and anywidget."""
    return getattr(_shell(), "kernel", None) is not None and importlib.util.find_spec("anywidget") is not None


def still_picture(view: "View") -> bytes:
    """The view as a small picture; none where it would take long, or where there is nothing to draw with."""
    if importlib.util.find_spec("matplotlib") is None:
        return b""
    longest = max(map(len, view.trace.tokens.values()))
    if longest > _MOST_TOKENS:
        return b""
    chosen = view.selection
    if view.kind == "head" and longest > _MOST_LINED and form_of(view.trace, chosen) == "lines":
        chosen = replace(chosen, form="matrix", heads=[chosen.head], average=False)
    picture = io.BytesIO()
    try:
        replace(view, selection=chosen).figure().savefig(picture, format="png", dpi=_DPI)
    except HeadscopeError:
        return b""  # a trace that holds too little to draw: the page says what is missing
    return picture.getvalue()


def _shell() -> Any:
    """IPython's shell, where there is one."""
    python = sys.modules.get("IPython")
    return None if python is None else python.get_ipython()
