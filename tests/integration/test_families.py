"""Sixty of the model types of `make families`, each built tiny and compared with its own attention."""

import pytest
from families import all_types, compare, transformers_version, types_in_docs

# Encoders; decoders with full, windowed and compressed attention, and with experts; hybrids; and everything else.
KINDS = {
    "encoders": "bert albert modernbert longformer deberta-v2 mpnet xlm esm roformer xmod",
    "decoders": "gpt2 gpt_neo gptj bloom falcon llama mistral qwen3 gemma2 gemma3_text phi3 olmo2 cohere2",
    "experts": "gpt_oss mixtral deepseek_v3 minicpm3",
    "hybrids": "jamba bamba granitemoehybrid zamba lfm2 qwen3_next recurrent_gemma",
    "encoders with decoders": "t5 bart marian mbart pegasus_x led",
    "images": "vit dinov2 swin beit siglip2_vision_model qwen2_5_vl_vision sam segformer",
    "sounds": "wav2vec2 whisper hubert audio-spectrogram-transformer",
    "images and text": "clip siglip blip llava qwen2_vl vision-text-dual-encoder",
}
# What is left out is said, by name.
REFUSED = {
    "mamba": "computed no attention",
    "fnet": "computed no attention",
    "rwkv": "attends in a way that Headscope cannot read",
}


@pytest.mark.parametrize("model_type", " ".join(KINDS.values()).split())
def test_what_is_shown_is_what_the_model_computes(model_type: str):
    result = compare(_known(model_type))
    assert result.state in ("exact", "close"), f"{result.state}: {result.detail}"
    assert result.compared


@pytest.mark.parametrize("model_type", REFUSED)
def test_a_model_without_softmax_attention_is_refused_by_name(model_type: str):
    result = compare(_known(model_type))
    assert result.state == "refused", f"{result.state}: {result.detail}"
    assert REFUSED[model_type] in result.detail


def test_the_docs_name_every_model_type():
    version, words = types_in_docs()
    if version != transformers_version():
        pytest.skip(f"docs/models.md is about Transformers {version}: `make families` writes it anew")
    assert sorted(set(all_types()) - words) == []


def _known(model_type: str) -> str:
    if model_type not in all_types():
        pytest.skip(f"this version of Transformers has no {model_type}")
    return model_type
