"""Tiny random-weight models of every family we cover, with inputs and what a probe should find in them.

Everything is made from configurations, so nothing is downloaded. Sizes differ wherever two axes could be
confused (stacks of 2 and 3 layers, 11 source and 9 target tokens), windows are shorter than the sequence, and
weights are large enough for patterns to be far from uniform: a wrong mask, bias or head shows in the numbers.
"""

import math
import re
import string
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
import transformers as hf
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from torch import Tensor, nn
from transformers.utils.generic import ModelOutput

Inputs = dict[str, Tensor]
Patterns = dict[str, list[Tensor | None]]
Build = Callable[[], nn.Module]
Settings = dict[str, Any]
Stacks = dict[str, tuple[int, int | tuple[int, ...]]]
Way = Literal["routed", "traced", "weights"]

VOCABULARY, N_HEADS, N_LAYERS = 99, 4, 2
LENGTH, TARGET_LENGTH, N_PADS = 11, 9, 3
IMAGE_SIZE, PATCH_SIZE = 24, 8  # 9 patches
BOS, PAD, EOS, UNK, MASK, IMAGE = range(6)
FIRST_WORD = 6


@dataclass(frozen=True)
class Family:
    """One architecture: how to build it, what to feed it, and what the probe should report."""

    name: str
    build: Build
    """Same weights at every call; evaluation mode, fp32, eager attention."""
    inputs: Callable[[], Inputs]
    """Batch of 2 without padding, and without masks."""
    padded: Callable[[], Inputs] | None
    """The same batch, row 1 alone being padded: what is computed for row 0 stays. None for images alone."""
    way: Way
    """The way in we expect the probe to choose."""
    stacks: Stacks
    """Stack -> (layers, heads), with heads per layer where they differ; "cross" is cross-attention."""
    attentions: Callable[[Any], Patterns] | None
    """Reads a result of `output_attentions=True`: stack -> weights per layer. A layer that is not returned is
    None in the list, a stack that is not returned is absent. None if nothing is returned."""


# Weights and inputs


def model(class_name: str, settings: Settings, *, std: float = 0.25, **more: Any) -> Build:
    """A builder of that Transformers class; looked up by name so that a test imports its own family only."""

    def build() -> nn.Module:
        with warnings.catch_warnings():
            # DeBERTa's module is decorated with it; nothing we can change.
            warnings.filterwarnings("ignore", "`torch.jit.script` is deprecated")
            model_class = getattr(hf, class_name)
        return tiny(model_class, model_class.config_class(**settings, **more), std=std)

    return build


def tiny(model_class: Callable[..., nn.Module], config: Any, *, std: float = 0.25) -> nn.Module:
    """The model of `config` in eager attention, with seeded weights."""
    config._attn_implementation = "eager"
    torch.manual_seed(0)
    return enliven(model_class(config=config), std=std)


def enliven(module: nn.Module, *, std: float = 0.25) -> nn.Module:
    """Redraw the weights so that attention is peaked and no bias, sink or relative-position table is zero."""
    generator = torch.Generator().manual_seed(1)
    for name, parameter in module.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        if parameter.ndim == 0 or not parameter.requires_grad:  # logit scales, sinusoidal tables
            continue
        with torch.no_grad():
            if "relative" in name or "sinks" in name:
                parameter.copy_(noise)
            elif parameter.ndim == 1:
                parameter.add_(0.05 * noise)
            else:
                parameter.copy_(std * noise)
    return module.eval()


def tokens(length: int = LENGTH, *, seed: int = 0) -> Tensor:
    """Ids `[2, length]` of ordinary words."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(FIRST_WORD, VOCABULARY, (2, length), generator=generator)


def signal(*shape: int, seed: int = 0) -> Tensor:
    """Pixels, spectrogram frames or samples `[2, *shape]`."""
    return torch.randn(2, *shape, generator=torch.Generator().manual_seed(seed))


def pad(inputs: Inputs, *, side: Literal["left", "right"] = "right", prefix: str = "") -> Inputs:
    """`inputs` with the last (or first) tokens of row 1 replaced by padding, and the mask that says so."""
    ids = inputs[f"{prefix}input_ids"]
    is_padding = torch.zeros_like(ids, dtype=torch.bool)
    is_padding[1, slice(-N_PADS, None) if side == "right" else slice(N_PADS)] = True
    padded = ids.masked_fill(is_padding, PAD)
    return inputs | {f"{prefix}input_ids": padded, f"{prefix}attention_mask": (~is_padding).long()}


def pad_target(inputs: Inputs) -> Inputs:
    """Right padding on the decoder's side."""
    return pad(inputs, prefix="decoder_")


def text() -> Inputs:
    """One sentence per row."""
    return {"input_ids": tokens()}


def text_pair() -> Inputs:
    """A source and a shorter target."""
    return {"input_ids": tokens(), "decoder_input_ids": tokens(TARGET_LENGTH, seed=1)}


def image() -> Inputs:
    """One image per row."""
    return {"pixel_values": signal(3, IMAGE_SIZE, IMAGE_SIZE)}


def image_and_text() -> Inputs:
    """An image and its caption."""
    return image() | {"input_ids": tokens(TARGET_LENGTH)}


def image_to_text() -> Inputs:
    """An image and the caption to be produced."""
    return image() | {"decoder_input_ids": tokens(TARGET_LENGTH)}


# Reading output_attentions


def read_main(output: Any) -> Patterns:
    """Attention of a model with one stack."""
    return {"main": list(output.attentions)}


def read_seq2seq(output: Any) -> Patterns:
    """Attention of an encoder-decoder."""
    return {
        "encoder": list(output.encoder_attentions),
        "decoder": list(output.decoder_attentions),
        "cross": list(output.cross_attentions),
    }


def read_towers(output: Any) -> Patterns:
    """Attention of a model with an image and a text tower."""
    return {
        "vision": list(output.vision_model_output.attentions),
        "text": list(output.text_model_output.attentions),
    }


def read_vision(output: Any) -> Patterns:
    """BLIP returns what its image tower saw, and drops the text decoder's."""
    return {"vision": list(output.attentions)}


def read_swin(output: Any) -> Patterns:
    """Swin returns the last of the two blocks of each stage."""
    return {"main": [block for last in output.attentions for block in (None, last)]}


def read_longformer(output: Any) -> Patterns:
    """Weights in Longformer's own layout, not by position.

    "main" is `[batch, head, query, n_global + window + 1]`: global keys, then a band centred on the query;
    zero if the query itself is global. "global" is `[batch, head, key, n_global]`: the rows of the global
    queries, with keys up to the end of the last window.
    """
    return {"main": list(output.attentions), "global": list(output.global_attentions)}


# Shapes of families

SEQ2SEQ: Stacks = {
    "encoder": (N_LAYERS, N_HEADS),
    "decoder": (N_LAYERS + 1, N_HEADS),
    "cross": (N_LAYERS + 1, N_HEADS),
}
TOWERS: Stacks = {"vision": (N_LAYERS, N_HEADS), "text": (N_LAYERS + 1, N_HEADS)}


def encoder(name: str, build: Build, *, way: Way = "routed", layers: int = N_LAYERS) -> Family:
    """A text encoder, padded on the right."""
    return Family(name, build, text, lambda: pad(text()), way, {"main": (layers, N_HEADS)}, read_main)


def decoder(name: str, build: Build, *, way: Way = "routed", layers: int = N_LAYERS) -> Family:
    """A causal language model, padded on the left."""
    stacks: Stacks = {"main": (layers, N_HEADS)}
    return Family(name, build, text, lambda: pad(text(), side="left"), way, stacks, read_main)


def seq2seq(name: str, build: Build, inputs: Callable[[], Inputs] = text_pair) -> Family:
    """An encoder-decoder, padded on the right: the target, and the source if it is text."""

    def pad_both() -> Inputs:
        unpadded = inputs()
        return pad_target(pad(unpadded) if "input_ids" in unpadded else unpadded)

    return Family(name, build, inputs, pad_both, "routed", SEQ2SEQ, read_seq2seq)


def vision(name: str, build: Build) -> Family:
    """An image encoder: nothing to pad."""
    return Family(name, build, image, None, "routed", {"main": (N_LAYERS, N_HEADS)}, read_main)


def towers(name: str, build: Build) -> Family:
    """An image tower and a text tower side by side."""
    return Family(name, build, image_and_text, lambda: pad(image_and_text()), "routed", TOWERS, read_towers)


# Configurations

VOCAB: Settings = {
    "vocab_size": VOCABULARY,
    "pad_token_id": PAD,
    "bos_token_id": BOS,
    "eos_token_id": EOS,
}
SIZES: Settings = {
    "hidden_size": 32,
    "num_hidden_layers": N_LAYERS,
    "num_attention_heads": N_HEADS,
    "intermediate_size": 48,
}
TEXT: Settings = {**VOCAB, **SIZES, "max_position_embeddings": 32}
GROUPED: Settings = {**TEXT, "num_key_value_heads": 2, "head_dim": 8}
EXPERTS: Settings = {"num_local_experts": 4, "num_experts_per_tok": 2}
PIXELS: Settings = {**SIZES, "image_size": IMAGE_SIZE, "patch_size": PATCH_SIZE}
ENCODER_DECODER: Settings = {
    **VOCAB,
    "d_model": 32,
    "encoder_layers": N_LAYERS,
    "decoder_layers": N_LAYERS + 1,
    "encoder_attention_heads": N_HEADS,
    "decoder_attention_heads": N_HEADS,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "decoder_start_token_id": BOS,
}
TRANSLATION: Settings = {**ENCODER_DECODER, "max_position_embeddings": 32}
XLM: Settings = {**VOCAB, "emb_dim": 32, "n_layers": N_LAYERS, "n_heads": N_HEADS}
GPT: Settings = {**VOCAB, "n_positions": 32, "n_embd": 32, "n_layer": N_LAYERS, "n_head": N_HEADS}
DEEPER: Settings = {"num_hidden_layers": N_LAYERS + 1}
DEEPER_GPT: Settings = {"n_layer": N_LAYERS + 1}


def sliding(*windowed: bool) -> list[str]:
    """Layer types: a window where True, the whole sequence where False."""
    return ["sliding_attention" if is_windowed else "full_attention" for is_windowed in windowed]


def two_halves(class_name: str, encoder: Callable[[], Any], decoder: Callable[[], Any]) -> Build:
    """A builder of two models' configurations joined by new cross-attention."""

    def build() -> nn.Module:
        model_class = getattr(hf, class_name)
        config = model_class.config_class.from_encoder_decoder_configs(encoder(), decoder())
        return tiny(model_class, config, std=0.35)

    return build


def llava() -> nn.Module:
    """CLIP's image tower feeding a Llama; patches take the place of image tokens."""
    config = hf.LlavaConfig(
        vision_config=hf.CLIPVisionConfig(**PIXELS),
        text_config=hf.LlamaConfig(**(GROUPED | DEEPER)),
        image_token_index=IMAGE,
        image_seq_length=9,
    )
    return tiny(hf.LlavaForConditionalGeneration, config)


def speech_to_text() -> Inputs:
    """A spectrogram (always full: Whisper has no mask for it) and the transcript to be produced."""
    return {"input_features": signal(8, 2 * LENGTH), "decoder_input_ids": tokens(TARGET_LENGTH)}


def padded_speech() -> Inputs:
    """The same 120 samples, the last 35 of row 1 being silence: 11 and 7 frames."""
    samples = signal(120)
    is_heard = torch.ones(2, 120, dtype=torch.long)
    is_heard[1, -35:] = 0
    return {"input_values": samples * is_heard, "attention_mask": is_heard}


def text_with_global() -> Inputs:
    """A sentence whose first token attends, and is attended, everywhere."""
    is_global = torch.zeros(2, LENGTH, dtype=torch.long)
    is_global[:, 0] = 1
    return text() | {"global_attention_mask": is_global}


def text_with_image() -> Inputs:
    """Three words, nine patches, five words."""
    words = tokens(8)
    patches = torch.full((2, 9), IMAGE)
    return image() | {"input_ids": torch.cat([words[:, :3], patches, words[:, 3:]], dim=1)}


# Models no library knows


def split_heads(projected: Tensor) -> list[Tensor]:
    """Query, key and value `[batch, head, token, 8]` of one fused projection."""
    return [part.unflatten(-1, (N_HEADS, 8)).transpose(1, 2) for part in projected.chunk(3, dim=-1)]


class TokenMixer(nn.Module):
    """Attention spelled out, in a module whose name does not tell."""

    def __init__(self) -> None:
        super().__init__()
        self.to_qkv = nn.Linear(32, 3 * 32)
        self.merge = nn.Linear(32, 32)

    def forward(self, hidden: Tensor, is_real: Tensor | None) -> tuple[Tensor, Tensor]:
        """Mixed tokens and the pattern `[batch, head, query, key]`."""
        q, k, v = split_heads(self.to_qkv(hidden))
        scores = q @ k.transpose(-2, -1) / math.sqrt(8)
        if is_real is not None:
            scores = scores.masked_fill(~is_real[:, None, None, :], float("-inf"))
        pattern = scores.softmax(-1)
        return self.merge((pattern @ v).transpose(1, 2).flatten(2)), pattern


class CausalSelfAttention(nn.Module):
    """Attention as in nanoGPT: fused projection, then scaled_dot_product_attention."""

    def __init__(self) -> None:
        super().__init__()
        self.c_attn = nn.Linear(32, 3 * 32)
        self.c_proj = nn.Linear(32, 32)

    def forward(self, hidden: Tensor, is_real: Tensor | None) -> tuple[Tensor, None]:
        """Mixed tokens."""
        q, k, v = split_heads(self.c_attn(hidden))
        if is_real is None:
            mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            is_past = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool).tril()
            is_seen = is_past & is_real[:, None, None, :]
            mixed = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=is_seen)
        return self.c_proj(mixed.transpose(1, 2).flatten(2)), None


class MultiheadMixer(nn.Module):
    """torch's own attention module."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(32, N_HEADS, batch_first=True)

    def forward(self, hidden: Tensor, is_real: Tensor | None) -> tuple[Tensor, Tensor]:
        """Mixed tokens and the pattern `[batch, head, query, key]`."""
        ignored = None if is_real is None else ~is_real
        return self.attention(hidden, hidden, hidden, key_padding_mask=ignored, average_attn_weights=False)


class HomeMade(nn.Module):
    """A model of nothing but mixers, which returns the patterns they give."""

    def __init__(self, mixer: Build, n_layers: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, 32)
        self.layers = nn.ModuleList(mixer() for _ in range(n_layers))
        self.unembed = nn.Linear(32, VOCABULARY)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, output_attentions: bool = False
    ) -> ModelOutput:
        """Logits, and the patterns if asked for."""
        is_real = None if attention_mask is None else attention_mask.bool()
        hidden, patterns = self.embed(input_ids), ()
        for layer in self.layers:
            mixed, pattern = layer(nn.functional.layer_norm(hidden, (32,)), is_real)
            hidden, patterns = hidden + mixed, (*patterns, pattern)
        return ModelOutput(logits=self.unembed(hidden), attentions=patterns if output_attentions else None)


class TorchEncoder(nn.Module):
    """torch's own encoder; without gradients or hooks, its fused path calls no attention module at all."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, 32)
        layer = nn.TransformerEncoderLayer(32, N_HEADS, dim_feedforward=48, batch_first=True)
        # Nested tensors would drop the padded columns, and warn that they are a prototype.
        self.encoder = nn.TransformerEncoder(layer, N_LAYERS, enable_nested_tensor=False)
        self.unembed = nn.Linear(32, VOCABULARY)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Logits, as a bare tensor."""
        ignored = None if attention_mask is None else attention_mask == 0
        return self.unembed(self.encoder(self.embed(input_ids), src_key_padding_mask=ignored))


def seeded(make: Build) -> Build:
    """A builder with seeded weights."""

    def build() -> nn.Module:
        torch.manual_seed(0)
        return enliven(make())

    return build


# The table

ROUTED = (
    encoder("bert", model("BertForMaskedLM", TEXT)),
    encoder("roberta", model("RobertaForMaskedLM", TEXT)),
    encoder(
        "distilbert",
        model("DistilBertForMaskedLM", VOCAB, dim=32, n_layers=N_LAYERS, n_heads=N_HEADS, hidden_dim=48),
    ),
    # One module, called once per layer.
    encoder(
        "albert",
        model("AlbertForMaskedLM", TEXT | DEEPER, std=0.35, embedding_size=16),
        layers=N_LAYERS + 1,
    ),
    encoder("electra", model("ElectraForMaskedLM", TEXT, embedding_size=16)),
    encoder("camembert", model("CamembertForMaskedLM", TEXT)),
    encoder(
        "modernbert",
        model(
            "ModernBertForMaskedLM",
            TEXT | DEEPER,
            layer_types=sliding(False, True, True),
            local_attention=4,
            cls_token_id=BOS,
            sep_token_id=EOS,
        ),
        layers=N_LAYERS + 1,
    ),
    decoder("gpt2", model("GPT2LMHeadModel", GPT)),
    decoder("gpt_neox", model("GPTNeoXForCausalLM", TEXT)),
    decoder("opt", model("OPTForCausalLM", TEXT, ffn_dim=48, word_embed_proj_dim=16)),
    decoder("llama", model("LlamaForCausalLM", GROUPED)),
    decoder("mistral", model("MistralForCausalLM", GROUPED, sliding_window=4)),
    decoder("qwen2", model("Qwen2ForCausalLM", GROUPED)),
    decoder("qwen3", model("Qwen3ForCausalLM", GROUPED)),
    decoder(
        "gemma2",
        model(
            "Gemma2ForCausalLM",
            GROUPED,
            sliding_window=4,
            layer_types=sliding(True, False),
            query_pre_attn_scalar=8,
            attn_logit_softcapping=2.0,
        ),
    ),
    decoder(
        "gemma3",
        model(
            "Gemma3ForCausalLM",
            GROUPED | DEEPER,
            sliding_window=4,
            layer_types=sliding(True, True, False),
            query_pre_attn_scalar=8,
        ),
        layers=N_LAYERS + 1,
    ),
    decoder("phi3", model("Phi3ForCausalLM", GROUPED)),
    decoder("mixtral", model("MixtralForCausalLM", GROUPED | EXPERTS)),
    decoder(
        "gpt_oss",
        model(
            "GptOssForCausalLM",
            GROUPED | EXPERTS,
            sliding_window=4,
            layer_types=sliding(True, False),
            rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
        ),
    ),
    # Latent attention: queries and keys of 8 + 4 dimensions, values of 8.
    decoder(
        "deepseek_v3",
        model(
            "DeepseekV3ForCausalLM",
            TEXT,
            num_key_value_heads=N_HEADS,
            q_lora_rank=16,
            kv_lora_rank=16,
            qk_nope_head_dim=8,
            qk_rope_head_dim=4,
            v_head_dim=8,
            n_routed_experts=4,
            num_experts_per_tok=2,
            moe_intermediate_size=16,
            n_group=2,
            topk_group=1,
            first_k_dense_replace=1,
            num_mtp_layers=0,
        ),
    ),
    # T5's scores are not scaled, hence the smaller weights.
    seq2seq(
        "t5",
        model(
            "T5ForConditionalGeneration",
            VOCAB,
            std=0.18,
            d_model=32,
            d_kv=8,
            d_ff=48,
            num_layers=N_LAYERS,
            num_decoder_layers=N_LAYERS + 1,
            num_heads=N_HEADS,
            relative_attention_num_buckets=8,
            relative_attention_max_distance=10,
            decoder_start_token_id=BOS,
        ),
    ),
    seq2seq("bart", model("BartForConditionalGeneration", TRANSLATION)),
    seq2seq("marian", model("MarianMTModel", TRANSLATION, std=0.35, scale_embedding=True)),
    seq2seq("m2m100", model("M2M100ForConditionalGeneration", TRANSLATION)),
    seq2seq("mbart", model("MBartForConditionalGeneration", TRANSLATION)),
    vision("vit", model("ViTForImageClassification", PIXELS)),
    vision("deit", model("DeiTForImageClassification", PIXELS)),
    vision("dinov2", model("Dinov2ForImageClassification", PIXELS, mlp_ratio=2)),
    # 8 x 8 patches in windows of 4 x 4, shifted in the second block; then a single window.
    Family(
        "swin",
        model(
            "SwinForImageClassification",
            {},
            image_size=32,
            patch_size=4,
            embed_dim=16,
            depths=(2, 2),
            num_heads=(2, 4),
            window_size=4,
        ),
        lambda: {"pixel_values": signal(3, 32, 32)},
        None,
        "routed",
        {"main": (4, (2, 2, 4, 4))},
        read_swin,
    ),
    towers(
        "clip",
        model("CLIPModel", {}, text_config=TEXT | DEEPER, vision_config=PIXELS, projection_dim=16),
    ),
    # The image tower's pooling head is an nn.MultiheadAttention, counted in no stack.
    towers("siglip", model("SiglipModel", {}, text_config=TEXT | DEEPER, vision_config=PIXELS)),
    vision(
        "beit",
        model(
            "BeitForImageClassification",
            PIXELS,
            use_relative_position_bias=True,
            layer_scale_init_value=1.0,
        ),
    ),
    seq2seq(
        "whisper",
        model(
            "WhisperForConditionalGeneration",
            ENCODER_DECODER,
            num_mel_bins=8,
            max_source_positions=LENGTH,
            max_target_positions=32,
        ),
        speech_to_text,
    ),
    # Two convolutions turn 120 samples into 11 frames; the "layer" variant is the one used with masks.
    Family(
        "wav2vec2",
        model(
            "Wav2Vec2ForCTC",
            VOCAB | SIZES,
            conv_dim=(16, 16),
            conv_kernel=(10, 3),
            conv_stride=(5, 2),
            feat_extract_norm="layer",
            num_conv_pos_embeddings=4,
            num_conv_pos_embedding_groups=4,
            apply_spec_augment=False,
            layerdrop=0.0,
        ),
        lambda: {"input_values": signal(120)},
        padded_speech,
        "routed",
        {"main": (N_LAYERS, N_HEADS)},
        read_main,
    ),
)

COMPOSED = (
    # The decoder's layers live at `decoder.bert.encoder.layer`.
    seq2seq(
        "bert2bert",
        two_halves(
            "EncoderDecoderModel",
            lambda: hf.BertConfig(**TEXT),
            lambda: hf.BertConfig(**(TEXT | DEEPER)),
        ),
    ),
    seq2seq(
        "vit_gpt2",
        two_halves(
            "VisionEncoderDecoderModel",
            lambda: hf.ViTConfig(**PIXELS),
            lambda: hf.GPT2Config(**(GPT | DEEPER_GPT)),
        ),
        image_to_text,
    ),
    # Llava returns the language model's attention only.
    Family(
        "llava",
        llava,
        text_with_image,
        lambda: pad(text_with_image(), side="left"),
        "routed",
        {"vision": (N_LAYERS, N_HEADS), "main": (N_LAYERS + 1, N_HEADS)},
        read_main,
    ),
)

UNROUTED = (
    # Content-to-position and position-to-content terms, as in the published v3 checkpoints.
    encoder(
        "deberta_v2",
        model(
            "DebertaV2ForMaskedLM",
            TEXT,
            relative_attention=True,
            position_buckets=4,
            max_relative_positions=8,
            pos_att_type=["p2c", "c2p"],
            norm_rel_ebd="layer_norm",
            share_att_key=True,
            position_biased_input=False,
        ),
        way="traced",
    ),
    encoder("mpnet", model("MPNetForMaskedLM", TEXT), way="traced"),
    encoder("flaubert", model("FlaubertWithLMHeadModel", XLM), way="traced"),
    encoder("xlm", model("XLMWithLMHeadModel", XLM), way="traced"),
    decoder(
        "gpt_neo",
        model("GPTNeoForCausalLM", TEXT, attention_types=[[["global", "local"], 1]], window_size=4),
        way="traced",
    ),
    # One key head for all queries, rotary positions.
    decoder("falcon", model("FalconForCausalLM", TEXT, multi_query=True), way="traced"),
    decoder(
        "falcon_alibi",
        model("FalconForCausalLM", TEXT, alibi=True, multi_query=False, parallel_attn=False, bias=True),
        way="traced",
    ),
    decoder("bloom", model("BloomForCausalLM", TEXT), way="traced"),
    decoder("gptj", model("GPTJForCausalLM", GPT, rotary_dim=4), way="traced"),
    # A captioner: a causal text decoder that looks at the image tower through cross-attention.
    Family(
        "blip",
        model(
            "BlipForConditionalGeneration",
            {},
            text_config=TEXT | DEEPER | {"encoder_hidden_size": 32, "sep_token_id": EOS},
            vision_config=PIXELS,
            image_text_hidden_size=16,
        ),
        image_and_text,
        lambda: pad(image_and_text()),
        "traced",
        {**TOWERS, "cross": (N_LAYERS + 1, N_HEADS)},
        read_vision,
    ),
    Family(
        "longformer",
        model("LongformerForMaskedLM", TEXT, attention_window=4),
        text_with_global,
        lambda: pad(text_with_global()),
        "banded",
        {"main": (N_LAYERS, N_HEADS)},
        read_longformer,
    ),
)

HOME_MADE = (
    encoder("home_mixer", seeded(lambda: HomeMade(TokenMixer, N_LAYERS)), way="traced"),
    replace(
        decoder(
            "home_sdpa",
            seeded(lambda: HomeMade(CausalSelfAttention, N_LAYERS + 1)),
            way="traced",
            layers=N_LAYERS + 1,
        ),
        attentions=None,
    ),
    encoder("home_multihead", seeded(lambda: HomeMade(MultiheadMixer, N_LAYERS)), way="traced"),
    replace(encoder("home_torch_encoder", seeded(TorchEncoder), way="traced"), attentions=None),
)

FAMILIES: dict[str, Family] = {family.name: family for family in (*ROUTED, *COMPOSED, *UNROUTED, *HOME_MADE)}


# Tokenizers: ids and special tokens fit the models above

SENTENCES = (
    "the cat sat on the mat because it was tired.",
    "The animal did not cross the street because it was too wide.",
    "she gave her sister the book, and he read it to them.",
    "A quick brown fox jumps over the lazy dog!",
)


def tiny_tokenizer() -> hf.PreTrainedTokenizerFast:
    """Byte-level BPE in the manner of GPT-2: pieces with a leading space, no special tokens added."""
    specials = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "<image>"]
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, special_tokens=specials, show_progress=False)
    tokenizer.train_from_iterator(SENTENCES, trainer)
    return hf.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        pad_token="<pad>",
        eos_token="</s>",
        unk_token="<unk>",
        mask_token="<mask>",
    )


def tiny_bert_tokenizer() -> hf.PreTrainedTokenizerFast:
    """WordPiece in the manner of BERT: `[CLS] a [SEP]` or `[CLS] a [SEP] b [SEP]`, with token types.

    Knows the words of `SENTENCES` and spells all others. The vocabulary is written out because tokenizers'
    WordPiece training breaks ties at random.
    """
    specials = ["[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]"]
    letters = [prefix + letter for prefix in ("", "##") for letter in string.ascii_lowercase]
    words = re.findall(r"\w+|[^\w\s]", " ".join(SENTENCES).lower())
    vocabulary = {piece: index for index, piece in enumerate(dict.fromkeys([*specials, *letters, *words]))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", BOS), ("[SEP]", EOS)],
    )
    return hf.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        cls_token="[CLS]",
        pad_token="[PAD]",
        sep_token="[SEP]",
        unk_token="[UNK]",
        mask_token="[MASK]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )
