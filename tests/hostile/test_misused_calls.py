"""Wrong calls of the library: every answer is a `HeadscopeError` that says something, and none is accepted."""

from pathlib import Path

import pytest
from hostile.misused_calls import SECTIONS, TEXT, Material
from hostile.trial import Section

import headscope as hs


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> Material:
    model, folder = hs.load("builtin:gpt"), tmp_path_factory.mktemp("misused")
    return Material(
        model, hs.load("builtin:bert"), model.run(TEXT, record="full"), model.run(TEXT, record="rows"), folder
    )


@pytest.mark.parametrize("kind", SECTIONS)
def test_misused_calls(kind: str, section: Section, material: Material, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name, call in SECTIONS[kind](material):
        try:
            result = call()
        except hs.HeadscopeError as error:
            section.outcomes["refused"] += 1
            if len(str(error)) < 15:
                section.problem(f"{name}: says only {str(error)!r}")
        except Exception as error:
            section.problem(f"{name}: {type(error).__name__}: {str(error)[:100]}")
        else:
            section.problem(f"{name}: accepted, gives {str(result)[:60]!r}")
