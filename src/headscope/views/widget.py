"""A view in a notebook, alive: the page in an output, its parts from the kernel's trace, its selection in Python."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from headscope.errors import InputError, MissingExtraError, NotRecordedError
from headscope.views.contract import SavedProps
from headscope.views.live_selection import change_selection, select, selected_of
from headscope.views.page_widget import PageWidget
from headscope.views.parts import part
from headscope.views.saved_page import page
from headscope.views.wire import Part

try:
    import traitlets
except ImportError as error:
    raise MissingExtraError("live views need anywidget: pip install headscope[notebook].") from error

if TYPE_CHECKING:
    from headscope.views.view import View

_NO_ACTIVATIONS = "this view holds no activations, which take the model: show hs.activations_view(trace, model)."


class ViewWidget(PageWidget):
    """A view to look at and to choose in: `widget.selected` is what is on screen, and can be set.

    Parts are made when the page asks for them, so a trace of any size can be looked at; the widget holds the trace
    until `widget.close()`.
    """

    # The page is told `_selection`, in its own words; `selected` is the same in Python's.
    selected: Any = traitlets.Any(help="What is on screen: the scale, the head, the heads drawn, the token.")

    def __init__(self, view: "View", *, height: int = 560, picture: bytes = b"") -> None:
        self._opened = view
        super().__init__(view.title, asdict(view.selection), height=height, picture=picture)
        self.selected = view.selection

    def __repr__(self) -> str:
        selection = self.selected.selection
        return f"ViewWidget({replace(self._opened, kind=selection.scale, selection=selection)!r})"

    @property
    def view(self) -> "View":
        """What is on screen now, as a view: `widget.view.figure()`, `widget.view.table()`, `widget.view.save(…)`."""
        selection = self.selected.selection
        if selection.scale == "activations" and self._opened.activations is None:
            raise NotRecordedError(_NO_ACTIVATIONS)
        return replace(self._opened, kind=selection.scale, selection=selection)

    # What is selected

    @traitlets.validate("selected")
    def _check(self, proposal: Any) -> Any:
        now = self._opened.selection if self.selected is None else self.selected.selection
        return select(self._opened.trace, now, proposal["value"])

    @traitlets.observe("selected")
    def _tell(self, change: Any) -> None:
        self._selection = asdict(change["new"].selection)

    @traitlets.observe("_selection")
    def _receive_selection(self, change: Any) -> None:
        if self.selected is None or change["new"] == asdict(self.selected.selection):
            return

        def select_on_page() -> None:
            # The page tells all of it: what it leaves out is as it was when the view was made.
            selection = change_selection(change["new"], self._opened.selection)
            self.selected = selected_of(self._opened.trace, selection)

        self._accept(select_on_page)

    # What the page asks for

    def _answer(self, content: Mapping[str, Any]) -> bytes:
        if content.get("page") is True:
            return page(self.view).html.encode()
        key = content.get("key")
        if not isinstance(key, str):
            raise InputError("the page asked for nothing: a question has a key.")
        return self._part(key).encode()

    def _part(self, key: str) -> Part:
        if key == "saved":
            now = self.selected.selection
            return Part("saved", SavedProps(now.scale, asdict(now), [], self._opened.theme))
        if key == "scores":
            return self._opened.scores_part
        if key in self._opened.parts:
            return self._opened.parts[key]
        if key.startswith("activations/"):
            raise NotRecordedError(_NO_ACTIVATIONS)
        return part(self._opened.trace, key)
