"""Figures at the width of a paper: how wide, in which type, with which fonts, and what they look like."""

import io
import os
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from made_traces import random_layer, trace_of_layers
from PIL import Image

import headscope as hs
from headscope.attention import Formula, Mask
from headscope.errors import InputError
from headscope.sites import Site
from headscope.traces import Tokens, Trace
from headscope.traces.activations import Activations, Lens

matplotlib = pytest.importorskip("matplotlib")
from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: E402
from matplotlib.text import Text  # noqa: E402

from headscope.views.figures.canvas import THEMES  # noqa: E402

GOLDEN = Path(__file__).parent / "golden"
TEXTS = ["[CLS]", "The", "doctor", "asked", "the", "nurse", "a", "question", ".", "[SEP]"]


def trace_of(length: int, n_layers: int = 2, n_heads: int = 3) -> Trace:
    """Heads that look 0, 1, 2, … back, each layer with more left over for the first token."""
    places = torch.arange(length)
    layers = []
    for layer in range(n_layers):
        back = [(places[:, None] - places[None, :] == head).float() for head in range(n_heads)]
        pattern = torch.stack(back) * (1 - 0.2 * layer)
        pattern[:, :, 0] += 1 - pattern.sum(-1)
        layers.append(pattern)
    return Trace.from_patterns(layers, (TEXTS * length)[:length], model="made")


def vectors_of(texts: list[str]) -> Trace:
    """Queries and keys with signs, the same whenever it is made."""
    with torch.random.fork_rng():
        torch.manual_seed(5)
        plain_trace = trace_of_layers(random_layer(Formula(0.5, mask=Mask.causal(len(texts), len(texts))), len(texts)))
    return replace(plain_trace, tokens={"main": Tokens.of(texts)})


def passing_through(texts: list[str]) -> Activations:
    """Activations of five places whose predictions become surer, layer by layer."""
    n = len(texts)
    ids = np.tile(np.arange(n)[None, :, None], (5, 1, 2)) + np.arange(2)
    sure = np.log(np.linspace(0.05, 0.95, 5, dtype=np.float32))[:, None, None] * np.ones((5, n, 2), np.float32)
    lens = Lens(ids, sure, np.zeros((5, n), int), sure[..., 0], dict(enumerate([*texts, "so"])))
    norms = np.exp(np.linspace(0, 3, 5 * n, dtype=np.float32)).reshape(5, n)
    layers = tuple(Site("main", layer) for layer in range(4))
    return Activations("main", layers, Tokens.of(texts), norms, np.ones((5, n), np.float32), lens=lens)


WORDY = [
    "Donaudampfschifffahrtsgesellschaftskapitänsmütze" * 2,
    "国际货币基金组织国际货币基金组织国际货币基金",
    "a",
    "$x_1$",
]
WORDED = Trace.from_patterns([torch.full((1, 4, 4), 0.25)], WORDY, model="made")
SHORT, LONG, MANY = trace_of(10), trace_of(130), trace_of(10, 2, 16)
VIEWS = {
    "lines": hs.head_view(SHORT, "L1", form="lines"),
    "across": hs.head_view(SHORT, "L1", form="lines", axis="horizontal"),
    "matrix": hs.head_view(SHORT, "L0H1", form="matrix"),
    "matrices": hs.head_view(SHORT, "L1", form="matrix"),
    "model": hs.model_view(MANY),
    "sorted": hs.model_view(SHORT, sort="previous_token", colour="confidence"),
    "long": hs.head_view(LONG, "L0H2", form="lines"),
    "neuron": hs.neuron_view(vectors_of(TEXTS), "L0H1", sort="contribution"),
    "activations": hs.activations_view(SHORT, passing_through(TEXTS)),
}
LONG_TOKENS = {
    "lines": hs.head_view(WORDED, form="lines"),
    "across": hs.head_view(WORDED, form="lines", axis="horizontal"),
    "matrix": hs.head_view(WORDED, form="matrix"),
    "neuron": hs.neuron_view(vectors_of(WORDY)),
    "every": hs.neuron_view(vectors_of(WORDY), every="key"),
    "activations": hs.activations_view(WORDED, passing_through(WORDY)),
    "norms": hs.activations_view(WORDED, passing_through(WORDY), stream="norm"),
}


@pytest.mark.parametrize(("width", "inches"), [("column", 3.33), ("page", 6.9), (5, 5.0)])
@pytest.mark.parametrize("name", VIEWS)
def test_it_is_as_wide_as_asked_in_type_that_can_be_read(name, width, inches):
    figure = VIEWS[name].figure(width=width)
    wide, tall = figure.get_size_inches()
    assert wide == pytest.approx(inches)
    assert tall <= 9
    sizes = {text.get_fontsize() for text in figure.findobj(Text) if text.get_visible() and text.get_text()}
    assert sizes and min(sizes) >= 7 and max(sizes) <= 9


def boxes(figure, texts):
    renderer = figure.canvas.get_renderer()
    return [text.get_window_extent(renderer) for text in texts if text.get_visible() and text.get_text().strip()]


@pytest.mark.parametrize("name", ["lines", "long", "matrix", "model"])
def test_labels_do_not_overlap(name):
    figure = VIEWS[name].figure(width="column")
    FigureCanvasAgg(figure)
    axes = figure.axes[0]
    for group in (axes.texts, axes.get_xticklabels(), axes.get_yticklabels()):
        bounds = boxes(figure, group)
        for number, box in enumerate(bounds):
            for other in bounds[number + 1 :]:
                across = min(box.x1, other.x1) - max(box.x0, other.x0)
                down = min(box.y1, other.y1) - max(box.y0, other.y0)
                # Boxes have leading of their own: a fifth of a line may touch.
                assert across <= 0 or down <= 0.2 * min(box.height, other.height, box.width), (name, box, other)


def test_nothing_is_outside_the_figure():
    for name in ("lines", "across", "matrix"):
        figure = VIEWS[name].figure(width="column")
        FigureCanvasAgg(figure)
        axes = figure.axes[0]
        ticks = [*axes.get_xticklabels(), *axes.get_yticklabels()] if axes.axison else []
        legend = [text for figure_legend in figure.legends for text in figure_legend.get_texts()]
        for box in boxes(figure, [*axes.texts, *ticks, *legend]):
            assert box.x0 > -2 and box.y0 > -2 and box.x1 < figure.bbox.x1 + 2 and box.y1 < figure.bbox.y1 + 2, name


@pytest.mark.parametrize("width", [None, "column", "page"])
@pytest.mark.parametrize("name", LONG_TOKENS)
def test_long_tokens_leave_room_for_what_is_to_be_seen(name, width):
    figure = LONG_TOKENS[name].figure(width=width)
    FigureCanvasAgg(figure)
    figure.savefig(io.BytesIO(), format="png")
    boxes_of = [axes.get_window_extent() for axes in figure.axes if axes.images or axes.collections]
    wide, tall = max(box.width for box in boxes_of), max(box.height for box in boxes_of)
    assert wide > (0.12 if name == "neuron" else 0.28) * figure.bbox.width, name
    assert tall > 0.15 * figure.bbox.height, name
    for text in figure.findobj(Text):
        box = text.get_window_extent()
        if text.get_visible() and text.get_text().strip() and text.axes is not None and text.axes.axison:
            assert box.x0 > -2 and box.x1 < figure.bbox.x1 + 2, (name, text.get_text())


def test_fonts_are_in_the_file(tmp_path):
    VIEWS["lines"].save(tmp_path / "x.pdf", width="column")
    pdf = (tmp_path / "x.pdf").read_bytes()
    assert b"/FontFile2" in pdf and b"/Type3" not in pdf and b"/Type 3" not in pdf
    wide, tall = map(float, re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ([\d.]+) \]", pdf).groups())  # type: ignore[union-attr]
    assert wide == pytest.approx(3.33 * 72, abs=0.01) and tall < 9 * 72
    VIEWS["lines"].save(tmp_path / "x.svg", width="column")
    svg = (tmp_path / "x.svg").read_text()
    assert "<image" not in svg and "<text" not in svg  # letters are shapes: the same with whatever fonts a reader has


def test_heat_maps_have_the_dots_that_print_needs(tmp_path):
    VIEWS["matrix"].save(tmp_path / "x.png", width="column")
    with Image.open(tmp_path / "x.png") as picture:
        assert picture.width >= 3.33 * 300


def test_more_heads_than_colours_are_told_apart_by_dashes():
    figure = hs.head_view(MANY, "L0", form="lines").figure(width="page")
    (legend,) = figure.legends
    texts = [text.get_text() for text in legend.get_texts()]
    styles = dict(zip(texts, (line.get_linestyle() for line in legend.get_lines()), strict=True))
    assert (styles["L0H1"], styles["L0H13"]) == ("-", "--")


@pytest.mark.parametrize("width", ["colum", 0, True, 100])
def test_a_width_that_is_none_is_refused(width):
    with pytest.raises(InputError, match="'column'"):
        VIEWS["lines"].figure(width=width)


def test_a_width_is_for_pictures(tmp_path):
    with pytest.raises(InputError, match="for pictures"):
        VIEWS["lines"].save(tmp_path / "x.csv", width="column")
    assert not list(tmp_path.iterdir())


# What they look like: small pictures, looked at once by a person. HEADSCOPE_GOLDEN=write draws them anew.


@pytest.mark.parametrize("name", VIEWS)
def test_it_looks_as_it_did(name):
    drawn = io.BytesIO()
    VIEWS[name].figure(width="column").savefig(drawn, format="png", dpi=60)
    picture = Image.open(drawn).convert("RGB")
    path = GOLDEN / f"{name}.png"
    if os.environ.get("HEADSCOPE_GOLDEN") == "write":
        GOLDEN.mkdir(exist_ok=True)
        picture.save(path, optimize=True)
    with Image.open(path) as image:
        known = image.convert("RGB")
    assert abs(picture.height - known.height) <= 1
    size = (known.width // 2, known.height // 2)
    ours, other = (np.asarray(each.resize(size, Image.Resampling.BOX), float) for each in (picture, known))
    apart = np.abs(ours - other).max(-1)
    # Versions of fonts and of matplotlib move letters by parts of a dot.
    assert (apart > 60).mean() < 0.03 and apart.mean() < 6


# Colours


@pytest.mark.parametrize("name", THEMES)
def test_colours_are_those_of_the_page(name):
    source = (Path(__file__).parents[3] / "web" / "src" / "theme.ts").read_text()
    text = re.search(rf"export const {name.upper()}: Theme = {{(.*?)\n}};", source, re.DOTALL)[1]  # type: ignore[index]
    heads = re.findall(r"#[0-9a-f]{6}", text[text.index("heads:") :])
    assert THEMES[name]["heads"] == heads

    def page(key: str) -> list[str]:
        return re.findall(r"#[0-9a-f]{6}", re.search(rf"\b{key}: (.*)", text)[1])  # type: ignore[index]

    theme = THEMES[name]
    assert list(theme["ramp"]) == page("ramp")
    assert [theme["signs"][0], theme["signs"][2]] == page("negative") + page("positive")
    for key in ("ink", "secondary", "line", "accent"):
        assert [theme[key]] == page(key)
    # Paper is white.
    assert theme["background"] == ("#ffffff" if name == "light" else page("background")[0])


@pytest.mark.parametrize("name", ["model", "matrix", "activations", "neuron"])
def test_a_heat_map_has_a_colour_bar_that_names_its_scale(name: str) -> None:
    labels = [axes.get_xlabel() + axes.get_ylabel() for axes in VIEWS[name].figure().axes]
    assert any(("linear" if name == "neuron" else "square-root") + " scale" in label for label in labels)


def test_neurons_of_all_tokens_have_a_colour_bar_with_numbers() -> None:
    view = hs.neuron_view(vectors_of(TEXTS), "L0H1", every="key")
    image, bar = view.figure().axes
    _, full = image.images[0].get_clim()
    numbers = [float(label.get_text()) for label in bar.get_xticklabels()]
    assert numbers == pytest.approx([-full, -full / 2, 0, full / 2, full], rel=0.01)
