"""Contributions are those of the projection that runs: with adapters, weight norm and quantised weights."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from tiny_models import FAMILIES, tiny_tokenizer
from torch import Tensor, nn
from torch.nn.utils import parametrizations, weight_norm
from transformers.pytorch_utils import Conv1D

import headscope as hs
from headscope.analysis.measures.copying import copying
from headscope.errors import HeadscopeError, InterventionError
from headscope.models import Model
from headscope.models.output_projection import OutputProjection

TEXT = "the cat sat on the mat"
PATH = "model.layers.1.self_attn.o_proj"


class LoraProjection(nn.Module):
    """As peft wraps a projection: the layer itself, and a product of low rank beside it."""

    def __init__(self, base_layer: nn.Linear):
        super().__init__()
        self.base_layer = base_layer
        self.lora_dropout = nn.ModuleDict({"default": nn.Dropout(0.5)})
        self.lora_A = nn.ModuleDict({"default": nn.Linear(base_layer.in_features, 2, bias=False)})
        self.lora_B = nn.ModuleDict({"default": nn.Linear(2, base_layer.out_features, bias=False)})

    @property
    def weight(self) -> Tensor:
        return self.base_layer.weight

    def forward(self, x: Tensor) -> Tensor:
        low = self.lora_A["default"](self.lora_dropout["default"](x))
        return self.base_layer(x) + 2.0 * self.lora_B["default"](low)


class LoraLinear(nn.Linear):
    """As loralib has it: a linear layer that adds to its weight as it runs."""

    def __init__(self, of: nn.Linear):
        super().__init__(of.in_features, of.out_features, bias=of.bias is not None)
        self.load_state_dict(of.state_dict())
        self.lora_A = nn.Parameter(torch.randn(2, of.in_features) / 4)
        self.lora_B = nn.Parameter(torch.randn(of.out_features, 2) / 4)

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input) + input @ self.lora_A.T @ self.lora_B.T


class Int8Linear(nn.Module):
    """Weights as bytes and a scale a row."""

    def __init__(self, of: nn.Linear):
        super().__init__()
        scale = of.weight.detach().abs().amax(1, keepdim=True) / 127
        self.register_buffer("weight", (of.weight.detach() / scale).round().to(torch.int8))
        self.register_buffer("scale", scale)

    def forward(self, x: Tensor) -> Tensor:
        return x @ (self.weight * self.scale).T  # type: ignore[operator]


class Cut(nn.Linear):
    """Linear by name only."""

    def __init__(self, of: nn.Linear):
        super().__init__(of.in_features, of.out_features, bias=False)

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input).relu()


def normed(of: nn.Linear) -> nn.Module:
    """Weight norm with a length of its own, as a parametrisation."""
    parametrized: Any = parametrizations.weight_norm(of)
    parametrized.parametrizations.weight.original0.data *= 1.7
    return parametrized


def old_normed(of: nn.Linear) -> nn.Module:
    """The same by the older hook, whose weight is made anew at each call."""
    with pytest.warns(FutureWarning):
        hooked: Any = weight_norm(of)
    hooked.weight_g.data *= 1.7
    return hooked


WRAPPERS: dict[str, Callable[[nn.Linear], nn.Module]] = {
    "lora": LoraProjection, "lora_linear": LoraLinear, "int8": Int8Linear, "normed": normed, "old_normed": old_normed,
}  # fmt: skip


def wrapped(wrapper: Callable[[nn.Linear], nn.Module]) -> Model:
    torch.manual_seed(0)
    module = FAMILIES["llama"].build()
    parent, _, leaf = PATH.rpartition(".")
    setattr(module.get_submodule(parent), leaf, wrapper(module.get_submodule(PATH)))  # type: ignore[arg-type]
    return Model(module.eval(), tiny_tokenizer())


def written_norms(model: Model, trace: hs.Trace) -> np.ndarray:
    """‖o_proj(v) − o_proj(0)‖ of every value by itself [head, key], as the module that runs computes it."""
    layer = next(layer for layer in model.layout.layers if layer.site.layer == 1)
    with model.session(grad=True) as session:
        model.module(input_ids=trace.inputs.model_inputs["input_ids"][None])  # type: ignore[union-attr]
    value: Any = session.captured[layer.site].value
    value = value[0].detach().repeat_interleave(layer.n_heads // layer.n_groups, 0)
    n_keys = value.shape[1]
    alone = torch.zeros(layer.n_heads, n_keys, layer.n_heads, layer.value_dim)
    for head in range(layer.n_heads):
        alone[head, :, head] = value[head]
    projection = model.module.get_submodule(PATH)
    with torch.no_grad():
        return (projection(alone.flatten(2)) - projection(torch.zeros(1, 1, alone[0, 0].numel()))).norm(dim=-1).numpy()


@pytest.mark.parametrize("name", WRAPPERS)
def test_contributions_are_those_of_the_module_that_runs(name):
    model = wrapped(WRAPPERS[name])
    trace = model.run(TEXT)
    norms = written_norms(model, trace)
    for head in range(norms.shape[0]):
        expected = trace.pattern(f"L1H{head}") * norms[head]
        assert np.allclose(trace.contribution(f"L1H{head}"), expected, rtol=1e-3, atol=1e-6)


def test_lora_is_neither_an_mlp_nor_left_out_of_what_attention_writes():
    model = wrapped(LoraProjection)
    assert model.layout.layers[1].out_projection == PATH
    plain = Model(FAMILIES["llama"].build(), tiny_tokenizer()).layout
    assert model.layout.neurons == plain.neurons
    down = "model.layers.1.mlp.down_proj"
    module = FAMILIES["llama"].build()
    module.get_submodule("model.layers.1.mlp").down_proj = LoraProjection(module.get_submodule(down))  # type: ignore
    assert Model(module.eval(), tiny_tokenizer()).layout.neurons == plain.neurons


def test_an_adapter_that_is_trained_further_is_read_anew():
    model = wrapped(LoraProjection)
    layer = model.layout.layers[1]
    before, _ = model.output_gram(layer)
    again, _ = model.output_gram(layer)
    assert again is before  # not run on the identity twice
    model.module.get_submodule(PATH).lora_B["default"].weight.data *= 3  # type: ignore[index]
    after, _ = model.output_gram(layer)
    assert before is not None and after is not None and not torch.allclose(before, after, rtol=1e-3)


def test_what_is_not_linear_is_refused_with_the_reason():
    trace = wrapped(Cut).run(TEXT)
    with pytest.raises(HeadscopeError, match=r"the output projection \(Cut\) is not linear"):
        trace.contribution("L1H0")
    assert trace.contribution("L0H0").shape == trace.pattern("L0H0").shape


def test_an_adapter_is_not_baked_into_the_weight_below_it(tmp_path):
    with pytest.raises(InterventionError, match="merge them into the weights first"):
        hs.bake(wrapped(LoraProjection), [hs.silence("L1H0")], tmp_path / "baked")


def test_copying_reads_adapters_too():
    plain = copying(Model(FAMILIES["llama"].build(), tiny_tokenizer()))
    assert copying(wrapped(LoraProjection))["L1H0"] != pytest.approx(plain["L1H0"], rel=1e-3)


@pytest.mark.parametrize("kind", ["linear", "conv"])
def test_a_plain_layer_is_not_run_and_hooks_of_others_count(kind, monkeypatch):
    module = nn.Linear(6, 4) if kind == "linear" else Conv1D(4, 6)
    weight = module.weight.detach() if kind == "linear" else module.weight.detach().T
    module.register_forward_hook(_ours)
    with monkeypatch.context() as patch:
        patch.setattr(type(module), "forward", _refuse)
        projection = OutputProjection(module, 6, torch.float32)
        assert projection.is_plain and torch.equal(projection.matrix(), weight)
    module.register_forward_hook(_doubling)
    doubled = OutputProjection(module, 6, torch.float32)
    assert not doubled.is_plain and torch.allclose(doubled.matrix(), 2 * weight, atol=1e-6)


def _doubling(module: nn.Module, inputs: Any, output: Tensor) -> Tensor:
    return 2 * output


def _ours(module: nn.Module, inputs: Any, output: Tensor) -> None:
    """A hook as sessions leave one in every projection that they watch."""


_ours.__module__ = "headscope.models.capture.hooks"


def _refuse(*_: Any) -> Tensor:
    raise AssertionError("a plain layer was run")
