"""What can be taken away from a trace: numbers as a table, and a page that opens without a server."""

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from headscope.corpora import Example
from headscope.errors import InputError
from headscope.reports.report_part import PREFIX
from headscope.server.messages import PageRequest
from headscope.traces import Trace
from headscope.views.contract import By, Vectors, What
from headscope.views.neurons import query_of
from headscope.views.selection import Filter
from headscope.views.table import about
from headscope.views.view import View, head_view, model_view, neuron_view
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
        hide, off = _listed(self.hide), _listed(self.off)
        return head_view(
            trace,
            _listed(self.heads) or None,
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
    shown = list(dict.fromkeys(wanted.selection.shown))  # each head once, however often it is named
    wanted = replace(wanted, selection=replace(wanted.selection, shown=shown))
    held = dict(parts or {})
    view = checked_view(
        trace, wanted, {held[key].props["method"]["name"] for key in ("found", "evidence") if key in held}
    )
    if wanted.view == "activations" and not any(key.startswith("activations/") for key in held):
        raise InputError("the activations of this run were not read yet: open its activations, then save.")
    # What is not in the file cannot be asked for there: without a tree, none is drawn.
    selection = view.selection if gold is not None else replace(view.selection, arcs="none")
    if f"relevance?of={selection.relevance}" not in held:
        selection = replace(selection, relevance="")
    if "found" not in held:
        selection = replace(selection, find="")
    return replace(view, selection=selection, gold=gold, parts=held).html().encode()


def checked_view(trace: Trace, wanted: PageRequest, elsewhere: Container[str] = ()) -> View:
    """The view of a selection, made the way people make it, so that what does not fit is refused in words.

    `elsewhere` are measures that are not the trace's, and are there all the same.
    """
    told = wanted.selection
    if wanted.view == "activations":
        if told.site:
            trace.find(told.site)  # says which there are
        elif told.token is not None:
            raise InputError("a token was chosen, but no layer to say of which stack: give `site` too.")
    elif wanted.view == "model":
        site = told.site and f"{told.site}H{told.head}"
        sort, colour = (one if is_own(one) and one not in elsewhere else "" for one in (told.sort, told.colour))
        least = told.least if colour else 0.0
        model_view(trace, site or None, thumbnails=told.thumbnails, sort=sort, colour=colour, least=least)
    elif wanted.view == "neuron":
        sort = told.order if told.against is None or told.order != "token" else told.against
        query = query_of(trace.layer(told.site), told.token) if told.site else -1
        head = f"{told.site}H{told.head}" if told.site else None
        return neuron_view(trace, head, token=query, sort=sort, every=told.every, fold=told.fold)
    else:
        if told.site and not told.shown:
            raise InputError("no head is shown: the selection's `shown` is empty.")
        view = head_view(
            trace,
            [f"{told.site}H{index}" for index in told.shown] if told.site else None,
            average=told.average,
            form=told.form,
            axis=told.axis,
            what=told.what,
            by=told.by,
            hide=told.hide,
            off=told.off,
            filter=told.filter,
            threshold=told.threshold,
            mass=told.mass,
            top=told.top,
            pair=told.pair,
            token=None if told.token is None else (told.token.side, told.token.index),
            direction=told.direction,
            arrows=told.arrows,
            rollout=told.rollout,
        )
        if not told.site:
            return view
    return View(wanted.view, trace, told)


def is_own(name: str) -> bool:
    """Whether a measure is one of the trace's own, rather than a report's or the relevance of an answer."""
    return not name.startswith(PREFIX) and name != "relevance"


def _listed(told: str) -> list[str]:
    return [one for one in told.split(",") if one]
