"""Pictures and sounds in views: what the model saw, over which patches, and in which numbers."""

import io
from dataclasses import replace
from pathlib import Path

import made_media
import numpy as np
import pytest
import tiny_models
import torch
from PIL import Image

import headscope as hs
from headscope.analysis.structure.rollout import rollout
from headscope.errors import InputError, NotRecordedError
from headscope.traces import Inputs, Token, Tokens
from headscope.traces.media import Picture
from headscope.views.figures.media import scale_of
from headscope.views.media import image_part
from headscope.views.parts import part
from headscope.views.selection import form_of

GOLDEN = Path(__file__).parent / "golden" / "picture.png"


@pytest.fixture(scope="module")
def vit() -> hs.Trace:
    return made_media.vit_trace()


def test_the_picture_is_what_the_model_saw():
    image = made_media.picture(32, 32)
    trace = made_media.vit_trace(image)
    page_part = part(trace, "image/main")
    assert page_part.props.size == (32, 32) and page_part.props.patch == (4.0, 4.0) and not page_part.props.note
    # Normalised and back: no pixel is off by more than rounding.
    assert np.abs(page_part.arrays["pixels"].astype(int) - np.asarray(image).astype(int)).max() <= 1
    stack = part(trace, "trace").props.stacks[0]
    assert stack.looks == "image" and part(trace, "trace").props.layers[0].grid == (8, 8)


def test_a_large_picture_travels_smaller():
    page_part = image_part(
        picture_trace(Picture(torch.zeros(100, 3000, 3, dtype=torch.uint8), (50, 100))), "main", most=300
    )
    assert page_part.arrays["pixels"].shape == (10, 300, 3) and page_part.props.patch == (5.0, 10.0)
    assert page_part.props.size == (100, 3000)


def test_a_saved_trace_and_a_saved_page_have_the_picture(vit, tmp_path):
    again = hs.load_trace(vit.save(tmp_path / "trace"))
    assert np.array_equal(part(again, "image/main").arrays["pixels"], part(vit, "image/main").arrays["pixels"])
    html = hs.head_view(again, "L3H2").html()
    assert 'data-key="image/main"' in html and 'data-key="rollout/L5"' in html


def test_a_rollout_leads_through_all_layers_unless_one_is_named(vit):
    assert hs.head_view(vit, rollout=True).selection.site == "L5"
    assert hs.head_view(vit, "L2", rollout=True).selection.site == "L2"


def test_patches_have_the_same_names_in_figures_as_on_the_page(vit):
    pytest.importorskip("matplotlib")
    assert "from 4·5" in hs.head_view(vit, "L3H2", token=29).figure().get_supxlabel()
    lines = hs.head_view(vit, "L3H2", form="lines").figure().axes[0].texts
    assert [label.get_text() for label in lines[:3]] == ["[CLS]", "1·1", "1·2"]
    neurons = hs.neuron_view(vit, "L3H2", token=29).figure()
    assert "query 29: 4·5" in neurons.get_supxlabel()


def test_the_rollout_is_the_one_of_python(vit):
    weights = part(vit, "rollout/L4").arrays["weights"]
    assert np.abs(weights - rollout(vit)["L4"]).max() < 1e-6
    with pytest.raises(InputError, match="not to a head"):
        part(vit, "rollout/L4H1")


def test_a_picture_is_shown_as_one_unless_said_otherwise(vit):
    assert form_of(vit, hs.head_view(vit, "L3H2").selection) == "image"
    assert form_of(vit, hs.head_view(vit, "L3H2", form="matrix").selection) == "matrix"


def test_text_has_no_picture_and_a_picture_no_time(vit):
    text = hs.load("builtin:gpt").run("The cat")
    with pytest.raises(InputError, match="whose keys are text"):
        hs.head_view(text, "L3H2", form="image")
    with pytest.raises(InputError, match="patches of a picture"):
        hs.head_view(vit, "L3H2", form="time")
    with pytest.raises(InputError, match="rollout=True"):
        hs.head_view(vit, "L3H2", form="lines", rollout=True)
    with pytest.raises(NotRecordedError, match="holds no picture"):
        part(text, "image/main")


def test_a_figure_colours_the_patches_by_the_pattern(vit):
    figure = hs.head_view(vit, ["L3H2", "L3H4"], token=10).figure()
    grey, over = figure.axes[1].images
    assert grey.get_array().shape == (32, 32, 3)
    weights = vit.pattern("L3H4")[10, 1:].reshape(8, 8)
    low, high = scale_of(weights)
    expected = 0.85 * np.clip((weights - low) / (high - low), 0, 1) ** 0.6
    assert np.abs(over.get_array()[..., 3] - expected).max() < 1e-6
    assert figure.axes[1].get_title() == f"L3H4  ≤ {weights.max():.2g}"
    ends = [label.get_text() for label in figure.axes[-1].get_xticklabels()]
    assert ends == ["weakest", "strongest patch (≤)"]
    (single,) = (
        label.get_text() for label in hs.head_view(vit, "L3H4", token=10).figure().axes[-1].get_xticklabels()[-1:]
    )
    assert single == f"{weights.max():.2g}"


def test_a_figure_of_who_looks_and_of_arrows(vit):
    figure = hs.head_view(vit, "L3H2", token=("key", 10), direction="to").figure()
    weights = vit.pattern("L3H2")[1:, 10].reshape(8, 8)
    assert np.unravel_index(figure.axes[0].images[1].get_array()[..., 3].argmax(), (8, 8)) == np.unravel_index(
        weights.argmax(), (8, 8)
    )
    figure = hs.head_view(vit, "L3H2", arrows=True, mass=0.5).figure()
    assert len(figure.axes[0].texts) == 32 and len(figure.axes[0].images) == 1


@pytest.mark.parametrize("name", ["vit", "deit", "dinov2", "beit", "swin", "clip", "siglip", "vit_gpt2"])
def test_every_family_of_images_is_shown_over_its_picture(name):
    family = tiny_models.FAMILIES[name]
    model = hs.Model(family.build())
    trace = model.run(inputs={key: value[:1] for key, value in family.inputs().items()})
    stack = next(stack for stack, tokens in trace.tokens.items() if tokens.kind == "patches")
    sites = [site for site, layer in trace.layers.items() if layer.key_stack == stack]
    assert sites
    for site in sites:
        view = hs.head_view(trace, site)
        assert form_of(trace, view.selection) == "image"
        *images, bar = view.figure().axes
        assert all(image.images or not image.axison for image in images)
        assert bar.get_xlabel() == "attention weight, 0.6-power scale"
    assert "which numbers are black" in part(trace, f"image/{stack}").props.note


def test_a_sound_has_a_waveform_and_a_spectrogram(tmp_path):
    made_media.save_whisper(tmp_path / "whisper")
    model = hs.load(tmp_path / "whisper")
    (tmp_path / "tone.wav").write_bytes(made_media.wav(0.5, 8000))
    trace = model.run(tmp_path / "tone.wav", target="the doctor asked")
    page_part = part(trace, "sound/encoder")
    assert page_part.props.seconds == 1.0 and page_part.props.heard == 0.5
    assert page_part.arrays["envelope"].shape[1] == 2 and page_part.arrays["spectrogram"].shape == (8, 100)
    assert part(trace, "trace").props.stacks[0].looks == "sound"
    # The tone is heard while it lasts, and not after.
    loud = page_part.arrays["spectrogram"].max(0)
    assert loud[:45].min() > loud[60:].max()
    again = hs.load_trace(trace.save(tmp_path / "trace"))
    assert np.array_equal(part(again, "sound/encoder").arrays["envelope"], page_part.arrays["envelope"])
    for place in ("cross.L1", "encoder.L0"):
        view = hs.head_view(again, place)
        assert form_of(again, view.selection) == "time"
        *_, strip, bar = view.figure().axes
        assert strip.images[0].get_extent()[:2] == [0, 1.0]
        strongest = float(strip.get_ylabel().split("≤ ")[1])
        site = view.selection.site
        weights = again.pattern(strip.get_ylabel().split("\n")[0])
        expected = weights.max() if site.startswith("cross") else weights.mean(0).max()
        assert strongest == pytest.approx(expected, rel=0.06)
        assert bar.get_xlabel().endswith("square-root scale")
    assert form_of(again, hs.head_view(again, "decoder.L1").selection) == "lines"
    assert 'data-key="sound/encoder"' in hs.head_view(again, "cross.L1").html()


def test_a_figure_of_a_picture_is_the_golden_one():
    """Made by hand: two rows and three columns of patches; the first patch looks at itself, more at those after it."""
    pixels = torch.tensor(np.asarray(made_media.picture(30, 20)))
    figure = hs.head_view(picture_trace(Picture(pixels, (10, 10))), "L0H0", token=1, arrows=True).figure()
    into = io.BytesIO()
    figure.savefig(into, dpi=40)
    drawn = Image.open(into).convert("RGB")
    golden = Image.open(GOLDEN).convert("RGB")
    assert drawn.size == golden.size
    # Letters may differ by a shade from machine to machine; patches and arrows may not.
    apart = np.abs(np.asarray(drawn).astype(int) - np.asarray(golden).astype(int)).max(-1)
    assert (apart > 24).mean() < 0.01


def picture_trace(picture: Picture) -> hs.Trace:
    """A class token and six patches; weights known on paper."""
    weights = torch.arange(49.0).view(7, 7) + 1
    weights = weights / weights.sum(-1, keepdim=True)
    patches = [Token(f"{place // 3},{place % 3}", word=place) for place in range(6)]
    tokens = Tokens((Token("[CLS]", special=True), *patches), "patches", (2, 3))
    trace = hs.Trace.from_patterns([weights[None]], tokens)
    return replace(trace, inputs=Inputs("image", {}, {"main": tokens}, seen={"main": picture}))
