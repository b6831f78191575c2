"""An atlas in a notebook, alive: the page in an output, its parts from the kernel."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from headscope.errors import InputError, MissingExtraError
from headscope.views.atlas_page import atlas_page
from headscope.views.atlas_parts import AtlasNames, atlas_part
from headscope.views.atlas_selection import AtlasSelection, checked_selection
from headscope.views.contract import SavedProps
from headscope.views.page_widget import PageWidget
from headscope.views.wire import Part

try:
    import traitlets
except ImportError as error:
    raise MissingExtraError("live views need anywidget: pip install headscope[notebook].") from error

if TYPE_CHECKING:
    from headscope.views.atlas_views import AtlasView


class AtlasWidget(PageWidget):
    """An atlas to look at: `widget.selection` is what is on screen, and can be set."""

    selection: Any = traitlets.Any(help="What is on screen, as an AtlasSelection.")

    def __init__(self, view: "AtlasView", *, height: int = 640) -> None:
        self._opened = view
        super().__init__(view.title, asdict(view.selection), height=height)
        self.selection = view.selection

    def __repr__(self) -> str:
        return f"AtlasWidget({self.view!r})"

    @property
    def view(self) -> "AtlasView":
        """What is on screen now, as a view: `widget.view.save(…)`."""
        return replace(self._opened, selection=self.selection)

    @traitlets.validate("selection")
    def _check(self, proposal: Any) -> AtlasSelection:
        chosen = proposal["value"]
        return checked_selection(chosen if isinstance(chosen, Mapping) else asdict(chosen))

    @traitlets.observe("selection")
    def _tell(self, change: Any) -> None:
        self._selection = asdict(change["new"])

    @traitlets.observe("_selection")
    def _receive(self, change: Any) -> None:
        self._accept(lambda: setattr(self, "selection", change["new"]))

    def _answer(self, content: Mapping[str, Any]) -> bytes:
        if content.get("page") is True:
            return atlas_page(self.view).html.encode()
        key = content.get("key")
        if not isinstance(key, str):
            raise InputError("the page asked for nothing: a question has a key.")
        if key == "saved":
            return Part("saved", SavedProps("atlas", asdict(self.selection), [], self._opened.theme)).encode()
        return atlas_part(self._opened.atlas, key, AtlasNames("notebook", self.selection.atlas)).encode()
