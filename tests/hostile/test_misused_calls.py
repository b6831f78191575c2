"""Wrong calls of the library: every answer is a `HeadscopeError` that says something, and none is accepted."""

from pathlib import Path

import pytest
from hostile.misused_calls import SECTIONS, TEXT, Material

import headscope as hs


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> Material:
    model, folder = hs.load("builtin:gpt"), tmp_path_factory.mktemp("misused")
    return Material(
        model, hs.load("builtin:bert"), model.run(TEXT, record="full"), model.run(TEXT, record="rows"), folder
    )


@pytest.mark.parametrize("section", SECTIONS)
def test_a_wrong_call_is_answered_by_a_headscope_error(
    section: str, material: Material, monkeypatch, tmp_path: Path, record_property
) -> None:
    monkeypatch.chdir(tmp_path)
    problems, n_calls = [], 0
    for name, call in SECTIONS[section](material):
        n_calls += 1
        try:
            result = call()
        except hs.HeadscopeError as error:
            if len(str(error)) < 15:
                problems.append(f"{name}: says only {str(error)!r}")
        except Exception as error:
            problems.append(f"{name}: {type(error).__name__}: {str(error)[:100]}")
        else:
            problems.append(f"{name}: accepted, gives {str(result)[:60]!r}")
    record_property("calls", n_calls)
    assert not problems, f"{len(problems)} of {n_calls} calls:\n" + "\n".join(problems)
