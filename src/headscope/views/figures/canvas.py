"""What all figures share: colours for print and for dark slides, fonts, the canvas."""

import contextlib
import functools
import math
import unicodedata
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.errors import MissingExtraError
from headscope.traces import Difference, Tokens
from headscope.views.captions import caption_lines
from headscope.views.edited import edited_layer_notes
from headscope.views.trace_part import run_name

try:
    import matplotlib
    from matplotlib import font_manager
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Colormap, LinearSegmentedColormap, Normalize
    from matplotlib.figure import Figure
except ImportError as error:
    raise MissingExtraError("pictures need matplotlib: pip install headscope[notebook].") from error

if TYPE_CHECKING:
    from headscope.views.view import View

Theme = dict[str, Any]

# Letters of a title that fit into an inch.
_LETTERS = 11
# Letters of a token that are drawn: one that is longer would take the room of all others.
LONGEST = 20
# Signs without a width that say how letters join, in Persian and Hindi say: they belong to the writing.
_JOINERS = "\u200c\u200d"

# The page's colours: `web/src/theme.ts`.
THEMES = {
    "light": {
        "background": "#ffffff",
        "ink": "#1c1d1f",
        "secondary": "#5c6066",
        "line": "#e4e4e1",
        "accent": "#3457d5",
        "edited": "#9a4708",
        "ramp": ("#ffffff", "#8fb2e8", "#12306b"),
        "signs": ("#d95f02", "#ffffff", "#2166ac"),
        "heads": [
            "#4477aa",
            "#e05566",
            "#228833",
            "#a08c12",
            "#2b93b5",
            "#aa3377",
            "#332288",
            "#2f9c8b",
            "#dd6618",
            "#882255",
            "#8a5a2b",
            "#8c8c8c",
        ],
    },
    "dark": {
        "background": "#131417",
        "ink": "#eceef1",
        "secondary": "#a7adb6",
        "line": "#2b2e34",
        "accent": "#8fa8ff",
        "edited": "#f0b35a",
        "ramp": ("#1a1c20", "#6a5acd", "#ffe2a8"),
        "signs": ("#ff9e57", "#1a1c20", "#6db1ff"),
        "heads": [
            "#6699cc",
            "#ee6677",
            "#3fae55",
            "#ddcc55",
            "#66ccee",
            "#cc5599",
            "#8878dd",
            "#44bbaa",
            "#ee8844",
            "#b8527e",
            "#aaaa44",
            "#bbbbbb",
        ],
    },
}
# Fonts that have what the first one lacks, taken where they are installed.
FONTS = (
    "DejaVu Sans",
    "Noto Sans",
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Noto Sans SC",
    "Noto Sans Arabic",
    "Noto Sans Devanagari",
    "Noto Emoji",
    "WenQuanYi Zen Hei",
    "Droid Sans Fallback",
    "Microsoft YaHei",
    "PingFang SC",
    "Arial Unicode MS",
)


class _Figure(Figure):
    """A figure whose fonts are embedded as fonts, whichever format it is saved in."""

    def savefig(self, *arguments: Any, **options: Any) -> None:
        options.setdefault("dpi", self.get_dpi())  # matplotlib would take those it was made with
        with settings():
            super().savefig(*arguments, **options)


@contextlib.contextmanager
def settings() -> Iterator[None]:
    """Fonts for every script that the system has fonts for, embedded; what was set before is set again after."""
    family = list(_installed_fonts()) or ["sans-serif"]
    with (
        matplotlib.rc_context({"font.family": family, "pdf.fonttype": 42, "ps.fonttype": 42, "svg.fonttype": "path"}),
        warnings.catch_warnings(),
    ):
        # A script that no installed font has is drawn as boxes, which everybody understands.
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from")
        yield


@functools.cache
def _installed_fonts() -> tuple[str, ...]:
    """Those of our fonts that the system has. Matplotlib remembers what there was when it was first used."""
    fonts = font_manager.fontManager
    names = {font.name for font in fonts.ttflist}
    files = {font.fname for font in fonts.ttflist}
    missing = {name.replace(" ", "").split("CJK")[0] for name in FONTS if name not in names}
    for path in font_manager.findSystemFonts() if missing else []:
        family, _, style = Path(path).stem.partition("-")
        if path not in files and family.split("CJK")[0] in missing and style in ("", "Regular"):
            with contextlib.suppress(OSError, RuntimeError):  # one that cannot be read is as good as none
                fonts.addfont(path)
    names = {font.name for font in fonts.ttflist}
    return tuple(name for name in FONTS if name in names)


def canvas(view: "View", theme: Theme, size: tuple[float, float], with_axes: bool = True) -> tuple[Figure, Any]:
    """A figure with the view's title; and its axes, unless there are to be several."""
    figure = _Figure(figsize=size, dpi=150, layout="constrained", facecolor=theme["background"])
    room = int(size[0] * _LETTERS)
    lines = [one_line(view.title, 120), *(one_line(line, room) for line in caption_lines(view.trace))]
    figure.suptitle("\n".join(lines), fontsize=9, color=theme["ink"], parse_math=False)
    axes = figure.add_subplot() if with_axes else None
    if axes is not None:
        axes.set_facecolor(theme["background"])
    return figure, axes


# Places along a colour bar, 0 to 1, and what is written there.
Marks = list[tuple[float, str]]


def root_marks(low: float, top: float) -> Marks:
    """Marks of the square-root scale."""
    return [(math.sqrt(share), f"{low + share * (top - low):.3g}") for share in (0.0, 0.01, 0.1, 0.25, 0.5, 1.0)]


def signed_marks(full: float, *, is_root: bool) -> Marks:
    """Marks from −full to full."""
    shares = (-1.0, -0.25 if is_root else -0.5, 0.0, 0.25 if is_root else 0.5, 1.0)
    return [
        (0.5 + (0.25 if abs(share) < 1 else 0.5) * math.copysign(bool(share), share), f"{share * full:.3g}")
        for share in shares
    ]


# Inches that a colour bar below takes.
BAR_ROOM = 0.5


def colour_bar(
    figure: Figure, image: Any, axes: Any, marks: Marks, label: str, theme: Theme, *, is_below: bool = False
) -> None:
    """The legend of an image, or of a colour map: its colours, numbers along them, and the quantity with its scale."""
    if isinstance(image, Colormap):
        image = ScalarMappable(Normalize(0.0, 1.0), image)
    if is_below:  # of wide figures, which may be low
        width = min(0.9, 2.2 / figure.get_figwidth())
        bar = figure.colorbar(image, ax=axes, location="bottom", shrink=width, aspect=24, pad=0.04)
    else:
        bar = figure.colorbar(image, ax=axes, shrink=0.6, pad=0.02)
    low, high = image.get_clim()
    bar.set_ticks([low + place * (high - low) for place, _ in marks], labels=[text for _, text in marks])
    bar.set_label(label, fontsize=7, color=theme["secondary"], parse_math=False)
    bar.ax.tick_params(colors=theme["secondary"], labelsize=7)
    bar.outline.set_visible(False)


def ramp_of(theme: Theme) -> Colormap:
    """The colours of weights from none to one."""
    ramp = LinearSegmentedColormap.from_list("weights", list(theme["ramp"]))
    return ramp.with_extremes(bad=theme["background"])


def signs_of(theme: Theme) -> Colormap:
    """The colours of differences: from what the second run has more of to what the first has."""
    ramp = LinearSegmentedColormap.from_list("differences", list(theme["signs"]))
    return ramp.with_extremes(bad=theme["background"])


def how_read(view: "View") -> str:
    """What the reader should know of how tokens are read."""
    selection = view.selection
    notes = [f"by {selection.by}"] if selection.by != "tokens" else []
    if isinstance(view.trace, Difference) and (comparison := view.trace.comparison) is not None:
        notes = [
            f"blue: more in A ({run_name(comparison.a)}); orange: more in B ({run_name(comparison.b)})",
            comparison.line,
            *notes,
        ]
    hidden = [
        *(f"{group} tokens" for group in selection.hide),
        *([f"{len(selection.off)} tokens"] if selection.off else []),
    ]
    notes += [f"without {' and '.join(hidden)}, rows brought back to one"] if hidden else []
    notes += [selection.what] if selection.what != "pattern" else []
    return ", ".join([*notes, *edited_layer_notes(view.trace)])


def one_line(text: str, most: int = LONGEST) -> str:
    """On one line of so many letters at most: what is not printable is drawn as a sign for it."""
    if text and not text.strip(" "):
        return cut("␣" * len(text), most)
    return cut(
        "".join(
            "⏎" if letter == "\n" else letter if letter.isprintable() or letter in _JOINERS else "·" for letter in text
        ),
        most,
    )


def letters(text: str) -> float:
    """How long a text is, in letters of the usual width: those of Chinese, Japanese and Korean are wider."""
    return sum(1.6 if unicodedata.east_asian_width(letter) in "WF" else 1.0 for letter in text)


def cut(text: str, most: float) -> str:
    """As much of a text as fits into so many letters."""
    if letters(text) <= most:
        return text
    while text and letters(text) > most - 1:
        text = text[:-1]
    return text + "…"


def names_of(tokens: Tokens) -> list[str]:
    """What tokens are called in figures, as on the page: patches by row and column, both from 1."""
    if tokens.kind != "patches" or tokens.grid is None:
        return [one_line(text) for text in tokens.texts]
    columns = tokens.grid[1]
    return [
        one_line(token.text)
        if token.special or token.word is None
        else f"{token.word // columns + 1}·{token.word % columns + 1}"
        for token in tokens
    ]
