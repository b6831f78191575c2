"""Draws what a training log holds: loss and quality on the left, every head's score over training on the right."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from PIL import Image

# What counts progress, what is drawn beside the loss, and the head score with its title.
CURVES = {
    "gpt": ("tokens", [], [("previous_token", "attention to the previous token"),
                           ("induction", "induction, on random repeated tokens")]),
    "bert": ("step", ["masked_accuracy", "pair_accuracy"], [("same_word_across", "A to the same word in B")]),
    "vit": ("epochs", ["validation_accuracy"], [("patch_neighbour", "attention to the eight patches around")]),
    "translate": ("step", ["piece_accuracy"], [("identical_alignment", "cross-attention to the identical piece")]),
}  # fmt: skip


def draw_curves(name: str, log: list[dict], path: Path) -> None:
    counter, qualities, scores = CURVES[name]
    figure, axes = plt.subplots(1, 1 + len(scores), figsize=(5 * (1 + len(scores)), 3.4), layout="constrained")
    left, rights = axes[0], axes[1:]
    unit = 1e6 if counter == "tokens" else 1
    phases = sorted({row.get("phase", 1) for row in log})
    for phase in phases:
        rows = [row for row in log if row.get("phase", 1) == phase]
        at = [row[counter] / unit for row in rows]
        style = {"alpha": 1.0 if phase == phases[-1] else 0.6}
        label = {"label": "validation loss" if phase == phases[-1] else None}
        left.plot(at, [row["validation_loss"] for row in rows], color="#1f4e79", **style, **label)
        for number, quality in enumerate(qualities):
            label = {"label": quality.replace("_", " ") if phase == phases[-1] else None}
            colour = ("#c55a11", "#548235")[number]
            left.plot(at, [row[quality] for row in rows], color=colour, **style, **label)
        for axis, (score, title) in zip(rights, scores, strict=True):
            layers = len(rows[0][score])
            for layer in range(layers):
                colour = plt.get_cmap("viridis")(layer / max(1, layers - 1) * 0.9)
                for head in range(len(rows[0][score][layer])):
                    named = head == 0 and phase == phases[-1]
                    axis.plot(at, [row[score][layer][head] for row in rows], color=colour, linewidth=0.8,
                              label=f"layer {layer}" if named else None, **style)  # fmt: skip
            axis.set_title(title, fontsize=9)
            axis.set_ylim(0, 1)
    for axis in axes:
        axis.set_xlabel("million tokens" if counter == "tokens" else f"{counter.rstrip('s')}s")
        axis.grid(alpha=0.25)
        axis.legend(fontsize=7)
    left.set_title(f"builtin:{name}", fontsize=9)
    left.set_ylim(bottom=0 if qualities else None, top=None if qualities else 6)
    if name == "gpt":
        left.set_ylim(3.4, 5)
        for axis in rights:
            axis.set_xscale("log")
    figure.savefig(path, dpi=90)
    with Image.open(path) as picture:  # a quarter of the bytes
        picture.convert("RGB").quantize(64, dither=Image.Dither.NONE).save(path, optimize=True)
    plt.close(figure)
