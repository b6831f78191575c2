import json
import sys
from pathlib import Path

import pytest

import headscope as hs
from headscope.cli import demo as command
from headscope.cli.tiny import tiny_model


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation without built-in models."""
    monkeypatch.setattr(command, "BUILTIN", tmp_path)


def test_the_demo_shows_heads_and_what_silencing_one_does(call, bare) -> None:
    result = call("demo")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    for part in ("tiny random GPT-2", "tokens 11: The", "predicts at 10 (She)", "sharpest of 8 heads", "hs.silence('L"):
        assert part in result.stdout


def test_its_numbers_are_those_of_the_two_runs(call, bare) -> None:
    told = json.loads(call("demo", "--json").stdout)
    model = tiny_model()
    before = {one.text: one.probability for one in model.run(command.TEXT).predictions(50)}
    quiet = model.run(command.TEXT, [hs.silence(told["silenced"])])
    after = {one.text: one.probability for one in quiet.predictions(50)}
    moved = 0.0
    for one in told["changes"]:
        assert one["before"] == pytest.approx(before.get(one["text"], 0.0), abs=1e-5)
        assert one["after"] == pytest.approx(after.get(one["text"], 0.0), abs=1e-5)
        moved += abs(one["after"] - one["before"])
    assert moved > 0.01


def test_the_tiny_model_is_the_same_every_time() -> None:
    first, second = tiny_model(), tiny_model()
    for one, other in zip(first.module.parameters(), second.module.parameters(), strict=True):
        assert bool((one == other).all())
    assert first.tokenizer.get_vocab() == second.tokenizer.get_vocab()
    assert first.warnings == []


def test_the_built_in_model_is_used_where_there_is_one(call, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "BUILTIN", models)
    monkeypatch.setattr(sys.modules["headscope.models.load"], "BUILTIN", models)
    assert json.loads(call("demo", "--json").stdout)["model"] == "builtin:gpt"
