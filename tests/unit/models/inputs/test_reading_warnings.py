"""What is warned of while an input is read stays with it: in its traces, saved or not, and in no other."""

from pathlib import Path

import pytest

import headscope as hs
from headscope.errors import HeadscopeWarning
from headscope.views.trace_part import trace_part

LONG = "The doctor asked the nurse a question. " * 100


@pytest.fixture(scope="module")
def gpt() -> hs.Model:
    return hs.load("builtin:gpt")


def test_the_trace_of_a_text_that_was_cut_says_so(gpt: hs.Model, tmp_path: Path) -> None:
    with pytest.warns(HeadscopeWarning, match="tokens were cut off"):
        trace = gpt.run(LONG, truncate=True)
    (warning,) = trace.warnings
    assert "positions for 512" in warning
    trace.save(tmp_path / "trace")
    loaded = hs.load_trace(tmp_path / "trace")
    assert loaded.warnings == trace.warnings and loaded.inputs == trace.inputs
    # Run again from what was read, it is still the text that was cut.
    assert gpt.run(loaded.inputs).warnings == trace.warnings


def test_each_of_several_texts_has_its_own_warnings(gpt: hs.Model) -> None:
    with pytest.warns(HeadscopeWarning, match="tokens were cut off"):
        cut, whole = gpt.run([LONG, "A short one."], truncate=True)
    assert len(cut.warnings) == 1 and whole.warnings == ()


def test_a_saved_page_holds_them(gpt: hs.Model) -> None:
    with pytest.warns(HeadscopeWarning, match="tokens were cut off"):
        trace = gpt.run(LONG, truncate=True)
    assert trace_part(trace).props.warnings == list(trace.warnings)
