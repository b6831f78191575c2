"""Pictures and sounds of every form become what a model takes, and their positions have names."""

import struct
import wave

import numpy as np
import pytest
import tiny_tokenizers
import torch
import transformers
from PIL import Image
from torch import nn

from headscope.errors import HeadscopeWarning, InputError
from headscope.models.inputs.media import picture
from headscope.models.inputs.prepare import collate, image_tokens, prepare, ready_inputs
from headscope.models.inputs.sounds import read_wave, resample
from headscope.traces.tokens import Tokens

SMALL = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 37}
PATCHED = {"image_size": 32, "patch_size": 8, **SMALL}
SEQ2SEQ = {
    "d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
    "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "max_position_embeddings": 24, "pad_token_id": 0,
}  # fmt: skip
NO_TEXT_IDS = {"bos_token_id": None, "eos_token_id": None}


@pytest.fixture(name="word_tokenizer")
def _word_tokenizer():
    return tiny_tokenizers.word_tokenizer()


@pytest.fixture(scope="module")
def vit():
    return transformers.ViTModel(transformers.ViTConfig(**PATCHED)).eval()


def image_processor(kind: str = "ViT", **options):
    return getattr(transformers, f"{kind}ImageProcessorPil")(size={"height": 32, "width": 32}, **options)


def tiny_vision():
    swin = {"image_size": 32, "patch_size": 2, "embed_dim": 8, "depths": [1, 1], "num_heads": [2, 2], "window_size": 4}
    no_mlp = {name: value for name, value in PATCHED.items() if name != "intermediate_size"}
    t = transformers
    return {
        "vit": (lambda: t.ViTModel(t.ViTConfig(**PATCHED)), ["[CLS]"]),
        "deit": (lambda: t.DeiTModel(t.DeiTConfig(**PATCHED)), ["[CLS]", "[DIST]"]),
        "dinov2": (lambda: t.Dinov2Model(t.Dinov2Config(**no_mlp)), ["[CLS]"]),
        "registers": (
            lambda: t.Dinov2WithRegistersModel(t.Dinov2WithRegistersConfig(num_register_tokens=2, **no_mlp)),
            ["[CLS]", "[REG0]", "[REG1]"],
        ),
        "beit": (lambda: t.BeitModel(t.BeitConfig(**PATCHED)), ["[CLS]"]),
        "siglip": (lambda: t.SiglipVisionModel(t.SiglipVisionConfig(**PATCHED)), []),
        "clip": (lambda: t.CLIPVisionModel(t.CLIPVisionConfig(**PATCHED)), ["[CLS]"]),
        "swin": (lambda: t.SwinModel(t.SwinConfig(**swin)), []),
    }


@pytest.mark.parametrize("family", ["vit", "deit", "dinov2", "registers", "beit", "siglip", "clip", "swin"])
def test_an_images_tokens_are_the_models_positions(family):
    make, special = tiny_vision()[family]
    model = make().eval()
    inputs = prepare(image_processor(), model, Image.new("RGB", (50, 40), "red"))
    tokens = inputs.tokens["main"]
    seen = []
    norm = next(m for m in model.modules() if isinstance(m, nn.LayerNorm) and m.normalized_shape[0] in (32, 8))
    norm.register_forward_hook(lambda module, arguments, out: seen.append(out.shape[1]))
    model(**collate([inputs], model).model_inputs)
    assert seen[0] == len(tokens)
    assert [token.text for token in tokens if token.special] == special
    rows, columns = tokens.grid
    assert tokens.texts[len(special) :] == [f"{row},{column}" for row in range(rows) for column in range(columns)]
    assert image_tokens(model.config, len(tokens)) == tokens


def test_a_grid_may_be_wide_and_later_stages_are_smaller():
    wide = transformers.ViTConfig(**(PATCHED | {"image_size": (32, 48)}))
    assert image_tokens(wide, 25).grid == (4, 6)
    swin = transformers.SwinConfig(image_size=32, patch_size=2, window_size=4)
    assert [image_tokens(swin, n).grid for n in (256, 64, 16)] == [(16, 16), (8, 8), (4, 4)]
    assert image_tokens(wide, 14) == Tokens.numbered(14, "patches")


def test_every_kind_of_picture_becomes_what_the_model_takes():
    ramp = np.tile(np.arange(0, 256, 16, dtype=np.uint8), (8, 1))
    colour = np.stack([ramp, ramp[:, ::-1], ramp], axis=-1)
    expected = np.asarray(Image.fromarray(colour))
    for source in (
        colour,
        colour / 255.0,
        np.moveaxis(colour, -1, 0),
        torch.from_numpy(colour.copy()).permute(2, 0, 1),
        torch.from_numpy(colour.copy()).permute(2, 0, 1) / 255,
        Image.fromarray(colour).convert("RGBA"),
        colour.astype(np.int64),
    ):
        assert np.array_equal(np.asarray(picture(source)), expected)
    for source in (ramp, ramp / 255.0, ramp[..., None], ramp[None], Image.fromarray(ramp)):
        assert np.array_equal(np.asarray(picture(source)), np.stack([ramp] * 3, axis=-1))
        assert np.array_equal(np.asarray(picture(source, 1)), ramp)
    assert picture(Image.fromarray(colour).convert("P")).mode == "RGB"
    deep = Image.fromarray(ramp.astype(np.uint16) * 257)
    assert np.array_equal(np.asarray(picture(deep, 1)), ramp)
    with pytest.warns(HeadscopeWarning, match="transparent parts"):
        assert picture(Image.new("RGBA", (2, 2), (0, 0, 0, 0))).getpixel((0, 0)) == (255, 255, 255)


def test_an_image_comes_from_a_path_an_array_or_a_list(tmp_path, vit):
    path = tmp_path / "red.png"
    Image.new("RGB", (20, 20), "red").save(path)
    processor = image_processor()
    by_path, by_name = prepare(processor, vit, path), prepare(processor, vit, str(path))
    two = prepare(processor, vit, [path, np.zeros((20, 20))])
    assert by_path == by_name == two[0] == prepare(processor, vit, image=path)
    assert by_path.kind == "image" and by_path.model_inputs["pixel_values"].shape == (3, 32, 32)
    assert collate(two, vit).model_inputs["pixel_values"].shape == (2, 3, 32, 32)
    assert len(prepare(processor, vit, np.zeros((2, 3, 9, 9)))) == 2


def test_without_an_image_processor_the_resizing_is_told(vit):
    with pytest.warns(HeadscopeWarning, match="resized to 32×32"):
        pixels = prepare(None, vit, Image.new("L", (9, 7), 255)).model_inputs["pixel_values"]
    assert pixels.shape == (3, 32, 32) and pixels.min() == pixels.max() == 1


def test_text_and_image_go_to_their_own_stacks(word_tokenizer):
    config = transformers.CLIPConfig(
        text_config={"vocab_size": 10, "max_position_embeddings": 16, **SMALL, "bos_token_id": 1, "eos_token_id": 2},
        vision_config=PATCHED,
    )
    model = transformers.CLIPModel(config).eval()
    processor = transformers.CLIPProcessor(
        image_processor("CLIP", crop_size={"height": 32, "width": 32}), word_tokenizer
    )
    cat = Image.new("RGB", (32, 32))
    first, two = prepare(processor, model, ["the nurse", "a doctor asked"], image=cat)
    assert first.kind == "multimodal" and {name: len(t) for name, t in first.tokens.items()} == {
        "text": 3,
        "vision": 17,
    }
    batch = collate([first, two], model, processor)
    assert model(**batch.model_inputs).logits_per_text.shape == (2, 2)
    assert batch.real["text"].tolist() == [[True] * 3 + [False], [True] * 4] and batch.real["vision"].shape == (2, 17)
    with pytest.raises(InputError, match="the image is missing"):
        prepare(processor, model, "the nurse")


@pytest.mark.parametrize(("width", "tolerance"), [(1, 1e-2), (2, 1e-4), (3, 1e-6), (4, 1e-6)])
def test_a_wave_file_of_any_width_is_read(tmp_path, width, tolerance):
    left = 0.5 * np.sin(np.arange(200) / 7)
    scaled = np.stack([left, left / 2], axis=1) * (2 ** (8 * width - 1) - 1)
    if width == 1:
        data = (scaled + 128).round().astype(np.uint8).tobytes()
    else:
        data = scaled.round().astype("<i4").view(np.uint8).reshape(-1, 4)[:, :width].tobytes()
    path = tmp_path / "sound.wav"
    with wave.open(str(path), "wb") as file:
        file.setparams((2, width, 8000, 0, "NONE", "not compressed"))
        file.writeframes(data)
    samples, rate = read_wave(path)
    assert rate == 8000 and np.allclose(samples, left * 0.75, atol=tolerance)


def riff(kind: int, bits: int, data: bytes, *, before: bytes = b"", more: bytes = b"", channels: int = 1) -> bytes:
    """A wav file as programs write it: the format, and other chunks between."""
    form = struct.pack("<HHIIHH", kind, channels, 8000, 8000 * channels * bits // 8, channels * bits // 8, bits) + more
    chunks = before + b"fmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks


def test_wave_files_of_floats_and_with_long_headers_are_read(tmp_path):
    tone = 0.5 * np.sin(np.arange(200) / 7)
    path = tmp_path / "sound.wav"
    junk = b"JUNK" + struct.pack("<I", 3) + b"abc\0"  # chunks are filled up to even lengths
    subformat = struct.pack("<HHIH", 22, 24, 4, 1) + bytes(14)
    threes = np.stack([tone, tone, tone], 1)
    whole = (threes * 2**23).round().astype("<i4").view(np.uint8).reshape(-1, 4)[:, :3].tobytes()
    for data in (
        riff(3, 32, tone.astype("<f4").tobytes()),
        riff(3, 64, tone.astype("<f8").tobytes(), before=junk),
        riff(0xFFFE, 24, whole, more=subformat, channels=3),
    ):
        path.write_bytes(data)
        samples, rate = read_wave(path)
        assert rate == 8000 and np.allclose(samples, tone, atol=1e-6)
    for data, error_text in (
        (riff(6, 8, bytes(8)), "compressed \\(A-law\\)"),
        (riff(3, 16, bytes(8)), "samples of 16 bits"),
        (riff(1, 16, bytes(8), channels=0), "cannot be read|samples of"),
        (riff(1, 16, b"")[:20], "cannot be read as sound"),
        (b"RIFF\0\0\0\0WAVEdata\4\0\0\0abcd", "before their format"),
    ):
        path.write_bytes(data)
        with pytest.raises(InputError, match=error_text):
            read_wave(path)


def test_resampling_keeps_a_tone():
    tone = np.sin(2 * np.pi * 100 * np.arange(800) / 8000)
    assert np.allclose(resample(tone, 8000, 16000), np.sin(2 * np.pi * 100 * np.arange(1600) / 16000), atol=1e-5)
    assert np.allclose(resample(tone, 8000, 4000), np.sin(2 * np.pi * 100 * np.arange(400) / 4000), atol=1e-5)


def test_raw_sound_has_as_many_tokens_as_the_model_has_frames():
    config = transformers.Wav2Vec2Config(
        conv_dim=(32, 32), conv_kernel=(10, 3), conv_stride=(5, 2), num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=2, **SMALL,
    )  # fmt: skip
    model = transformers.Wav2Vec2Model(config).eval()
    extractor = transformers.Wav2Vec2FeatureExtractor()
    inputs = prepare(extractor, model, np.random.default_rng(0).normal(size=(2, 1600)), sampling_rate=16000)
    output = model(**collate([inputs], model).model_inputs)
    assert output.last_hidden_state.shape[1] == len(inputs.tokens["main"])
    with pytest.raises(InputError, match="sampling_rate="):
        prepare(extractor, model, np.zeros(1600))
    with pytest.raises(InputError, match="too short"):
        prepare(extractor, model, np.zeros(5), sampling_rate=16000)
    with pytest.raises(InputError, match="NaN"):
        prepare(extractor, model, np.full(1600, np.nan), sampling_rate=16000)


def test_whisper_starts_once():
    tokenizer = tiny_tokenizers.word_tokenizer(start=True)
    config = transformers.WhisperConfig(
        vocab_size=10, num_mel_bins=8, max_source_positions=50, max_target_positions=9, decoder_start_token_id=1,
        **NO_TEXT_IDS, **SEQ2SEQ,
    )  # fmt: skip
    model = transformers.WhisperForConditionalGeneration(config).eval()
    processor = transformers.WhisperProcessor(
        transformers.WhisperFeatureExtractor(feature_size=8, chunk_length=1), tokenizer
    )
    sound = np.sin(np.arange(4000) / 5)
    inputs = prepare(processor, model, (sound, "the nurse"), sampling_rate=8000)
    assert inputs.kind == "audio" and inputs.tokens["encoder"].kind == "frames"
    assert inputs.tokens["encoder"].texts[:2] == ["0.00s", "0.02s"]
    assert inputs.tokens["decoder"].texts == ["<s>", "the", "nurse"]
    output = model(**collate([inputs], model, processor).model_inputs)
    assert output.encoder_last_hidden_state.shape[1] == len(inputs.tokens["encoder"])
    with pytest.raises(InputError, match=r"2\.00 s long but the model hears 1\.00 s"):
        prepare(processor, model, np.zeros(16000), sampling_rate=8000)
    with pytest.raises(InputError, match="positions for 9"):
        prepare(processor, model, (sound, "the nurse " * 9), sampling_rate=8000)
    with pytest.raises(InputError, match=r"^the file 'the nurse' does not exist"):
        prepare(processor, model, "the nurse")


def test_wrong_pixels_are_refused(vit):
    for shape, message in (
        ((1, 32, 32), "takes 3 channels"),
        ((3, 40, 40), "positions for 32×32"),
        ((32, 32), "must have 3 axes"),
    ):
        with pytest.raises(InputError, match=message):
            prepare(None, vit, inputs={"pixel_values": torch.zeros(shape)})
    with pytest.raises(InputError, match="floating-point"):
        prepare(None, vit, inputs={"pixel_values": torch.zeros(3, 32, 32, dtype=torch.long)})
    larger = ready_inputs(None, vit, {"pixel_values": torch.zeros(3, 40, 32), "interpolate_pos_encoding": True})
    assert vit(**larger.model_inputs).last_hidden_state.shape[1] == larger.real["main"].shape[1] == 21


def test_files_that_are_not_what_they_should_be_are_refused(tmp_path, vit):
    with pytest.raises(InputError, match="does not exist"):
        prepare(image_processor(), vit, tmp_path / "none.png")
    with pytest.raises(InputError, match="is a folder"):
        prepare(image_processor(), vit, tmp_path)
    (tmp_path / "text.png").write_text("no image")
    with pytest.raises(InputError, match="cannot be read as an image"):
        prepare(image_processor(), vit, tmp_path / "text.png")
    (tmp_path / "text.wav").write_text("no sound")
    with pytest.raises(InputError, match="cannot be read as sound"):
        read_wave(tmp_path / "text.wav")
    with pytest.raises(InputError, match="web address"):
        prepare(image_processor(), vit, "https://example.org/cat.png")


def test_arrays_that_are_no_image_are_refused():
    for array, message in (
        (np.full((4, 4), np.nan), "NaN"),
        (np.full((4, 4), -1.0), "pixel_values="),
        (np.zeros((5, 5, 7)), "this one has"),
        (np.zeros((0, 4)), "empty"),
    ):
        with pytest.raises(InputError, match=message):
            picture(array)


def test_a_real_vit_takes_grey_pictures(shared_weights):
    folder = shared_weights / "vit-mnist"
    model = transformers.ViTForImageClassification.from_pretrained(folder, local_files_only=True).eval()
    processor = transformers.AutoImageProcessor.from_pretrained(folder, local_files_only=True)
    samples = np.load(folder / "samples" / "mnist_test_first100.npz")
    images, labels = (samples[name] for name in sorted(samples.files, key=lambda name: -samples[name].ndim)[:2])
    examples = prepare(processor, model, [Image.fromarray(image.reshape(28, 28)) for image in images[:20]])
    assert examples[0].tokens["main"].grid == (7, 7)
    predictions = model(**collate(examples, model).model_inputs).logits.argmax(-1)
    assert (predictions.numpy() == labels[:20].reshape(-1)).mean() > 0.9
