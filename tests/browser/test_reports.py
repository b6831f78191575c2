"""Scores and roles of a report over a corpus, beside those of the input."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from browser.conftest import WINDOW
from browser.server import Server
from browser.workbench import Workbench
from headscope.files import with_checksum
from headscope.reports import HeadsReport, heads

TEXTS = ["The doctor asked the nurse a question.", "She did not know what he meant.", "It rained, and it rained."] * 8


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> HeadsReport:
    return heads("builtin:gpt", TEXTS, tmp_path_factory.mktemp("report"), relevance=False, importance=False)


@pytest.fixture(scope="module")
def reporting(tmp_path_factory: pytest.TempPathFactory, report: HeadsReport) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("server") / "log", "--report", str(report.folder)) as running:
        yield running


@pytest.fixture
def report_bench(browser: Browser, reporting: Server) -> Iterator[Workbench]:
    context = browser.new_context(**WINDOW)
    cookies = [{"name": name, "value": value, "url": reporting.host} for name, value in reporting.cookies.items()]
    context.add_cookies(cookies)  # type: ignore[arg-type]
    bench = Workbench(context.new_page(), reporting)
    yield bench
    assert bench.problems() == []
    context.close()


def test_a_reports_scores_colour_and_sort_the_heads_and_its_verdict_is_in_the_card(report_bench, report):
    bench = report_bench
    bench.open(text="The doctor asked the nurse a question. She")
    card = bench.page.get_by_role("region", name="Over a corpus")
    expect(card).to_contain_text("Over list, n = 24")
    before = bench.stage()
    bench.page.get_by_label("Colour by").select_option("corpus:positional")
    bench.links_to(colour="corpus:positional")
    assert bench.stage() != before
    bench.page.get_by_label("Sort by").select_option("corpus:positional")
    bench.ready()
    best = report.scores["positional"].top(1)[0][0]
    first = min((box for box in bench._texts() if box[0].startswith("L")), key=lambda box: (round(box[2]), box[1]))
    assert first[0] == str(best)
    bench.open(text="The doctor asked the nurse a question. She", at=str(best))
    finding = report.roles[best].findings[0]
    expect(card).to_contain_text(f"{finding.role}")
    expect(card).to_contain_text(f"{finding.score:.2f}")
    expect(bench.page.get_by_role("complementary", name="The head in focus").locator(".role")).to_have_text(
        finding.role
    )
    groups = bench.page.get_by_label("Colour by").locator("optgroup")
    assert groups.nth(0).get_attribute("label") == "This input"
    assert groups.nth(1).get_attribute("label") == "Over list, n = 24"


def test_a_sentence_of_the_evidence_can_be_run(report_bench, report):
    bench = report_bench
    head = next(head for head, cases in report.cases.items() if cases)
    bench.open(text="Another sentence altogether.", view="head", at=str(head))
    card = bench.page.get_by_role("region", name="Over a corpus")
    card.get_by_role("button", name="more", exact=True).click()
    card.get_by_role("button", name="run").first.click()
    bench.page.wait_for_function("() => !location.hash.includes('altogether')")
    bench.ready()
    text = bench.page.get_by_label("Text", exact=True).input_value()
    assert text in TEXTS
    bench.links_to(at=str(head), view="head")


def test_a_report_of_another_model_is_refused_at_the_start(report, tmp_path):
    data = json.loads((report.folder / "heads.json").read_text(encoding="utf-8")) | {"model": "somebody/else"}
    del data["checksum"]
    Path(tmp_path / "heads.json").write_text(json.dumps(with_checksum(data)), encoding="utf-8")
    with pytest.raises(RuntimeError, match=r"is of somebody/else, and this workbench offers"):
        Server(tmp_path / "log", "--report", str(tmp_path))
