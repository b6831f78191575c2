"""A model that names colours and, at each name, looks at the patches of that colour: made by hand, its answer known.

Patches reach the language model as their mean colours; the query of a word like "red" is that colour less half of the
others. The other heads look at random and write nothing. What comes next after a word is a fixed word.
"""

from itertools import pairwise
from pathlib import Path

import torch
import transformers as hf
from PIL import Image, ImageDraw
from tokenizers import Tokenizer, pre_tokenizers
from tokenizers import models as token_models

COLOURS = {"red": (214, 40, 40), "green": (40, 160, 70), "blue": (45, 80, 200)}
WORDS = ["<pad>", "<s>", "</s>", "<unk>", "<image>", "Which", "colours", "are", "there", "?", *COLOURS, "."]
CHAIN = ["?", *COLOURS, ".", "</s>"]
IMAGE, DIM, HEAD_DIM, N_HEADS = WORDS.index("<image>"), 32, 8, 4
FIRST_WORD = 8  # dimensions before it hold colours
TEXT = "<image> Which colours are there ?"
HEAD = "L1H2"


def tokenizer() -> hf.PreTrainedTokenizerFast:
    backend = Tokenizer(token_models.WordLevel({word: at for at, word in enumerate(WORDS)}, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    names = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
    return hf.PreTrainedTokenizerFast(tokenizer_object=backend, additional_special_tokens=["<image>"], **names)


def planted(side: int = 128, patch: int = 8) -> tuple[hf.LlavaForConditionalGeneration, hf.LlavaProcessor]:
    """The model, for pictures of so many pixels a side, and its processor."""
    vision = hf.CLIPVisionConfig(
        hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2, image_size=side,
        patch_size=patch,
    )  # fmt: skip
    text = hf.LlamaConfig(
        vocab_size=len(WORDS), hidden_size=DIM, intermediate_size=16, num_hidden_layers=3, num_attention_heads=N_HEADS,
        num_key_value_heads=N_HEADS, head_dim=HEAD_DIM, max_position_embeddings=4096, bos_token_id=1, eos_token_id=2,
        pad_token_id=0, rope_parameters={"rope_type": "default", "rope_theta": 1e40},
    )  # fmt: skip
    config = hf.LlavaConfig(vision_config=vision, text_config=text, image_token_index=IMAGE)
    torch.manual_seed(0)
    module = hf.LlavaForConditionalGeneration(config).eval()
    with torch.no_grad():
        _plant_tower(module)
        _plant_words(module)
        _plant_head(module)
    module.generation_config = hf.GenerationConfig(bos_token_id=1, eos_token_id=2, pad_token_id=0)
    plain = {"image_mean": [0.0, 0.0, 0.0], "image_std": [1.0, 1.0, 1.0]}
    size = {"height": side, "width": side}
    reader = hf.CLIPImageProcessorPil(size=size, crop_size=size, **plain)
    options = {"vision_feature_select_strategy": "default", "num_additional_image_tokens": 1}
    return module, hf.LlavaProcessor(reader, tokenizer(), patch_size=patch, **options)


def save(folder: Path) -> Path:
    """The model as a folder that loads like any other."""
    module, processor = planted()
    module.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def picture(size: tuple[int, int] = (160, 120)) -> Image.Image:
    """A red, a green and a blue box on grey."""
    image = Image.new("RGB", size, (128, 128, 128))
    drawing = ImageDraw.Draw(image)
    for name, (left, top, right, bottom) in boxes(size).items():
        drawing.rectangle((left, top, right - 1, bottom - 1), fill=COLOURS[name])
    return image


def boxes(size: tuple[int, int] = (160, 120)) -> dict[str, tuple[int, int, int, int]]:
    """Where the boxes are: left, top, right, bottom."""
    wide, tall = size[0] // 8, size[1] // 8
    return {
        "red": (wide, tall, 3 * wide, 3 * tall),
        "green": (5 * wide, tall, 7 * wide, 4 * tall),
        "blue": (2 * wide, 5 * tall, 5 * wide, 7 * tall),
    }


def _plant_tower(module: hf.LlavaForConditionalGeneration) -> None:
    """A patch becomes its mean colour and the opposite of that, the middle of which is zero: a norm changes its length
    alone. All later layers are zero."""
    for parameter in module.model.vision_tower.parameters():
        parameter.zero_()
    for norm in (part for part in module.model.vision_tower.modules() if isinstance(part, torch.nn.LayerNorm)):
        norm.weight.fill_(1.0)
    convolution = next(part for part in module.model.vision_tower.modules() if isinstance(part, torch.nn.Conv2d))
    for channel in range(3):
        convolution.weight[channel, channel] = 1.0
        convolution.weight[channel + 3, channel] = -1.0
    projector = module.model.multi_modal_projector
    for linear, shift in ((projector.linear_1, 20.0), (projector.linear_2, -20.0)):
        linear.weight.zero_()
        linear.bias.zero_()
        for dim in range(6):
            linear.weight[dim, dim] = 1.0
            linear.bias[dim] = shift  # where GELU is a straight line


def _plant_words(module: hf.LlavaForConditionalGeneration) -> None:
    """Each word is a dimension of its own; after it comes the next of the chain."""
    table = module.get_input_embeddings().weight
    table.zero_()
    for place in range(len(WORDS)):
        table[place, FIRST_WORD + place] = 4.0
    module.lm_head.weight.zero_()
    for word, following in pairwise(CHAIN):
        module.lm_head.weight[WORDS.index(following), FIRST_WORD + WORDS.index(word)] = 1.0


def _plant_head(module: hf.LlavaForConditionalGeneration) -> None:
    """Keys are colours; the queries of colour words look for them. Nothing else writes."""
    for layer in module.model.language_model.layers:
        layer.self_attn.o_proj.weight.zero_()
        layer.mlp.down_proj.weight.zero_()
        for projection in (layer.self_attn.q_proj, layer.self_attn.k_proj):
            projection.weight.normal_(0.0, 0.25)
    attention = module.model.language_model.layers[1].self_attn
    first = 2 * HEAD_DIM
    for projection in (attention.q_proj, attention.k_proj):
        projection.weight[first : first + HEAD_DIM].zero_()
    for channel, colour in enumerate(COLOURS):
        attention.k_proj.weight[first + 1 + channel, channel] = 1.0  # dimension 0 turns with the position
        for other in range(3):
            sign = 1.0 if other == channel else -0.5
            attention.q_proj.weight[first + 1 + other, FIRST_WORD + WORDS.index(colour)] = 2.4 * sign
