"""Models in which some layers alone have softmax attention: layers keep the numbers that the model gives them."""

import warnings
from typing import Any

import pytest
import torch
from tiny_models import tiny
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM

import headscope as hs
from headscope.cli.coverage_table import coverage
from headscope.errors import UnknownHeadError
from headscope.models import Model
from headscope.sites import Site
from headscope.views.trace_part import trace_part

SIZES: dict[str, Any] = {
    "vocab_size": 99,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
}
DELTA_NET = {
    "linear_num_value_heads": 4,
    "linear_num_key_heads": 2,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
MAMBA_2 = {"mamba_n_heads": 4, "mamba_d_head": 16, "mamba_n_groups": 1, "mamba_d_state": 8}
ZAMBA = {
    "num_hidden_layers": 6,
    "layers_block_type": ["mamba", "hybrid", "mamba", "mamba", "hybrid", "mamba"],
    "attention_head_dim": 16,
}
ALTERNATING = ["linear_attention", "full_attention"] * 2

# Settings, numbers of the layers with attention, number of layers, class of the others.
HYBRIDS: dict[str, tuple[dict[str, Any], list[int], int, str]] = {
    "qwen3_next": (
        {"num_hidden_layers": 8, **DELTA_NET, **EXPERTS, "shared_expert_intermediate_size": 16},
        [3, 7],
        8,
        "Qwen3NextGatedDeltaNet",
    ),
    "qwen3_5_text": ({"num_hidden_layers": 4, **DELTA_NET}, [3], 4, "Qwen3_5GatedDeltaNet"),
    "lfm2": ({"num_hidden_layers": 6, "full_attn_idxs": [2, 4]}, [2, 4], 6, "Lfm2ShortConv"),
    "granitemoehybrid": (
        {
            "num_hidden_layers": 4,
            "layer_types": ["mamba", "attention"] * 2,
            "num_local_experts": 0,
            "shared_intermediate_size": 48,
            **MAMBA_2,
        },
        [1, 3],
        4,
        "GraniteMoeHybridMambaLayer",
    ),
    "jamba": (
        {
            "num_hidden_layers": 4,
            "attn_layer_period": 2,
            "attn_layer_offset": 1,
            "num_experts": 2,
            "num_experts_per_tok": 1,
            "mamba_d_state": 4,
            "mamba_dt_rank": 4,
        },
        [1, 3],
        4,
        "JambaMambaMixer",
    ),
    "zamba": (ZAMBA | {"n_mamba_heads": 2, "mamba_d_state": 4, "mamba_dt_rank": 4}, [1, 4], 6, "ZambaMambaMixer"),
    "zamba2": (
        ZAMBA | {"n_mamba_heads": 4, "mamba_headdim": 16, "mamba_ngroups": 1, "mamba_d_state": 8, "num_mem_blocks": 1},
        [1, 4],
        6,
        "Zamba2MambaMixer",
    ),
    "bamba": ({"num_hidden_layers": 4, "attn_layer_indices": [1, 3], **MAMBA_2}, [1, 3], 4, "BambaMixer"),
    "minimax": (
        {
            "num_hidden_layers": 4,
            "layer_types": ALTERNATING,
            "num_local_experts": 2,
            "num_experts_per_tok": 1,
            "block_size": 4,
        },
        [1, 3],
        4,
        "MiniMaxLightningAttention",
    ),
}


def module_of(name: str) -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        config = AutoConfig.for_model(name, **SIZES, **HYBRIDS[name][0])
        return tiny(lambda config: AutoModelForCausalLM.from_config(config), config, std=0.1)


def inputs() -> dict[str, Any]:
    return {"input_ids": torch.arange(9)[None] * 7 + 8}


def run(model: Model, interventions: list[Any] | None = None) -> hs.Trace:
    trace = model.run(None, interventions or [], inputs=inputs(), record="full")
    assert isinstance(trace, hs.Trace)
    return trace


@pytest.mark.parametrize("name", HYBRIDS)
def test_layers_of_a_hybrid_keep_the_numbers_of_its_blocks(name):
    _, attending, n_layers, mixer = HYBRIDS[name]
    module = module_of(name)
    with torch.no_grad():
        expected = module(**inputs(), output_attentions=True)
    model = Model(module)
    assert [layer.site for layer in model.layout.layers] == [Site("main", number) for number in attending]
    for layer in model.layout.layers:
        assert f"layers.{layer.site.layer}." in layer.module
    gaps = [number for number in range(n_layers) if number not in attending]
    assert [(other.site.layer, other.mixer) for other in model.layout.other_layers] == [(gap, mixer) for gap in gaps]
    assert not model.layout.missed
    which = f"layer{'s' * (len(attending) > 1)} {', '.join(map(str, attending))}"
    assert f"{len(attending)} of {n_layers} layers ha" in model.coverage
    assert f"softmax attention ({which}); the others: {mixer}" in model.coverage
    trace = run(model)
    patterns = [pattern for pattern in expected.attentions if pattern is not None and pattern.shape[-2:] == (9, 9)]
    for number, pattern in zip(attending, patterns, strict=True):
        assert (trace.patterns(f"L{number}") - pattern[0]).abs().max() < 1e-6
    assert trace.residuals["main"].shape == (n_layers + 1, 9, 32)
    assert list(trace.other_layers.items()) == [(Site("main", gap), mixer) for gap in gaps]


def test_residuals_and_neurons_of_layers_without_attention_can_be_read_and_edited():
    module = module_of("qwen3_5_text")
    seen: dict[str, torch.Tensor] = {}
    layers: Any = module.get_submodule("model.layers")
    model = Model(module)
    layers[1].register_forward_hook(lambda _, args, out: seen.update(residual=args[0]))
    layers[1].mlp.down_proj.register_forward_pre_hook(lambda _, args: seen.update(neurons=args[0]))
    trace = run(model)
    assert torch.equal(trace.tensor("residual", "L1"), seen["residual"][0])
    assert torch.equal(trace.tensor("neurons", "L1"), seen["neurons"][0])
    run(model, [hs.set_neuron("L1", "mlp", 5, 2.5)])
    assert bool((seen["neurons"][0, :, 5] == 2.5).all())


def test_a_silenced_head_of_a_hybrid_is_that_of_the_block_with_its_number():
    module = module_of("lfm2")
    model = Model(module)
    edited = run(model, [hs.silence("L4H2")])
    projection: Any = module.get_submodule("model.layers.4.self_attn.out_proj")
    with torch.no_grad():
        projection.weight[:, 16:24] = 0.0
        expected = module(**inputs()).logits[0]
    assert (edited.logits - expected).abs().max() < 1e-6


def test_a_layer_without_attention_is_refused_by_the_numbers_that_there_are():
    model = Model(module_of("lfm2"))
    with pytest.raises(UnknownHeadError, match=r"the heads are L2H0 to L4H3 \(layers 2, 4\)"):
        run(model, [hs.silence("L3H0")])


def test_pages_files_and_coverage_know_the_layers_without_attention(tmp_path):
    model = Model(module_of("lfm2"))
    trace = run(model)
    loaded = hs.load_trace(trace.save(tmp_path / "trace"))
    assert loaded.other_layers == trace.other_layers
    props = trace_part(loaded).props
    assert [(layer.layer, layer.site) for layer in props.layers] == [(2, "L2"), (4, "L4")]
    assert [(other.stack, other.layer, other.mixer) for other in props.other_layers] == [
        ("main", number, "Lfm2ShortConv") for number in (0, 1, 3, 5)
    ]
    assert [other["module"] for other in coverage(model)["other_layers"]] == [
        f"model.layers.{number}.conv" for number in (0, 1, 3, 5)
    ]
    activations = model.activations(trace)
    assert [site.layer for site in activations.layers] == list(range(6))


class SharedAttention(nn.Module):
    """Blocks 1 and 3 of five attend, with one module."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(99, 16)
        shared = nn.MultiheadAttention(16, 2, batch_first=True)
        self.layers = nn.ModuleList(Block(shared if index in (1, 3) else None) for index in range(5))

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        hidden = self.embed(input_ids)
        for layer in self.layers:
            hidden = layer(hidden)
        return hidden


class Block(nn.Module):
    def __init__(self, attention: nn.Module | None) -> None:
        super().__init__()
        self.mix = nn.Linear(16, 16)
        self.attention = attention

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        if self.attention is not None:
            hidden = hidden + self.attention(hidden, hidden, hidden)[0]
        return hidden + self.mix(hidden)


def test_one_module_called_in_several_blocks_is_numbered_by_the_blocks_that_call_it():
    torch.manual_seed(0)
    model = Model(SharedAttention().eval())
    model.probe(inputs={"input_ids": torch.arange(6)[None]})
    assert [str(layer.site) for layer in model.layout.layers] == ["L1", "L3"]
    assert [layer.module for layer in model.layout.layers] == ["layers.1.attention"] * 2
    trace = run(model)
    assert (trace.patterns("L1") - trace.patterns("L3")).abs().max() > 1e-4
