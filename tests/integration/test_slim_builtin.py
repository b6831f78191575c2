"""The built-in models with heads removed, weights as they were trained."""

import random

import pytest
import torch

import headscope as hs
from headscope.models.slimming import gate_edits


@pytest.mark.parametrize("name", ["gpt", "bert", "translate", "vit"])
def test_a_built_in_model_is_slim_with_a_third_of_its_heads(name, tmp_path):
    model = hs.load(f"builtin:{name}", verify=False)
    choice = random.Random(0)
    heads = [head for head in model.heads if head.layer != 1 and choice.random() < 0.4]
    slim = hs.load(hs.slim(model, heads, tmp_path / "slim"))  # run beside the original before it is written
    assert slim.verified is True and not slim.warnings
    assert list(slim.original_heads.values()) == heads
    if name in ("gpt", "translate"):
        text = "The doctor asked the nurse a question."
        written = slim.generate(text, max_new_tokens=8).text
        assert written == model.generate(text, gate_edits(model, heads), max_new_tokens=8).text
    weights = (sum(parameter.numel() for parameter in own.module.parameters()) for own in (slim, model))
    assert next(weights) < 0.9 * next(weights)
    assert all(torch.isfinite(parameter).all() for parameter in slim.module.parameters())
