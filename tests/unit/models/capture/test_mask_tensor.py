"""A mask in the place of a tensor, and models that compute with theirs."""

from typing import Any

import pytest
import torch
import transformers
from torch import Tensor, nn

import headscope as hs
from headscope.attention import Mask
from headscope.models import Model
from headscope.models.capture.mask_tensor import MaskTensor

LOWEST = torch.finfo(torch.float32).min
PADDED = torch.tensor([[1, 1, 1, 1, 1], [0, 0, 1, 1, 1]], dtype=torch.bool)
MASKS = {
    "causal": Mask.causal(5, 5),
    "padded": Mask(5, 5, stop=torch.arange(1, 6)[None], keys=PADDED, batch=2),
    "per head": Mask.from_dense(torch.rand(2, 3, 5, 5, generator=torch.Generator().manual_seed(0)) > 0.3),
    "everything": Mask(5, 5),
}


def pair(name: str) -> tuple[MaskTensor, Tensor]:
    """A mask as models get it, and the tensor that it stands for."""
    mask = MASKS[name]
    return MaskTensor(mask, torch.float32, "cpu"), torch.where(mask.materialise(), 0.0, LOWEST)


@pytest.mark.parametrize("name", MASKS)
def test_torch_treats_it_as_the_tensor_of_eager_attention(name):
    mask, dense = pair(name)
    scores = torch.randn(dense.shape)
    assert isinstance(mask, Tensor)
    assert (mask.shape, mask.dtype, mask.device, mask.ndim) == (dense.shape, dense.dtype, dense.device, 4)
    assert mask.size() == dense.shape and mask.size(-1) == 5 and mask.dim() == 4
    assert torch.equal(scores + mask, scores + dense)
    assert torch.equal(mask.bool(), dense.bool()) and torch.equal(mask == 0, dense == 0)
    assert torch.equal(torch.cat([mask, mask], -1), torch.cat([dense, dense], -1))
    assert torch.equal(mask.expand(2, 3, -1, -1), dense.expand(2, 3, -1, -1))
    assert bool(mask.all()) == bool(dense.all())
    assert torch.equal(nn.functional.pad(mask, (0, 2)), nn.functional.pad(dense, (0, 2)))
    assert torch.equal(mask.mT, dense.mT)
    with torch._C.DisableTorchFunctionSubclass():
        assert torch.equal(mask * 1, dense)


def test_it_stays_a_mask_while_it_is_passed_along():
    mask, dense = pair("causal")
    for whole in ((slice(None),) * 3 + (slice(None, 5),), (..., slice(0, 99)), slice(None), (...,)):
        assert mask[whole] is mask
    assert mask.to(torch.float32) is mask and mask.to(dtype=torch.float32) is mask and mask.contiguous() is mask
    moved = mask.to("cpu")
    assert isinstance(moved, MaskTensor) and torch.equal(moved.as_tensor(), dense)
    assert torch.equal(mask.to(torch.bool), dense.bool()) and torch.equal(mask.to(torch.float64), dense.double())
    assert torch.equal(mask[:, :, :, :3], dense[:, :, :, :3])
    assert torch.equal(mask[..., -1:, :], dense[..., -1:, :])
    turned = torch.tensor([4, 3, 2, 1, 0])
    assert torch.equal(mask[:, :, turned], dense[:, :, turned])


SIZES: dict[str, Any] = {
    "vocab_size": 99,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "pad_token_id": 1,
}
NLLB: dict[str, Any] = {
    "vocab_size": 99,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "num_experts": 4,
    "encoder_sparse_step": 2,
    "decoder_sparse_step": 2,
}


def built(class_name: str, **settings: Any) -> nn.Module:
    model_class: Any = getattr(transformers, class_name)
    torch.manual_seed(0)
    module = model_class._from_config(model_class.config_class(**settings), attn_implementation="eager").eval()
    for parameter in module.parameters():
        if parameter.ndim > 1 and parameter.is_floating_point():
            parameter.data.normal_(0, 0.2)
    return module


IDS = torch.arange(9)[None] * 7 + 8
VISION: dict[str, Any] = {
    "model_type": "siglip_vision_model",
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": 24,
    "patch_size": 8,
}
# Doge adds a bias to its mask, DeepSeek-V4 compressed keys; PaliGemma makes its mask before the language model does;
# the routers of NLLB-MoE take theirs for padding.
COMPUTING: dict[str, tuple[Any, dict[str, Tensor]]] = {
    "doge": (lambda: built("DogeForCausalLM", **SIZES, num_hidden_layers=2), {"input_ids": IDS}),
    "deepseek_v4": (lambda: built("DeepseekV4ForCausalLM", **SIZES, num_hidden_layers=4), {"input_ids": IDS}),
    "paligemma": (
        lambda: built(
            "PaliGemmaForConditionalGeneration",
            vision_config=VISION,
            text_config=SIZES | {"model_type": "gemma", "num_hidden_layers": 2},
            image_token_id=5,
            projection_dim=32,
        ),
        {
            "input_ids": torch.tensor([[5] * 9 + [0, 20, 30, 40]]),
            "pixel_values": torch.randn(1, 3, 24, 24, generator=torch.Generator().manual_seed(0)),
            "token_type_ids": torch.tensor([[0] * 11 + [1] * 2]),
        },
    ),
    "nllb_moe": (
        lambda: built("NllbMoeForConditionalGeneration", **NLLB),
        {"input_ids": IDS, "decoder_input_ids": IDS[:, :5]},
    ),
}


@pytest.mark.filterwarnings("ignore::headscope.errors.HeadscopeWarning")
@pytest.mark.parametrize("name", COMPUTING)
def test_models_that_compute_with_their_mask_compute_what_they_do_in_eager(name):
    build, inputs = COMPUTING[name]
    with torch.no_grad():
        expected = build()(**inputs, output_attentions=True)
    model = Model(build())
    trace = model.run(inputs=inputs, record="full")
    assert isinstance(trace, hs.Trace)
    assert torch.equal(trace.logits, expected.logits[0])  # type: ignore[arg-type]
    stack = "decoder" if name == "nllb_moe" else "main"
    layers = [layer for layer in model.layout.layers if f"{stack}_pool".startswith(layer.site.stack)]
    layers = [layer for layer in layers if "cross" not in layer.module]
    patterns = expected.decoder_attentions if name == "nllb_moe" else expected.attentions
    for layer, pattern in zip(layers, patterns, strict=True):
        assert (trace.patterns(layer.site) - pattern[0]).abs().max() < 1e-6
