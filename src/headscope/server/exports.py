"""What can be taken away from a trace: numbers as a table, and a page that opens without a server."""

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from headscope.choices import By, Filter, Vectors, What
from headscope.corpora import Example
from headscope.errors import InputError
from headscope.reports.report_part import PREFIX
from headscope.server.messages import PageRequest
from headscope.traces import Trace
from headscope.views.builders import head_view, model_view, neuron_view
from headscope.views.neurons import query_of
from headscope.views.selection import Selection
from headscope.views.table import about
from headscope.views.view import View
from headscope.views.wire import Part

Format = Literal["csv", "json", "parquet"]
TYPES: dict[Format, str] = {
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "parquet": "application/vnd.apache.parquet",
}


@dataclass(frozen=True)
class TableQuery:
    """The numbers of which heads, how they are read and filtered, as in a Selection. Lists are separated by commas."""

    format: Format = "csv"
    view: Literal["head", "model", "neuron"] = "head"
    heads: str = ""
    what: What = "pattern"
    by: By = "tokens"
    hide: str = ""
    off: str = ""
    filter: Filter | None = None
    threshold: float | None = None
    mass: float | None = None
    top: int | None = None
    query: int | None = None
    every: Vectors | None = None
    minus: str = ""

    def bytes(self, trace: Trace) -> bytes:
        """The table as a file."""
        view = self._view(trace)
        table = view.table()
        match self.format:
            case "csv":
                return table.csv()
            case "json":
                return table.json(about(view))
            case "parquet":
                return table.parquet()

    def _view(self, trace: Trace) -> View:
        if self.view == "model":
            return model_view(trace)
        if self.view == "neuron":
            query = -1 if self.query is None else self.query
            return neuron_view(trace, self.heads or None, token=query, every=self.every)
        return self._heads(trace)

    def _heads(self, trace: Trace) -> View:
        hide, off = _split(self.hide), _split(self.off)
        return head_view(
            trace,
            _split(self.heads) or None,
            what=self.what,
            by=self.by,
            hide=hide,  # type: ignore[arg-type]
            off=off,
            filter=self.filter,
            threshold=self.threshold,
            mass=self.mass,
            top=self.top,
        )


def saved_page(
    trace: Trace, wanted: PageRequest, *, gold: Example | None = None, parts: Mapping[str, Part] | None = None
) -> bytes:
    """One HTML file that opens where the workbench is; `parts` are shown beside those of the trace."""
    heads = list(dict.fromkeys(wanted.selection.heads))  # each head once, however often it is named
    wanted = replace(wanted, selection=replace(wanted.selection, heads=heads))
    own_parts = dict(parts or {})
    view = view_of(
        trace, wanted, {own_parts[key].props["method"]["name"] for key in ("found", "evidence") if key in own_parts}
    )
    if wanted.view == "activations" and not any(key.startswith("activations/") for key in own_parts):
        raise InputError("the activations of this run were not read yet: open its activations, then save.")
    # What is not in the file cannot be asked for there: without a tree, none is drawn.
    selection = view.selection if gold is not None else replace(view.selection, arcs="none")
    if f"relevance?of={selection.relevance}" not in own_parts:
        selection = replace(selection, relevance="")
    if "found" not in own_parts:
        selection = replace(selection, find="")
    return replace(view, selection=selection, gold=gold, parts=own_parts).html().encode()


def view_of(trace: Trace, wanted: PageRequest, elsewhere: Container[str] = ()) -> View:
    """The view of a selection, made the way people make it, so that what does not fit is refused in words.

    `elsewhere` are measures that are not the trace's, and are there all the same.
    """
    selection = wanted.selection
    match wanted.view:
        case "neuron":
            return _neuron_view(trace, selection)
        case "head":
            view = head_view(trace, selection=selection)
            return View("head", trace, selection) if selection.site else view
        case "activations":
            _check_activations(trace, selection)
        case "model":
            _check_model_view(trace, selection, elsewhere)
    return View(wanted.view, trace, selection)


def _check_activations(trace: Trace, selection: Selection) -> None:
    if selection.site:
        trace.find(selection.site)  # says which there are
    elif selection.token is not None:
        raise InputError("a token was chosen, but no layer to say of which stack: give `site` too.")


def _check_model_view(trace: Trace, selection: Selection, elsewhere: Container[str]) -> None:
    site = selection.site and f"{selection.site}H{selection.head}"
    sort, colour = (
        measure if is_own(measure) and measure not in elsewhere else ""
        for measure in (selection.sort, selection.colour)
    )
    least = selection.least if colour else 0.0
    model_view(trace, site or None, thumbnails=selection.thumbnails, sort=sort, colour=colour, least=least)


def _neuron_view(trace: Trace, selection: Selection) -> View:
    sort = selection.order if selection.against is None or selection.order != "token" else selection.against
    query = query_of(trace.layer(selection.site), selection.token) if selection.site else -1
    head = f"{selection.site}H{selection.head}" if selection.site else None
    return neuron_view(trace, head, token=query, sort=sort, every=selection.every, fold=selection.fold)


def is_own(name: str) -> bool:
    """Whether a measure is one of the trace's own, rather than a report's or the relevance of an answer."""
    return not name.startswith(PREFIX) and name != "relevance"


def _split(text: str) -> list[str]:
    return [word for word in text.split(",") if word]
