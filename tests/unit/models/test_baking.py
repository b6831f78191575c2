"""Edits in weights: a baked folder is the edited run."""

import pytest
import torch
from tiny_models import FAMILIES
from transformers import AutoModel

import headscope as hs
from headscope.errors import CaptureError, InterventionError, LoadError
from headscope.models import Model
from headscope.models.baking import _check_equal, baked_model

WITH_COORDINATES = ["bert", "gpt2", "opt", "vit", "whisper", "bart", "distilbert"]


def outputs(model, inputs, edits=()):
    with model.session(edits):
        out = model.module(**inputs)
    return [tensor for tensor in out.values() if isinstance(tensor, torch.Tensor)]


def reload(model, folder):
    return Model(type(model.module).from_pretrained(folder))


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama", "t5", "vit", "bart", "gemma2", "albert"])
def test_a_baked_folder_equals_the_edited_run(name, tmp_path):
    family = FAMILIES[name]
    model, inputs = Model(family.build()), family.inputs()
    layer = model.layout.layers[0]
    layers = model.layout.of_module(layer.module)  # ALBERT: all of them
    edits = [edit for layer in layers for edit in (hs.silence(layer.site.head(1)), hs.scale(layer.site.head(2), 0.5))]
    folder = hs.bake(model, edits, tmp_path / "baked")
    baked_outputs, expected = outputs(reload(model, folder), inputs), outputs(model, inputs, edits)
    plain = outputs(model, inputs)
    assert any((edited - two).abs().max() > 1e-3 for edited, two in zip(expected, plain, strict=True))
    for baked, two in zip(baked_outputs, expected, strict=True):
        assert (baked - two).abs().max() <= 1e-5 * max(1.0, float(two.abs().max()))


@pytest.mark.parametrize("stage", ["query", "key", "value"])
@pytest.mark.parametrize("name", WITH_COORDINATES)
def test_coordinates_are_baked_into_the_projection(name, stage, tmp_path):
    family = FAMILIES[name]
    model, inputs = Model(family.build()), family.inputs()
    head = model.heads[1]
    edits = [hs.set_neuron(head, stage, 3, 0.0), hs.scale_neuron(head, stage, 4, -2.0)]
    folder = hs.bake(model, edits, tmp_path / "baked")
    for baked, two in zip(outputs(reload(model, folder), inputs), outputs(model, inputs, edits), strict=True):
        assert (baked - two).abs().max() <= 1e-5 * max(1.0, float(two.abs().max()))


def test_a_shift_needs_a_bias(tmp_path):
    model = Model(FAMILIES["bert"].build())
    edits = [hs.add_neuron("L0H0", "value", 1, 0.7), hs.set_neuron("L1H2", "query", 0, 1.5)]
    folder = hs.bake(model, edits, tmp_path / "baked")
    inputs = FAMILIES["bert"].inputs()
    for baked, two in zip(outputs(reload(model, folder), inputs), outputs(model, inputs, edits), strict=True):
        assert (baked - two).abs().max() <= 1e-5 * max(1.0, float(two.abs().max()))
    with pytest.raises(InterventionError, match="bias"):
        hs.bake(Model(FAMILIES["llama"].build()), [hs.add_neuron("L0", "value", 1, 0.7)], tmp_path / "other")


def test_a_fixed_mean_is_baked_where_there_is_a_bias(tmp_path):
    model = Model(FAMILIES["gpt2"].build())
    mean = torch.linspace(-1, 1, model.layout.layers[0].value_dim)
    edits = [hs.mean_ablate("L0H1", mean)]
    folder = hs.bake(model, edits, tmp_path / "baked")
    inputs = FAMILIES["gpt2"].inputs()
    for baked, two in zip(outputs(reload(model, folder), inputs), outputs(model, inputs, edits), strict=True):
        assert (baked - two).abs().max() <= 1e-5 * max(1.0, float(two.abs().max()))


def test_edits_of_one_head_are_baked_in_their_order(tmp_path):
    model, inputs = Model(FAMILIES["gpt2"].build()), FAMILIES["gpt2"].inputs()
    mean = torch.linspace(-1, 1, model.layout.layers[0].value_dim)
    orders = [
        [hs.scale("L0H1", 2.0), hs.set_neuron("L0H1", "mixed", 1, 0.7)],
        [hs.set_neuron("L0H1", "mixed", 1, 0.7), hs.scale("L0H1", 2.0)],
        [hs.scale("L0H1", 0.5), hs.mean_ablate("L0H1", mean)],
    ]
    for place, edits in enumerate(orders):
        folder = hs.bake(model, edits, tmp_path / str(place))
        for baked, two in zip(outputs(reload(model, folder), inputs), outputs(model, inputs, edits), strict=True):
            assert (baked - two).abs().max() <= 1e-5 * max(1.0, float(two.abs().max()))


@pytest.mark.parametrize(
    ("name", "edit", "error_text"),
    [
        ("llama", hs.set_neuron("L0H0", "query", 1, 0.0), "rotary"),
        ("llama", hs.set_neuron("L0H0", "value", 1, 0.0), "share"),
        ("gpt2", hs.temperature("L0H0", 2.0), "cannot be written"),
        ("gpt2", hs.silence("L0H0", tokens=[1]), "some tokens"),
        ("gpt2", hs.mean_ablate("L0H0"), "give the mean"),
        ("albert", hs.silence("L0H0"), "share their weights"),
        (
            "albert",
            [hs.gate(site, torch.tensor([0.0, 1.0, 1.0, bit])) for site, bit in (("L0", 1.0), ("L1", 0.0))],
            "share",
        ),
    ],
)
def test_what_weights_cannot_express_is_refused(name, edit, error_text, tmp_path):
    with pytest.raises(InterventionError, match=error_text):
        hs.bake(Model(FAMILIES[name].build()), edit, tmp_path / "baked")
    assert not list(tmp_path.iterdir())


def test_a_baked_model_that_computes_nan_is_not_written():
    model = Model(FAMILIES["gpt2"].build(), verify=False)
    baked = baked_model(model, [])
    with torch.no_grad():
        next(baked.module.parameters()).fill_(float("nan"))
    with pytest.raises(CaptureError, match="differs from the edited run's"):
        _check_equal(model, [], baked)


def test_a_folder_with_something_in_it_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(LoadError, match="not empty"):
        hs.bake(Model(FAMILIES["gpt2"].build()), [hs.silence("L0H0")], tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_baked_folder_loads_with_plain_transformers(tmp_path):
    folder = hs.bake(Model(FAMILIES["gpt2"].build()), [hs.silence("L0H0")], tmp_path / "baked")
    assert type(AutoModel.from_pretrained(folder)).__name__ == "GPT2Model"
    assert "headscope" not in (folder / "config.json").read_text()
