import json
import os
import shutil
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from headscope.cli import doctor as command
from headscope.cli import models as listing
from headscope.models import loading
from headscope.models.capture.session import Session


@pytest.fixture
def builtin(models: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installation whose built-in models are the tiny ones."""
    monkeypatch.setattr(listing, "BUILTIN", models)
    monkeypatch.setattr(loading, "BUILTIN", models)
    return models


def test_a_sound_installation_is_fine(call, builtin: Path) -> None:
    result = call("doctor", "--json")
    report = json.loads(result.stdout)
    broken = [check for check in report["checks"] if check["state"] == "broken"]
    assert broken == [] and report["fine"] and result.exit_code == 0
    checks = {check["name"]: check for check in report["checks"]}
    assert {"Python", "torch", "transformers", "tokenizers", "safetensors", "devices", "memory", "disk"} <= set(checks)
    # Every kind of model is run: causal, masked, encoder-decoder, images.
    for name in ("gpt", "bert", "marian", "vit"):
        assert "verified, max difference 0.0" in checks[f"builtin:{name}"]["detail"]


def test_without_built_in_models_a_tiny_one_is_run(call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "BUILTIN", tmp_path)
    result = call("doctor")
    assert result.exit_code == 0, result.output
    assert "✓ tiny model: loads, traces 8 heads; verified, max difference 0.0" in result.stdout
    assert "– built-in models: none in this installation" in result.stdout
    assert result.stdout.rstrip().endswith("Everything works.")


@pytest.fixture
def half_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """A capture that is wrong: every attention gives a half more than it should."""
    attend = Session.attend

    def wrong(self: Session, call: Any) -> Any:
        out, pattern = attend(self, call)
        return out + 0.5, pattern

    monkeypatch.setattr(Session, "attend", wrong)


@pytest.mark.filterwarnings("ignore::headscope.errors.HeadscopeWarning")
def test_a_wrong_output_is_a_broken_line_and_exit_code_1(
    call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, half_more: None
) -> None:
    monkeypatch.setattr(listing, "BUILTIN", tmp_path)
    result = call("doctor")
    assert result.exit_code == 1
    assert "✗ tiny model: NOT VERIFIED: layer L0 (transformer.h.0.attn) differs from the model's own" in result.stdout
    assert "Something is broken" in result.stdout


@pytest.mark.filterwarnings("ignore::headscope.errors.HeadscopeWarning")
def test_a_model_is_compared_with_its_own_attention(call, models: Path) -> None:
    result = call("doctor", str(models / "gpt"))
    assert result.exit_code == 0, result.output
    for text in ("its own eager", "padded batch of 12 and 7 tokens", "2 cached decoding steps", "✓ Observed, it"):
        assert text in result.stdout
    report = json.loads(call("doctor", str(models / "gpt"), "--json").stdout)
    assert report["is_equal"] and report["difference"] == 0 and report["n_patterns"] > 0


@pytest.mark.filterwarnings("ignore::headscope.errors.HeadscopeWarning")
def test_a_model_that_is_read_wrong_is_named_and_exit_code_1(call, models: Path, half_more: None) -> None:
    result = call("doctor", str(models / "gpt"))
    assert result.exit_code == 1
    assert "layer L0 (transformer.h.0.attn) differs" in result.stdout
    assert "✗ Do not trust what is shown of this model" in result.stdout


def test_a_damaged_built_in_model_is_named(call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "config.json").write_text("{")
    monkeypatch.setattr(listing, "BUILTIN", tmp_path)
    monkeypatch.setattr(loading, "BUILTIN", tmp_path)
    result = call("doctor", "--json")
    checks = {check["name"]: check for check in json.loads(result.stdout)["checks"]}
    assert result.exit_code == 1 and checks["builtin:half"]["state"] == "broken"


def test_versions_outside_the_range_and_missing_packages_come_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    assert command._package("numpy", ">=2.0").state == "ok"
    old = command._package("numpy", ">=99")
    assert (old.state, old.advice) == ("broken", "pip install 'numpy>=99'")
    gone = command._package("no-such-package", ">=1")
    assert (gone.state, gone.detail) == ("broken", "not installed")
    monkeypatch.setattr(metadata, "version", lambda name: "1.0")
    assert "cannot be imported" in command._package("no_such_package", ">=1").detail


def test_an_installation_without_metadata_is_a_broken_line(
    call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(listing, "BUILTIN", tmp_path)
    monkeypatch.setattr(metadata, "requires", gone)
    result = call("doctor")
    assert result.exit_code == 1
    assert "✗ Looking at extras: PackageNotFoundError" in result.stdout


def test_missing_extras_say_what_installs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "_is_installed", lambda name: name != "fastapi")
    checks = {check.name: check for check in command._extras()}
    assert set(checks) == {f"extra {name}" for name in command.EXTRAS}
    assert checks["extra serve"] == command.HealthCheck(
        "extra serve", "note", "without fastapi", "pip install 'headscope[serve]'"
    )
    assert checks["extra notebook"].state == "ok"


def test_settings_of_the_hub_are_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "models--gpt2").mkdir()
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    cache, hub = command._hub()
    assert cache.detail == f"{tmp_path} (1 models)" and "offline" in hub.detail
    monkeypatch.delenv("HF_HUB_OFFLINE")
    assert command._hub()[1].state == "ok"


def test_what_killed_commands_left_is_listed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    left = tmp_path / "models" / ".headscope-0123456789abcdef.partial"
    left.mkdir(parents=True)
    (left / "weights").write_bytes(bytes(2_000_000))
    os.utime(left, (0, 0))
    monkeypatch.chdir(tmp_path)
    (check,) = command._unfinished_files()
    assert check.state == "note" and check.detail == f"{left} (2.0 MB)" and "delete" in check.advice
    shutil.rmtree(left)
    assert command._unfinished_files()[0].state == "ok"
