"""An atlas as it is looked at: in a notebook, as a page that opens offline, as a figure."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.choices import Coordinates, MapMethod, Theme
from headscope.errors import InputError
from headscope.files import write_file
from headscope.views.atlas_parts import corpus_title
from headscope.views.atlas_selection import AtlasSelection
from headscope.views.save import PICTURES, check_path
from headscope.views.trace_part import short_name

if TYPE_CHECKING:
    from headscope.atlases import Atlas
    from headscope.sites import Head
    from headscope.views.atlas_widget import AtlasWidget

SUFFIXES = (".html", *PICTURES)


@dataclass(frozen=True, eq=False)
class AtlasView:
    """An atlas with a selection: draws itself in a notebook; `save` writes it as a page or a picture.

    `heads` are those that a page holds, none for the head in view or else all, as far as there is room.
    """

    atlas: "Atlas"
    selection: AtlasSelection
    heads: tuple[str, ...] = ()
    theme: Theme = "system"

    def __repr__(self) -> str:
        where = f", {self.selection.place}" if self.selection.place else ""
        return f"AtlasView({self.atlas.model!r}{where})"

    @property
    def title(self) -> str:
        """What a page or a picture of it is called."""
        place = f", {self.selection.place}" if self.selection.place else ""
        return f"{short_name(self.atlas.model)}{place}: atlas of {corpus_title(self.atlas.index['corpus'])}"

    def html(self) -> str:
        """One page that needs nothing else, of a few megabytes at most."""
        from headscope.views.atlas_page import atlas_page

        return atlas_page(self).html

    def figure(self) -> Any:
        """A matplotlib figure: all heads, those chosen, or the one in view."""
        chosen = self.selection
        heads = list(self.heads) or ([chosen.place] if chosen.place else None)
        size = 3.2 if chosen.place and not self.heads else 0.9
        return self.atlas.figure(chosen.method, coordinates=chosen.coordinates, heads=heads, size=size)

    def save(self, path: str | Path) -> Path:
        """Write it, by suffix: .html (a page), .png .svg .pdf (a figure)."""
        path = check_path(path)
        if path.suffix.lower() not in SUFFIXES:
            raise InputError(f"an atlas is saved as {', '.join(SUFFIXES)}, not {path.suffix}.")
        if path.suffix.lower() == ".html":
            data = self.html().encode()
        else:
            picture = io.BytesIO()
            self.figure().savefig(picture, format=path.suffix[1:].lower())
            data = picture.getvalue()
        write_file(path, data)
        return path

    @cached_property
    def widget(self) -> "AtlasWidget":
        """The atlas in a notebook: `view.widget.selection` is what is looked at in it. Needs headscope[notebook]."""
        from headscope.views.atlas_widget import AtlasWidget

        return AtlasWidget(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        from headscope.views.notebook import is_live

        if is_live():
            return self.widget._repr_mimebundle_()
        return {"text/plain": repr(self)}

    def _repr_html_(self) -> str | None:
        from headscope.views.notebook import page_in_frame

        return page_in_frame(self)


def atlas_view(
    atlas: "Atlas",
    head: "str | Head | None" = None,
    *,
    heads: "Sequence[str | Head]" = (),
    map: MapMethod = "pca",
    dims: int = 2,
    coordinates: Coordinates = "scaled",
    colour: str = "role",
    search: str = "",
    regex: bool = False,
    ignore_case: bool = False,
    theme: Theme = "system",
) -> AtlasView:
    """An atlas to look at: all heads, or `head` alone. Maps that are missing are made now.

    `colour` is what points are coloured by: "role", "position", "position5", "token", "special", "frequency", "norm",
    "key_bias", or a column of `atlas.tokens()`. `search` lights tokens. `heads` are those that a saved page holds.

    >>> import headscope as hs
    >>> atlas = hs.atlas("builtin:gpt", ["The doctor asked the nurse a question.", "She did not answer."], scores=False)
    >>> hs.atlas_view(atlas, "L3H2")
    AtlasView('builtin:gpt', L3H2)
    """
    place = "" if head is None else atlas.place(head).address
    chosen = [atlas.place(name).address for name in heads]
    atlas.draw(map, dims=dims, coordinates=coordinates, heads=[place, *chosen] if place else chosen or None)
    selection = AtlasSelection(
        place=place,
        method=map,
        dims=dims,
        coordinates=coordinates if atlas.index["options"]["space"] == "query_key" else "raw",
        colour=colour,
        search=search,
        regex=regex,
        ignore_case=ignore_case,
    )
    return AtlasView(atlas, selection, tuple(chosen), theme)
