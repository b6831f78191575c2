"""Trees beside the columns of a figure: gold dependencies at the left, the head's own tree at the right."""

from typing import TYPE_CHECKING

from headscope.views.contract import TreeProps
from headscope.views.figures.canvas import Theme
from headscope.views.table import HeadWeights
from headscope.views.trees import gold_part, shown_places, tree_part, words_of_trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from headscope.views.view import View

_STEP = 0.035
_BESIDE = 0.34  # beyond the tokens, in the width of the lines
_NAMES = {"next": "each to the next", "previous": "to the previous", "root": "all to the root"}


def draw_arcs(axes: "Axes", view: "View", head_weights: HeadWeights, theme: Theme) -> str:
    """Draw what the view asks for; what it says of the trees, in words."""
    arcs = view.selection.arcs
    if arcs == "none" or (view.gold is None and arcs == "gold"):
        return ""
    sentence = view.gold or words_of_trace(view.trace)
    gold = gold_part(view.trace, sentence).props
    tree: TreeProps | None = None
    if arcs != "gold":
        name = f"{view.selection.site}H{view.selection.heads[0]}"
        tree = tree_part(view.trace, sentence, name, arcs).props
    weights = head_weights.weights
    groups = [(place,) for place in range(weights.n_queries)] if weights.by_row is None else weights.by_row.groups
    places = shown_places(groups, gold.words)
    agrees = tree.agrees if tree is not None and tree.agrees else [False] * len(gold.words)
    reach = _bows(axes, gold.heads, places, agrees, -_BESIDE, -1, theme)
    for place, relation in zip(places, gold.relations, strict=False):
        if place is not None:
            look = {"fontsize": 6, "color": theme["secondary"], "parse_math": False}
            axes.text(-_BESIDE + 0.02, place, relation, ha="left", va="center", **look)
    if tree is None or tree.no_tree:
        return "gold dependencies" + (f"; no tree: {tree.no_tree}" if tree is not None else "")
    is_gold = [bool(gold.heads) and head == gold.heads[word] for word, head in enumerate(tree.heads)]
    reach = max(reach, _bows(axes, tree.heads, places, is_gold, 1 + _BESIDE, 1, theme))
    if tree.uas is None:
        return f"the tree of {tree.head} at the right"
    baselines = ", ".join(f"{_NAMES[name]} {100 * share:.0f} %" for name, share in tree.baselines.items())
    return (
        f"right: the tree of {tree.head}, UAS {100 * tree.uas:.0f} % of {tree.n_words} words (root given; {baselines})"
    )


def _bows(
    axes: "Axes",
    heads: list[int],
    places: list[float | None],
    is_right: list[bool],
    base: float,
    out: int,
    theme: Theme,
) -> float:
    """Brackets from heads to dependents, nested; how far out they reach."""
    spans = [
        (abs(dependent - governor), min(dependent, governor), max(dependent, governor), word)
        for word, head in enumerate(heads)
        if head >= 0 and (dependent := places[word]) is not None and (governor := places[head]) is not None
    ]
    levels: list[list[tuple[float, float]]] = []
    for _, low, high, word in sorted(spans):
        level = next(
            (at for at, spans_of_level in enumerate(levels) if all(low >= b or high <= a for a, b in spans_of_level)),
            len(levels),
        )
        levels += [[]] if level == len(levels) else []
        levels[level].append((low, high))
        to, start = places[word], places[heads[word]]
        assert to is not None and start is not None
        far = base + out * _STEP * (level + 1)
        nudge = 0.18 if to > start else -0.18
        look = {"color": theme["accent"] if is_right[word] else theme["secondary"], "clip_on": False}
        axes.plot(
            [base, far, far, base], [start + nudge, start + nudge, to, to], lw=1.0 if is_right[word] else 0.6, **look
        )
        axes.plot([base], [to], marker="<" if out > 0 else ">", markersize=2.5, **look)
    return _STEP * (len(levels) + 1)
