"""Tiny models that read a picture within a text, one of each family, with the processors that the real ones have.

Processors of films need torchvision, which is not here: pictures do not pass through them, so they are left out.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest import mock

import tiny_models
import torch
import transformers as hf
from PIL import Image
from tokenizers import Tokenizer, pre_tokenizers
from tokenizers import models as token_models
from torch import nn
from transformers.processing_utils import ProcessorMixin

WORDS = ["<pad>", "<s>", "</s>", "<unk>", "<image>", "<video>", "<start>", "<end>", "<global-img>"]
WORDS += ["<fake_token_around_image>", "<end_of_utterance>"]
WORDS += [f"<row_{row}_col_{column}>" for row in range(1, 4) for column in range(1, 4)]
WORDS += ["what", "is", "the", "red", "cat", "a", "it"]
IMAGE, VIDEO, START, END = (WORDS.index(word) for word in ("<image>", "<video>", "<start>", "<end>"))
PATCH, SIDE = 8, 32
TEXT = tiny_models.GROUPED | {"vocab_size": len(WORDS), "num_hidden_layers": 2, "max_position_embeddings": 512}
TEXT |= {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
VISION = tiny_models.SIZES | {"image_size": SIDE, "patch_size": PATCH}


@dataclass(frozen=True)
class VisionLanguage:
    """A family: how its model and processor are built, what stands for the picture in a text, and where it is asked."""

    name: str
    build: Callable[[], tuple[nn.Module, Any]]
    size: tuple[int, int] = (60, 40)
    """Width and height of a picture that brings out how the family cuts it."""
    image: str = "<image>"

    @property
    def text(self) -> str:
        """A question about the picture."""
        return f"what is {self.image} the cat"

    def __str__(self) -> str:
        return self.name


def tokenizer() -> hf.PreTrainedTokenizerFast:
    """Words between spaces, and the marks of all families."""
    backend = Tokenizer(token_models.WordLevel({word: at for at, word in enumerate(WORDS)}, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    names = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
    marks = {"image": "<image>", "video": "<video>", "boi": "<start>", "eoi": "<end>", "context_image": "<image>"}
    marks |= {"start_image": "<start>", "end_image": "<end>", "image_boundary": "<fake_token_around_image>"}
    return hf.PreTrainedTokenizerFast(
        tokenizer_object=backend,
        additional_special_tokens=[word for word in WORDS if word.startswith("<") and word not in names.values()],
        extra_special_tokens={f"{name}_token": mark for name, mark in marks.items()},
        **names,
    )


def without_films(processor: type, *arguments: Any, **options: Any) -> Any:
    """A processor whose part for films is left out."""
    with mock.patch.object(ProcessorMixin, "check_argument_for_proper_class", lambda *_: None):
        return processor(*arguments, video_processor=None, **options)


def square(side: int = SIDE) -> dict[str, int]:
    return {"height": side, "width": side}


def llama() -> hf.LlamaConfig:
    return hf.LlamaConfig(**TEXT)


def llava() -> tuple[nn.Module, Any]:
    """The picture's middle, as CLIP crops it."""
    config = hf.LlavaConfig(vision_config=hf.CLIPVisionConfig(**VISION), text_config=llama(), image_token_index=IMAGE)
    reader = hf.CLIPImageProcessorPil(size={"shortest_edge": SIDE}, crop_size=square())
    options = {"vision_feature_select_strategy": "default", "num_additional_image_tokens": 1}
    module = tiny_models.tiny(hf.LlavaForConditionalGeneration, config)
    return module, hf.LlavaProcessor(reader, tokenizer(), patch_size=PATCH, **options)


def llava_next() -> tuple[nn.Module, Any]:
    """Tiles with the rows of their tokens across them, after the whole picture."""
    pinpoints = [[SIDE, 2 * SIDE], [2 * SIDE, SIDE], [2 * SIDE, 2 * SIDE], [SIDE, 3 * SIDE]]
    config = hf.LlavaNextConfig(
        vision_config=hf.CLIPVisionConfig(**VISION), text_config=llama(), image_token_index=IMAGE,
        image_grid_pinpoints=pinpoints,
    )  # fmt: skip
    reader = hf.LlavaNextImageProcessorPil(
        size={"shortest_edge": SIDE}, crop_size=square(), image_grid_pinpoints=pinpoints
    )
    options = {"vision_feature_select_strategy": "default", "num_additional_image_tokens": 1}
    module = tiny_models.tiny(hf.LlavaNextForConditionalGeneration, config)
    return module, hf.LlavaNextProcessor(reader, tokenizer(), patch_size=PATCH, **options)


QWEN_TOKENS = {"image_token_id": IMAGE, "video_token_id": VIDEO, "vision_start_token_id": START}
QWEN_TOKENS |= {"vision_end_token_id": END}


def qwen_reader() -> Any:
    size = {"shortest_edge": 4 * 4 * 64, "longest_edge": 10 * 10 * 64}
    return hf.Qwen2VLImageProcessorPil(size=size, patch_size=PATCH, merge_size=2, temporal_patch_size=2)


def qwen_text(name: str) -> dict[str, Any]:
    rope = {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 1e4}
    return TEXT | {"rope_parameters": rope} | ({"mrope_interleaved": True} if name == "qwen3_vl" else {})


def qwen2_5_vl() -> tuple[nn.Module, Any]:
    """Patches merged four by four, and windows in the image tower."""
    vision = {"depth": 2, "hidden_size": 32, "num_heads": 4, "patch_size": PATCH, "out_hidden_size": 32}
    vision |= {"intermediate_size": 48, "window_size": 32, "fullatt_block_indexes": [1]}
    config = hf.Qwen2_5_VLConfig(text_config=qwen_text("qwen2_5_vl"), vision_config=vision, **QWEN_TOKENS)
    module = tiny_models.tiny(hf.Qwen2_5_VLForConditionalGeneration, config)
    return module, without_films(hf.Qwen2_5_VLProcessor, qwen_reader(), tokenizer())


def qwen3_vl() -> tuple[nn.Module, Any]:
    """Features of several depths of the image tower, added to the tokens of the first layers."""
    vision = {"depth": 2, "hidden_size": 32, "num_heads": 4, "patch_size": PATCH, "out_hidden_size": 32}
    vision |= {"intermediate_size": 48, "deepstack_visual_indexes": [0], "num_position_embeddings": 16}
    config = hf.Qwen3VLConfig(text_config=qwen_text("qwen3_vl"), vision_config=vision, **QWEN_TOKENS)
    module = tiny_models.tiny(hf.Qwen3VLForConditionalGeneration, config)
    return module, without_films(hf.Qwen3VLProcessor, qwen_reader(), tokenizer())


def gemma3() -> tuple[nn.Module, Any]:
    """Image tokens that see each other both ways, four patches in each."""
    text = hf.Gemma3TextConfig(**TEXT, sliding_window=16, layer_types=["sliding_attention", "full_attention"])
    config = hf.Gemma3Config(
        vision_config=hf.SiglipVisionConfig(**VISION, vision_use_head=False), text_config=text,
        image_token_index=IMAGE, boi_token_index=START, eoi_token_index=END, mm_tokens_per_image=4,
    )  # fmt: skip
    reader = hf.Gemma3ImageProcessorPil(size=square())
    module = tiny_models.tiny(hf.Gemma3ForConditionalGeneration, config)
    return module, hf.Gemma3Processor(reader, tokenizer(), image_seq_length=4)


def internvl() -> tuple[nn.Module, Any]:
    """Tiles in one run of tokens, the whole picture after them."""
    vision = hf.InternVLVisionConfig(**tiny_models.SIZES, image_size=(SIDE, SIDE), patch_size=(PATCH, PATCH))
    config = hf.InternVLConfig(vision_config=vision, text_config=llama(), image_token_id=IMAGE, image_seq_length=4)
    reader = hf.GotOcr2ImageProcessorPil(size=square(), crop_to_patches=True, max_patches=6)
    module = tiny_models.tiny(hf.InternVLForConditionalGeneration, config)
    return module, without_films(hf.InternVLProcessor, reader, tokenizer(), image_seq_length=4)


def idefics3() -> tuple[nn.Module, Any]:
    """Tiles that are named in the text."""
    vision = hf.Idefics3VisionConfig(**VISION)
    config = hf.Idefics3Config(vision_config=vision, text_config=llama(), image_token_id=IMAGE, scale_factor=2)
    sizes = {"size": {"longest_edge": 3 * SIDE}, "max_image_size": {"longest_edge": SIDE}}
    module = tiny_models.tiny(hf.Idefics3ForConditionalGeneration, config)
    return module, hf.Idefics3Processor(hf.Idefics3ImageProcessorPil(**sizes), tokenizer(), image_seq_len=4)


def smolvlm() -> tuple[nn.Module, Any]:
    """The same tiles in a smaller model of its own."""
    vision = hf.SmolVLMVisionConfig(**VISION)
    config = hf.SmolVLMConfig(vision_config=vision, text_config=llama(), image_token_id=IMAGE, scale_factor=2)
    sizes = {"size": {"longest_edge": 3 * SIDE}, "max_image_size": {"longest_edge": SIDE}}
    module = tiny_models.tiny(hf.SmolVLMForConditionalGeneration, config)
    # Its processor spells the numbers of frames, and its pictures are cut and written as those of Idefics 3.
    return module, hf.Idefics3Processor(hf.SmolVLMImageProcessorPil(**sizes), tokenizer(), image_seq_len=4)


def idefics2() -> tuple[nn.Module, Any]:
    """Four latents that read the whole picture."""
    perceiver = {"resampler_n_latents": 4, "resampler_depth": 1, "resampler_n_heads": 2, "resampler_head_dim": 8}
    perceiver |= {"num_key_value_heads": 2, "hidden_size": 32}
    vision = hf.Idefics2VisionConfig(**VISION)
    config = hf.Idefics2Config(
        vision_config=vision, text_config=hf.MistralConfig(**TEXT), perceiver_config=perceiver, image_token_id=IMAGE
    )
    reader = hf.Idefics2ImageProcessorPil(size={"longest_edge": SIDE, "shortest_edge": SIDE}, do_image_splitting=False)
    module = tiny_models.tiny(hf.Idefics2ForConditionalGeneration, config)
    return module, hf.Idefics2Processor(reader, tokenizer(), image_seq_len=4)


def mllama() -> tuple[nn.Module, Any]:
    """Words that look at the tiles by cross-attention."""
    vision = hf.MllamaVisionConfig(
        hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_global_layers=1, attention_heads=4,
        image_size=SIDE, patch_size=PATCH, vision_output_dim=64, intermediate_layers_indices=[0], max_num_tiles=4,
    )  # fmt: skip
    text = hf.MllamaTextConfig(**(TEXT | {"num_hidden_layers": 3}), cross_attention_layers=[1])
    config = hf.MllamaConfig(vision_config=vision, text_config=text, image_token_index=IMAGE)
    module = tiny_models.tiny(hf.MllamaForConditionalGeneration, config)
    return module, hf.MllamaProcessor(hf.MllamaImageProcessorPil(size=square(), max_image_tiles=4), tokenizer())


def paligemma() -> tuple[nn.Module, Any]:
    """A prompt that is seen both ways, the picture before it."""
    text = hf.GemmaConfig(**TEXT)
    config = hf.PaliGemmaConfig(
        vision_config=hf.SiglipVisionConfig(**VISION, vision_use_head=False, projection_dim=32), text_config=text,
        image_token_index=IMAGE, projection_dim=32,
    )  # fmt: skip
    reader = hf.SiglipImageProcessorPil(size=square())
    reader.image_seq_length = 16
    module = tiny_models.tiny(hf.PaliGemmaForConditionalGeneration, config)
    return module, hf.PaliGemmaProcessor(reader, tokenizer())


FAMILIES = [
    VisionLanguage("llava", llava),
    VisionLanguage("llava_next", llava_next, (100, 40)),
    VisionLanguage("llava_next_tall", llava_next, (50, 60)),
    VisionLanguage("qwen2_5_vl", qwen2_5_vl, (80, 48)),
    VisionLanguage("qwen3_vl", qwen3_vl, (80, 48)),
    VisionLanguage("gemma3", gemma3, image="<start>"),
    VisionLanguage("internvl", internvl, (96, 64)),
    VisionLanguage("idefics3", idefics3, (96, 64)),
    VisionLanguage("smolvlm", smolvlm, (64, 96)),
    VisionLanguage("mllama", mllama, (90, 50)),
    VisionLanguage("paligemma", paligemma),
]


def noise(size: tuple[int, int], *, seed: int = 0) -> Image.Image:
    """A picture of random blocks of four pixels."""
    generator = torch.Generator().manual_seed(seed)
    width, height = size
    blocks = torch.randint(0, 256, (-(-height // 4), -(-width // 4), 3), generator=generator, dtype=torch.uint8)
    pixels = blocks.repeat_interleave(4, 0).repeat_interleave(4, 1)[:height, :width]
    return Image.fromarray(pixels.numpy())
