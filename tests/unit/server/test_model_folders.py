"""Models in the folders that a server may read are listed without being loaded."""

import json
from pathlib import Path

from headscope.server.catalogue import Catalogue
from headscope.server.model_folders import MAX_DEPTH, MAX_MODELS, model_folders
from headscope.server.options import Options


def write_model(folder: Path, config: object | None = None, weights: str = "model.safetensors") -> Path:
    folder.mkdir(parents=True)
    text = json.dumps({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]} if config is None else config)
    (folder / "config.json").write_text(text)
    (folder / weights).write_bytes(b"")
    return folder


def test_models_are_listed_by_their_files(tmp_path: Path) -> None:
    expected = {write_model(tmp_path / "a"), write_model(tmp_path / "group" / "b" / "snapshots" / "1234")}
    write_model(tmp_path / "pickled", weights="pytorch_model.bin")  # which the workbench never reads
    write_model(tmp_path / "adapter", {"r": 8})
    write_model(tmp_path / "list", [1])
    write_model(tmp_path / ".cache" / "hidden")
    write_model(tmp_path.joinpath(*"abcdefg"[: MAX_DEPTH + 1], "deep"))
    (tmp_path / "link").symlink_to(tmp_path, target_is_directory=True)
    models = model_folders([tmp_path])
    assert {model.path for model in models} == expected
    assert {model.about for model in models} == {"GPT2LMHeadModel"}


def test_a_list_is_bounded(tmp_path: Path) -> None:
    for number in range(MAX_MODELS + 5):
        write_model(tmp_path / f"model{number:03}")
    assert len(model_folders([tmp_path])) == MAX_MODELS
    assert model_folders([tmp_path / "not there"]) == []


def test_the_page_is_told_of_models_that_were_written_later(start, tmp_path: Path) -> None:
    client = start(allow=(tmp_path,))
    folder = str(write_model(tmp_path / "new"))
    models = {model["name"]: model for model in client.get("/api/settings").json()["models"]}
    assert models[folder]["about"] == "GPT2LMHeadModel" and not models[folder]["is_loaded"]


def test_models_that_read_no_text_are_known_by_their_preprocessor(start, tmp_path: Path) -> None:
    preprocessors = {
        "vit": {"image_processor_type": "ViTImageProcessor"},
        "wav2vec2": {"feature_extractor_type": "Wav2Vec2FeatureExtractor", "sampling_rate": 16000},
        "clip": {"image_processor_type": "CLIPImageProcessor"},
        "odd": [1],
    }
    for name, settings in preprocessors.items():
        write_model(tmp_path / name).joinpath("preprocessor_config.json").write_text(json.dumps(settings))
    (tmp_path / "clip" / "tokenizer.json").write_text("{}")
    write_model(tmp_path / "gpt2")
    kinds = {folder.path.name: folder.kinds for folder in model_folders([tmp_path])}
    assert kinds == {"vit": ("image",), "wav2vec2": ("audio",), "clip": (), "odd": (), "gpt2": ()}
    # So the page offers them for no text before they are loaded.
    models = start(allow=(tmp_path,)).get("/api/settings").json()["models"]
    assert {Path(model["name"]).name: model["kinds"] for model in models}["vit"] == ["image"]


def test_without_permission_nothing_is_listed(tmp_path: Path) -> None:
    catalogue = Catalogue(Options())
    catalogue.look_for_folders()
    assert catalogue.folders == {}
