"""Models that read an image within a text: each stack has its own tokens from the first run on."""

import made_media
import pytest
import tiny_models
import torch
import transformers
from tokenizers import Tokenizer, pre_tokenizers
from tokenizers import models as token_models

import headscope as hs
from headscope.models import Model
from headscope.sites import Site

WORDS = ["<pad>", "<s>", "</s>", "<unk>", "<image>", "<video>", "what", "is", "the", "cat"]
IMAGE, VIDEO = 4, 5
TEXT = "<image> what is the cat"


def tokenizer() -> transformers.PreTrainedTokenizerFast:
    backend = Tokenizer(token_models.WordLevel({word: at for at, word in enumerate(WORDS)}, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    names = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
    special = ["<image>", "<video>"]
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend, additional_special_tokens=special, **names)


def llava() -> tuple[torch.nn.Module, transformers.LlavaProcessor]:
    vision = transformers.CLIPVisionConfig(**tiny_models.PIXELS)
    text = transformers.LlamaConfig(**(tiny_models.GROUPED | tiny_models.DEEPER | {"vocab_size": len(WORDS)}))
    config = transformers.LlavaConfig(vision_config=vision, text_config=text, image_token_index=IMAGE)
    module = tiny_models.tiny(transformers.LlavaForConditionalGeneration, config)
    size = {"height": tiny_models.IMAGE_SIZE, "width": tiny_models.IMAGE_SIZE}
    reader = transformers.CLIPImageProcessorPil(size=size, crop_size=size)
    options = {"vision_feature_select_strategy": "default", "num_additional_image_tokens": 1, "image_token": "<image>"}
    return module, transformers.LlavaProcessor(reader, tokenizer(), patch_size=vision.patch_size, **options)


def check(trace: hs.Trace) -> None:
    main, vision = trace.tokens["main"], trace.tokens["vision"]
    assert main.kind == "text" and main.texts[-4:] == ["what", "is", "the", "cat"]
    assert main.texts[:-4] == [f"{row},{column}" for row in range(3) for column in range(3)]
    assert vision.kind == "patches" and vision.texts[:2] == ["[CLS]", "0,0"] and vision.grid == (3, 3)
    for site, layer in trace.layers.items():
        assert (layer.n_queries, layer.n_keys) == (len(trace.tokens[site.stack]), len(trace.tokens[layer.key_stack]))


def test_words_are_words_and_patches_are_patches_from_the_first_run_on():
    model = Model(*llava())
    assert model.stacks == ("main", "vision")  # the probe at load reads a picture in a text
    for _ in range(2):
        check(model.run(TEXT, image=made_media.picture()))


def test_ready_inputs_have_the_same_tokens():
    module, processor = llava()
    model = Model(module, processor)
    ready = processor(text=[TEXT], images=[made_media.picture()], return_tensors="pt")
    for _ in range(2):
        check(model.run(inputs=dict(ready)))


def test_a_model_that_its_first_run_probes_has_them_too(monkeypatch):
    for maker in ("probe_inputs", "picture_inputs"):
        monkeypatch.setattr(f"headscope.models.probed_module.{maker}", lambda _: None)
    model = Model(*llava())
    assert not model.has_layout
    check(model.run(TEXT, image=made_media.picture()))


@pytest.mark.filterwarnings("ignore")
def test_patches_packed_into_one_row_are_numbered():
    """Qwen's patches of all images lie in one row; how many a layer sees is known to the model alone."""
    text = tiny_models.GROUPED | {"vocab_size": len(WORDS), "num_hidden_layers": 2}
    rope = {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 1e4}
    config = transformers.Qwen2VLConfig(
        text_config=text | {"rope_parameters": rope},
        vision_config={"depth": 2, "embed_dim": 32, "hidden_size": 32, "num_heads": 4, "patch_size": 14},
        image_token_id=IMAGE, video_token_id=VIDEO, vision_start_token_id=1, vision_end_token_id=2,
    )  # fmt: skip
    model = Model(tiny_models.tiny(transformers.Qwen2VLForConditionalGeneration, config), tokenizer())
    reader = transformers.Qwen2VLImageProcessorPil(min_pixels=28 * 56, max_pixels=28 * 84)
    seen = dict(reader(images=[made_media.picture(84, 28)], return_tensors="pt"))
    n_patches = int(seen["image_grid_thw"].prod())
    ids = torch.tensor([[1, *[IMAGE] * (n_patches // 4), 2, 8, 9]])
    trace = model.run(inputs={"input_ids": ids, "mm_token_type_ids": (ids == IMAGE).long(), **seen})
    assert trace.tokens["main"].texts[-2:] == ["the", "cat"]
    assert len(trace.tokens["vision"]) == n_patches == trace.layers[Site("vision", 0)].n_queries
