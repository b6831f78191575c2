"""What earlier versions wrote is read by this one, to the same numbers."""

import json
from pathlib import Path

import numpy as np
import pytest

import headscope as hs
from headscope import runs
from headscope.glossary import current_name
from headscope.reports import HeadsReport

FOLDER = Path(__file__).parents[1] / "fixtures" / "0.1.0"
EXPECTED = json.loads((FOLDER / "expected.json").read_text())


def by_head(scores: hs.Scores) -> dict[str, float]:
    return {str(head): value for head, value in scores.items()}


@pytest.mark.parametrize("record", ["rows", "summary", "heads", "full"])
def test_a_trace_of_0_1_0_opens(record: str) -> None:
    trace, expected = hs.load_trace(FOLDER / f"trace-{record}"), EXPECTED["traces"][record]
    assert trace.record == record and list(trace.edits) == expected["edits"]
    assert trace.tokens["main"].texts == expected["tokens"]
    assert [str(head) for head in trace.heads] == expected["heads"]
    answers = [[answer.text, answer.id, pytest.approx(answer.logprob)] for answer in trace.predictions(3)]
    assert expected["predictions"] == answers
    assert by_head(hs.measure("peak_weight", trace)) == pytest.approx(expected["confidence"])
    if "pattern" in expected:
        assert trace.pattern("L1H1") == pytest.approx(np.array(expected["pattern"]), abs=1e-6)


@pytest.mark.filterwarnings("ignore:.*checksum:headscope.errors.HeadscopeWarning")
def test_a_run_of_0_1_0_opens() -> None:
    scores = runs.open(FOLDER / "run").scores()
    assert scores.keys() == {current_name(name) for name in EXPECTED["run_opened"]}
    for name, expected in EXPECTED["run_opened"].items():
        assert by_head(scores[current_name(name)]) == pytest.approx(expected)


@pytest.mark.filterwarnings("ignore:.*checksum:headscope.errors.HeadscopeWarning")
def test_a_heads_report_of_0_1_0_opens() -> None:
    report, expected = HeadsReport.load(FOLDER / "report"), EXPECTED["report"]
    assert {str(head): verdict.role for head, verdict in report.roles.items()} == expected["roles"]
    assert report.scores.keys() == {current_name(name) for name in expected["scores"]}
    for name, values in expected["scores"].items():
        assert by_head(report.scores[current_name(name)]) == pytest.approx(values, rel=1e-4, abs=1e-5, nan_ok=True)


def test_interventions_of_0_1_0_open() -> None:
    silence, scale, replacement = hs.load_interventions(FOLDER / "edits" / "edits.json")
    assert [repr(silence), repr(scale)] == ["hs.silence('L0H1')", "hs.scale('L1H0', 0.5)"]
    assert repr(replacement).startswith("hs.replace_pattern('L0H0'")
