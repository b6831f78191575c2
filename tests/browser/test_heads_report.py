"""The report of heads in a browser: drawn offline in both themes, and every part of it answers."""

from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import headscope as hs
from headscope.faithfulness import HeadTests
from headscope.reports import HeadsReport, heads
from headscope.reports.trust_report import trust

IMAGES = Path(hs.__file__).parent / "builtin" / "images"
TEXTS = [
    "The doctor asked the nurse a question.",
    "She did not know what <b>he</b> meant.",
    "A cat sat on a mat, and a dog sat on a mat.",
]


@pytest.fixture(scope="session")
def report(gpt: hs.Model, tmp_path_factory: pytest.TempPathFactory) -> HeadsReport:
    return heads(gpt, TEXTS * 2, tmp_path_factory.mktemp("heads"), importance=False, sample=2)


@pytest.fixture(params=["light", "dark"])
def page(request, browser: Browser, report: HeadsReport):
    """The page of someone without a network."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, color_scheme=request.param, offline=True)
    opened, wrong = context.new_page(), []
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    opened.goto(Path(report.page).as_uri())
    opened.wait_for_selector("body[data-ready=true]")
    assert opened.evaluate("document.documentElement.dataset.theme") == request.param
    yield opened
    assert wrong == []
    context.close()


def test_every_part_is_drawn_and_answers(page: Page, report: HeadsReport) -> None:
    assert page.locator("#grid .cell").count() == len(report.roles)
    assert page.locator("#three .cell").count() == 3 * len(report.roles)
    assert page.locator("#scatter circle").count() == len(report.roles)
    # Numbers of an axis are in even, round steps.
    across = [
        float(text.replace("−", "-"))
        for text in page.locator("#scatter text[text-anchor=middle]").all_text_contents()[:-2]
    ]
    steps = {round(after - before, 3) for before, after in pairwise(across)}
    assert len(across) >= 3 and len(steps) == 1 and f"{steps.pop():.0e}"[0] in "125"
    assert page.locator("#curves .curve").count() == len([name for name in report.scores if "/" not in name])
    # A head of the grid opens its card, with its thumbnails and its cases.
    page.locator("#grid .cell[data-head=L3H2]").click()
    card = page.locator("#card")
    expect(card.get_by_role("heading", name="L3H2")).to_be_visible()
    assert card.locator(".thumbs canvas").count() == 3 and card.locator(".case .q").count() >= 1
    assert "head=L3H2" in page.url
    # Arrow keys walk, Escape closes.
    page.locator("#grid .cell[data-head=L3H2]").focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.dataset.head") == "L3H3"
    page.keyboard.press("Escape")
    expect(card).to_be_hidden()
    # A point names itself, and opens its card too.
    page.locator("#scatter circle[data-head=L4H0]").hover(force=True)
    expect(page.locator("#tip")).to_contain_text("L4H0")
    page.locator("#scatter circle[data-head=L4H0]").click(force=True)
    expect(card.get_by_role("heading", name="L4H0")).to_be_visible()


def test_another_measure_colours_the_heads(page: Page) -> None:
    before = page.locator("#grid .cell").first.get_attribute("style")
    page.get_by_label("Colour by").select_option("entropy")
    assert page.locator("#grid .cell").first.get_attribute("style") != before
    expect(page.locator("#grid-note")).to_contain_text("nats")
    assert "measure=entropy" in page.url


def test_the_roles_are_sorted_and_filtered(page: Page, report: HeadsReport) -> None:
    rows = page.locator("#table-body tr")
    assert rows.count() == len(report.roles)
    page.get_by_role("button", name="Score").click()
    best = max(
        (verdict for verdict in report.roles.values() if verdict.findings),
        key=lambda verdict: verdict.findings[0].score,
    )
    expect(rows.first.locator("td").nth(2)).to_have_text(f"{best.findings[0].score:.2f}")
    page.get_by_label("Search").fill("L3H2")
    assert rows.count() == 1


def test_what_tokens_say_is_text(page: Page) -> None:
    assert page.locator("main b, aside b").filter(has_text="he").count() <= page.locator(".came b").count()
    assert page.evaluate("[...document.querySelectorAll('b')].every((one) => one.textContent !== 'he')")


def test_a_narrow_window_loses_nothing_to_the_side(browser: Browser, report: HeadsReport) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 800}, offline=True)
    narrow = context.new_page()
    narrow.goto(Path(report.page).as_uri() + "#head=L3H2")
    narrow.wait_for_selector("body[data-ready=true]")
    assert narrow.evaluate("document.documentElement.scrollWidth") <= 390
    expect(narrow.locator("#card")).to_be_visible()
    narrow.get_by_role("button", name="Close").click()
    expect(narrow.locator("#card")).to_be_hidden()
    context.close()


def test_patches_of_a_case_are_named_as_in_the_workbench_from_one(browser: Browser, tmp_path: Path) -> None:
    report = heads("builtin:vit", IMAGES, tmp_path / "vit", relevance=False, importance=False)
    case = report.cases[hs.Head("main", 1, 3)][0]
    query, key, _ = case.pairs[0]
    page = browser.new_page()
    page.goto(f"{report.page.as_uri()}#head=L1H3")
    shown_case = page.locator("#card .case").first
    assert case.grid is not None and case.grid[1] == 8
    expect(shown_case.locator("button").first).to_contain_text(
        f"row {query // 8 + 1}, column {query % 8 + 1} \u2192 row {key // 8 + 1}, column {key % 8 + 1}"
    )
    expect(page.locator("#card .thumbs span").first).to_have_text("aeroplane.png")
    expect(page.locator("#choose-x")).to_have_value("patch_distance")
    page.close()


def test_badges_of_trust_stand_beside_the_roles(browser: Browser, gpt: hs.Model, tmp_path: Path) -> None:
    tests = HeadTests(n_permutations=1, adversary=None)
    verdicts = trust(gpt, TEXTS * 4, folder=tmp_path / "trust", heads=["L3"], tests=tests)
    report = heads(gpt, TEXTS, tmp_path / "heads", relevance=False, importance=False, trust=verdicts)
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(report.page.as_uri())
    page.wait_for_selector("body[data-ready=true]")
    verdict, sentence = verdicts.heads["L3H2"].verdict, verdicts.heads["L3H2"].sentences[0]
    expect(page.locator("#grid .badge")).to_have_count(8)
    cell = page.locator("#grid .cell[data-head=L3H2]")
    assert verdict in (cell.get_attribute("aria-label") or "")
    cell.hover()
    expect(page.locator("#tip")).to_contain_text(verdict)
    cell.click()
    expect(page.locator("#card .badge")).to_contain_text(verdict)
    expect(page.locator("#card")).to_contain_text(sentence)
    page.get_by_role("button", name="Trust", exact=True).click()
    expect(page.locator("#table-body tr").first.locator(".badge")).to_be_visible()
    expect(page.locator("#table-body .badge")).to_have_count(8)
    page.close()
