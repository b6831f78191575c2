"""What people call to look at a trace: `head_view`, `model_view`, `neuron_view`, `activations_view`."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from headscope.choices import Arcs, Fold, Order, Stream, Theme, Thumbnails, Vectors, Way, Whose
from headscope.corpora import Example
from headscope.errors import InputError, NotRecordedError, UnknownHeadError
from headscope.scores import Scores
from headscope.sites import Head
from headscope.traces import Comparison, Difference, Trace
from headscope.traces.activations import Activations
from headscope.traces.activations_difference import ActivationsDifference
from headscope.views.activation_differences import difference_part
from headscope.views.activations import activations_part
from headscope.views.head_options import HeadOptions, head_selection
from headscope.views.neurons import head_of
from headscope.views.selection import Places, Selection, Spot, check_step, choice, position, share
from headscope.views.table import spot
from headscope.views.view import View

if TYPE_CHECKING:
    from headscope.analysis.attribution.relevance import Relevance
    from headscope.models import Model


def head_view(
    trace: Trace | Comparison,
    heads: Places | None = None,
    *,
    selection: Selection | None = None,
    arcs: Example | None = None,
    tree: bool | Way = False,
    relevance: "Relevance | None" = None,
    theme: Theme = "system",
    **options: Unpack[HeadOptions],
) -> View:
    """Heads of one layer as lines between tokens, as a matrix, over the picture ("image") or along the sound ("time").

    Without `heads`, all of the first layer. The options are fields of the `Selection` that a page, its link and its
    saved file share, and `HeadOptions` tells each of them; without `form`, the input decides how heads are drawn.
    `selection` is one to start from, as `view.selection` or `widget.selected.selection` gives it: options given beside
    it change it.

    Of a comparison, the first run minus the second is shown, on the tokens that both have. `arcs` is a sentence of a
    treebank, whose dependencies are drawn beside the words; `tree` adds the tree of the first head's own attention
    ("A" or True: a dependent looks at its head; "AT": a head at its dependents; "A+AT": both). `relevance`, as
    `hs.relevance` gives it, colours the tokens in the page.

    >>> import headscope as hs
    >>> trace = hs.load("builtin:gpt").run("The doctor asked the nurse a question. She")
    >>> view = hs.head_view(trace, "L3H2", by="words", hide="special", top=3)
    >>> view
    View('head', 'builtin:gpt', L3, 1 head)
    >>> hs.head_view(trace, selection=view.selection, top=1).selection.by
    'words'
    """
    trace = _trace_to_show(trace)
    chosen = replace(head_selection(trace, heads, selection, options), arcs=_arcs(trace, arcs, tree, selection))
    view = View("head", trace, chosen, theme=_theme(theme), gold=arcs)
    spot(view)  # refuses a token that is switched off
    return view if relevance is None else _with_relevance(view, relevance)


def _arcs(trace: Trace, gold: Example | None, tree: bool | Way, start: Selection | None) -> Arcs:
    """Which trees are drawn: none unless asked for, though the page of a selection draws them where there are some."""
    if gold is not None:
        from headscope.views.trees import check_gold

        check_gold(trace, gold)
    way: Way = "A" if tree is True else tree or "A"
    choice("tree", way, Way)
    if tree:
        return way
    return "none" if gold is None else "gold" if start is None else start.arcs


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
    focus = trace.heads[0] if head is None else _one_head(trace, head)
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
    _check_measures(view)
    return view if relevance is None else _with_relevance(view, relevance)


def _one_head(trace: Trace, address: str | Head) -> Head:
    heads = trace.find(address)
    if len(heads) > 1:
        raise UnknownHeadError(f"{address} is a layer of {len(heads)} heads: say which, as in {heads[0]}.")
    return heads[0]


def _check_measures(view: View) -> None:
    """Refuse measures that the heads of this trace do not have."""
    selection = view.selection
    if selection.least and not selection.colour:
        raise InputError(f"least={selection.least} needs colour=, the measure that it is a share of.")
    for name, value in (("sort", selection.sort), ("colour", selection.colour)):
        if value and value not in view.scores_part.arrays:
            names = ", ".join(view.scores_part.arrays)
            raise InputError(f"{name}={value!r} is no measure of this trace: choose one of {names}, or give Scores.")


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
    order, against = _order(sort, every, layer.n_keys)
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


def _order(sort: Order | int, every: Vectors | None, n_keys: int) -> tuple[Order, int | None]:
    """What neurons are sorted by, and the position of the key where that is one."""
    if not isinstance(sort, str):
        return "token", position("sort", sort, n_keys, "keys")
    choice("sort", sort, Order)
    if sort == "token":
        raise InputError("sort='token' needs a key: give its position, as in sort=3.")
    if sort == "spread" and every is None:
        raise InputError("sort='spread' compares tokens: say whose vectors, as in every='query'.")
    if every is not None and sort == "contribution":
        raise InputError(f"every={every!r} shows all tokens: sort by 'index' or 'spread'.")
    return sort, None


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
    layer = next(layer for layer in trace.layers.values() if layer.site.stack == activations.stack)
    selection = Selection(
        scale="activations",
        site=str(layer.site),
        heads=[0],
        stream=_stream(activations, stream),
        whose=whose,
        step=check_step(trace, step),
        token=None if place is None else Spot("query", place),
    )
    part = activations_part(activations) if isinstance(activations, Activations) else difference_part(activations)
    parts = {f"activations/{activations.stack}": part}
    return View("activations", trace, selection, theme=_theme(theme), activations=activations, parts=parts)


def _stream(activations: Activations | ActivationsDifference, stream: Stream) -> Stream:
    """The numbers to show: norms where there is no logit lens."""
    if stream in ("attention", "cross", "mlp") and stream not in activations.written:
        raise NotRecordedError(
            f"there is nothing written by {stream} to show: {activations.no_written or 'no such layer'}."
        )
    return "norm" if stream == "lens" and activations.lens is None else stream


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


def _theme(theme: Theme) -> Theme:
    choice("theme", theme, Theme)
    return theme
