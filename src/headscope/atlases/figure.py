"""All heads of an atlas as small clouds, for a page or a paper."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.choices import Coordinates, MapMethod
from headscope.errors import InputError, MissingExtraError
from headscope.sites import Head

if TYPE_CHECKING:
    from headscope.atlases.atlas_folder import Atlas

# AttentionViz's green and pink, dark enough on white (contrast 3:1 and more), and what other clouds have.
QUERY_COLOR, KEY_COLOR, OTHER_COLOR = "#3f8f4d", "#e3378f", "#3a6ea5"
_LABELS = {"pca": "PCA", "tsne": "t-SNE", "umap": "UMAP"}


def matrix_figure(
    atlas: "Atlas",
    method: MapMethod = "pca",
    *,
    coordinates: Coordinates = "scaled",
    heads: "Sequence[str | Head] | None" = None,
    size: float = 0.9,
) -> Any:
    """The matrix of heads, layers downwards, queries green and keys pink, as a matplotlib figure.

    `size` is the side of a cloud in inches. Both axes of a cloud have the same scale, each cloud its own.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("figures need the package matplotlib: pip install 'headscope[notebook]'.") from error
    places = list(atlas.places.values()) if heads is None else [atlas.place(head) for head in heads]
    if not places:
        raise InputError("there are no heads to draw.")
    sites = list(dict.fromkeys(place.site for place in places))
    rows = [[place for place in places if place.site == site] for site in sites]
    if all(len(row) == 1 for row in rows):  # depths of a residual stream: side by side
        rows = [places[first : first + 8] for first in range(0, len(places), 8)]
    n_columns = max(map(len, rows))
    figure = Figure(figsize=(size * n_columns + 0.6, size * len(rows) + 0.9), dpi=150)
    axes = figure.subplots(len(rows), n_columns, squeeze=False)
    for row, row_axes in zip(rows, axes, strict=True):
        for axis in row_axes:
            axis.set_axis_off()
        for place, axis in zip(row, row_axes, strict=False):
            _draw(axis, atlas, place, atlas.map(place.address, method, coordinates=coordinates))
    _title(figure, atlas, f"{_LABELS[method]}, {coordinates}")
    return figure


def _draw(axis: Any, atlas: "Atlas", place: Any, points: np.ndarray) -> None:
    colors = {"query": QUERY_COLOR, "key": KEY_COLOR}
    counts = [atlas.n_tokens[cloud.stack] for cloud in place.clouds]
    shades = np.concatenate(
        [np.full(count, colors.get(cloud.role, OTHER_COLOR)) for cloud, count in zip(place.clouds, counts, strict=True)]
    )
    order = np.random.default_rng(0).permutation(len(points))  # neither cloud covers the other
    axis.scatter(*points[order].T, c=shades[order], s=0.6, alpha=0.5, linewidths=0, rasterized=True)
    axis.set_aspect("equal", adjustable="datalim")
    axis.set_title(place.address, fontsize=6, pad=1.5)


def _title(figure: Any, atlas: "Atlas", about: str) -> None:
    from matplotlib.lines import Line2D

    is_joint = atlas.index["options"]["space"] == "query_key"
    roles = (
        [("query", QUERY_COLOR), ("key", KEY_COLOR)] if is_joint else [(atlas.index["options"]["space"], OTHER_COLOR)]
    )
    marks = [Line2D([], [], color=color, marker="o", linestyle="", markersize=4, label=name) for name, color in roles]
    width, height = figure.get_size_inches()
    figure.subplots_adjust(left=0.3 / width, right=1 - 0.3 / width, bottom=0.45 / height, top=1 - 0.45 / height)
    corpus = atlas.index["corpus"]
    n_tokens = sum(atlas.n_tokens.values())
    title = (
        f"{_short(atlas.model)}: {n_tokens:,} tokens of {corpus['n_sampled']} examples of {corpus['name']} · {about}"
    )
    figure.text(0.3 / width, 1 - 0.15 / height, title, fontsize=7, va="top")
    figure.legend(handles=marks, loc="lower left", ncols=2, fontsize=7, frameon=False, bbox_to_anchor=(0.2 / width, 0))


def _short(model: str) -> str:
    return model.rstrip("/").rpartition("/")[2] or model
