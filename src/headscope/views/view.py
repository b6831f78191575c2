"""A view: a trace with a selection, which can be saved, drawn and read as numbers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from headscope.choices import Scale, Theme
from headscope.corpora import Example
from headscope.scores import Scores
from headscope.traces import Difference, Trace
from headscope.traces.activations import Activations
from headscope.traces.activations_difference import ActivationsDifference
from headscope.views.activation_differences import difference_table
from headscope.views.activations import activations_table
from headscope.views.differences import difference_scores
from headscope.views.measures import scores_part
from headscope.views.selection import Selection
from headscope.views.table import Table, table_of
from headscope.views.trace_part import short_name
from headscope.views.wire import Part

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from headscope.views.widget import ViewWidget


@dataclass(frozen=True, eq=False)
class View:
    """A trace as it is looked at: draws itself in a notebook; `save` writes it as a page, a picture or numbers."""

    kind: Scale
    trace: Trace
    selection: Selection
    scores: tuple[Scores, ...] = ()
    theme: Theme = "system"
    activations: Activations | ActivationsDifference | None = None
    gold: Example | None = None
    parts: Mapping[str, Part] = field(default_factory=dict)
    """What a saved page holds beyond the trace's own parts, by key."""

    def __repr__(self) -> str:
        where = ""
        if self.kind == "head":
            count = len(self.selection.heads)
            where = f", {self.selection.site}, {count} head{'s' if count > 1 else ''}"
        elif self.kind == "neuron":
            where = f", {self.selection.site}H{self.selection.head}"
        return f"View({self.kind!r}, {self.trace.model!r}{where})"

    @property
    def title(self) -> str:
        """What a page or a picture of it is called."""
        head = self.selection.site if self.kind in ("head", "neuron") else ""
        if head and len(self.selection.heads) == 1:
            head = f"{head}H{self.selection.heads[0]}"
        kind = f"{self.kind} view" if not isinstance(self.trace, Difference) else f"difference, {self.kind} view"
        return f"{short_name(self.trace.model)}{', ' + head if head else ''}: {kind}"

    @cached_property
    def scores_part(self) -> Part:
        """Measures of all heads, those that were given with the view first."""
        if isinstance(self.trace, Difference):
            return difference_scores(self.trace)
        return scores_part(self.trace, self.scores)

    def table(self) -> Table:
        """The numbers shown, strongest first: weights between tokens; in a model view, heads with their scores; in a
        neuron view, keys with all terms of their weights; of activations, each place and token in their order."""
        if self.kind != "activations":
            return table_of(self)
        return activations_table(self) if isinstance(self.activations, Activations) else difference_table(self)

    def figure(
        self, *, theme: Literal["light", "dark"] = "light", width: Literal["column", "page"] | float | None = None
    ) -> "Figure":
        """A matplotlib figure of it, for print: `view.figure(width="column").savefig("head.pdf")`.

        `width` is that of a paper's column (3.33 in), of its page (6.9 in), or in inches; type is then 7 to 9 points.
        """
        from headscope.views.figures import draw

        return draw(self, theme, width)

    def html(self, *, budget: float = 18.0) -> str:
        """One page that needs nothing else, of about `budget` megabytes at most."""
        from headscope.views.saved_page import page

        return page(self, budget=budget).html

    def save(self, path: str | Path, *, width: Literal["column", "page"] | float | None = None) -> Path:
        """Write it, by suffix: .html (a page), .png .svg .pdf (a picture), .csv .json .parquet (the numbers).

        `width` is that of a picture for a paper, as `figure` takes it.
        """
        from headscope.views.save import save

        save(self, path, width)
        return Path(path).expanduser()

    @cached_property
    def widget(self) -> "ViewWidget":
        """The view in a notebook: `view.widget.selected` is what is chosen in it. Needs headscope[notebook]."""
        from headscope.views.notebook import still_picture
        from headscope.views.widget import ViewWidget

        return ViewWidget(self, picture=still_picture(self))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        from headscope.views.notebook import bundle

        return bundle(self)

    def _repr_html_(self) -> str | None:
        from headscope.views.notebook import page_in_frame

        return page_in_frame(self)
