"""Every family of model: watched, it computes what it computes by itself; its patterns are the ones it used."""

import copy

import pytest
import torch
from tiny_models import FAMILIES, Family
from torch import nn
from transformers import AttentionMaskInterface
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS

import headscope as hs
from headscope.models import Model
from headscope.models.capture import seam
from headscope.sites import Site

NAMES = list(FAMILIES)
# A module of torch's own is computed by a fused kernel outside a session, which rounds differently.
FUSED = {"home_torch_encoder": 1e-5, "home_multihead": 1e-5, "home_sdpa": 1e-5, "siglip": 5e-6}


def build_model(family: Family) -> Model:
    model = Model(family.build())
    model.probe_if_new((), family.inputs())
    return model


def tensors(outputs) -> list[torch.Tensor]:
    """All floating-point tensors of an output, attention weights apart."""
    if isinstance(outputs, torch.Tensor):
        return [outputs]
    named = outputs.items() if hasattr(outputs, "items") else enumerate(outputs)
    return [tensor for name, tensor in named if isinstance(tensor, torch.Tensor) and tensor.is_floating_point()]


def eager(family: Family, inputs, **options):
    with torch.no_grad():
        return family.build()(**inputs, **options)


def real_rows(outputs: list[torch.Tensor], inputs) -> list[torch.Tensor]:
    """Outputs at real positions: what a model computes for padding is nobody's business."""
    masks = [inputs.get(name) for name in ("attention_mask", "decoder_attention_mask")]
    for mask in masks:
        if mask is not None and mask.ndim == 2:
            outputs = [output[mask.bool()] if output.shape[:2] == mask.shape else output for output in outputs]
    return outputs


@pytest.mark.parametrize("padded", [False, True], ids=["plain", "padded"])
@pytest.mark.parametrize("name", NAMES)
def test_watching_changes_nothing(name, padded):
    family = FAMILIES[name]
    if padded and family.padded is None:
        pytest.skip("images have no padding")
    inputs = family.padded() if padded else family.inputs()
    model = build_model(family)
    expected = real_rows(tensors(eager(family, inputs)), inputs)
    with model.session(record="heads"):
        outputs = real_rows(tensors(model.module(**inputs)), inputs)
    assert len(outputs) == len(expected) > 0
    for output, other in zip(outputs, expected, strict=True):
        assert (output - other).abs().max() <= FUSED.get(name, 0.0)


@pytest.mark.parametrize("name", NAMES)
def test_the_probe_finds_every_stack_layer_and_head(name):
    family = FAMILIES[name]
    model = build_model(family)
    heads_by_stack: dict[str, list[int]] = {}
    for layer in model.layout.layers:
        heads_by_stack.setdefault("cross" if layer.site.kind == "cross" else layer.site.stack, []).append(layer.n_heads)
    if name == "siglip":
        assert heads_by_stack.pop("cross") == [4]  # its pooling head: queries of its own over the patches
    for stack, (n_layers, n_heads) in family.stacks.items():
        assert heads_by_stack.pop(stack) == (list(n_heads) if isinstance(n_heads, tuple) else [n_heads] * n_layers)
    assert not heads_by_stack
    assert not model.layout.missed
    assert {layer.way for layer in model.layout.layers if layer.site.stack != "vision_pool"} == {family.way}
    assert all(layer.out_projection for layer in model.layout.layers)


@pytest.mark.parametrize("padded", [False, True], ids=["plain", "padded"])
@pytest.mark.parametrize("name", [name for name in NAMES if FAMILIES[name].attentions])
def test_recomputed_patterns_are_the_ones_used(name, padded):
    family = FAMILIES[name]
    if padded and family.padded is None:
        pytest.skip("images have no padding")
    if name == "longformer":
        pytest.skip("its own format is compared in test_banded_attention.py")
    inputs = family.padded() if padded else family.inputs()
    model = build_model(family)
    expected = family.attentions(eager(family, inputs, output_attentions=True))
    with model.session(record="heads") as session:
        model.module(**inputs)
    compared = 0
    for stack, layers in expected.items():
        for index, weights in enumerate(layers):
            if weights is None:
                continue
            site = Site(
                "text" if stack == "cross" and "text" in model.stacks else "decoder" if stack == "cross" else stack,
                index,
                "cross" if stack == "cross" else "self",
            )
            captured = session.captured[site]
            n_examples = len(captured.records)
            for example, record in enumerate(captured.records):
                for head in range(record.n_heads):
                    pattern = record.pattern(head)
                    whole = own(weights, example, n_examples, head, record, inputs, stack)
                    assert pattern.shape == whole.shape
                    assert (pattern - whole).abs().max() <= 1e-5
                    compared += 1
    assert compared


def own(weights, example, n_examples, head, record, inputs, stack):
    """One example's eager pattern, without padding, in the layout of a trace."""
    if weights.shape[0] != n_examples:  # windows: one after another, block-diagonal
        n_windows = weights.shape[0] // n_examples
        return torch.block_diag(*weights[example * n_windows : (example + 1) * n_windows, head])
    whole = weights[example, head]
    if stack == "vision":
        return whole
    rows, keys = inputs.get("attention_mask"), inputs.get("attention_mask")
    if "decoder_input_ids" in inputs and stack in ("decoder", "cross"):
        rows = inputs.get("decoder_attention_mask")
        keys = rows if stack == "decoder" else inputs.get("attention_mask")
    whole = whole[rows[example].bool()] if rows is not None and rows.shape[1] == whole.shape[0] else whole
    whole = whole[:, keys[example].bool()] if keys is not None and keys.shape[1] == whole.shape[1] else whole
    if whole.shape != (record.n_queries, record.n_keys):  # sound: the mask counts samples, attention frames
        whole = whole[: record.n_queries, : record.n_keys]
    return whole


@pytest.mark.parametrize("name", NAMES)
def test_a_silenced_head_is_a_pruned_head(name):
    family = FAMILIES[name]
    inputs = family.inputs()
    model = build_model(family)
    # What the last layer of an image tower gives, a language model may leave unread.
    layers = [layer for layer in model.layout.layers if layer.site.stack != "vision" or "main" not in model.stacks]
    for layer in (layers[0], layers[-1]):
        head = layer.site.head(layer.n_heads - 1)
        pruned = copy.deepcopy(model.module)
        zero_columns(pruned.get_submodule(layer.out_projection), layer, head.index)
        other = Model(pruned)
        other.probe_if_new((), inputs)
        with other.session():
            expected = tensors(pruned(**inputs))
        # A module that serves several layers (ALBERT) is pruned in all of them.
        edits = [hs.silence(layer.site.head(head.index)) for layer in model.layout.of_module(layer.module)]
        with model.session(edits):
            outputs = tensors(model.module(**inputs))
        with model.session():
            before = tensors(model.module(**inputs))
        assert any((silenced - two).abs().max() > 1e-4 for silenced, two in zip(outputs, before, strict=True))
        for silenced, two in zip(outputs, expected, strict=True):
            assert (silenced - two).abs().max() <= 2e-5


def zero_columns(projection: nn.Module, layer, index: int) -> None:
    columns = slice(index * layer.value_dim, (index + 1) * layer.value_dim)
    with torch.no_grad():
        if type(projection).__name__ == "Conv1D":
            projection.weight[columns] = 0.0
        else:
            projection.weight[:, columns] = 0.0


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama", "mistral", "gemma2", "t5", "bart", "whisper"])
def test_tiles_agree_with_the_whole(name):
    family = FAMILIES[name]
    inputs = family.padded()
    model = build_model(family)
    with model.session(record="heads", exact=True) as whole:
        expected = real_rows(tensors(model.module(**inputs)), inputs)
    with model.session(record="heads", exact=False) as tiled:
        tiled_outputs = real_rows(tensors(model.module(**inputs)), inputs)
    for first, two in zip(tiled_outputs, expected, strict=True):
        assert (first - two).abs().max() <= 1e-4
    for site, captured in whole.captured.items():
        for first, two in zip(captured.records, tiled.captured[site].records, strict=True):
            for figure, values in first.summary.tensors().items():
                if figure != "argmax" and figure != "top_keys":
                    assert torch.allclose(values, two.summary.tensors()[figure], atol=1e-4), (site, figure)


@pytest.mark.parametrize("name", ["gpt2", "mistral", "bert", "t5"])
def test_without_the_mask_function_numbers_are_wrong(name, monkeypatch):
    """The negative control: if masks were dropped, the comparisons above would see it."""
    family = FAMILIES[name]
    inputs = family.padded()
    model = build_model(family)
    expected = real_rows(tensors(eager(family, inputs)), inputs)
    monkeypatch.setitem(ALL_MASK_ATTENTION_FUNCTIONS._global_mapping, seam.NAME, lambda *args, **kwargs: None)
    with model.session():
        outputs = real_rows(tensors(model.module(**inputs)), inputs)
    assert any((output - two).abs().max() > 1e-2 for output, two in zip(outputs, expected, strict=True))
    assert AttentionMaskInterface is not None


@pytest.mark.parametrize("name", ["gpt2", "bert", "llama", "vit"])
def test_outside_a_session_plain_sdpa_runs(name, monkeypatch):
    family = FAMILIES[name]
    model = build_model(family)
    calls = []
    real = torch.nn.functional.scaled_dot_product_attention

    def counting(*args, **kwargs):
        calls.append(1)
        return real(*args, **kwargs)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", counting)
    with torch.no_grad():
        model.module(**family.inputs())
    assert len(calls) == len(model.layout.layers)
    calls.clear()
    with model.session():
        model.module(**family.inputs())
    assert not calls
