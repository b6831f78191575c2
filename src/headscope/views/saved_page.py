"""A view as one HTML file: its parts, the page's script and style, and nothing from anywhere else."""

import html
import importlib.resources
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from headscope.errors import InputError, LoadError, NotRecordedError
from headscope.sites import Site
from headscope.traces import LayerRecord
from headscope.views.contract import SavedProps
from headscope.views.experts import experts_part, n_experts_of
from headscope.views.html_document import escape, html_document, pack, plain_table, program
from headscope.views.layers import DENSE_CELLS, HALF_CELLS, layer_part, sparse_part
from headscope.views.media import can_roll, image_part, looks_like, rollout_part, sound_part
from headscope.views.neuron_export import other_heads, saved_parts
from headscope.views.neurons import query_of
from headscope.views.part_keys import PartKey
from headscope.views.parts import maps_part
from headscope.views.trace_part import short_name, trace_part
from headscope.views.weights import no_scores, no_weights
from headscope.views.wire import Part

if TYPE_CHECKING:
    from headscope.views.view import View

STATIC = Path(str(importlib.resources.files("headscope"))) / "static"
MEGABYTE = 10**6
BUDGET = 18.0
# Browsers read larger pages slowly, and strings of half a gigabyte not at all.
LARGEST = 50.0
# Layers that take no more than this, all together, are saved in full.
_SMALL_CELLS = 2**19
# What is nice to have may take so many bytes.
_EXTRA = 0.4 * MEGABYTE
# What neurons of other heads than the chosen one may take.
_OTHER_NEURONS = 4.0 * MEGABYTE
# Pixels a side of a picture: more are hardly seen, and are much of a file.
_PICTURE = 512


@dataclass(frozen=True)
class Page:
    """The file, and what was left out to keep it small."""

    html: str
    notes: list[str]


def page(view: "View", *, budget: float = BUDGET, static: Path | None = None) -> Page:
    """The page of a view in at most about `budget` megabytes: layers that do not fit keep their strongest keys."""
    if not 0 < budget <= LARGEST:
        raise InputError(
            f"budget={budget} megabytes is outside 0 to {LARGEST:g}: browsers do not open larger pages well."
        )
    script, style = map(program, page_files(static=static))
    parts, notes = _parts(view, budget * MEGABYTE - len(script.packed) - len(style.packed))
    saved = SavedProps(view=view.kind, selection=asdict(view.selection), notes=notes, theme=view.theme)
    parts["saved"] = pack(Part("saved", saved))
    return Page(html_document(view.title, plain_table(view), parts, script, style), notes)


def frame(document: str, title: str, *, height: int = 640) -> str:
    """A page in a frame of its own, for a notebook: nothing in it can reach the notebook."""
    # Scripts to draw, downloads to save; no origin, so no cookies, no storage, no way to the parent.
    return (
        f'<iframe title="{escape(title)}" sandbox="allow-scripts allow-downloads" '
        f'style="width:100%;height:{height}px;border:0" srcdoc="{html.escape(document, quote=True)}"></iframe>'
    )


# What goes in


def _parts(view: "View", room: float) -> tuple[dict[str, str], list[str]]:
    """Parts by key, packed; and what had to be left out of them."""
    trace = view.trace
    # Who reads the page has no use for the folder that the model lies in.
    props_part = trace_part(replace(trace, model=short_name(trace.model)))
    parts = {"trace": pack(props_part), "scores": pack(view.scores_part)}
    parts |= {key: pack(part) for key, part in view.parts.items()} | _trees(view)
    try:
        parts |= _maps(view)
    except NotRecordedError as reason:
        return parts, [str(reason)]
    parts |= _looks(view)
    parts |= _experts(view)
    chosen = trace.layer(view.selection.site)
    notes: list[str] = []
    if view.kind == "neuron":
        neurons, notes = _neurons(view, room - sum(map(len, parts.values())))
        parts |= neurons
    if view.selection.what == "scores":
        parts |= _scores(view, chosen)
    room -= sum(map(len, parts.values()))
    other_layers = [layer for layer in trace.layers.values() if layer is not chosen]
    is_small = sum(map(_cells, trace.layers.values())) <= _SMALL_CELLS
    least = len(pack(sparse_part(trace, PartKey("layer", str(other_layers[0].site))))) if other_layers else 0
    cut: dict[str, list[LayerRecord]] = {}
    for place, layer in enumerate((chosen, *other_layers)):
        # Room is kept for the strongest keys of the layers to come. Once one layer did not fit in full the next are not
        # tried so: they would not fit either, and packing takes time.
        spare = room - least * (len(other_layers) - place)
        how, packed = _fitting(view, layer, (spare, room), is_exact=layer is chosen or is_small, is_full=_is_cut(cut))
        if packed:
            parts[_key(layer)] = packed
            room -= len(packed)
        if how:
            cut.setdefault(how, []).append(layer)
    # Nice to have, so only where they hardly show in the size.
    more = _scores(view, chosen) if _cells(chosen) <= HALF_CELLS and not no_scores(chosen) else {}
    if sum(map(len, more.values())) <= min(room, _EXTRA):
        parts |= more
    return parts, notes + [_NOTES[how].format(_list_of(layers)) for how, layers in cut.items()]


def _neurons(view: "View", room: float) -> tuple[dict[str, str], list[str]]:
    """Queries, keys, values and what they make of the chosen head; of others, as far as there is room."""
    trace, selection = view.trace, view.selection
    head = trace.layer(selection.site).site.head(selection.head)
    query = query_of(trace.layer(selection.site), selection.token)
    parts, notes, left = {}, [], room / 2
    for key, part in saved_parts(trace, head, query):
        packed = pack(part)
        if len(packed) > left:
            notes.append(f"of {head} some vectors are left out")
            break
        parts[key] = packed
        left -= len(packed)
    if f"neuron/{head}" not in parts:
        notes.append(f"of {head} only query {query} is here")
    left, n_others, neighbours = min(left, _OTHER_NEURONS), 0, other_heads(trace, head)
    for neighbour in neighbours:
        packed = {key: pack(part) for key, part in saved_parts(trace, neighbour, query)}
        left -= sum(map(len, packed.values()))
        if left < 0:
            break
        parts |= packed
        n_others += 1
    if n_others < len(neighbours):
        notes.append(f"neurons of {1 + n_others} heads are here, of {len(neighbours) - n_others} they are left out")
    return parts, notes


def _maps(view: "View") -> dict[str, str]:
    """Maps of all heads: the finest, unless they are much of the page."""
    packed = pack(maps_part(view.trace, 96))
    if len(packed) <= max(_EXTRA, sum(map(_cells, view.trace.layers.values())) / 20):
        return {"maps?size=96": packed}
    return {"maps?size=48": pack(maps_part(view.trace, 48))}


def _looks(view: "View") -> dict[str, str]:
    """The pictures and sounds that there are, and the rollout where it is small or what is looked at."""
    trace, chosen = view.trace, view.trace.layer(view.selection.site).site
    packed_parts = {}
    for stack in trace.tokens:
        kind = looks_like(trace, stack)
        if kind:
            part = image_part(trace, stack, most=_PICTURE) if kind == "image" else sound_part(trace, stack)
            packed_parts[f"{kind}/{stack}"] = pack(part)
    sites = [site for site in trace.layers if can_roll(trace, site)]
    is_small = sum(trace.layers[site].n_keys ** 2 for site in sites) <= _SMALL_CELLS
    for site in sites if is_small else [site for site in sites if site == chosen and view.selection.rollout]:
        packed_parts[f"rollout/{site}"] = pack(rollout_part(trace, str(site)))
    return packed_parts


def _experts(view: "View") -> dict[str, str]:
    """The experts that tokens took: of the chosen layer, and of others while they are little of the page."""
    trace, chosen = view.trace, view.trace.layer(view.selection.site)
    packed_parts, left = {}, _EXTRA
    for layer in (chosen, *(layer for layer in trace.layers.values() if layer is not chosen)):
        if n_experts_of(trace, layer):
            packed = pack(experts_part(trace, str(layer.site)))
            left -= len(packed)
            if left >= 0 or layer is chosen:
                packed_parts[f"experts/{layer.site}"] = packed
    return packed_parts


def _trees(view: "View") -> dict[str, str]:
    """The gold tree, and the trees of the heads that are shown."""
    arcs = view.selection.arcs
    if view.kind != "head" or arcs == "none" or (view.gold is None and arcs == "gold"):
        return {}
    from headscope.views.trees import gold_part, tree_part, words_of_trace

    sentence = view.gold or words_of_trace(view.trace)
    packed_parts = {"gold": pack(gold_part(view.trace, sentence))}
    if arcs != "gold":
        for index in view.selection.heads:
            name = f"{view.selection.site}H{index}"
            packed_parts[f"tree/{name}?way={quote(arcs)}"] = pack(tree_part(view.trace, sentence, name, arcs))
    return packed_parts


def _scores(view: "View", layer: LayerRecord) -> dict[str, str]:
    part_key = PartKey("layer", str(layer.site), what="scores")
    return {f"layer/{layer.site}?what=scores": pack(layer_part(view.trace, part_key))}


_NOTES = {
    "bytes": "weights of {} are rounded, to within 0.004",
    "sparse": "of {} only the strongest keys of each query are here",
    "left out": "{} are left out but for their maps",
}


def _is_cut(cut: dict[str, list[LayerRecord]]) -> bool:
    return any(not no_weights(layer) for how in ("sparse", "left out") for layer in cut.get(how, []))


def _fitting(
    view: "View", layer: LayerRecord, room: tuple[float, float], *, is_exact: bool, is_full: bool
) -> tuple[str, str]:
    """The best way to save a layer that there is room for: of the first kind in full, of the second otherwise."""
    for how, part in _encodings(view, layer, is_exact=is_exact, is_full=is_full):
        packed = pack(part)
        if len(packed) <= room[how == "sparse"]:
            return how, packed
    return "left out", ""


def _encodings(view: "View", layer: LayerRecord, *, is_exact: bool, is_full: bool) -> Iterator[tuple[str, Part]]:
    """Ways to save a layer, each smaller than the one before, with what it costs in exactness."""
    part_key = PartKey("layer", str(layer.site))
    is_dense = _cells(layer) <= DENSE_CELLS and not no_weights(layer)
    if is_dense and not is_full:
        if is_exact and _cells(layer) <= HALF_CELLS:
            yield "", layer_part(view.trace, part_key)
        yield "bytes", layer_part(view.trace, part_key, as_bytes=True)
    yield "sparse", sparse_part(view.trace, part_key)


def _key(layer: LayerRecord) -> str:
    return f"layer/{layer.site}?what=pattern"


def _cells(layer: LayerRecord) -> int:
    return layer.n_heads * layer.n_queries * layer.n_keys


def _list_of(layers: list[LayerRecord]) -> str:
    """Their names in order; of many, the first and last of every unbroken run."""
    sites = sorted((layer.site for layer in layers), key=lambda site: (site.stack, site.kind, site.layer))
    if len(sites) <= 4:
        return ", ".join(map(str, sites))
    runs: list[list[Site]] = []
    for site in sites:
        if runs and replace(runs[-1][-1], layer=site.layer) == site and runs[-1][-1].layer + 1 == site.layer:
            runs[-1].append(site)
        else:
            runs.append([site])
    listed_sites = ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs)
    return f"{len(sites)} layers ({listed_sites})"


# What it is drawn by


def page_files(
    names: tuple[str, str] = ("headscope.js", "headscope.css"), static: Path | None = None
) -> tuple[str, str]:
    """A script and its style, as they were built."""
    folder = static or STATIC
    missing = next((name for name in names if not (folder / name).is_file()), None)
    if missing:
        raise LoadError(
            f"the page is not built ({missing} is missing in {folder}). In a checkout of the repository, build it "
            "with `python scripts/web`; an installed package brings it along."
        )
    script, style = ((folder / name).read_text("utf-8") for name in names)  # with newlines as HTML reads them
    return script, style
