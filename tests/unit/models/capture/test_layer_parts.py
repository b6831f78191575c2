"""Layers that attend in several calls: one head a module, one window a call."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import AttentionInterface, Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration
from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import eager_attention_forward

import headscope as hs
from headscope.errors import CaptureError
from headscope.models import Model

# One head a module, as lectures and tutorials write it


class Head(nn.Module):
    """One head of causal self-attention."""

    def __init__(self, *, is_fused: bool) -> None:
        super().__init__()
        self.key, self.query, self.value = (nn.Linear(32, 8, bias=False) for _ in range(3))
        self.tril = nn.Buffer(torch.tril(torch.ones(16, 16)))
        self.is_fused = is_fused

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[1]
        k, q, v = self.key(x), self.query(x), self.value(x)
        if self.is_fused:
            return functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        weights = q @ k.transpose(-2, -1) * 8**-0.5
        weights = weights.masked_fill(self.tril[:length, :length] == 0, float("-inf"))
        return functional.softmax(weights, dim=-1) @ v


class MultiHead(nn.Module):
    def __init__(self, *, is_fused: bool) -> None:
        super().__init__()
        self.heads = nn.ModuleList([Head(is_fused=is_fused) for _ in range(4)])
        self.proj = nn.Linear(32, 32)

    def forward(self, x: Tensor) -> Tensor:
        return self.proj(torch.cat([head(x) for head in self.heads], dim=-1))


class Block(nn.Module):
    def __init__(self, *, is_fused: bool) -> None:
        super().__init__()
        self.sa = MultiHead(is_fused=is_fused)
        self.ffwd = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 32))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.sa(x)
        return x + self.ffwd(x)


class Lecture(nn.Module):
    """A character model with a module for every head."""

    def __init__(self, *, is_fused: bool = False) -> None:
        super().__init__()
        self.embed = nn.Embedding(40, 32)
        self.blocks = nn.Sequential(*[Block(is_fused=is_fused) for _ in range(2)])
        self.lm_head = nn.Linear(32, 40)

    def forward(self, idx: Tensor) -> Tensor:
        return self.lm_head(self.blocks(self.embed(idx)))


IDS = torch.tensor([[3, 14, 15, 9, 26, 5, 35]])


def lecture(*, is_fused: bool = False) -> Model:
    torch.manual_seed(0)
    module = Lecture(is_fused=is_fused).eval()
    for parameter in module.parameters():
        parameter.data.mul_(2)
    model = Model(module)
    model.probe(inputs={"idx": IDS})
    return model


def run(model: Model, inputs: dict[str, Any], interventions: list[Any] | None = None, **options: Any) -> hs.Trace:
    trace = model.run(None, interventions or [], inputs=inputs, **options)
    assert isinstance(trace, hs.Trace)
    return trace


def patterns_by_hand(module: nn.Module, block: int, stream: Tensor) -> Tensor:
    heads: Any = module.get_submodule(f"blocks.{block}.sa.heads")
    maps = []
    for head in heads:
        scores = head.query(stream) @ head.key(stream).transpose(-2, -1) * 8**-0.5
        maps.append(scores.masked_fill(head.tril[:7, :7] == 0, float("-inf")).softmax(-1))
    return torch.cat(maps)


@pytest.mark.parametrize("is_fused", [False, True], ids=["softmax", "sdpa"])
def test_modules_of_one_head_each_are_one_layer(is_fused):
    model = lecture(is_fused=is_fused)
    assert [str(layer.site) for layer in model.layout.layers] == ["L0", "L1"]
    assert [layer.n_heads for layer in model.layout.layers] == [4, 4]
    assert [layer.module for layer in model.layout.layers] == ["blocks.0.sa", "blocks.1.sa"]
    assert [layer.out_projection for layer in model.layout.layers] == ["blocks.0.sa.proj", "blocks.1.sa.proj"]
    assert not model.layout.combined
    assert not model.layout.missed
    trace = run(model, {"idx": IDS}, record="full")
    with torch.no_grad():
        assert (trace.logits - model.module(IDS)[0]).abs().max() < 1e-4  # type: ignore[operator]
        for block, stream in enumerate(trace.residuals["main"][:2]):
            expected = patterns_by_hand(model.module, block, stream[None])
            assert (trace.patterns(f"L{block}") - expected).abs().max() < 1e-6
    assert trace.layer("L1").is_causal
    assert trace.contribution("L1H2").shape == (7, 7)
    for record in ("rows", "summary"):
        summary = run(model, {"idx": IDS}, record=record).summary("L1H3")
        assert abs(summary.max - trace.patterns("L1")[3].amax(-1).numpy()).max() < 1e-6


@pytest.mark.parametrize("is_fused", [False, True], ids=["softmax", "sdpa"])
def test_an_edit_of_a_head_acts_on_its_module(is_fused):
    model = lecture(is_fused=is_fused)
    module = model.module
    weight: Any = module.get_submodule("blocks.1.sa.proj.weight".rpartition(".")[0]).weight
    before = weight.detach().clone()
    silenced = run(model, {"idx": IDS}, [hs.silence("L1H2")], record="full").logits
    with torch.no_grad():
        weight[:, 16:24] = 0.0
        expected = module(IDS)[0]
        weight.copy_(before)
    assert silenced is not None
    assert (silenced - expected).abs().max() < 1e-4

    query: Any = module.get_submodule("blocks.1.sa.heads.2.query")
    edited = run(model, {"idx": IDS}, [hs.set_neuron("L1H2", "query", 3, 1.5)], record="full")
    handle = query.register_forward_hook(
        lambda _, args, out: torch.cat([out[..., :3], out[..., 3:4] * 0 + 1.5, out[..., 4:]], -1)
    )
    with torch.no_grad():
        expected = module(IDS)[0]
    handle.remove()
    assert (edited.logits - expected).abs().max() < 1e-4  # type: ignore[operator]

    uniform = run(model, {"idx": IDS}, [hs.temperature("L1H3", 1e6)], record="full")
    plain = run(model, {"idx": IDS}, record="full")
    allowed = torch.tril(torch.ones(7, 7))
    assert (uniform.patterns("L1")[3] - allowed / allowed.sum(-1, keepdim=True)).abs().max() < 1e-4
    assert torch.equal(uniform.patterns("L1")[:3], plain.patterns("L1")[:3])
    gate = run(model, {"idx": IDS}, [hs.gate("L1", torch.tensor([1.0, 1.0, 0.0, 1.0]))], record="full").logits
    assert (gate - silenced).abs().max() < 1e-6  # type: ignore[operator]


def test_both_views_show_the_heads_of_a_layer(tmp_path):
    trace = run(lecture(), {"idx": IDS})
    for view in (hs.head_view(trace, "L1H2"), hs.model_view(trace)):
        assert "blocks" not in view.save(tmp_path / "page.html").read_text()[:100]


def test_layers_of_a_single_head_are_not_taken_for_heads():
    torch.manual_seed(0)
    module = nn.Module()
    layer = nn.TransformerEncoderLayer(16, 1, dim_feedforward=16, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False).eval()
    del module
    model = Model(encoder)
    model.probe(inputs={"src": torch.randn(1, 5, 16)})
    assert [(str(layer.site), layer.n_heads) for layer in model.layout.layers] == [("L0", 1), ("L1", 1), ("L2", 1)]


# Windows


def qwen() -> nn.Module:
    """Qwen2.5-VL with windows of 2 × 2 merged patches; block 1 attends to whole images."""
    config = Qwen2_5_VLConfig(
        text_config={
            "vocab_size": 99,
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [1, 1, 2]},
            "bos_token_id": 0,
            "eos_token_id": 1,
            "pad_token_id": 1,
        },
        vision_config={
            "depth": 3,
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_heads": 4,
            "out_hidden_size": 32,
            "patch_size": 4,
            "spatial_merge_size": 2,
            "temporal_patch_size": 2,
            "window_size": 16,
            "fullatt_block_indexes": [1],
        },
        image_token_id=5,
        video_token_id=6,
        vision_start_token_id=7,
        vision_end_token_id=8,
    )
    torch.manual_seed(0)
    module = Qwen2_5_VLForConditionalGeneration(config).eval()
    for parameter in module.parameters():
        if parameter.ndim > 1:
            parameter.data.normal_(0, 0.25)
    return module


def two_images() -> dict[str, Tensor]:
    """Images of 8 × 10 and 12 × 4 patches: 20 and 12 image tokens, windows of 16 and of 8 patches."""
    grid = torch.tensor([[1, 8, 10], [1, 12, 4]])
    n_patches = grid.prod(-1)
    ids = [7, *[5] * (int(n_patches[0]) // 4), 8, 20, 7, *[5] * (int(n_patches[1]) // 4), 8, 30, 31]
    pixels = torch.randn(int(n_patches.sum()), 3 * 2 * 4 * 4, generator=torch.Generator().manual_seed(1))
    types = [int(token == 5) for token in ids]
    return {
        "input_ids": torch.tensor([ids]),
        "pixel_values": pixels,
        "image_grid_thw": grid,
        "mm_token_type_ids": torch.tensor([types]),
    }


def one_window() -> dict[str, Tensor]:
    """An image of 4 × 4 patches, a single window."""
    ids = [7, 5, 5, 5, 5, 8, 30]
    return {
        "input_ids": torch.tensor([ids]),
        "pixel_values": torch.randn(16, 96, generator=torch.Generator().manual_seed(2)),
        "image_grid_thw": torch.tensor([[1, 4, 4]]),
        "mm_token_type_ids": torch.tensor([[int(token == 5) for token in ids]]),
    }


def eager_windows(inputs: dict[str, Tensor]) -> tuple[dict[int, list[Tensor]], Tensor]:
    """The patterns of every window by block, as the model's own eager code computes them, and the logits."""
    module: Any = qwen()
    windows: dict[int, list[Tensor]] = {}
    blocks = {id(block.attn): number for number, block in enumerate(module.model.visual.blocks)}

    def watched(attention: nn.Module, *args: Any, **options: Any) -> tuple[Tensor, Tensor]:
        mixed, pattern = eager_attention_forward(attention, *args, **options)
        windows.setdefault(blocks[id(attention)], []).append(pattern[0])
        return mixed, pattern

    AttentionInterface.register("windows_test", watched)
    module.set_attn_implementation({"vision_config": "windows_test", "text_config": "eager"})
    with torch.no_grad():
        logits = module(**inputs).logits
    return windows, logits[0]


@pytest.mark.parametrize("first", [one_window, two_images], ids=["probed with one window", "probed with many"])
def test_windows_are_one_block_diagonal_pattern_whatever_was_probed(first):
    windows, logits = eager_windows(two_images())
    assert [len(windows[block]) for block in (0, 1, 2)] == [9, 2, 9]
    model = Model(qwen())
    model.probe(inputs=first())
    vision = [layer for layer in model.layout.layers if layer.site.stack == "vision"]
    assert [str(layer.site) for layer in vision] == ["vision.L0", "vision.L1", "vision.L2"]
    assert [layer.n_heads for layer in vision] == [4, 4, 4]
    assert [layer.out_projection for layer in vision] == [
        f"model.visual.blocks.{block}.attn.proj" for block in range(3)
    ]
    assert not model.layout.combined
    trace = run(model, two_images(), record="full")
    assert torch.equal(trace.logits, logits)  # type: ignore[arg-type]
    for block in range(3):
        layer = trace.layer(f"vision.L{block}")
        assert (layer.n_queries, layer.n_keys, layer.is_causal) == (128, 128, False)
        for head in range(4):
            expected = torch.block_diag(*[pattern[head] for pattern in windows[block]])
            got = trace.patterns(f"vision.L{block}")[head]
            assert torch.equal(got > 0, expected > 0)
            assert (got - expected).abs().max() < 1e-6
    summary = run(model, two_images(), record="summary").summary("vision.L0H1")
    assert abs(summary.max - trace.patterns("vision.L0")[1].amax(-1).numpy()).max() < 1e-6


def test_windows_in_tiles_have_the_same_summaries():
    model = Model(qwen())
    model.probe(inputs=two_images())
    trace = run(model, two_images(), record="heads")
    with model.session(record="heads", exact=False) as session:
        model.module(**two_images())
    for layer in (layer for layer in model.layout.layers if layer.site.stack == "vision"):
        tiled = session.captured[layer.site].records[0]
        assert (tiled.patterns() - trace.layers[layer.site].patterns()).abs().max() < 1e-4
        assert (tiled.summary.entropy - trace.layers[layer.site].summary.entropy).abs().max() < 1e-4


def test_a_head_of_a_tower_with_windows_is_silenced_in_all_of_them():
    model = Model(qwen())
    model.probe(inputs=one_window())
    edited = run(model, two_images(), [hs.silence("vision.L0H1")], record="full").logits
    projection: Any = model.module.get_submodule("model.visual.blocks.0.attn.proj")
    with torch.no_grad():
        projection.weight[:, 8:16] = 0.0
        expected = model.module(**two_images()).logits[0]
    assert (edited - expected).abs().max() < 2e-5  # type: ignore[operator]


class Looped(nn.Module):
    """A tower of one's own that attends within each of several images."""

    def __init__(self, *, is_fused: bool) -> None:
        super().__init__()
        self.layers = nn.ModuleList([LoopedAttention(is_fused=is_fused) for _ in range(2)])

    def forward(self, patches: Tensor, sizes: list[int]) -> Tensor:
        for layer in self.layers:
            patches = patches + layer(patches, sizes)
        return patches


class LoopedAttention(nn.Module):
    def __init__(self, *, is_fused: bool) -> None:
        super().__init__()
        self.qkv, self.proj, self.is_fused = nn.Linear(16, 48), nn.Linear(16, 16), is_fused

    def forward(self, patches: Tensor, sizes: list[int]) -> Tensor:
        outs = []
        for image in patches.split(sizes):
            q, k, v = self.qkv(image).reshape(1, len(image), 3, 2, 8).permute(2, 0, 3, 1, 4)
            if self.is_fused:
                mixed = functional.scaled_dot_product_attention(q, k, v)
            else:
                mixed = (q @ k.transpose(-1, -2) * 8**-0.5).softmax(-1) @ v
            outs.append(mixed.transpose(1, 2).reshape(len(image), 16))
        return self.proj(torch.cat(outs))


@pytest.mark.parametrize("is_fused", [False, True], ids=["softmax", "sdpa"])
def test_images_in_a_loop_of_ones_own_are_one_layer(is_fused):
    torch.manual_seed(0)
    model = Model(Looped(is_fused=is_fused).eval())
    inputs = {"patches": torch.randn(9, 16), "sizes": [4, 2, 3]}
    with torch.no_grad():
        expected = model.module(**inputs)
    model.probe(inputs=inputs)
    assert [str(layer.site) for layer in model.layout.layers] == ["L0", "L1"]
    assert [layer.out_projection for layer in model.layout.layers] == ["layers.0.proj", "layers.1.proj"]
    with model.session(record="heads") as session:
        assert (model.module(**inputs) - expected).abs().max() < 1e-6
    captured = [session.captured[layer.site].records[0].patterns() for layer in model.layout.layers]
    q, k, _ = model.module.layers[0].qkv(inputs["patches"]).reshape(9, 3, 2, 8).permute(1, 2, 0, 3)  # type: ignore[index]
    blocks = [
        (q[:, images] @ k[:, images].transpose(-1, -2) * 8**-0.5).softmax(-1)
        for images in (slice(0, 4), slice(4, 6), slice(6, 9))
    ]
    for head in range(2):
        assert (captured[0][head] - torch.block_diag(*[block[head] for block in blocks])).abs().max() < 1e-6


@pytest.mark.parametrize("is_fused", [False, True], ids=["softmax", "sdpa"])
def test_more_images_than_the_probe_saw_are_refused_rather_than_lost(is_fused):
    torch.manual_seed(0)
    model = Model(Looped(is_fused=is_fused).eval())
    model.probe(inputs={"patches": torch.randn(4, 16), "sizes": [4]})
    with pytest.raises(CaptureError, match="attends more often"), model.session(record="heads"):
        model.module(patches=torch.randn(9, 16), sizes=[4, 5])
