"""Draw README's picture: four heads of the built-in models, each doing what its name says.

python docs/pictures/draw_heads.py      # needs matplotlib
"""

from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.colors import LinearSegmentedColormap, PowerNorm

import headscope as hs

INK, QUIET = "#1c1d1f", "#5c6066"
RAMP = LinearSegmentedColormap.from_list("attention", ["#ffffff", "#8fb2e8", "#12306b"])


def draw(axes, trace: hs.Trace, head: str, title: str, said: str) -> None:
    """One pattern, queries down and keys across."""
    # Square-root scale: weak attention is still attention.
    axes.imshow(trace.pattern(head), cmap=RAMP, norm=PowerNorm(0.5, 0, 1), aspect="auto")
    rows, columns = trace.query_tokens(head).texts, trace.key_tokens(head).texts
    axes.set_yticks(range(len(rows)), rows, fontsize=8, color=INK)
    axes.set_xticks(range(len(columns)), columns, fontsize=8, color=INK, rotation=90)
    axes.xaxis.tick_top()
    axes.tick_params(length=0, pad=2)
    for side in axes.spines.values():
        side.set_color("#e4e4e1")
    axes.set_xlabel(f"{title}\n{said}", fontsize=9, color=QUIET, labelpad=8)


def best(name: str, traces, kind: str | None = None) -> str:
    """The head that a measure puts first."""
    scores = hs.measure(name, traces)
    return str(next(head for head, _ in scores.top(len(scores)) if kind is None or head.kind == kind))


def main() -> None:
    """Run the four models and save the picture."""
    gpt, bert, translate = (hs.load(f"builtin:{name}") for name in ("gpt", "bert", "translate"))
    text = gpt.run("The farmer saw the housekeeper. The farmer saw")
    pair = bert.run(("The cat sat on the mat.", "A cat lay on the mat."))
    source = translate.run(("Tom bought 25 apples in Boston.", "Том купил 25 яблок в Бостоне."))
    repeats = gpt.run(hs.analysis.repeated_tokens(gpt, n_inputs=4))
    figure, axes = plt.subplots(1, 4, figsize=(15, 4.1), layout="constrained")
    previous, induction = best("previous_token", repeats), best("induction", repeats)
    across, aligned = best("same_word_across", pair), best("same_word_across", source, "cross")
    draw(axes[0], text, previous, f"builtin:gpt {previous}", "looks at the token before")
    draw(axes[1], text, induction, f"builtin:gpt {induction}", "looks at what followed last time")
    draw(axes[2], pair, across, f"builtin:bert {across}", "looks at the same word in the other sentence")
    draw(axes[3], source, aligned, f"builtin:translate {aligned}", "looks at the word it is translating")
    figure.savefig(Path(__file__).parent / "heads.png", dpi=110, facecolor="white")


if __name__ == "__main__":
    main()
