"""Configurations of every model type, made small by the names of their fields."""

import re
from collections.abc import Sequence
from typing import Any

Sizes = list[tuple[str, int]]
# What sizes are called in configurations, and how small they become; the first match counts.
SIZES: Sizes = [
    (r"^(chunk_size.*|.*_theta|.*_factor|num_labels|num_channels|in_channels|in_chans|.*num_buckets)$", 0),
    (r"^(.*vocab_size.*|codebook_size|num_codes|n_codes|num_embeddings)$", 128),
    (r"^(mamba_n_heads|mamba_num_heads|n_mamba_heads|mamba_nheads|num_mamba_heads)$", 8),
    (r"^(mamba_d_head|mamba_head_dim|mamba_headdim)$", 8),
    (r"^(mamba_d_state|ssm_state_size|state_size|mamba_d_state|mamba_state_dim)$", 8),
    (r"^(mamba_d_ssm)$", 64),
    (r"^(mamba_n_groups|mamba_ngroups|n_groups|num_expert_group)$", 1),
    (r"^(linear_num_key_heads|linear_num_value_heads)$", 2),
    (r"^(.*num_key_value_heads|.*num_kv_heads|num_key_value_groups|multi_query_group_num|.*kv_n_heads)$", 2),
    (r"^(q_lora_rank|kv_lora_rank|o_lora_rank|.*lora_rank)$", 16),
    (r"^(.*head_dim|d_kv|attention_head_size|head_size|kv_channels|attention_key_value_channels)$", 8),
    (r"^(.*num_attention_heads|.*_attention_heads|n_heads?|num_heads|.*num_heads|.*_nhead|nhead|attention_heads)$", 4),
    (r"^(.*experts_per_tok.*|moe_k|moe_topk|top_k_experts|num_selected_experts|router_top_?k|topk_group)$", 2),
    (r"^(n_shared_experts|num_shared_experts|n_group)$", 1),
    (r"^(.*num_.*experts|n_routed_experts|moe_num_experts|num_experts)$", 4),
    (r"^(num_hidden_layers|n_layers?|num_layers|.*_layers|depth|num_blocks|num_hidden_groups|.*num_hidden_layers)$", 2),
    (r"^(.*intermediate_size|.*ffn_dim|n_inner|d_ff|d_inner|mlp_dim|feed_forward_size|inner_dim|.*_ffn_size)$", 64),
    (r"^(.*max_position_embeddings|n_positions|max_.*positions|seq_length|max_seq_len.*|n_ctx|block_size)$", 128),
    (r"^(sliding_window|attention_window|local_attention|window_size_attention|sliding_window_size)$", 8),
    (r"^(image_size|img_size|input_size|base_image_size)$", 32),
    (r"^(patch_size|conv_patch_size|tubelet_size)$", 8),
    (r"^(num_frames)$", 2),
    (r"^(rotary_dim)$", 4),
    (
        r"^(.*hidden_size.*|d_model|n_embd|dim|embed_dim|hidden_dim|.*embedding_size|emb_dim|.*embed_dim|embed_size)$",
        32,
    ),
    (r"^(projection_dim|.*projection_dim|out_hidden_size|d_embed|d_hidden|width|encoder_hidden_dim|model_dim)$", 32),
    (r"^(num_queries|num_query_tokens|num_latents|n_queries|max_source_positions)$", 8),
]
# Where sizes hang together in ways that no table knows: less deep, and otherwise as it is.
SHALLOW: Sizes = [
    (r"^(image_size|img_size|input_size|base_image_size)$", 256),
    *((pattern, small) for pattern, small in SIZES if re.search(r"vocab_size|experts\)|_layers", pattern)),
]
IDS = {"pad": 0, "bos": 1, "eos": 2, "decoder_start": 1, "unk": 3, "mask": 4, "cls": 1, "sep": 2}
N_LAYERS = 4


def small_config(model_type: str, sizes: Sizes = SIZES) -> Any:
    """The configuration of a type, the sizes of a table made small."""
    from transformers import CONFIG_MAPPING, AutoConfig

    config_class = CONFIG_MAPPING[model_type]
    if model_type in PAIRS:
        first, second = (small_config(part, sizes) for part in PAIRS[model_type])
        joins = [name for name in dir(config_class) if re.fullmatch(r"from_.*_configs", name)]
        return getattr(config_class, joins[0])(first, second)
    config = AutoConfig.for_model(model_type, **ARGUMENTS.get(model_type, {}))
    shrink(config, sizes)
    return config


PAIRS = {
    "encoder-decoder": ("bert", "bert"),
    "vision-encoder-decoder": ("vit", "gpt2"),
    "speech-encoder-decoder": ("wav2vec2", "bert"),
    "vision-text-dual-encoder": ("vit", "bert"),
}


def shrink(config: Any, sizes: Sizes) -> None:
    """Make the sizes of a configuration small, those of its parts too."""
    from transformers import PreTrainedConfig

    for part in list(vars(config).values()):
        if isinstance(part, PreTrainedConfig):
            shrink(part, sizes)
    fields = vars(config)
    is_multi_head = fields.get("num_attention_heads", 0) == fields.get("num_key_value_heads")
    is_staged = isinstance(getattr(config, "depths", None), list | tuple)
    n_before = next((n for n in (getattr(config, name, None) for name in LAYER_COUNTS) if isinstance(n, int)), None)
    n_before = None if is_staged else n_before
    lists = {name: part for name, part in vars(config).items() if isinstance(part, list) and part}
    n_after = 2
    if n_before and any(len(part) == n_before and len(set(map(str, part))) > 1 for part in lists.values()):
        n_after = N_LAYERS
    for name, size in list(vars(config).items()):
        if name.endswith("token_id") or name.endswith("token_index") or name.endswith("_token_ids"):
            assign(config, name, small_id(name, size))
        elif isinstance(size, int) and not isinstance(size, bool):
            assign(config, name, small_size(name, size, n_after, sizes))
        elif isinstance(size, list | tuple) and size:
            assign(config, name, small_list(name, size, n_before, n_after, sizes))
        elif isinstance(size, dict) and sizes is SIZES:
            assign(config, name, small_dict(size))
    agree(config, is_multi_head)
    for path, value in (SETTINGS.get(config.model_type, {}) if sizes is SIZES else {}).items():
        set_path(config, path, value)


def agree(config: Any, is_multi_head: bool) -> None:
    """Sizes that follow from others: as many key heads as before, parts of heads that add up, widths of stages."""
    fields = vars(config)
    if is_multi_head and isinstance(fields.get("num_attention_heads"), int):
        assign(config, "num_key_value_heads", config.num_attention_heads)
    if isinstance(fields.get("qk_nope_head_dim"), int) and isinstance(fields.get("qk_rope_head_dim"), int):
        assign(config, "qk_head_dim", config.qk_nope_head_dim + config.qk_rope_head_dim)
    if isinstance(fields.get("topk_group"), int) and isinstance(fields.get("n_group"), int):
        assign(config, "topk_group", min(config.topk_group, config.n_group))
    heads, depths = fields.get("num_heads"), fields.get("depths")
    if (
        isinstance(heads, list | tuple)
        and isinstance(depths, list | tuple)
        and isinstance(fields.get("embed_dim"), int)
    ):
        assign(config, "embed_dim", 8 * heads[0])
        if "hidden_size" in fields:
            assign(config, "hidden_size", config.embed_dim * 2 ** (len(depths) - 1))


def set_path(config: Any, path: str, value: Any) -> None:
    """Set a field of a configuration, or with a dotted path one of its parts or dictionaries."""
    *parents, name = path.split(".")
    for parent in parents:
        config = config[parent] if isinstance(config, dict) else getattr(config, parent)
    if isinstance(config, dict):
        config[name] = value
    else:
        setattr(config, name, value)


LAYER_COUNTS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "depth")


def assign(config: Any, name: str, size: Any) -> None:
    """Set a field; some check or derive theirs and are left alone."""
    try:
        setattr(config, name, size)
    except (AttributeError, ValueError, TypeError, NotImplementedError):
        return


def small_size(name: str, size: int, n_layers: int, sizes: Sizes) -> int:
    """A size by its name."""
    for pattern, small in sizes:
        if re.match(pattern, name):
            small = n_layers if small == 2 and "layer" in pattern and "experts" not in pattern else small
            return min(size, small) if small and size > 0 else size
    return size


def small_id(name: str, size: Any) -> Any:
    """Ids inside a small vocabulary; those of images and sounds each their own."""
    if isinstance(size, list):
        return [small_id(name, size[0])] if size else size
    if not isinstance(size, int) or size < 0:
        return size
    kind = re.sub(r"_(token_id|token_index|token_ids)$", "", name)
    return IDS.get(kind, 100 + sum(map(ord, kind)) % 27) if size >= 100 or kind in IDS else size


def small_list(name: str, sizes: Sequence[Any], n_before: int | None, n_after: int, table: Sizes) -> Any:
    """Lists with a member for each layer keep one of each kind; sections of rotary dimensions add up to half a head."""
    if name.lstrip("_") in ("out_features", "out_indices", "stage_names") or name.startswith("stage"):
        return sizes
    if name == "depths":
        return [min(size, 2) for size in sizes]
    if "section" in name:
        return [2, 1, 1][: len(sizes)] if table is SIZES else sizes
    if n_before and len(sizes) == n_before:
        kinds = list(dict.fromkeys(map(str, sizes)))
        kinds = [next(size for size in sizes if str(size) == kind) for kind in kinds]
        return [kinds[min(place, len(kinds) - 1)] for place in range(n_after)] if len(kinds) <= n_after else list(sizes)
    if re.search(r"layer_(ids|idxs|indices|idx)|_layers$|_indices$", name) and all(
        isinstance(size, int) for size in sizes
    ):
        return [size for size in sizes if size < n_after] or [n_after - 1]
    if table is not SIZES:
        return sizes
    if re.match(r"image_size|img_size", name):
        return [32 for _ in sizes]
    if re.match(r"patch_size", name):
        return [8 if size > 4 else size for size in sizes]
    return sizes


def small_dict(fields: dict) -> dict:
    """Rotary settings: sections that fit a small head."""
    fields = dict(fields)
    for name, part in fields.items():
        if isinstance(name, str) and "section" in name and isinstance(part, list):
            fields[name] = [2, 1, 1][: len(part)]
        elif isinstance(part, dict):
            fields[name] = small_dict(part)
    return fields


# What is no matter of size: fields that have no default, and what has to agree with others.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "autoformer": {"prediction_length": 4},
    "informer": {"prediction_length": 4},
    "time_series_transformer": {"prediction_length": 4},
    "wav2vec2-bert": {"vocab_size": 32},
}
MROPE = {"rope_parameters.mrope_section": [2, 1, 1]}
HALF_MROPE = {"rope_parameters.mrope_section": [1, 1, 0]}
EQUAL_WIDTHS = {"decoder_in_channels": [32, 32, 32]}
HEAD_DIM = {"head_dim": 8}
NARROW = {"width_coefficient": 0.1, "hidden_dim": 128}
CONVOLUTIONS = {"conv_dim": [32] * 13}
SAM = {
    "prompt_encoder_config.image_embedding_size": 4,
    "vision_config.output_channels": 32,
    "vision_config.num_pos_feats": 16,
}
SETTINGS: dict[str, dict[str, Any]] = {
    **dict.fromkeys(
        ["qwen2_vl_text", "qwen2_5_vl_text", "paddleocr_vl_text", "qwen2_5_omni_text", "glm4v_text"], MROPE
    ),
    **dict.fromkeys(["glm_image_text", "glm_ocr_text"], MROPE),
    **dict.fromkeys(["glm4v_moe_text"], HALF_MROPE),
    **dict.fromkeys(["rt_detr", "rt_detr_v2", "d_fine", "deimv2", "pp_doclayout_v3", "pp_doclayout_v4"], EQUAL_WIDTHS),
    **dict.fromkeys(["hunyuan_v1_dense", "hunyuan_v1_moe", "ministral"], HEAD_DIM),
    **dict.fromkeys(["align_vision_model", "efficientnet"], NARROW),
    "bamba": {"attn_layer_indices": [1]},
    "bridgetower": {"hidden_size": 64, "vision_config.hidden_size": 64, "text_config.hidden_size": 64},
    "bros": {"dim_bbox_sinusoid_emb_2d": 32, "dim_bbox_sinusoid_emb_1d": 4, "dim_bbox_projection": 8},
    "chameleon": {"vocabulary_map": {"<image>": 5, "IMGIMGBA": 6, "<reserved08706>": 7}},
    "codegen": {"rotary_dim": 4},
    "cohere_compass_text": {
        "rope_parameters": {
            kind: {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 1, 1]}
            for kind in ("full_attention", "sliding_attention")
        }
    },
    "diffusion_gemma_text": {"num_experts": 4, "top_k_experts": 2, "moe_intermediate_size": 32},
    "dots1": {"n_routed_experts": 4, "num_experts_per_tok": 2, "n_shared_experts": 1},
    "emu3_vqgan": {"base_channels": 32},
    "emu3": {"vocabulary_map": {"<|extra_200|>": 5, "<image>": 6, "<|visual token 000000|>": 7}},
    "ernie4_5_vl_moe_text": {"rope_parameters.mrope_section": [1, 1, 2]},
    "esm": {"vocab_size": 33, "mask_token_id": 32, "pad_token_id": 1},
    "esmc": {"num_key_value_heads": 4},
    "gemma3n_text": {"num_kv_shared_layers": 1},
    "granitemoehybrid": {"layer_types": ["linear_attention", "full_attention"]},
    "hrm_text": {"num_layers_per_stack": 1, "num_hidden_layers": 8},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1, "expert_layer_period": 2, "expert_layer_offset": 1},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"]},
    "lilt": {"hidden_size": 96},
    "mamba2": {"num_heads": 8},
    "mimi": {"upsample_groups": 32},
    "mistral4": {"rope_parameters.partial_rotary_factor": 1.0},
    "moonshine_streaming": {"num_key_value_heads": 4},
    "nemotron": {"num_key_value_heads": 2},
    "pocket_tts_audio_tokenizer": {"upsample_groups": 32},
    "patchtsmixer": {"self_attn": True, "self_attn_heads": 4},
    "recurrent_gemma": {"num_hidden_layers": 3},
    "sam3_lite_text_text_model": {"num_hidden_layers": 3},
    "perceiver": {
        "d_latents": 32,
        "num_latents": 8,
        "num_self_attends_per_block": 2,
        "num_self_attention_heads": 4,
        "num_cross_attention_heads": 4,
    },
    "reformer": {"is_decoder": True},
    "t5gemma2_text": {"dropout_rate": 0.0},
    "wav2vec2-bert": {"vocab_size": 32},
    "xmod": {"default_language": "en_XX"},
    "zamba": {
        "attention_hidden_size": 64,
        "attention_head_dim": 16,
        "num_hidden_layers": 4,
        "layers_block_type": ["linear_attention", "hybrid", "linear_attention", "hybrid"],
    },
    "zamba2": {
        "attention_hidden_size": 64,
        "attention_head_dim": 16,
        "num_mem_blocks": 1,
        "layers_block_type": ["linear_attention", "hybrid"],
        "hybrid_layer_ids": [1],
    },
    "autoformer": {"label_length": 2},
    "bailing_hybrid": {"n_group": 1, "topk_group": 1},
    "blip-2": {"image_token_index": 120},
    "blt": {
        "num_hidden_layers": 2,
        "encoder_hash_byte_group_vocab": 128,
        "global_config.hidden_size": 64,
        "global_config.head_dim": 16,
        "encoder_config.hidden_size_global": 64,
        "decoder_config.hidden_size_global": 64,
    },
    "clvp_decoder": {"hidden_size": 128, "n_inner": 128},
    "clvp_encoder": {"hidden_size": 128, "projection_dim": 128},
    "dbrx": {"attn_config.rope_theta": 10000.0, "attn_config.clip_qkv": 8.0},
    "deepseek_ocr2_text": {"mlp_layer_types": ["dense", "sparse"], "num_experts_per_tok": 2},
    "deepseek_v2": {"num_experts_per_tok": 2},
    "depth_pro": {"intermediate_hook_ids": [1, 0]},
    "granite4_vision": {
        "deepstack_layer_map": [[0, 0]],
        "spatial_target_layers": [0, 0, 1, 1],
        "downsample_rate": "2/4",
    },
    "hunyuan_vl_text": {"head_dim": 8, "rope_parameters.mrope_section": [1, 1, 1, 1]},
    "instructblip": {"image_token_index": 120},
    "instructblipvideo": {"video_token_index": 120},
    "kosmos-2": {"latent_query_num": 4},
    "lw_detr": {
        "projector_scale_factors": [1.0],
        "projector_in_channels": [32],
        "num_feature_levels": 1,
        "backbone_config.num_hidden_layers": 10,
    },
    "mimi_decoder": {"upsample_groups": 32},
    "pocket_tts_audio_tokenizer_decoder": {"upsample_groups": 32},
    "qwen4_exp_text": {
        "indexer_budget": 8,
        "indexer_compress_ratio": 2,
        "indexer_n_heads": 4,
        "indexer_kv_heads": 1,
        "indexer_head_dim": 8,
    },
    "radio": {"patch_size": 16},
    "rf_detr": {"backbone_config.num_hidden_layers": 12},
    "sam": SAM,
    "sam_hq": SAM,
    "sam2": {"prompt_encoder_config.patch_size": 16},
    "sam3_vision_model": {"backbone_feature_sizes": [[16, 16], [8, 8], [4, 4]]},
    "sam3_tracker": {"vision_config.backbone_feature_sizes": [[16, 16], [8, 8], [4, 4]]},
    "sapiens2": {"num_key_value_heads_per_layer": [4, 2, 2, 4], "num_key_value_attention_heads": 2},
    "seggpt": {"image_size": [64, 32]},
    "sam2_hiera_det_model": {"embed_dim_per_stage": [32, 64, 128, 256], "image_size": [32, 32]},
    "sam2_vision_model": {
        "backbone_channel_list": [256, 128, 64, 32],
        "backbone_feature_sizes": [[8, 8], [4, 4], [2, 2]],
    },
    **dict.fromkeys(["sew", "sew-d"], CONVOLUTIONS),
    "step3p5": {"sliding_window": 8},
    "tvp": {"max_img_size": 64, "visual_prompt_size": 8},
}
