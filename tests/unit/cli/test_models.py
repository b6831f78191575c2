import json
import subprocess
import sys
from pathlib import Path

import pytest
import tiny_models
from safetensors.numpy import save_file

from headscope.cli import models as command
from headscope.cli.families import FAMILIES, WAYS


def test_the_table_of_families_is_that_of_the_tests() -> None:
    ways = {key: way for way, groups in FAMILIES.items() for group in groups.values() for key in group}
    assert ways == {name: family.way for name, family in tiny_models.FAMILIES.items()}
    assert set(FAMILIES) == set(WAYS)


def test_listing_shows_every_family_and_needs_no_model(call) -> None:
    result = call("models")
    assert result.exit_code == 0
    for name in ("GPT-2", "DeBERTa", "Longformer", "banded"):
        assert name in result.stdout
    printed = json.loads(call("models", "--json").stdout)
    assert sum(len(keys) for keys in printed["families"].values()) == len(tiny_models.FAMILIES)


def test_built_in_models_are_described_from_their_cards(call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy as np

    cards = {
        "plain": "# Plain\n\nA model [of] letters.\n\nMore.",
        "fronted": "---\nlicense: mit\ndescription: 'Reads digits.'\n---\n# Digits\nNot this.",
        "headed": "---\nlicense: mit\n---\n\n# Heading\n\n## Another\n\nThe first words.",
        "cardless": None,
    }
    for name, card in cards.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text("{}")
        if card is not None:
            (tmp_path / name / "README.md").write_text(card)
            save_file({"a": np.zeros((40, 50)), "b": np.zeros(7)}, tmp_path / name / "model.safetensors")
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "config.json").write_text("{}")
    (tmp_path / "damaged" / "model.safetensors").write_bytes(b"\x05\0\0\0\0\0\0\0nope!")
    monkeypatch.setattr(command, "BUILTIN", tmp_path)
    models_by_name = {model["name"]: model for model in json.loads(call("models", "--json").stdout)["builtin"]}
    assert {name: model["description"] for name, model in models_by_name.items()} == {
        "builtin:plain": "A model [of] letters.",
        "builtin:fronted": "Reads digits.",
        "builtin:headed": "The first words.",
        "builtin:cardless": "",
        "builtin:damaged": "",
    }
    assert models_by_name["builtin:plain"]["parameters"] == 2007
    assert (
        models_by_name["builtin:cardless"]["parameters"] is None
        and models_by_name["builtin:damaged"]["parameters"] is None
    )
    table = call("models").stdout
    assert "A model [of] letters." in table and "2.0 k" in table


def test_listing_and_help_do_not_import_torch() -> None:
    script = """
import sys
from headscope.cli import app
for arguments in (["models"], ["models", "--json"], ["--help"], ["serve", "--help"], ["--version"]):
    try:
        app(arguments)
    except SystemExit as left:
        assert not left.code, arguments
assert not {"torch", "transformers", "numpy"} & set(sys.modules), "a heavy import"
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_coverage_tells_layers_groups_and_the_way_in(call, models: Path) -> None:
    coverage = json.loads(call("models", models / "llama", "--json").stdout)
    assert coverage["class"] == "LlamaForCausalLM" and coverage["n_heads"] == 8 and coverage["missed"] == []
    assert [layer["site"] for layer in coverage["layers"]] == ["L0", "L1"]
    assert {
        (layer["n_heads"], layer["n_key_heads"], layer["head_dim"], layer["way"]) for layer in coverage["layers"]
    } == {(4, 2, 8, "routed")}
    assert all(coverage[name]["available"] for name in ("contributions", "neurons", "residual", "lens"))
    table = call("models", models / "llama").stdout
    assert "2: L0–L1" in table and "2 (each for 2)" in table and "what came before" in table


def test_coverage_tells_stacks_apart(call, models: Path) -> None:
    table = call("models", models / "marian").stdout
    for part in ("encoder", "decoder", "cross (decoder → encoder)", "3: L0–L2"):
        assert part in table


def test_what_a_model_does_not_give_is_said_with_the_reason(call, models: Path) -> None:
    table = call("models", models / "vit").stdout
    assert "– lens (model.lens): the model has no language-model head" in table
    assert "takes images" in table


def test_a_window_is_not_everything(call, models: Path) -> None:
    coverage = json.loads(call("models", models / "longformer", "--json").stdout)
    assert {(layer["way"], layer["window"]) for layer in coverage["layers"]} == {("banded", 3)}
    table = " ".join(call("models", models / "longformer").stdout.split())
    assert "2 to each side" in table and "everything" not in table


def test_attention_that_is_missed_is_named(call, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from headscope.models import Model

    plain = Model.layout.fget  # type: ignore[attr-defined]
    missed = property(lambda self: replace(plain(self), missed=("pooler.attention",)))
    monkeypatch.setattr(Model, "layout", missed)
    table = call("models", models / "bert").stdout
    assert "✗ not captured: pooler.attention: the probe (given" in table


@pytest.mark.parametrize(("name", "error_text"), [("/no/such/folder", "no folder"), ("{models}", "no config.json")])
def test_a_model_that_cannot_be_loaded_is_refused(refusal, models: Path, name: str, error_text: str) -> None:
    assert error_text in refusal("models", name.replace("{models}", str(models)), "--json")


def test_coverage_of_real_checkpoints(call, shared_weights: Path) -> None:
    coverage = json.loads(call("models", shared_weights / "vit-mnist", "--json").stdout)
    assert coverage["coverage"].startswith("6/6") and coverage["takes"] == "images"
