"""Reports over a corpus in the workbench: their scores and roles as a part; reports of other models refused."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

import headscope as hs
from headscope.errors import LoadError
from headscope.models.loading import BUILTIN
from headscope.reports import HeadsReport, heads
from headscope.runs.manifest import identity
from headscope.server.reports import check
from headscope.views.wire import decode

TEXTS = ["the cat sat on the mat .", "she gave her sister the book .", "the cat sat ."] * 8


@pytest.fixture(scope="module")
def report(models: Path, tmp_path_factory: pytest.TempPathFactory) -> HeadsReport:
    return heads(str(models / "gpt"), TEXTS, tmp_path_factory.mktemp("report"), relevance=False, importance=False)


def test_the_scores_of_a_report_are_told_apart_from_those_of_the_input(start, run, report: HeadsReport) -> None:
    client: TestClient = start(reports=(report.folder,))
    trace = run(client)[-1]["trace"]
    part = decode(client.get(f"/api/traces/{trace}/report").content)
    assert (part.props["corpus"], part.props["n"]) == ("list", 24)
    names = {method["name"] for method in part.props["methods"]}
    assert "corpus:previous_token" in names and all(name.startswith("corpus:") for name in names)
    expected = report.scores["previous_token"]
    assert part.arrays["corpus:previous_token"] == pytest.approx([expected[head] for head in report.roles], rel=1e-4)
    low = part.arrays["low/corpus:previous_token"]
    assert low == pytest.approx([expected.intervals[head][0] for head in report.roles], rel=1e-4)
    assert [role["role"] for role in part.props["roles"]] == [verdict.role for verdict in report.roles.values()]


def test_without_a_report_the_part_is_empty(client: TestClient, run) -> None:
    trace = run(client)[-1]["trace"]
    assert decode(client.get(f"/api/traces/{trace}/report").content).props["corpus"] == ""


def test_a_report_of_a_model_that_is_not_offered_is_refused(start, report: HeadsReport, models: Path) -> None:
    with pytest.raises(LoadError, match=r"is of gpt, and this workbench offers .*--report DIR"):
        start(models=(str(models / "long"),), reports=(report.folder,))
    with pytest.raises(LoadError, match="no report of heads"):
        start(reports=(models,))


def test_a_report_of_other_weights_or_heads_is_refused(report: HeadsReport, models: Path) -> None:
    model = hs.load(str(models / "gpt"))
    check(report, model)
    other = report.about | {"weights": {"sha256": "0", "dtype": report.about["weights"]["dtype"]}}
    with pytest.raises(LoadError, match="with other weights: make it again"):
        check(dataclasses.replace(report, about=other), model)
    strange = {hs.Head("main", 77, 0): next(iter(report.roles.values()))}
    with pytest.raises(LoadError, match="it has L77H0"):
        check(dataclasses.replace(report, roles=strange), model)


SHIPPED = sorted(folder.parent.name for folder in BUILTIN.glob("*/heads.json"))


@pytest.mark.parametrize("name", SHIPPED)
def test_what_is_shipped_is_of_the_model_it_lies_with(name: str) -> None:
    report, model = HeadsReport.load(BUILTIN / name), hs.load(f"builtin:{name}")
    assert list(report.roles) == sorted(report.roles, key=list(report.roles).index)
    assert set(report.roles) == set(model.heads)
    assert report.about["weights"]["sha256"] == identity(model)["weights"]
    for scores in report.scores.values():
        assert np.isfinite([value for value in scores.values() if value == value]).all()


def test_what_is_shipped_is_small() -> None:
    assert sum(len((BUILTIN / name / "heads.json").read_bytes()) for name in SHIPPED) <= 200_000
    for name in SHIPPED:
        assert json.loads((BUILTIN / name / "heads.json").read_text(encoding="utf-8"))["corpus"]["n_examples"] >= 200
