"""Models whose attention cannot be read are told what was seen and what can be read."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor, nn
from torch.nn.attention.flex_attention import flex_attention
from torch.nn.functional import scaled_dot_product_attention

from headscope.errors import CaptureError
from headscope.models import Model


class Mixer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)

    def heads(self, x: Tensor) -> Tensor:
        return self.qkv(x).reshape(1, -1, 3, 2, 16).permute(2, 0, 3, 1, 4)


class HandAttention(Mixer):
    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.heads(x)
        weights = torch.exp(q @ k.transpose(-1, -2) / 4)
        return self.out((weights / weights.sum(-1, keepdim=True) @ v).transpose(1, 2).flatten(2))


class Mixing(HandAttention):
    """Without attention in its name."""


class FlexAttention(Mixer):
    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.heads(x)
        return self.out(flex_attention(q, k, v).transpose(1, 2).flatten(2))  # type: ignore[union-attr]


class SkippedAttention(Mixer):
    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.heads(x)
        return self.out(scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class Net(nn.Module):
    def __init__(self, mixer: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleList([mixer(), mixer()])
        self.is_skipping = mixer is SkippedAttention

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = x if self.is_skipping else x + layer(x)
        return x


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize(
    ("mixer", "message"),
    [
        (HandAttention, r"layers\.0 \(HandAttention\), layers\.1 \(HandAttention\) ran, but .* it calls exp"),
        (Mixing, r"layers\.0, layers\.1 call exp, which may be attention written by hand"),
        (FlexAttention, r"layers\.0 \(FlexAttention\), .* ran, but no softmax .* not a softmax .* flex_attention"),
        (SkippedAttention, r"layers\.0 \(SkippedAttention\), .* did not run.*model\.probe"),
        (lambda: nn.Linear(32, 32), r"no module of it is named attention.* It may have none"),
    ],
    ids=["by hand", "by hand without a name", "flex", "not run", "none"],
)
def test_attention_that_cannot_be_read_is_named_with_the_reason(mixer, message):
    with pytest.raises(CaptureError, match=message):
        Model(Net(mixer).eval()).probe(inputs={"x": torch.randn(1, 7, 32)})


def test_reformer_is_refused_by_the_names_of_its_attention():
    config = transformers.ReformerConfig(
        vocab_size=99,
        hidden_size=32,
        num_attention_heads=2,
        attention_head_size=16,
        feed_forward_size=32,
        attn_layers=["local", "lsh"],
        axial_pos_shape=(4, 4),
        axial_pos_embds_dim=(16, 16),
        is_decoder=True,
        lsh_attn_chunk_length=8,
        local_attn_chunk_length=8,
        max_position_embeddings=16,
        num_buckets=2,
    )
    with pytest.raises(CaptureError, match=r"LSHSelfAttention\) ran, but .* calls exp and logsumexp.* hashing"):
        Model(transformers.ReformerModelWithLMHead(config).eval())


def test_a_model_without_weights_is_refused():
    config = transformers.LlamaConfig(
        vocab_size=99, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4
    )
    with torch.device("meta"):
        module = transformers.LlamaForCausalLM(config)
    with pytest.raises(CaptureError, match="on the 'meta' device"):
        Model(module)


@pytest.mark.filterwarnings("ignore::headscope.errors.HeadscopeWarning")
@pytest.mark.parametrize("record", ["heads", "full"])
def test_rows_that_a_model_joins_to_one_example_are_refused(record):
    config = transformers.MusicgenDecoderConfig(
        vocab_size=16,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        ffn_dim=48,
        num_codebooks=2,
        pad_token_id=15,
        bos_token_id=15,
    )
    module: Any = transformers.MusicgenForCausalLM(config).eval()
    with pytest.raises(CaptureError, match="makes 1 example of the 2 rows of its input"):
        Model(module).run(inputs={"input_ids": torch.randint(0, 15, (2, 5))}, record=record)


def test_relative_positions_beside_the_scores_are_not_taken_for_them():
    config = transformers.SpeechT5Config(
        vocab_size=99,
        hidden_size=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        conv_dim=(16, 16),
        conv_kernel=(10, 3),
        conv_stride=(5, 2),
        num_conv_pos_embeddings=4,
        num_conv_pos_embedding_groups=4,
        is_encoder_decoder=True,
    )
    torch.manual_seed(0)
    module: Any = transformers.SpeechT5ForSpeechToText._from_config(config, attn_implementation="eager").eval()
    inputs = {"input_values": torch.randn(1, 400), "decoder_input_ids": torch.arange(5)[None] + 8}
    with torch.no_grad():
        expected = module(**inputs, output_attentions=True)
    model = Model(module)
    trace: Any = model.run(inputs=inputs, record="full")
    assert torch.equal(trace.logits, expected.logits[0])
    for number in range(2):
        for stack, patterns in (
            ("encoder", expected.encoder_attentions),
            ("decoder", expected.decoder_attentions),
            ("cross", expected.cross_attentions),
        ):
            assert (trace.patterns(f"{stack}.L{number}") - patterns[number][0]).abs().max() < 1e-6


@pytest.mark.parametrize("class_name", ["GraniteSWAForCausalLM", "GraniteMoeSWAForCausalLM"])
def test_sinks_that_a_model_takes_off_its_output_are_in_the_pattern_and_verified(class_name):
    model_class: Any = getattr(transformers, class_name)
    config = model_class.config_class(
        vocab_size=99,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        pad_token_id=1,
    )
    torch.manual_seed(0)
    module = model_class._from_config(config, attn_implementation="eager").eval()
    for parameter in module.parameters():
        if parameter.ndim > 1:
            parameter.data.normal_(0, 0.15)
    inputs = {"input_ids": torch.arange(9)[None] * 7 + 8}
    with torch.no_grad():
        expected = module(**inputs, output_attentions=True)
    model = Model(module)
    assert "verified, max difference" in model.coverage
    trace: Any = model.run(inputs=inputs, record="full")
    assert (trace.logits - expected.logits[0]).abs().max() < 1e-5
    pattern = trace.patterns("L1")
    assert bool((pattern.sum(-1) < 0.9).any())
    assert (pattern / pattern.sum(-1, keepdim=True) - expected.attentions[1][0]).abs().max() < 1e-5
