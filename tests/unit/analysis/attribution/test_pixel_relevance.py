"""Relevance of pixels: sums over patches, a finite difference, what is refused; and attention to a single token."""

import numpy as np
import pytest
import torch
from tiny_models import FAMILIES

import headscope as hs
from headscope.analysis import pixel_relevance, relevance
from headscope.errors import CaptureError, InputError
from headscope.interventions import add_neuron
from headscope.models import Model


def model_and_picture(name: str) -> tuple[Model, dict]:
    family = FAMILIES[name]
    model = Model(family.build())
    return model, {"pixel_values": family.inputs()["pixel_values"][:1]}


@pytest.mark.parametrize("name", ["vit", "deit"])
@pytest.mark.parametrize("rule", ["cp", "attn"])
def test_pixels_and_the_rest_of_a_patch_add_up_to_its_relevance(name, rule):
    model, inputs = model_and_picture(name)
    pixels = pixel_relevance(model, model.read(inputs=inputs), target=1, rule=rule)
    patches = relevance(model, model.read(inputs=inputs), target=1, rule=rule)
    assert pixels.by_patch() == pytest.approx(patches.patch_relevance(), abs=1e-5)
    assert pixels.logit == pytest.approx(patches.logit, abs=1e-6)
    assert pixels.values.shape == tuple(inputs["pixel_values"].shape[-2:])
    whole = pixels.values.sum() + pixels.without_pixels.sum()
    assert whole == pytest.approx(patches.token_relevance().sum(), abs=1e-5)


def test_a_pixel_at_zero_brings_nothing():
    model, inputs = model_and_picture("vit")
    picture = inputs["pixel_values"].clone()
    picture[..., 0, :] = 0.0
    pixels = pixel_relevance(model, model.read(inputs={"pixel_values": picture}), target=0)
    assert not pixels.values[0].any() and pixels.values[1:].any()


def test_a_difference_of_answers_is_the_difference_of_their_pixels():
    model, inputs = model_and_picture("vit")
    read = model.read(inputs=inputs)
    both, first, second = (pixel_relevance(model, read, target=target).values for target in ((0, 1), 0, 1))
    assert both == pytest.approx(first - second, abs=1e-6)


def test_what_does_not_come_apart_into_pixels_is_refused():
    model, inputs = model_and_picture("swin")
    with pytest.raises((CaptureError, InputError)):
        pixel_relevance(model, model.read(inputs=inputs), target=1)
    text = hs.load("builtin:gpt")
    with pytest.raises(InputError, match="no picture"):
        pixel_relevance(text, "The doctor")


def test_attention_to_the_only_token_is_linear():
    """A softmax over one key is 1 whatever the scores are: queries and keys change nothing, values pass unweighted."""
    model = hs.load("builtin:gpt")
    trace = model.run(inputs={"input_ids": torch.tensor([[42]])})
    edits = [add_neuron(f"L{layer}H0", part, 3, 50.0) for layer in range(6) for part in ("query", "key")]
    edited = model.run(trace.inputs, edits)
    for head in ("L0H0", "L5H7"):
        assert trace.pattern(head).tolist() == [[1.0]]
        assert np.array_equal(trace.mixed(head), trace.value(head))
    assert torch.equal(trace.answers.logprobs, edited.answers.logprobs)
