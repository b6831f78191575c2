"""One head, neuron by neuron: query and keys, their product, what becomes of it, values and output."""

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.colors import Colormap, LinearSegmentedColormap
from matplotlib.figure import Figure

from headscope.traces import Difference
from headscope.views.edited import edited_layer_notes
from headscope.views.figures.canvas import BAR_ROOM, Marks, Theme, canvas, colour_bar, names_of, signed_marks
from headscope.views.neuron_export import neuron_order, terms_of
from headscope.views.neurons import full_colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

    from headscope.views.neuron_differences import SignedTerms
    from headscope.views.neurons import Terms
    from headscope.views.view import View

MOST_KEYS = 48
ROW_INCHES = 0.2
# Colours that the signs of neurons have on the page: `web/src/theme.ts`.
SIGNS = {"#ffffff": ("#d95f02", "#2166ac"), "#131417": ("#ff9e57", "#6db1ff")}


def draw_neurons(view: "View", theme: Theme) -> Figure:
    """One query with all keys; or the vectors of all tokens."""
    return _draw_every(view, theme) if view.selection.every is not None else _draw_query(view, theme)


def _draw_query(view: "View", theme: Theme) -> Figure:
    selection, trace = view.selection, view.trace
    terms, order = terms_of(view), neuron_order(view)
    queries, keys = names_of(trace.query_tokens(terms.head)), names_of(trace.key_tokens(terms.head))
    weights = terms.weights[0].nan_to_num(nan=0.0).cpu().numpy()
    # The strongest, in the order of the text.
    key_positions = np.sort(np.argsort(-np.abs(weights), kind="stable")[:MOST_KEYS])
    heats = {name: heat for name, heat in _heats(terms, key_positions, order).items() if name not in selection.fold}
    tensors = {"q·k": terms.dots, "capped": terms.capped, "bias": terms.bias}
    numbers = {name: tensor[0].cpu().numpy()[key_positions] for name, tensor in tensors.items() if tensor is not None}
    before = [name for name in ("key", "product") if name in heats]
    after = [name for name in ("value", "weighted") if name in heats]
    kinds = [*before, *numbers, "softmax", *after]
    widths = [2.2 if name in heats else 1.0 if name == "softmax" else 0.55 for name in kinds]
    size = (max(3.4, 1.0 + 0.8 * sum(widths)), 1.5 + BAR_ROOM + ROW_INCHES * (len(key_positions) + 2))
    figure, _ = canvas(view, theme, size, with_axes=False)
    grid = figure.add_gridspec(
        3, len(kinds), width_ratios=widths, height_ratios=[1, len(key_positions), 1], hspace=0.02
    )
    allowed = (
        np.ones(len(key_positions), bool) if terms.allowed is None else terms.allowed[0].cpu().numpy()[key_positions]
    )
    for place, name in enumerate(kinds):
        axes = figure.add_subplot(grid[1, place])
        if name in heats:
            title, values, margin = heats[name]
            limit = full_colour(_tensor(values)) if name != "weighted" else max(1e-12, float(np.abs(values).max()))
            _heat(axes, values, limit, theme)
            _title(axes, f"{title}  ±{limit:.2g}", theme)
            if margin is not None:
                _margin(figure.add_subplot(grid[0 if name == "key" else 2, place]), name, margin, theme)
        elif name == "softmax":
            _bars(axes, weights[key_positions], isinstance(trace, Difference), theme)
        else:
            _numbers(axes, name, numbers[name], allowed, theme)
        if place == 0:
            _tokens(axes, [keys[int(at)] for at in key_positions], theme)
    if heats:
        colour_bar(figure, _signed_ramp(theme), figure.axes, _COLUMN_MARKS, _COLUMN_LABEL, theme, is_below=True)
    notes = _notes(view, terms, queries[terms.queries[0]], (len(key_positions), len(keys)))
    figure.supxlabel("; ".join(notes), fontsize=7, color=theme["secondary"], parse_math=False)
    return figure


# Each column has a full colour of its own, which stands over it.
_COLUMN_MARKS: Marks = [(0.0, "−full"), (0.5, "0"), (1.0, "+full")]
_COLUMN_LABEL = "full: the ± over each column, linear scale"

Heats = dict[str, tuple[str, np.ndarray, np.ndarray | None]]


def _heats(terms: "Terms | SignedTerms", key_positions: np.ndarray, order: np.ndarray) -> Heats:
    """The columns of vectors: title, numbers [key, neuron], and what stands over or under them [neuron]."""
    weighted = terms.weighted[0].nan_to_num(nan=0.0).cpu().numpy()[key_positions]
    return {
        "key": ("key k", terms.key.cpu().numpy()[key_positions][:, order], terms.query[0].cpu().numpy()[order]),
        "product": ("q × k", terms.products[0].cpu().numpy()[key_positions][:, order], None),
        "value": ("value v", terms.value.cpu().numpy()[key_positions], None),
        "weighted": ("a · v", weighted, terms.mixed[0].cpu().numpy()),
    }


def _margin(axes: "Axes", name: str, values: np.ndarray, theme: Theme) -> None:
    """The query over the keys, or the output under what it is the sum of."""
    _heat(axes, values[None], full_colour(_tensor(values)), theme)
    label = axes.text(-0.02, 0.5, "q" if name == "key" else "output", transform=axes.transAxes, fontsize=7)
    label.set(ha="right", va="center", color=theme["ink"], in_layout=False)


def _bars(axes: "Axes", weights: np.ndarray, is_signed: bool, theme: Theme) -> None:
    """The weight of each key as a bar."""
    negative, positive = SIGNS[theme["background"]]
    colours = np.where(weights < 0, negative, positive if is_signed else theme["accent"])
    axes.barh(np.arange(len(weights)), weights, height=0.7, color=list(colours))
    most = round(max(0.01, float(np.abs(weights).max())), 2) if is_signed else 1
    ends = (-most, most) if is_signed else (0, 1)
    axes.set(ylim=(len(weights) - 0.5, -0.5), xlim=ends, yticks=[], xticks=ends)
    axes.set_facecolor(theme["background"])
    axes.tick_params(colors=theme["secondary"], labelsize=6, length=2)
    for spine in axes.spines.values():
        spine.set_visible(False)
    _title(axes, "softmax", theme)


def _numbers(axes: "Axes", name: str, values: np.ndarray, allowed: np.ndarray, theme: Theme) -> None:
    """A number for each key, pale where it is masked."""
    axes.axis("off")
    axes.set(ylim=(len(values) - 0.5, -0.5), xlim=(0, 1))
    for row, value in enumerate(values):
        colour = theme["ink"] if allowed[row] else theme["line"]
        axes.text(1, row, f"{value:.2f}", ha="right", va="center", fontsize=6.5, color=colour)
    _title(axes, name, theme)


def _notes(view: "View", terms: "Terms | SignedTerms", query: str, n_keys: tuple[int, int]) -> list[str]:
    """What stands below: the query, what is scaled or capped, how many of the keys there are, the order."""
    notes = [f"query {terms.queries[0]}: {query}"]
    notes += ["A − B in every column"] if isinstance(view.trace, Difference) else []
    notes += [] if terms.scaling is None else [f"scaling {terms.scaling:.4g}"]
    notes += [] if terms.softcap is None else [f"soft cap {terms.softcap:g}"]
    notes += [f"the {n_keys[0]} strongest of {n_keys[1]} keys"] if n_keys[0] < n_keys[1] else []
    notes += [_order_note(view)] if view.selection.order != "index" else []
    return notes + edited_layer_notes(view.trace) + terms.notes()


def _draw_every(view: "View", theme: Theme) -> Figure:
    selection, trace = view.selection, view.trace
    assert selection.every is not None
    head = trace.layer(selection.site).site.head(selection.head)
    vectors = trace.tensor(selection.every, head).float().cpu().numpy()[:, neuron_order(view)]
    is_key = selection.every in ("key", "value")
    texts = names_of(trace.key_tokens(head) if is_key else trace.query_tokens(head))
    height = min(12.0, 1.2 + ROW_INCHES * len(texts)) + BAR_ROOM
    figure, axes = canvas(view, theme, (6.8, height))
    limit = full_colour(_tensor(vectors))
    image = _heat(axes, vectors, limit, theme)
    if ROW_INCHES * len(texts) <= 12.0:
        _tokens(axes, texts, theme)
    words = {"query": "queries", "key": "keys", "value": "values", "mixed": "outputs"}[selection.every]
    marks = signed_marks(limit, is_root=False)
    colour_bar(figure, image, axes, marks, f"neurons of {words}, linear scale", theme, is_below=True)
    notes = [f"{words} of all tokens, ±{limit:.2g}", *edited_layer_notes(trace)]
    notes += [_order_note(view)] if selection.order != "index" else []
    figure.supxlabel("; ".join(notes), fontsize=7, color=theme["secondary"], parse_math=False)
    return figure


def _order_note(view: "View") -> str:
    against = view.selection.against
    return {
        "contribution": "neurons by |q × k| of what is attended to",
        "token": f"neurons by |q × k| of key {against}",
        "spread": "neurons that depend least on the token first",
    }[view.selection.order]


def _signed_ramp(theme: Theme) -> Colormap:
    negative, positive = SIGNS[theme["background"]]
    return LinearSegmentedColormap.from_list("signed", [negative, theme["ramp"][0], positive])


def _heat(axes: "Axes", values: np.ndarray, limit: float, theme: Theme) -> "AxesImage":
    ramp = _signed_ramp(theme)
    image = axes.imshow(values, cmap=ramp, vmin=-limit, vmax=limit, aspect="auto", interpolation="nearest")
    axes.set(xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set_color(theme["line"])
        spine.set_linewidth(0.5)
    return image


def _title(axes: "Axes", text: str, theme: Theme) -> None:
    axes.set_title(text, fontsize=7, color=theme["secondary"], pad=3, parse_math=False)


def _tokens(axes: "Axes", texts: list[str], theme: Theme) -> None:
    axes.set_yticks(range(len(texts)), texts)
    axes.tick_params(axis="y", colors=theme["ink"], labelsize=7, length=0)
    for label in axes.get_yticklabels():
        label.set_parse_math(False)


def _tensor(values: np.ndarray) -> Any:
    import torch

    return torch.from_numpy(np.ascontiguousarray(values))
