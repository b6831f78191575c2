"""Heads over the picture that a model saw, or along the sound that it heard."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, ListedColormap, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from headscope.errors import InputError
from headscope.views.figures.canvas import (
    BAR_ROOM,
    Marks,
    Theme,
    canvas,
    colour_bar,
    how_read,
    names_of,
    ramp_of,
    root_marks,
)
from headscope.views.figures.patches import Patches
from headscope.views.media import picture_of, rollout_to, sound_of
from headscope.views.table import HeadWeights, spot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from headscope.views.view import View

FADED = 0.38
# As on the page (`web/src/views/picture.ts`): less than in proportion, and never hiding the picture.
ROOT, COVER = 0.6, 0.85
INCHES = 2.4
LONGEST_INCHES = 40.0


def draw_picture(view: "View", head_weights: HeadWeights, theme: Theme) -> Figure:
    """A picture a head: what the chosen token looks at (or who looks at it), or what each patch gets on average."""
    planes = _planes(view, head_weights)
    layer = view.trace.layer(view.selection.site)
    picture = picture_of(view.trace, layer.key_stack)
    patches = Patches.of(view.trace, layer, picture)
    rows, caption = _values_of_chosen(view, head_weights, list(planes.values()))
    if view.selection.arrows and spot(view) is None:
        caption = "from each patch to the patch that it looks at most"
    n_columns = min(len(planes), 4)
    n_rows = math.ceil(len(planes) / n_columns)
    height, width = picture.pixels.shape[:2]
    side = INCHES if len(planes) > 1 else 2 * INCHES
    tall = side * height / width
    # Arrows alone say enough: under them the picture should be seen.
    is_plain = view.selection.arrows and spot(view) is None
    bar_room = 0.0 if is_plain else BAR_ROOM
    size = (side * n_columns + 0.4, min(LONGEST_INCHES, tall * n_rows + 0.8) + bar_room)
    figure, _ = canvas(view, theme, size, with_axes=False)
    places, token = _places(view, head_weights, patches), spot(view)
    for number, (name, values) in enumerate(zip(planes, rows, strict=True)):
        axes = figure.add_subplot(n_rows, n_columns, number + 1)
        _draw_heat(axes, patches, values, places, theme, is_plain=is_plain)
        if view.selection.arrows:
            _draw_arrows(axes, patches, list(planes.values())[number], places, view.selection.mass, theme)
        if token is not None:
            _frame(axes, patches, int(places[token.index]) if layer.site.kind == "self" else -1, theme)
        strongest = float(np.nanmax(np.where(places >= 0, values, 0)))
        axes.set_title(f"{name}  ≤ {strongest:.2g}", fontsize=8, color=theme["ink"], parse_math=False)
    if not is_plain:
        marks = _overlay_marks(_patch_weights(rows[0], places, patches.count)) if len(rows) == 1 else _OVERLAY_MARKS
        label = f"{_quantity(view)}, {ROOT:g}-power scale"
        colour_bar(figure, _overlay(theme), figure.axes, marks, label, theme, is_below=True)
    notes = [note for note in (caption, how_read(view), picture.note) if note]
    figure.supxlabel("; ".join(notes), fontsize=7, color=theme["secondary"], parse_math=False)
    return figure


def draw_time(view: "View", head_weights: HeadWeights, theme: Theme) -> Figure:
    """The sound and its spectrogram over the heads: a row for each written token, or a strip for each head."""
    layer = view.trace.layer(view.selection.site)
    sound = sound_of(view.trace, layer.key_stack)
    planes = _planes(view, head_weights)
    is_cross = layer.site.kind == "cross"
    end = sound.seconds if sound.heard > 0.6 * sound.seconds else sound.heard * 1.15
    heights = [0.5] * (sound.envelope is not None) + [1.0] * (sound.spectrogram is not None)
    n_rows = head_weights.weights.n_queries
    heights += [max(0.6, 0.16 * n_rows) if is_cross else 0.35] * len(planes)
    size = (6.4, min(LONGEST_INCHES, sum(heights) + 1.0) + BAR_ROOM)
    figure, _ = canvas(view, theme, size, with_axes=False)
    panels: Any = figure.subplots(len(heights), 1, sharex=True, squeeze=False, gridspec_kw={"height_ratios": heights})
    axes = list(panels[:, 0])
    for panel_axes in axes:
        _plain(panel_axes, theme)
    place = iter(axes)
    if sound.envelope is not None:
        low, high = sound.envelope.numpy().T
        time = (np.arange(len(low)) + 0.5) * sound.heard / len(low)
        next(place).fill_between(time, low, high, color=theme["secondary"], linewidth=0)
    if sound.spectrogram is not None:
        extent = (0, sound.seconds, 0, sound.spectrogram.shape[0])
        greys = LinearSegmentedColormap.from_list("greys", [theme["background"], theme["ink"]])
        next(place).imshow(sound.spectrogram.numpy(), origin="lower", aspect="auto", extent=extent, cmap=greys)
    rows, caption = _values_of_chosen(view, head_weights, list(planes.values()))
    for name, plane, values in zip(planes, planes.values(), rows, strict=True):
        panel, strip = next(place), plane if is_cross else values[None]
        extent = (0, sound.seconds, len(strip) - 0.5, -0.5)
        strongest = max(1e-30, float(np.nanmax(strip)))
        strip = np.sqrt(np.clip(np.nan_to_num(strip) / strongest, 0, 1))
        panel.imshow(strip, aspect="auto", extent=extent, cmap=ramp_of(theme), interpolation="nearest")
        panel.set_yticks([])
        if is_cross and n_rows <= 60:
            panel.set_yticks(range(n_rows), names_of(head_weights.weights.queries), fontsize=6)
            for label in panel.get_yticklabels():
                label.set_parse_math(False)
        panel.set_ylabel(
            f"{name}\n≤ {strongest:.2g}",
            fontsize=7,
            color=theme["ink"],
            rotation=0,
            ha="right",
            va="center",
            parse_math=False,
        )
    axes[-1].set_xlim(0, end)
    axes[-1].set_xlabel("seconds", fontsize=7, color=theme["secondary"])
    axes[-1].tick_params(labelbottom=True)
    label = f"{_quantity(view)}, as a share of the strongest (≤ at the left), square-root scale"
    colour_bar(figure, ramp_of(theme), axes, root_marks(0.0, 1.0), label, theme, is_below=True)
    notes = ["each token from nothing to the strongest" if is_cross else caption, how_read(view)]
    notes += (
        [
            "spectrogram: the louder, the darker"
            if theme["background"] == "#ffffff"
            else "spectrogram: the louder, the brighter"
        ]
        if sound.spectrogram is not None
        else []
    )
    if end < sound.seconds:
        notes.append(f"{end:.2f} of {sound.seconds:.2f} s shown: the rest is silence")
    figure.supxlabel("; ".join(note for note in notes if note), fontsize=7, color=theme["secondary"], parse_math=False)
    return figure


def _planes(view: "View", head_weights: HeadWeights) -> dict[str, np.ndarray]:
    """The weights of each head that is shown, of their mean, or the rollout [query, key], by name."""
    selection = view.selection
    if selection.rollout:
        site = view.trace.layer(selection.site).site
        return {f"rollout to {site}": rollout_to(view.trace, site)}
    if head_weights.weights.n_queries * head_weights.weights.n_keys * len(head_weights.heads) > 2**27:
        raise InputError("this is too much for one figure: show fewer heads.")
    bands = head_weights.band(slice(0, head_weights.weights.n_queries), selection.average).numpy()
    return dict(zip(head_weights.names, bands, strict=True))


def _values_of_chosen(
    view: "View", head_weights: HeadWeights, planes: list[np.ndarray]
) -> tuple[list[np.ndarray], str]:
    """For each plane the numbers that are drawn, one a token, and what they are."""
    token = spot(view)
    if token is None:
        return [np.nanmean(plane, 0) for plane in planes], "what each gets, on average over all queries"
    if token.side == "query":
        return [plane[token.index] for plane in planes], f"from {names_of(head_weights.weights.queries)[token.index]}"
    return [plane[:, token.index] for plane in planes], f"to {names_of(head_weights.weights.keys)[token.index]}"


def _places(view: "View", head_weights: HeadWeights, patches: Patches) -> np.ndarray:
    """The patch of each token of the side that is coloured, −1 for one that is none."""
    token, layer = spot(view), view.trace.layer(view.selection.site)
    tokens = head_weights.weights.queries if token is not None and token.side == "key" else head_weights.weights.keys
    if view.selection.rollout:
        tokens = view.trace.key_tokens(layer.site)
    places = patches.places(tokens)
    if places is None:
        raise InputError(f"{token and token.side} {token and token.index} is looked at by words, not by patches.")
    return places


def _draw_heat(
    axes: "Axes", patches: Patches, values: np.ndarray, places: np.ndarray, theme: Theme, *, is_plain: bool
) -> None:
    """The picture, pale but in its colours, and over it (unless plain) a colour on each patch."""
    pixels = patches.picture.pixels.numpy().astype(np.float64) / 255
    pixels = np.broadcast_to(pixels, (*pixels.shape[:2], 3))
    behind = np.array(to_rgb(theme["background"]))
    pale = np.where(patches.is_picture()[..., None], pixels * (1 - FADED) + behind * FADED, behind)
    axes.imshow(pale, interpolation="nearest")
    weights = _patch_weights(values, places, patches.count)
    low, high = scale_of(weights)
    colours = _overlay_colours(np.clip((weights - low) / max(1e-30, high - low), 0, 1) ** ROOT, theme)
    if not is_plain:
        overlay, extent = patches.overlay(colours)
        axes.imshow(overlay, interpolation="nearest", extent=extent)
    height, width = patches.picture.pixels.shape[:2]
    axes.set(xlim=(-0.5, width - 0.5), ylim=(height - 0.5, -0.5))
    axes.axis("off")


def _patch_weights(values: np.ndarray, places: np.ndarray, count: int) -> np.ndarray:
    """The number of each patch, row by row."""
    weights = np.zeros(count)
    weights[places[places >= 0]] = np.nan_to_num(values[places >= 0], neginf=0.0)
    return weights


def _overlay_colours(share: np.ndarray, theme: Theme) -> np.ndarray:
    """The colour over a patch [share, rgba]: the stronger, the less of the picture shows."""
    colours = LinearSegmentedColormap.from_list("heat", list(theme["ramp"][1:]))(share)
    colours[:, 3] = COVER * share
    return colours


def _overlay(theme: Theme) -> ListedColormap:
    """The same as the colours of a legend, over the ground of the figure."""
    colours = _overlay_colours(np.linspace(0, 1, 256), theme)
    behind, cover = np.array(to_rgb(theme["background"])), colours[:, 3:]
    return ListedColormap(colours[:, :3] * cover + behind * (1 - cover), "overlay")


# Each head has a scale of its own: how far it goes stands over its picture.
_OVERLAY_MARKS: Marks = [(0.0, "weakest"), (1.0, "strongest patch (≤)")]


def _overlay_marks(weights: np.ndarray) -> Marks:
    """Marks of the overlay's scale, in numbers: of one head alone."""
    low, high = scale_of(weights)
    return [(share**ROOT, f"{low + share * (high - low):.2g}") for share in (0.0, 0.25, 0.5, 1.0)]


def _quantity(view: "View") -> str:
    """What the colours stand for."""
    if view.selection.rollout:
        return "rollout"
    return {"pattern": "attention weight", "scores": "score"}.get(view.selection.what, view.selection.what)


def scale_of(weights: np.ndarray) -> tuple[float, float]:
    """What counts as nothing and as full: from zero, unless even the weakest is a good part of the strongest."""
    low, high = float(weights.min()), float(weights.max())
    return (low if low > 0.2 * high else 0.0), high


def _frame(axes: "Axes", patches: Patches, patch: int, theme: Theme) -> None:
    """The patch that is looked from, or at."""
    if patch >= 0:
        left, top, right, bottom = patches.box(patch)
        size = right - left, bottom - top
        axes.add_patch(Rectangle((left, top), *size, fill=False, edgecolor=theme["ink"], linewidth=1.6))


def _draw_arrows(
    axes: "Axes", patches: Patches, plane: np.ndarray, places: np.ndarray, share: float, theme: Theme
) -> None:
    """From each patch to the one it looks at most; so large a share of them, the strongest."""
    tokens = np.flatnonzero(places >= 0)
    if len(plane) != plane.shape[1]:
        raise InputError("arrows lead from patch to patch: they need attention within the picture.")
    between = np.nan_to_num(plane[np.ix_(tokens, tokens)])
    strongest = between.argmax(1)
    weights = between.max(1)
    most = max(1e-30, float(weights.max()))

    def middle(token: int) -> tuple[float, float]:
        left, top, right, bottom = patches.box(int(places[tokens[token]]))
        return (left + right) / 2, (top + bottom) / 2

    for query in np.argsort(-weights, kind="stable")[: math.ceil(len(tokens) * share)]:
        alpha = 0.35 + 0.65 * float(weights[query] / most)
        style = {"arrowstyle": "->", "color": theme["accent"], "lw": 0.9, "alpha": alpha}
        ends = middle(int(strongest[query])), middle(int(query))
        axes.annotate("", ends[0], ends[1], arrowprops=style)


def _plain(axes: "Axes", theme: Theme) -> None:
    axes.set_facecolor(theme["background"])
    axes.tick_params(colors=theme["secondary"], labelsize=6, length=2)
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_color(theme["line"])
