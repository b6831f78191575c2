"""Figures: every kind is drawn, with tokens as plain text."""

import numpy as np
import pytest
import torch
from made_traces import random_layer, trace_of_layers

import headscope as hs
from headscope.attention import Formula
from headscope.sites import Site
from headscope.traces import Trace
from headscope.traces.activations import Activations, Lens

pytest.importorskip("matplotlib")
TRACE = trace_of_layers(random_layer(Formula(1.0), 9), random_layer(Formula(1.0), 9))
NASTY = Trace.from_patterns([torch.eye(4)[None]], ["$x_1$", "a\nb", "می\u200cروم", "   "], model="$m$")


def pixels(figure) -> np.ndarray:
    figure.canvas.draw()
    return np.asarray(figure.canvas.buffer_rgba())


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(
    "view",
    [
        hs.head_view(TRACE, "L1"),
        hs.head_view(TRACE, "L1H2", axis="horizontal", top=2),
        hs.head_view(TRACE, "L0H1", form="matrix"),
        hs.head_view(TRACE, "L0", form="matrix", what="scores"),
        hs.head_view(TRACE, "L0", average=True, form="matrix", hide="first"),
        hs.head_view(TRACE, "L0", what="contribution"),
        hs.model_view(TRACE),
        hs.model_view(TRACE, thumbnails="lines", sort="entropy", colour="confidence"),
        hs.model_view(TRACE, colour="confidence", least=0.2),
        hs.neuron_view(TRACE, "L1H2", sort="contribution"),
        hs.neuron_view(TRACE, "L1H2", every="query", sort="spread"),
    ],
    ids=lambda view: f"{view.kind} {view.selection.form} {view.selection.what} {view.selection.thumbnails}",
)
def test_every_kind_is_drawn(view, theme):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure = view.figure(theme=theme)
    FigureCanvasAgg(figure)
    drawn = pixels(figure)[..., :3]
    background = drawn[0, 0]
    assert (background > 200).all() if theme == "light" else (background < 60).all()
    assert (np.abs(drawn.astype(int) - background).sum(-1) > 60).mean() > 0.005


def test_a_figure_says_what_was_edited_and_marks_it():
    gpt = hs.load("builtin:gpt")
    edits = [hs.silence("L3H2"), hs.set_weight("L2H1", -1, 2, 0.5)]
    trace = gpt.run("The cat sat. The cat", interventions=edits)
    caption = "Input: “The cat sat. The cat”\nEdited: silence('L3H2'), set_weight('L2H1', -1, 2, 0.5)"
    model = hs.model_view(trace).figure()
    assert caption in model.get_suptitle()
    assert [patch.get_linestyle() for patch in model.axes[0].patches].count("--") == 2
    lines = hs.head_view(trace, "L2H1").figure()
    assert caption.splitlines()[0] in lines.get_suptitle() and "Edited:" in lines.get_suptitle()
    assert [line.get_linestyle() for line in lines.axes[0].lines] == ["--"]
    assert len(hs.head_view(trace, "L2H1", form="matrix").figure().axes[0].patches) == 1
    # A caption of a paper says the rest; that a run was edited stands on the figure itself.
    assert hs.model_view(trace).figure(width="column").get_suptitle().startswith("Edited: silence('L3H2')")
    assert hs.model_view(gpt.run("The cat sat.")).figure(width="column").get_suptitle() == ""


def test_a_figure_marks_the_layers_whose_mlp_was_edited():
    gpt = hs.load("builtin:gpt")
    trace = gpt.run("The cat sat.", interventions=[hs.set_neuron("L2", "mlp", 7, 4.0)])
    figure = hs.model_view(trace).figure()
    marked = [label.get_text() for label in figure.axes[0].get_yticklabels() if label.get_fontweight() == "bold"]
    assert marked == ["L2"] and "edited: MLP of L2" in figure.get_supxlabel()
    for view in (hs.head_view(trace, "L4H2"), hs.head_view(trace, "L4", form="matrix"), hs.neuron_view(trace, "L4H2")):
        assert "edited: MLP of L2" in view.figure().get_supxlabel()
    activations = gpt.activations(trace, interventions=[hs.set_neuron("L2", "mlp", 7, 4.0)])
    figure = hs.activations_view(trace, activations).figure()
    marked = [label.get_text() for label in figure.axes[0].get_yticklabels() if label.get_fontweight() == "bold"]
    assert marked == ["L2"] and "edited: MLP of L2" in figure.get_supxlabel()


def test_a_figure_of_activations_marks_the_layers_of_edited_heads():
    gpt = hs.load("builtin:gpt")
    edits = [hs.silence("L3H2"), hs.uniform("L1H0")]
    trace = gpt.run("The cat sat.", edits)
    figure = hs.activations_view(trace, gpt.activations(trace, interventions=edits)).figure()
    marked = [label.get_text() for label in figure.axes[0].get_yticklabels() if label.get_fontweight() == "bold"]
    assert marked == ["L1", "L3"]


def test_tokens_are_texts_not_formulas(tmp_path):
    figure = hs.head_view(NASTY).figure()
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts == ["$x_1$", "a⏎b", "می\u200cروم", "␣␣␣"] * 2
    figure.savefig(tmp_path / "x.png")
    hs.head_view(NASTY, form="matrix").save(tmp_path / "y.pdf")


def test_fonts_are_embedded_as_fonts(tmp_path):
    hs.head_view(TRACE).save(tmp_path / "x.pdf")
    assert b"/FontFile2" in (tmp_path / "x.pdf").read_bytes()
    import matplotlib

    assert matplotlib.rcParams["pdf.fonttype"] == 3  # as it was before


def test_a_long_matrix_is_pooled_and_says_so():
    trace = trace_of_layers(random_layer(Formula(1.0), 600))
    figure = hs.head_view(trace, "L0H0", form="matrix").figure()
    (image,) = figure.axes[0].images
    assert image.get_array().shape == (300, 300)
    assert "max-pooled by 2 × 2 tokens" in figure.get_supxlabel()


def test_too_many_lines_are_counted(monkeypatch):
    from headscope.views.figures import head

    monkeypatch.setattr(head, "MOST_LINES", 50)
    drawn = hs.head_view(TRACE, "L0").figure()
    assert "50 of 324 lines drawn" in drawn.get_supxlabel()


def test_neurons_are_drawn_in_their_signs_and_add_up():
    view = hs.neuron_view(TRACE, "L1H2", token=4, fold="value")
    figure = view.figure()
    titles = [axes.get_title() for axes in figure.axes]
    assert [title.split("  ")[0] for title in titles if title] == ["key k", "q × k", "q·k", "softmax", "a · v"]
    drawn = {axes.get_title().split("  ")[0]: axes for axes in figure.axes}
    products = np.asarray(drawn["q × k"].images[0].get_array())
    written = [float(text.get_text()) for text in drawn["q·k"].texts if text.get_text()]
    assert products.sum(1) == pytest.approx(written, abs=0.006)
    low, high = drawn["q × k"].images[0].get_clim()
    assert low == -high < 0
    bars = [bar.get_width() for bar in drawn["softmax"].patches]
    assert bars == pytest.approx(TRACE.pattern("L1H2")[4], abs=1e-6)
    assert "query 4: m4" in figure.get_supxlabel()


def test_predictions_of_some_tokens_stand_at_their_own_positions():
    trace = trace_of_layers(random_layer(Formula(1.0), 90))
    lens = Lens(np.zeros((2, 70, 1), int), np.zeros((2, 70, 1)), np.zeros((2, 70), int), np.zeros((2, 70)), {0: "so"})
    norms, tokens = np.ones((2, 90), np.float32), trace.tokens["main"]
    activations = Activations("main", (Site("main", 0),), tokens, norms, norms, first=20, lens=lens)
    figure = hs.activations_view(trace, activations).figure(width="column")
    assert figure.axes[0].images[0].get_extent()[:2] == [19.5, 89.5]
    assert "tokens 20 to 89 of 90" in figure.get_supxlabel().replace("\n", " ")
    assert "tokens" not in hs.activations_view(trace, activations, stream="norm").figure().get_supxlabel()


def test_of_many_keys_the_strongest_are_drawn():
    trace = trace_of_layers(random_layer(Formula(1.0), 200))
    figure = hs.neuron_view(trace, "L0H0").figure()
    assert "the 48 strongest of 200 keys" in figure.get_supxlabel()
