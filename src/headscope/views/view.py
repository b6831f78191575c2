"""Views: a trace with a selection, which can be saved, drawn and read as numbers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from headscope.choices import (
    Axis,
    By,
    Direction,
    Filter,
    Fold,
    Form,
    Hide,
    Order,
    Pair,
    Scale,
    Side,
    Stream,
    Theme,
    Thumbnails,
    Vectors,
    Way,
    What,
    Whose,
)
from headscope.corpora import Example
from headscope.errors import InputError, NotRecordedError, UnknownHeadError
from headscope.scores import Scores
from headscope.sites import Head
from headscope.traces import Comparison, Difference, Trace
from headscope.traces.activations import Activations
from headscope.traces.activations_difference import ActivationsDifference
from headscope.views.activation_differences import difference_part, difference_table
from headscope.views.activations import activations_part, activations_table
from headscope.views.differences import difference_scores
from headscope.views.measures import scores_part
from headscope.views.media import can_roll
from headscope.views.neurons import head_of
from headscope.views.selection import (
    MOST_TOP,
    Places,
    Selection,
    Spot,
    check_form,
    check_step,
    check_what,
    choice,
    heads_of,
    hidden_groups,
    off_tokens,
    position,
    share,
    spot_of,
)
from headscope.views.table import Table, from_start, spot, table_of
from headscope.views.trace_part import short_name
from headscope.views.wire import Part

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from headscope.analysis.attribution.relevance import Relevance
    from headscope.models import Model
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
        return Path(path)

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


def head_view(
    trace: Trace | Comparison,
    heads: Places | None = None,
    *,
    average: bool = False,
    form: Form = "auto",
    axis: Axis = "vertical",
    what: What = "pattern",
    by: By = "tokens",
    hide: Hide | Iterable[Hide] = (),
    off: Iterable[int | str] = (),
    filter: Filter | None = None,
    threshold: float | None = None,
    mass: float | None = None,
    top: int | None = None,
    pair: Pair = "all",
    token: int | tuple[Side, int] | None = None,
    direction: Direction = "from",
    arrows: bool = False,
    rollout: bool = False,
    step: int | None = None,
    arcs: Example | None = None,
    tree: bool | Way = False,
    relevance: "Relevance | None" = None,
    theme: Theme = "system",
) -> View:
    """Heads of one layer as lines between tokens, as a matrix, over the picture ("image") or along the sound ("time").

    Which of them, the input says, unless `form` does. Over a picture, `direction` is what the chosen token looks at
    ("from") or who looks at it ("to"); `arrows` lead from each patch to its strongest; `rollout` follows attention
    through all layers up to this one (up to the last, without `heads`).

    Without `heads`, all of the first layer. `threshold`, `mass` or `top` filter the lines: from a weight on, the
    strongest that make up a share of each query's weight, or the strongest few of each query. `hide` leaves out
    "special" or "first" tokens, `off` single ones (by position), and brings rows back to one. `token` is one query
    alone, or one key as ("key", 5); negative positions count from the end. Of a comparison, the first run minus the
    second is shown, on the tokens that both have. Of text that the model wrote, the page shows what was there at one
    `step` (from 0). `arcs` is a sentence of a treebank, whose dependencies are drawn beside the words; `tree` adds the
    tree of the first head's own attention ("A" or True: a
    dependent looks at its head; "AT": a head at its dependents; "A+AT": both). `relevance`, as `hs.relevance` gives it,
    colours the tokens in the page.

    >>> import headscope as hs
    >>> trace = hs.load("builtin:gpt").run("The doctor asked the nurse a question. She")
    >>> hs.head_view(trace, "L3H2", by="words", hide="special", top=3)
    View('head', 'builtin:gpt', L3, 1 head)
    """
    trace = _trace_to_show(trace)
    if rollout and heads is None:
        heads = next((site for site in reversed(trace.layers) if can_roll(trace, site)), None)
    site, indices = heads_of(trace, heads)
    few = (("axis", axis, Axis), ("by", by, By), ("pair", pair, Pair), ("direction", direction, Direction))
    for name, value, kind in few:
        choice(name, value, kind)
    groups, single = hidden_groups(hide), off_tokens(trace, off)
    if arcs is not None:
        from headscope.views.trees import check_gold

        check_gold(trace, arcs)
    way: Way = "A" if tree is True else tree or "A"
    choice("tree", way, Way)
    layer = trace.layers[site]
    check_form(trace, layer, form, rollout)
    check_what(layer, what, bool(groups or single or by != "tokens"))
    segments = {token.segment for token in trace.tokens[site.stack] if not token.special}
    if pair != "all" and (site.kind == "cross" or segments != {"A", "B"}):
        raise InputError(f"pair={pair!r} needs a pair of texts, and {site} has none: leave it out.")
    view = View(
        "head",
        trace,
        Selection(
            scale="head",
            site=str(site),
            head=indices[0],
            heads=indices,
            average=bool(average),
            form=form,
            axis=axis,
            what=what,
            by=by,
            hide=groups,
            off=single,
            pair=pair,
            token=spot_of(token),
            direction=direction,
            arrows=bool(arrows),
            rollout=bool(rollout),
            step=check_step(trace, step),
            arcs=way if tree else "gold" if arcs is not None else "none",
        ),
        theme=_theme(theme),
        gold=arcs,
    )
    chosen = from_start(trace, _with_filter(view.selection, filter, threshold, mass, top))
    view = replace(view, selection=chosen)
    spot(view)  # refuses a token that is switched off
    return view if relevance is None else _with_relevance(view, relevance)


def model_view(
    trace: Trace | Comparison,
    head: str | Head | None = None,
    *,
    thumbnails: Thumbnails = "heat",
    sort: str | Scores = "",
    colour: str | Scores = "",
    least: float = 0.0,
    scores: Scores | Sequence[Scores] = (),
    relevance: "Relevance | None" = None,
    theme: Theme = "system",
) -> View:
    """All heads of all layers on one page.

    `sort` orders and `colour` colours them by a measure: its name, or Scores from elsewhere, as of `hs.measure` over a
    corpus; `least` leaves heads whose colour is below that share of the range. `head` is the one in focus. Of a
    comparison, the first run minus the second is shown, and "total_variation" tells how far each head moved.
    `relevance`, as `hs.relevance` gives it, is shown with the answer that it is of.

    >>> import headscope as hs
    >>> trace = hs.load("builtin:gpt").run("The doctor asked the nurse a question. She")
    >>> hs.model_view(trace, colour="previous_token", least=0.5)
    View('model', 'builtin:gpt')
    """
    trace = _trace_to_show(trace)
    choice("thumbnails", thumbnails, Thumbnails)
    all_scores = [scores] if isinstance(scores, Scores) else list(scores)
    all_scores += [measure for measure in (sort, colour) if isinstance(measure, Scores)]
    sort, colour = (measure.method if isinstance(measure, Scores) else measure for measure in (sort, colour))
    focus = trace.heads[0]
    if head is not None:
        heads = trace.find(head)
        if len(heads) > 1:
            raise UnknownHeadError(f"{head} is a layer of {len(heads)} heads: say which, as in {heads[0]}.")
        focus = heads[0]
    selection = Selection(
        scale="model",
        site=str(focus.site),
        head=focus.index,
        heads=[focus.index],
        thumbnails=thumbnails,
        sort=sort,
        colour=colour,
        least=share("least", least),
    )
    view = View("model", trace, selection, tuple(all_scores), _theme(theme))
    if least and not colour:
        raise InputError(f"least={least} needs colour=, the measure that it is a share of.")
    for name, value in (("sort", sort), ("colour", colour)):
        if value and value not in view.scores_part.arrays:
            names = ", ".join(view.scores_part.arrays)
            raise InputError(f"{name}={value!r} is no measure of this trace: choose one of {names}, or give Scores.")
    return view if relevance is None else _with_relevance(view, relevance)


def _with_relevance(view: View, relevance: "Relevance") -> View:
    """The view with the relevance of tokens and heads to one answer."""
    from headscope.views.relevance import address_of, relevance_part

    address = address_of(relevance)
    part = relevance_part(relevance, view.trace)
    return replace(view, selection=replace(view.selection, relevance=address), parts={f"relevance?of={address}": part})


def neuron_view(
    trace: Trace | Comparison,
    head: str | Head | None = None,
    *,
    token: int = -1,
    sort: Order | int = "index",
    every: Vectors | None = None,
    fold: Fold | Iterable[Fold] = (),
    theme: Theme = "system",
) -> View:
    """One head, neuron by neuron: query, keys, query × key, what is added to it, softmax, values, output.

    `token` is the query. `sort` orders neurons by "index", by "contribution" (|query × key| of what is attended to), or
    by |query × key| of one key, given by its position. `every` shows the "query", "key", "value" or "mixed" vectors of
    all tokens instead; `sort="spread"` puts those neurons first that depend least on the token. `fold` leaves out
    columns: "key", "product", "value", "weighted". Of a comparison all of it is the first run minus the second, on the
    tokens that both have.

    >>> import headscope as hs
    >>> trace = hs.load("builtin:gpt").run("The doctor asked the nurse a question. She")
    >>> hs.neuron_view(trace, "L3H2", token=5, sort="contribution")
    View('neuron', 'builtin:gpt', L3H2)
    """
    trace = _trace_to_show(trace)
    named_head = head_of(trace, trace.heads[0] if head is None else head)
    layer = trace.layers[named_head.site]
    folded: list[Fold] = [fold] if isinstance(fold, str) else list(fold)  # type: ignore[list-item]
    for column in folded:
        choice("fold", column, Fold)
    if every is not None:
        choice("every", every, Vectors)
    against: int | None = None
    order: Order = "token"
    if isinstance(sort, str):
        choice("sort", sort, Order)
        order = sort
    else:
        against = position("sort", sort, layer.n_keys, "keys")
    if sort == "token":
        raise InputError("sort='token' needs a key: give its position, as in sort=3.")
    if sort == "spread" and every is None:
        raise InputError("sort='spread' compares tokens: say whose vectors, as in every='query'.")
    if every is not None and sort in ("contribution", "token"):
        raise InputError(f"every={every!r} shows all tokens: sort by 'index' or 'spread'.")
    query = position("token", token, layer.n_queries, "queries")
    selection = Selection(
        scale="neuron",
        site=str(named_head.site),
        head=named_head.index,
        heads=[named_head.index],
        token=Spot("query", query),
        order=order,
        against=against,
        every=every,
        fold=list(dict.fromkeys(folded)),
    )
    return View("neuron", trace, selection, theme=_theme(theme))


def activations_view(
    trace: Trace | Comparison,
    source: "Model | tuple[Model, Model] | Activations | ActivationsDifference | None" = None,
    *,
    token: int | None = None,
    stream: Stream = "lens",
    whose: Whose = "either",
    step: int | None = None,
    theme: Theme = "system",
) -> View:
    """Layers × tokens: what each layer would predict (the logit lens), or the norms of the residual stream.

    `source` is the model, which runs the trace's input once more, or what `model.activations` gave; of a long input the
    model reads predictions of the last tokens, or of those around `token`. `stream` is "lens",
    "norm", "attention", "mlp" (how much each wrote) or "cosine" (to the last place). `token` is the one in focus. Of
    text that the model wrote, the page of the view shows what was there at one `step`.

    Of a comparison all of it is the first run minus the second, on the tokens that both have: `source` is the model of
    both runs, a pair of models, or what `model.activations_difference` gave. The lens then shows the change in the
    probability of one candidate: at each place the one that changed most, or with `whose` "A" or "B" what the first or
    the second run answers in the end.

    >>> import headscope as hs
    >>> model = hs.load("builtin:gpt")
    >>> hs.activations_view(model.run("The doctor asked the nurse a question. She"), model, token=-1)
    View('activations', 'builtin:gpt')
    """
    trace = _trace_to_show(trace)
    choice("stream", stream, Stream)
    choice("whose", whose, Whose)
    activations = _activations_of(trace, source, token)
    length = len(trace.tokens.get(activations.stack, ()))
    if len(activations.tokens) != length:
        raise InputError(f"these activations are of {len(activations.tokens)} tokens, the trace has {length}.")
    place = None if token is None else position("token", token, length, "tokens")
    if stream == "lens" and activations.lens is None:
        stream = "norm"
    if stream in ("attention", "cross", "mlp") and stream not in activations.written:
        raise NotRecordedError(
            f"there is nothing written by {stream} to show: {activations.no_written or 'no such layer'}."
        )
    layer = next(layer for layer in trace.layers.values() if layer.site.stack == activations.stack)
    selection = Selection(
        scale="activations",
        site=str(layer.site),
        heads=[0],
        stream=stream,
        whose=whose,
        step=check_step(trace, step),
        token=None if place is None else Spot("query", place),
    )
    part = activations_part(activations) if isinstance(activations, Activations) else difference_part(activations)
    parts = {f"activations/{activations.stack}": part}
    return View("activations", trace, selection, theme=_theme(theme), activations=activations, parts=parts)


def _activations_of(trace: Trace, source: Any, token: int | None) -> Activations | ActivationsDifference:
    """What was given, or what the model finds; of a difference that of both runs."""
    is_two = isinstance(trace, Difference)
    if source is None:
        raise InputError(
            "activations take the model, which runs the input once more: hs.activations_view(trace, model)."
        )
    if isinstance(source, Activations | ActivationsDifference):
        if is_two != isinstance(source, ActivationsDifference):
            raise InputError(
                "a comparison takes what model.activations_difference gives, one run what model.activations gives."
            )
        return source
    if not is_two:
        return source.activations(trace, tokens=token)
    assert trace.comparison is not None
    first, second = source if isinstance(source, tuple) else (source, None)
    return first.activations_difference(trace.comparison, second, tokens=token)


def _trace_to_show(trace: Trace | Comparison) -> Trace:
    if isinstance(trace, Comparison):
        trace = trace.difference()
    if not isinstance(trace, Trace):
        raise InputError(f"a view is of a trace, as model.run() returns it, not of {type(trace).__name__}.")
    if not trace.layers:
        raise InputError("this trace has no attention layers to show.")
    if trace.readings:
        raise InputError("give the trace itself, and say how to read it: by='words', hide='special', off=[3].")
    return trace


def _with_filter(
    selection: Selection, filter: Filter | None, threshold: float | None, mass: float | None, top: int | None
) -> Selection:
    """The filter that was named, or that the one number given belongs to."""
    numbers = {
        name: value for name, value in (("threshold", threshold), ("mass", mass), ("top", top)) if value is not None
    }
    if filter is None:
        if len(numbers) > 1:
            raise InputError(f"{' and '.join(numbers)} are two filters: give one, or say which with filter=.")
        filter = next(iter(numbers), "all")  # type: ignore[assignment]
    assert filter is not None
    choice("filter", filter, Filter)
    if top is not None and (isinstance(top, bool) or not isinstance(top, int) or not 1 <= top <= MOST_TOP):
        raise InputError(f"top={top!r} is not a whole number from 1 to {MOST_TOP}.")
    return replace(
        selection,
        filter=filter,
        threshold=selection.threshold if threshold is None else share("threshold", threshold),
        mass=selection.mass if mass is None else share("mass", mass),
        top=selection.top if top is None else top,
    )


def _theme(theme: Theme) -> Theme:
    choice("theme", theme, Theme)
    return theme
