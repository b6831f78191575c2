"""A GPT-2 of a few thousand random weights with a byte-level tokenizer, for installations without built-in models."""

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headscope.models import Model

WIDTH, LAYERS, HEADS, POSITIONS, VOCABULARY = 48, 2, 4, 128, 320
N_BYTES = 257  # and the end of text
SENTENCES = (
    "The doctor asked the nurse a question. She said that she did not know the answer.",
    "A small dog sat on the mat and looked at the cat.",
)
CONFIG = {
    "model_type": "gpt2",
    "architectures": ["GPT2LMHeadModel"],
    "vocab_size": VOCABULARY,
    "n_positions": POSITIONS,
    "n_embd": WIDTH,
    "n_layer": LAYERS,
    "n_head": HEADS,
    "bos_token_id": 0,
    "eos_token_id": 0,
    "dtype": "float32",
}


def tiny_model() -> "Model":
    """Write the model to a folder that is gone afterwards, and load it as any other: nothing is downloaded."""
    from headscope.models import load

    with tempfile.TemporaryDirectory(prefix="headscope-") as place:
        folder = Path(place)
        write_model(folder)
        model = load(folder)
    model.name = "tiny random GPT-2"
    return model


def write_model(folder: Path) -> None:
    """The files of a plain Hugging Face model: configuration, weights, tokenizer."""
    import torch
    from safetensors.torch import save_file

    generator = torch.Generator().manual_seed(0)
    sizes = {"wte.weight": (VOCABULARY, WIDTH), "wpe.weight": (POSITIONS, WIDTH), "ln_f.weight": (WIDTH,)}
    sizes["ln_f.bias"] = (WIDTH,)
    for layer in range(LAYERS):
        for name, shape in (
            ("ln_1", (WIDTH,)),
            ("attn.c_attn", (WIDTH, 3 * WIDTH)),
            ("attn.c_proj", (WIDTH, WIDTH)),
            ("ln_2", (WIDTH,)),
            ("mlp.c_fc", (WIDTH, 4 * WIDTH)),
            ("mlp.c_proj", (4 * WIDTH, WIDTH)),
        ):
            sizes[f"h.{layer}.{name}.weight"] = shape
            sizes[f"h.{layer}.{name}.bias"] = shape[-1:]
    weights = {}
    for name, shape in sizes.items():
        # Far larger than a fresh model's, so that patterns are peaked and there is something to see.
        noise = torch.randn(shape, generator=generator) * (0.3 if len(shape) == 2 else 0.05)
        weights[f"transformer.{name}"] = 1 + noise if ".ln_" in f".{name}" and name.endswith("weight") else noise
    # Single bytes, most of which are no text by themselves, become less likely than words.
    weights["transformer.wte.weight"][:N_BYTES] *= 0.3
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(CONFIG))
    _write_tokenizer(folder)


def _write_tokenizer(folder: Path) -> None:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)  # type: ignore[assignment]
    backend.decoder = decoders.ByteLevel()  # type: ignore[assignment]
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(SENTENCES, trainer)
    backend.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|endoftext|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
