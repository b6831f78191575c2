"""The models in the folders that a server may read, as the page lists them: found by their files, not loaded."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headscope.files import parse_json

MAX_MODELS = 100
MAX_DEPTH = 4
MAX_VISITED = 5000
"""Folders looked at in all: `--allow /` has to start too."""
MAX_CONFIG_BYTES = 1_000_000


@dataclass(frozen=True)
class ModelFolder:
    """One model: its folder, what its config says of it in a few words, and what it takes as far as files tell."""

    path: Path
    about: str
    kinds: tuple[str, ...] = ()
    """Of one that reads no text, `image` or `audio`; empty where only loading it tells."""


def model_folders(roots: Sequence[Path]) -> list[ModelFolder]:
    """The models with safetensors weights under these folders, in the order of their paths, at most 100."""
    models: dict[Path, ModelFolder] = {}
    n_visited = 0
    for root in roots:
        for folder, names in _folders(root):
            n_visited += 1
            if n_visited > MAX_VISITED or len(models) == MAX_MODELS:
                return list(models.values())
            about = _about(folder, names)
            if about is not None:
                models.setdefault(folder, ModelFolder(folder, about, _kinds(folder, names)))
    return list(models.values())


def _folders(root: Path) -> Iterator[tuple[Path, list[str]]]:
    """Every folder down to a depth, with the names of its files; links to folders and hidden folders left out."""
    for place, folders, files in os.walk(root):
        folder = Path(place)
        is_deepest = len(folder.relative_to(root).parts) >= MAX_DEPTH
        folders[:] = [] if is_deepest else sorted(name for name in folders if not name.startswith("."))
        yield folder, files


def _about(folder: Path, names: Sequence[str]) -> str | None:
    """The architecture that a model's config names; None where the folder holds no model that can be loaded here."""
    if "config.json" not in names or not any(name.endswith(".safetensors") for name in names):
        return None
    config = _settings(folder / "config.json")
    if not isinstance(config.get("model_type"), str):
        return None
    architectures = config.get("architectures")
    first = architectures[0] if isinstance(architectures, list) and architectures else config["model_type"]
    return str(first)[:80]


def _kinds(folder: Path, names: Sequence[str]) -> tuple[str, ...]:
    """What a model without a tokenizer takes, by its preprocessor."""
    has_tokenizer = any(name.startswith(("tokenizer", "vocab", "spiece", "sentencepiece")) for name in names)
    if has_tokenizer or "preprocessor_config.json" not in names:
        return ()
    settings = _settings(folder / "preprocessor_config.json")
    if "image_processor_type" in settings:
        return ("image",)
    return ("audio",) if "feature_extractor_type" in settings and "sampling_rate" in settings else ()


def _settings(file: Path) -> dict[str, Any]:
    """A JSON object from a file of bounded size; empty where it holds none."""
    try:
        with file.open("rb") as opened:
            settings = parse_json(opened.read(MAX_CONFIG_BYTES))
    except (OSError, ValueError):
        return {}
    return settings if isinstance(settings, dict) else {}
