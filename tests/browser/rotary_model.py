"""A small random Llama that reads each word as one token: rotary positions, so inputs may be of any length."""

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

WORDS = [f"{a}{b}{c}" for a in "bdfg" for b in "aeiou" for c in "klmnprst"]
LONGEST = 65536


def save_rotary_model(folder: Path) -> None:
    """Two layers of two heads that share their keys."""
    torch.manual_seed(0)
    vocabulary = ["[UNK]", "gold", *WORDS]
    config = LlamaConfig(
        vocab_size=len(vocabulary),
        hidden_size=64,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=LONGEST,
        initializer_range=0.3,
        bos_token_id=None,
        eos_token_id=None,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer = Tokenizer(models.WordLevel({word: index for index, word in enumerate(vocabulary)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]", model_max_length=LONGEST).save_pretrained(
        folder
    )


def long_text(n_tokens: int, gold: tuple[int, ...]) -> str:
    """So many words, "gold" at these places alone."""
    words = [WORDS[(7 * index * index + 3 * index) % len(WORDS)] for index in range(n_tokens)]
    for index in gold:
        words[index] = "gold"
    return " ".join(words)


@torch.no_grad()
def first_layer_row(folder: Path, text: str, query: int) -> torch.Tensor:
    """The weights of one query of the first layer [head, key], worked out from the checkpoint."""
    module: Any = LlamaForCausalLM.from_pretrained(folder).eval()
    ids = PreTrainedTokenizerFast.from_pretrained(folder)(text, return_tensors="pt")["input_ids"]
    layer = module.model.layers[0]
    stream = layer.input_layernorm(module.model.embed_tokens(ids))
    queries, keys = (
        project(stream).unflatten(-1, (-1, 32)).transpose(1, 2)
        for project in (layer.self_attn.q_proj, layer.self_attn.k_proj)
    )
    angles = module.model.rotary_emb(stream, torch.arange(ids.shape[1])[None])
    queries, keys = apply_rotary_pos_emb(queries, keys, *angles)
    scores = queries[0, :, query] @ keys[0, 0, : query + 1].T / 32**0.5
    return scores.softmax(-1)
