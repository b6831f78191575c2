"""An atlas as one HTML file: the points of some heads, what is known of them, and nothing from anywhere else."""

from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode

from headscope.errors import HeadscopeError
from headscope.views.atlas_parts import AtlasNames, atlas_part
from headscope.views.atlas_selection import AtlasSelection
from headscope.views.contract import SavedProps
from headscope.views.contract.atlas import AtlasProps
from headscope.views.html_document import escape, html_document, pack, program
from headscope.views.saved_page import Page, page_files
from headscope.views.trace_part import short_name
from headscope.views.wire import Part

if TYPE_CHECKING:
    from headscope.atlases import Atlas
    from headscope.views.atlas_views import AtlasView

MEGABYTE = 10**6
# What the points of all heads may take before they are packed, and how much one takes: two maps and two columns.
_ROOM = 6 * MEGABYTE
_BYTES_A_POINT = 16
# Of so many heads or fewer, lines, distances and means by position are saved too.
_MOST_DETAILED = 12
_DETAILS = ("lines?head={}&top=2", "distances?head={}&coordinates={}&pairs=3000", "aggregate?head={}")
_ALL_POINTS = 200_000


def atlas_page(view: "AtlasView", *, static: Path | None = None) -> Page:
    """The page of an atlas, and what was left out to keep it small."""
    heads, notes = _heads(view)
    parts = {saved_key(key): pack(part) for key, part in _parts(view.atlas, view.selection, heads)}
    saved = SavedProps(view="atlas", selection=asdict(view.selection), notes=notes, theme=view.theme)
    parts["saved"] = pack(Part("saved", saved))
    script, style = map(program, page_files(static=static))
    without = f"<h1>{escape(view.title)}</h1>\n<p>This page is drawn by JavaScript, which is switched off.</p>"
    return Page(html_document(view.title, without, parts, script, style), notes)


def saved_key(key: str) -> str:
    """A key as saved pages have it: options in order, without how many points or pairs were asked for."""
    kind, _, query = key.partition("?")
    options = sorted((name, value) for name, value in parse_qsl(query) if name not in ("points", "pairs", "top"))
    return f"{kind}?{urlencode(options)}" if options else kind


def _heads(view: "AtlasView") -> tuple[list[str], list[str]]:
    """The heads that are saved: those chosen, as many as there is room for, the one in view first of all."""
    atlas, place = view.atlas, view.selection.place
    wanted_heads = [atlas.place(head).address for head in view.heads] or ([place] if place else atlas.addresses)
    if place and place not in wanted_heads:
        wanted_heads = [place, *wanted_heads]
    n_points = max(sum(atlas.n_tokens[cloud.stack] for cloud in atlas.place(head).clouds) for head in wanted_heads)
    most = max(1, _ROOM // (_BYTES_A_POINT * n_points))
    if len(wanted_heads) <= most:
        return wanted_heads, [] if len(wanted_heads) == len(atlas) else [
            f"{len(wanted_heads)} of {len(atlas)} heads are here"
        ]
    first = [place, *(head for head in wanted_heads if head != place)] if place else wanted_heads
    return first[:most], [f"{most} of {len(wanted_heads)} heads are here: more would make the file large"]


def _parts(atlas: "Atlas", selection: AtlasSelection, heads: list[str]) -> Iterator[tuple[str, Part]]:
    is_detailed = atlas.index["has_vectors"] and len(heads) <= _MOST_DETAILED
    chosen_map = f"method={selection.method}&dims={selection.dims}&coordinates={selection.coordinates}"
    yield "atlas", _atlas(atlas, heads, selection, is_detailed=is_detailed)
    yield from _optional(atlas, ("examples", *(f"tokens?stack={stack}" for stack in atlas.n_tokens)))
    yield f"maps?{chosen_map}", _of_heads(atlas_part(atlas, f"maps?{chosen_map}&points={_ALL_POINTS}"), heads)
    yield from _optional(atlas, [f"map?head={head}&{chosen_map}" for head in heads])
    yield from _optional(atlas, [f"columns?head={head}" for head in heads])
    yield from _optional(atlas, ("scores", "anomalies"))
    if is_detailed:
        yield from _optional(atlas, [part.format(head, selection.coordinates) for head in heads for part in _DETAILS])
    example = _example(atlas, selection)
    if example is not None:
        keys = [f"pattern?head={head}&example={example}" for head in heads] if is_detailed else []
        yield from _optional(atlas, [*keys, f"image?example={example}"])
    if selection.search.strip():
        options = {"text": selection.search, "regex": int(selection.regex), "ignore_case": int(selection.ignore_case)}
        query = urlencode(options)
        yield from _optional(atlas, (f"hits?{query}", f"search?{query}"))


def _optional(atlas: "Atlas", keys: Any) -> Iterator[tuple[str, Part]]:
    """Parts, those left out that this atlas does not have: the page says so where it would show them."""
    for key in keys:
        try:
            part = atlas_part(atlas, key)
        except HeadscopeError:
            continue
        yield key, part


def _atlas(atlas: "Atlas", heads: list[str], selection: AtlasSelection, *, is_detailed: bool) -> Part:
    props: AtlasProps = atlas_part(atlas, "atlas", AtlasNames("saved", selection.atlas, "")).props
    places = [place for place in props.places if place.address in heads]
    where = (selection.method, selection.dims, selection.coordinates)
    maps = [replace(kind, n_heads=len(heads)) for kind in props.maps
            if (kind.method, kind.dims, kind.coordinates) == where]  # fmt: skip
    lacks = "" if is_detailed else "This file holds maps and norms of these heads, not what needs queries and keys."
    # Who reads the page has no use for the folder that the model lies in.
    changes = {"places": places, "maps": maps, "lacks": lacks, "model_name": short_name(props.model_name)}
    return Part("atlas", replace(props, has_vectors=is_detailed, **changes))


def _of_heads(maps: Part, heads: list[str]) -> Part:
    """The maps of some heads alone."""
    rows = [row for row, head in enumerate(maps.props.heads) if head in heads]
    kept_heads = [maps.props.heads[row] for row in rows]
    arrays = {name: array for name, array in maps.arrays.items() if name.startswith("rows:") or name in kept_heads}
    arrays |= {name: maps.arrays[name][rows] for name in ("low", "step")}  # type: ignore[index]
    return Part(maps.kind, replace(maps.props, heads=kept_heads), arrays)


def _example(atlas: "Atlas", selection: AtlasSelection) -> int | None:
    """The example of the point in focus."""
    if selection.token is None or not selection.place:
        return None
    clouds = {cloud.role: cloud for cloud in atlas.place(selection.place).clouds}
    cloud = clouds.get(selection.token.role)
    if cloud is None or not 0 <= selection.token.row < atlas.n_tokens[cloud.stack]:
        return None
    return atlas.tokens(cloud.stack).column("example")[selection.token.row].as_py()
