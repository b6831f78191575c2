"""Tiny model folders of each kind, made once, and a way to call the command line in this process."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiny_models
import transformers
from typer.testing import CliRunner

from headscope.cli import app

Call = Callable[..., Any]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch) -> Call:
    """Run `headscope ARGUMENTS`: a result with exit_code, stdout and stderr."""
    monkeypatch.setenv("COLUMNS", "140")

    def run(*arguments: object, **options: Any) -> Any:
        return CliRunner().invoke(app, [str(argument) for argument in arguments], **options)

    return run


@pytest.fixture
def refusal(call: Call) -> Call:
    """Run a command that a user got wrong: the message, which must be all there is, with exit code 2."""

    def run(*arguments: object, **options: Any) -> str:
        result = call(*arguments, **options)
        assert result.exit_code == 2, result.output
        assert result.stdout == ""
        assert result.stderr.startswith("headscope: ") and result.stderr.count("\n") == 1
        return result.stderr

    return run


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders gpt (causal), bert (masked, pairs), marian (encoder-decoder), vit (images), longformer and llama."""
    root = tmp_path_factory.mktemp("models")
    tokenizer, pieces = tiny_models.tiny_tokenizer(), tiny_models.tiny_bert_tokenizer()
    for name, family, reader in (
        ("gpt", "gpt2", tokenizer),
        ("bert", "bert", pieces),
        ("marian", "marian", tokenizer),
        ("longformer", "longformer", pieces),
        ("llama", "llama", tokenizer),
        ("vit", "vit", None),
    ):
        tiny_models.FAMILIES[family].build().save_pretrained(root / name)  # type: ignore[operator]
        if reader is not None:
            reader.save_pretrained(root / name)
    size = {"height": tiny_models.IMAGE_SIZE, "width": tiny_models.IMAGE_SIZE}
    (root / "vit" / "preprocessor_config.json").write_text(
        json.dumps({"image_processor_type": "ViTImageProcessor", "size": size})
    )
    return root


@pytest.fixture(scope="session")
def long_gpt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A causal model that writes for as long as it is asked to."""
    folder = tmp_path_factory.mktemp("long")
    settings = tiny_models.GPT | {"n_positions": 8192, "eos_token_id": None}
    tiny_models.tiny(transformers.GPT2LMHeadModel, transformers.GPT2Config(**settings)).save_pretrained(folder)  # type: ignore[operator]
    tiny_models.tiny_tokenizer().save_pretrained(folder)
    return folder
