"""Layers × tokens: predictions of the logit lens, or norms of the residual stream."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from headscope.views.figures.canvas import Theme, canvas, letters, names_of, one_line, ramp_of

if TYPE_CHECKING:
    from headscope.views.view import View

# Tokens whose predictions are still read in print.
_WORDS = 24
_NAMES = 60
_TOLD = {
    "lens": "what each layer would predict, coloured by its probability",
    "norm": "norm of the residual stream, on the log scale",
    "attention": "norm of what attention wrote, on the log scale",
    "cross": "norm of what cross-attention wrote, on the log scale",
    "mlp": "norm of what the MLP wrote, on the log scale",
    "cosine": "cosine to the last layer's stream",
}


def draw_activations(view: "View", theme: Theme) -> Figure:
    """The grid of a view of activations; of a long input the tokens whose lens was read."""
    found, stream = view.activations, view.selection.stream
    assert found is not None
    tokens = slice(found.first, found.first + found.count) if stream == "lens" else slice(None)
    texts = names_of(found.tokens)[tokens]
    if stream == "lens":
        assert found.lens is not None
        values, rows = np.exp(found.lens.logprobs[:, :, 0]), found.places
        shade = np.sqrt(values)
    elif stream == "cosine":
        values, rows = found.cosines, found.places
        shade = np.clip(values, 0, 1)
    else:
        values = found.norms if stream == "norm" else found.written[stream]
        rows = found.places if stream == "norm" else [str(site) for site in found.layers]
        logs = np.log(np.maximum(values, 1e-12))
        shade = (logs - logs.min()) / max(1e-9, float(logs.max() - logs.min()))
    has_words = stream == "lens" and len(texts) <= _WORDS
    width = max(3.3, min(14.0, len(texts) * (0.62 if has_words else 0.24) + 1.2))
    named = max(map(letters, texts), default=0) * 0.06 if len(texts) <= _NAMES else 0
    figure, axes = canvas(view, theme, (width, len(rows) * (0.26 if has_words else 0.2) + 0.9 + max(0.5, named)))
    axes.imshow(shade, cmap=ramp_of(theme), vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    if has_words and found.lens is not None:
        for (row, column), share in np.ndenumerate(shade):
            text = found.lens.names[int(found.lens.ids[row, column, 0])]
            is_dark = (share > 0.55) == (theme["background"] == "#ffffff")
            colour = "#ffffff" if is_dark else "#1c1d1f" if share > 0.3 else theme["ink"]
            shown = one_line(text.strip() or text, 9)
            axes.text(column, row, shown, ha="center", va="center", fontsize=6, color=colour, parse_math=False)
    axes.set_yticks(range(len(rows)), rows)
    if len(texts) <= _NAMES:
        axes.set_xticks(
            range(len(texts)), texts, rotation=90 if not has_words else 45, ha="center" if not has_words else "left"
        )
        axes.xaxis.tick_top()
    for label in axes.get_xticklabels():
        label.set_parse_math(False)
    axes.tick_params(colors=theme["secondary"], labelsize=7, length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    note = _TOLD[stream] + (f": {values.min():.3g} to {values.max():.3g}" if stream != "lens" else "")
    figure.supxlabel(note, fontsize=7, color=theme["secondary"], parse_math=False)
    return figure
