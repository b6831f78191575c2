"""The page in an output of a notebook: what widgets of traces and of atlases share."""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from headscope.errors import HeadscopeError, MissingExtraError
from headscope.views.saved_page import page_files

try:
    import anywidget
    import traitlets
except ImportError as error:
    raise MissingExtraError("live views need anywidget: pip install headscope[notebook].") from error

_log = logging.getLogger("headscope")
_LONGEST_NAME = 64


class PageWidget(anywidget.AnyWidget):
    """A page that asks the kernel for its parts, and tells it what is selected."""

    height = traitlets.Int(560, min=200, max=4000, help="In pixels.").tag(sync=True)
    _selection = traitlets.Dict().tag(sync=True)
    _esm = traitlets.Unicode().tag(sync=True)
    _style = traitlets.Unicode().tag(sync=True)
    _title = traitlets.Unicode().tag(sync=True)
    _picture = traitlets.Bytes().tag(sync=True)

    def __init__(self, title: str, selection: dict[str, Any], *, height: int, picture: bytes = b"") -> None:
        script, style = page_files()
        super().__init__(_esm=script, _style=style, _title=title, _picture=picture, _selection=selection, height=height)
        self.on_msg(self._hear)

    def _answer(self, content: Mapping[str, Any]) -> bytes:
        """What the page asked for, as bytes."""
        raise NotImplementedError

    def _accept(self, select: Callable[[], None]) -> None:
        """Take over what the page selected; what is not there is left as it was."""
        try:
            select()
        except HeadscopeError as problem:
            _log.warning("the page of %s selected something that is not there: %s", self._title, problem)

    def _hear(self, _: Any, content: Any, buffers: Any) -> None:
        name = content.get("ask") if isinstance(content, Mapping) else None
        if not isinstance(name, str) or len(name) > _LONGEST_NAME:
            return
        try:
            reply = self._answer(content)
        except HeadscopeError as error:
            problem = {"error": type(error).__name__, "message": str(error), "hint": ""}
            self.send({"answer": name, "problem": problem})
        except Exception:
            _log.exception("a view in a notebook could not be drawn")
            message = "Something went wrong inside the kernel."
            hint = "Its log says where: please report it."
            self.send({"answer": name, "problem": {"error": "Unexpected", "message": message, "hint": hint}})
        else:
            self.send({"answer": name}, [reply])
