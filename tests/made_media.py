"""Pictures and sounds made by hand, and tiny models that take them, with what prepares their inputs."""

import io
import wave
from pathlib import Path
from typing import Any

import numpy as np
import tiny_models
import tiny_tokenizers
import transformers
from PIL import Image

import headscope as hs


def picture(width: int = 40, height: int = 30, mode: str = "RGB") -> Image.Image:
    """A smooth picture in which no two patches look alike."""
    y, x = np.mgrid[0:height, 0:width]
    red, green = x * 255 // max(1, width - 1), y * 255 // max(1, height - 1)
    image = Image.fromarray(np.stack([red, green, (red + green) // 2], -1).astype(np.uint8))
    if mode == "I;16":
        return Image.fromarray((np.asarray(image.convert("L")).astype(np.uint16)) * 257)
    return image.convert(mode)


def png(image: Image.Image, kind: str = "PNG") -> bytes:
    """The bytes of its file."""
    into = io.BytesIO()
    image.save(into, kind)
    return into.getvalue()


def wav(seconds: float = 0.2, rate: int = 16_000, channels: int = 1, pitch: float = 440) -> bytes:
    """A tone as a file of 16-bit PCM."""
    tone = np.sin(2 * np.pi * pitch * np.arange(int(seconds * rate)) / rate)
    into = io.BytesIO()
    with wave.open(into, "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((np.repeat(tone, channels) * 20_000).astype("<i2").tobytes())
    return into.getvalue()


def save_vit(folder: Path, *, grey: bool = False) -> None:
    """A random ViT of 6 × 6 patches; of greys, where asked for."""
    settings = tiny_models.PIXELS | {"image_size": 24, "patch_size": 4, "num_channels": 1 if grey else 3}
    config = transformers.ViTConfig(**settings)
    tiny_models.tiny(transformers.ViTForImageClassification, config).save_pretrained(folder)  # type: ignore[operator]
    mean = {"image_mean": [0.5], "image_std": [0.5]} if grey else {}
    transformers.ViTImageProcessorPil(size={"height": 24, "width": 24}, **mean).save_pretrained(folder)


def whisper() -> tuple[Any, Any]:
    """A random Whisper that hears one second as 50 frames and knows ten words."""
    config = transformers.WhisperConfig(
        vocab_size=10, num_mel_bins=8, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=32, decoder_ffn_dim=32, max_source_positions=50,
        max_target_positions=24, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
        suppress_tokens=None, begin_suppress_tokens=None,
    )  # fmt: skip
    module = tiny_models.tiny(transformers.WhisperForConditionalGeneration, config)
    extractor = transformers.WhisperFeatureExtractor(feature_size=8, chunk_length=1)
    return module, (extractor, tiny_tokenizers.word_tokenizer(start=True))


def many_languages() -> tuple[Any, Any]:
    """The same with the tokens of two languages, two tasks and of no timestamps, in place of some of its words."""
    module, processor = whisper()
    config: Any = module.generation_config
    config.lang_to_id = {"<|en|>": 3, "<|fr|>": 4}
    config.task_to_id = {"transcribe": 5, "translate": 6}
    config.no_timestamps_token_id = 9
    config.is_multilingual, config.return_timestamps, config._from_model_config = True, False, False
    config.eos_token_id = None
    return module, processor


def save_whisper(folder: Path, *, languages: bool = False) -> None:
    """The same as a folder that can be loaded."""
    module, (extractor, tokenizer) = many_languages() if languages else whisper()
    module.save_pretrained(folder)
    extractor.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def vit_trace(image: Image.Image | None = None) -> hs.Trace:
    """What the built-in ViT makes of a picture."""
    return hs.load("builtin:vit").run(picture() if image is None else image)
