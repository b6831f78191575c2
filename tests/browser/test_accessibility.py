"""The page by keyboard and by screen reader: few tab stops, changes are announced, and axe-core finds nothing grave."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

import headscope as hs
from browser.axe import in_both_themes, violations
from browser.workbench import Workbench
from headscope.reports import heads

TEXT = "The doctor asked the nurse a question. She"
SCALES = ["model", "head", "neuron", "activations"]
MOST_STOPS = 10


def focused(page: Page) -> str:
    return page.evaluate(
        "document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent.trim()"
    )


def go_to_top(page: Page) -> None:
    """Let the next Tab start from the top, wherever the last click was."""
    page.evaluate("document.body.tabIndex = -1; document.body.focus()")


def stops_before_picture(page: Page) -> list[str]:
    """The controls that Tab stops at on the way from the top of the page to the picture."""
    go_to_top(page)
    stops: list[str] = []
    while len(stops) < 60:
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('[data-picture]')"):
            return stops
        stops.append(focused(page))
    raise AssertionError(f"the picture is not reached by Tab: {stops}")


@pytest.mark.parametrize("scale", SCALES)
def test_the_picture_is_few_tab_stops_away(bench: Workbench, scale: str) -> None:
    bench.open(text=TEXT, view=scale, at="L2H1")
    stops = stops_before_picture(bench.page)
    assert stops[0] == "Skip to the picture"
    assert len(stops) <= MOST_STOPS
    bench.open(text=TEXT, view=scale, at="L2H1", edit="silence('L0H0')")
    assert len(stops_before_picture(bench.page)) <= MOST_STOPS


def test_a_first_visit_too(bench: Workbench) -> None:
    bench.visit(bench.server.host)
    expect(bench.page.get_by_role("note")).to_be_visible()
    assert len(stops_before_picture(bench.page)) <= MOST_STOPS


def test_the_skip_link_leads_to_the_picture_and_its_keys(bench: Workbench) -> None:
    bench.open(text=TEXT, view="head", at="L2H1")
    go_to_top(bench.page)
    bench.page.keyboard.press("Tab")
    skip = bench.button("Skip to the picture")
    expect(skip).to_be_focused()
    box = skip.bounding_box()
    assert box and box["x"] >= 0 and box["y"] >= 0
    bench.page.keyboard.press("Enter")
    expect(bench.page.locator("[data-picture]")).to_be_focused()
    bench.press("ArrowRight")
    bench.links_to(at="L2H2")


def test_arrows_walk_through_a_toolbar_and_tab_leaves_it(bench: Workbench) -> None:
    bench.open(text=TEXT, view="head", at="L2H1")
    bar = bench.page.get_by_role("toolbar", name="How it is drawn")
    expect(bar.locator("[tabindex='0']")).to_have_count(1)
    bar.get_by_role("combobox", name="Layer").focus()
    for key, name in (
        ("ArrowRight", "Next layer"),
        ("ArrowRight", "L2H0"),
        ("Home", "Layer before"),
        ("End", "Tokens"),
    ):
        bench.page.keyboard.press(key)
        assert name in focused(bench.page)
    bench.page.keyboard.press("Tab")
    assert focused(bench.page) == "Table"
    bench.page.keyboard.press("Shift+Tab")
    assert "Tokens" in focused(bench.page)  # where it was
    bench.links_to(at="L2H1")
    # After a click, arrows are those of the page again.
    bench.choose("Drawn as", "Matrix")
    bench.press("ArrowRight")
    bench.links_to(at="L2H2")


def test_another_head_is_announced_with_its_role(bench: Workbench) -> None:
    bench.open(text=TEXT, view="head", at="L3H1")
    role = bench.page.locator("aside.right .role")
    announcement = bench.page.locator("[data-announcement]")
    expect(announcement).to_have_attribute("aria-live", "polite")
    expect(announcement).to_have_text("")
    bench.press("ArrowRight")
    expect(role).to_be_visible()
    expect(announcement).to_have_text(f"L3H2, {role.text_content()}")
    bench.press("ArrowLeft")
    expect(announcement).to_have_text(re.compile("^L3H1"))
    # Where no head is in view, another layer is no other head.
    bench.choose("Scale", "Activations")
    layer = bench.label("L3")
    expect(layer).to_have_css("font-weight", "600")
    bench.press("ArrowDown")
    bench.links_to(at="L4H1")
    bench.page.wait_for_timeout(400)  # longer than the page waits before it speaks
    expect(announcement).to_have_text(re.compile("^L3H1"))
    bench.choose("Scale", "Head")
    expect(announcement).to_have_text(re.compile("^L4H1"))


@pytest.mark.parametrize("scale", SCALES)
def test_axe_finds_nothing_in_the_page(bench: Workbench, axe: str, scale: str) -> None:
    bench.open(text=TEXT, view=scale, at="L2H1")
    assert in_both_themes(bench.page, axe) == {"light": [], "dark": []}
    bench.press("t")
    assert violations(bench.page, axe) == []
    bench.press("t")
    bench.page.set_viewport_size({"width": 390, "height": 844})
    bench.ready()
    for panel in ("Model and input", "Token" if scale == "activations" else "L2H1"):
        opener = bench.page.locator("header").get_by_role("button", name=panel, exact=True).last
        opener.click()
        assert violations(bench.page, axe) == []
        opener.click()


def test_axe_finds_nothing_in_an_edited_run_and_in_what_opens(bench: Workbench, axe: str) -> None:
    bench.open(text=TEXT, view="head", at="L2H1", edit="silence('L0H0')")
    assert in_both_themes(bench.page, axe) == {"light": [], "dark": []}
    bench.page.keyboard.press("f")
    expect(bench.page.get_by_role("region", name="Find heads")).to_be_visible()
    assert violations(bench.page, axe) == []
    for menu in ("Compare", "Save", "Tokens: all", re.compile("Model: ")):
        bench.button(menu).click()
        assert violations(bench.page, axe) == []
        bench.page.keyboard.press("Escape")
    bench.page.keyboard.press("Escape")
    bench.page.keyboard.press("?")
    expect(bench.page.get_by_role("dialog", name="Keys")).to_be_visible()
    assert violations(bench.page, axe) == []


SAVED: dict[str, Callable[[hs.Model], hs.View]] = {
    "model": lambda gpt: hs.model_view(gpt.run(TEXT)),
    "head": lambda gpt: hs.head_view(gpt.run(TEXT), "L3H2"),
    "neuron": lambda gpt: hs.neuron_view(gpt.run(TEXT), "L3H2"),
    "activations": lambda gpt: hs.activations_view(gpt.run(TEXT), gpt, token=-1),
}


@pytest.mark.parametrize("scale", SCALES)
def test_axe_finds_nothing_in_a_saved_page(
    offline: Workbench, axe: str, gpt: hs.Model, tmp_path: Path, scale: str
) -> None:
    offline.visit(SAVED[scale](gpt).save(tmp_path / "page.html").as_uri())
    assert in_both_themes(offline.page, axe) == {"light": [], "dark": []}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_in_the_report(browser: Browser, axe: str, gpt: hs.Model, tmp_path: Path, theme: Any) -> None:
    texts = ["The doctor asked the nurse a question.", "A cat sat on a mat, and a dog sat on a mat."] * 2
    report = heads(gpt, texts, tmp_path / "heads", importance=False, sample=2)
    context = browser.new_context(viewport={"width": 1280, "height": 800}, color_scheme=theme, offline=True)
    page = context.new_page()
    page.goto(Path(report.page).as_uri())
    page.wait_for_selector("body[data-ready=true]")
    assert violations(page, axe) == []
    page.locator("#grid .cell[data-head=L3H2]").click()
    expect(page.locator("#card").get_by_role("heading", name="L3H2")).to_be_visible()
    assert violations(page, axe) == []
    context.close()
