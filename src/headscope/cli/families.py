"""The families of models that are tested, by the way in: what `headscope models` lists."""

ROUTED = "routed: the model calls Headscope's attention function; everything is captured, at any length"
TRACED = "traced: the model's own torch calls are watched; everything is captured"
BANDED = "banded: windows and global tokens, computed again from their projections; everything is captured"

WAYS = {"routed": ROUTED, "traced": TRACED, "banded": BANDED}

# way -> what it reads -> family -> the name people know it by
FAMILIES: dict[str, dict[str, dict[str, str]]] = {
    "routed": {
        "text encoders": {
            "bert": "BERT",
            "roberta": "RoBERTa",
            "distilbert": "DistilBERT",
            "albert": "ALBERT",
            "electra": "ELECTRA",
            "camembert": "CamemBERT",
            "modernbert": "ModernBERT",
        },
        "causal language models": {
            "gpt2": "GPT-2",
            "gpt_neox": "GPT-NeoX",
            "opt": "OPT",
            "llama": "Llama",
            "mistral": "Mistral",
            "qwen2": "Qwen2",
            "qwen3": "Qwen3",
            "gemma2": "Gemma 2",
            "gemma3": "Gemma 3",
            "phi3": "Phi-3",
            "mixtral": "Mixtral",
            "gpt_oss": "gpt-oss",
            "deepseek_v3": "DeepSeek-V3",
        },
        "encoder-decoders": {
            "t5": "T5",
            "bart": "BART",
            "marian": "Marian",
            "m2m100": "M2M100",
            "mbart": "mBART",
            "bert2bert": "BERT2BERT",
        },
        "images": {
            "vit": "ViT",
            "deit": "DeiT",
            "dinov2": "DINOv2",
            "swin": "Swin",
            "beit": "BEiT",
        },
        "images and text": {
            "clip": "CLIP",
            "siglip": "SigLIP",
            "vit_gpt2": "ViT-GPT2",
            "llava": "LLaVA",
        },
        "sound": {
            "whisper": "Whisper",
            "wav2vec2": "wav2vec 2.0",
        },
    },
    "traced": {
        "text encoders": {
            "deberta_v2": "DeBERTa-v2/v3",
            "mpnet": "MPNet",
            "flaubert": "FlauBERT",
            "xlm": "XLM",
        },
        "causal language models": {
            "gpt_neo": "GPT-Neo",
            "falcon": "Falcon",
            "falcon_alibi": "Falcon (ALiBi)",
            "bloom": "BLOOM",
            "gptj": "GPT-J",
        },
        "images and text": {"blip": "BLIP"},
        "your own modules": {
            "home_mixer": "softmax and products",
            "home_sdpa": "torch's scaled_dot_product_attention",
            "home_multihead": "nn.MultiheadAttention",
            "home_torch_encoder": "nn.TransformerEncoder",
        },
    },
    "banded": {"text encoders": {"longformer": "Longformer"}},
}
