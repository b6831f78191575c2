"""Narrow windows, zoom and touch: no control overlaps another or is cut off, and fingers can hit all of them."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from browser.conftest import WINDOW
from browser.server import Server
from browser.workbench import Workbench

TEXT = "The doctor asked the nurse a question. She"
SCALES = ["model", "head", "neuron", "activations"]
WIDTHS = [320, 390, 600, 800, 880, 940, 1000, 1440]
SMALLEST = 39.5  # px: 40, rounded by the layout

# Every control of the top bar and of the tool row: inside its bar, the window and whatever clips it; over no other one.
MISPLACED = """() => {
    const problems = [];
    const name = (part) => (part.getAttribute("aria-label") || part.textContent.trim() || part.tagName).slice(0, 24);
    const within = (inner, outer) => inner.left >= outer.left - 0.5 && inner.right <= outer.right + 0.5
        && inner.top >= outer.top - 0.5 && inner.bottom <= outer.bottom + 0.5;
    const bars = [...document.querySelectorAll("header.bar, main > [role=toolbar]")];
    if (bars.length !== 2) problems.push(`${bars.length} bars`);
    for (const bar of bars) {
        const parts = [...bar.querySelectorAll("button, select, input, label, output, h1, .crumb")]
            .filter((part) => !part.closest("[popover]") && part.checkVisibility({ visibilityProperty: true }))
            .map((part) => [part, part.getBoundingClientRect()])
            .filter(([, box]) => box.width && box.height);
        parts.forEach(([part, box], index) => {
            if (!within(box, bar.getBoundingClientRect())) problems.push(`${name(part)} leaves its bar`);
            if (box.left < -0.5 || box.right > innerWidth + 0.5) problems.push(`${name(part)} leaves the window`);
            for (let around = part.parentElement; around !== bar; around = around.parentElement) {
                const isClipping = getComputedStyle(around).overflow !== "visible";
                const isInside = within(box, around.getBoundingClientRect());
                if (isClipping && !isInside) problems.push(`${name(part)} is clipped`);
            }
            for (const [other, place] of parts.slice(index + 1)) {
                if (part.contains(other) || other.contains(part)) continue;
                const wide = Math.min(box.right, place.right) - Math.max(box.left, place.left);
                const high = Math.min(box.bottom, place.bottom) - Math.max(box.top, place.top);
                if (wide > 0.5 && high > 0.5) problems.push(`${name(part)} overlaps ${name(other)}`);
            }
        });
    }
    return problems;
}"""

# Controls that are smaller than a finger needs; a box with a label is as large as its label.
SMALL = """(least) => [...document.querySelectorAll(
        "[data-headscope] :is(button, select, input, textarea, summary, a[href])")]
    .filter((control) => control.checkVisibility({ visibilityProperty: true }))
    .map((control) => (control.matches("[type=checkbox], [type=radio]") && control.closest("label")) || control)
    .map((target) => [target, target.getBoundingClientRect()])
    .filter(([, box]) => box.width > 1 && (box.width < least || box.height < least))
    .map(([target, box]) => `${target.getAttribute("aria-label") || target.textContent.trim() || target.className}: `
        + `${Math.round(box.width)} × ${Math.round(box.height)}`)"""


@pytest.fixture
def bench_with(browser: Browser, server: Server) -> Iterator[Callable[..., Workbench]]:
    """A function that opens a workbench in a window of another kind."""
    benches: list[Workbench] = []

    def open_bench(**options: Any) -> Workbench:
        context = browser.new_context(**(WINDOW | options))
        context.add_cookies(
            [{"name": name, "value": value, "url": server.host} for name, value in server.cookies.items()]
        )
        benches.append(Workbench(context.new_page(), server))
        return benches[-1]

    yield open_bench
    for bench in benches:
        assert bench.problems() == []
        bench.page.context.close()


@pytest.mark.parametrize("scale", SCALES)
def test_no_control_overlaps_or_is_cut_off_at_any_width(bench: Workbench, scale: str) -> None:
    bench.open(text=TEXT, view=scale, at="L2H1")
    problems = {}
    for width in WIDTHS:
        bench.page.set_viewport_size({"width": width, "height": 860})
        bench.ready()
        problems[width] = bench.page.evaluate(MISPLACED)
    assert problems == {width: [] for width in WIDTHS}


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("window", [(1440, 860), (1280, 720), (800, 860)], ids=str)
def test_at_200_percent_everything_can_be_reached(
    bench_with: Callable[..., Workbench], scale: str, window: tuple[int, int]
) -> None:
    """At this zoom a window has half as many CSS pixels each way."""
    viewport = {"width": window[0] // 2, "height": window[1] // 2}
    bench = bench_with(viewport=viewport, device_scale_factor=2)
    bench.open(text=TEXT, view=scale, at="L2H1")
    assert bench.page.evaluate(MISPLACED) == []
    picture = bench.page.locator("[data-picture]").bounding_box()
    assert picture and picture["height"] >= 200
    assert bench.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("scale", SCALES)
def test_fingers_can_hit_every_control(bench_with: Callable[..., Workbench], scale: str) -> None:
    bench = bench_with(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True, device_scale_factor=2)
    bench.open(text=TEXT, view=scale, at="L2H1", edit="silence('L0H0')")
    assert bench.page.evaluate("matchMedia('(pointer: coarse)').matches")
    assert bench.page.evaluate(SMALL, SMALLEST) == []
    assert bench.page.evaluate(MISPLACED) == []
    # What opens: both panels, the menus.
    for panel in ("Model and input", "Token" if scale == "activations" else "L2H1"):
        opener = bench.page.locator("header").get_by_role("button", name=panel, exact=True).last
        opener.tap()
        assert bench.page.evaluate(SMALL, SMALLEST) == []
        opener.tap()
    menus = ["Compare", "Save", "Theme"] + (["Lines: all", "Tokens: all"] if scale == "head" else [])
    for menu in menus:
        bench.button(menu).tap()
        assert bench.page.evaluate(SMALL, SMALLEST) == []
        bench.page.keyboard.press("Escape")


@pytest.mark.parametrize("view", SCALES)
def test_the_legend_is_read_whole_at_any_width(bench: Workbench, view: str) -> None:
    bench.page.set_viewport_size({"width": 1000, "height": 860})
    bench.open(text=TEXT, view=view, at="L3H2")
    for width in (1000, 800, 600, 390, 320):
        bench.page.set_viewport_size({"width": width, "height": 860})
        bench.ready()
        for part in (".words", ".bar", ".tick >> nth=0", ".tick >> nth=-1"):
            box = bench.page.locator(f"main .status .legend {part}").bounding_box()
            assert box and box["x"] >= 0 and box["x"] + box["width"] <= width + 0.5, (width, part, box)


def test_the_picture_is_redrawn_when_what_stands_above_it_comes_and_goes(bench_with: Callable[..., Workbench]) -> None:
    """On a first visit the introduction gets its buttons after the first picture: lines wrap, the picture shrinks."""
    bench = bench_with(viewport={"width": 800, "height": 1000}, has_touch=True)
    bench.goto(f"{bench.server.host}/")
    bench.page.locator("aside.right [aria-label=Measures]").wait_for(state="attached")
    bench.page.wait_for_function("""() => {
        const canvas = document.querySelector(".view canvas");
        return canvas.height === canvas.parentElement.clientHeight && canvas.width === canvas.parentElement.clientWidth;
    }""")
    # So the names under the pictures of heads are where the pictures are: each is its own and no longer the next row's.
    names = [y for text, _, y in bench._texts() if re.fullmatch(r"L\d+H\d+", text)]
    rows = sorted(set(names))
    assert len(names) == 48 and len(rows) > 1
    box = bench.page.locator(".view canvas").bounding_box()
    assert box and rows[-1] < box["y"] + box["height"]


def test_edits_are_moved_and_taken_out_by_touch(bench_with: Callable[..., Workbench]) -> None:
    bench = bench_with(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    bench.visit(bench.address(text=TEXT, at="L2H1") + "&edit=silence('L0H0')&edit=silence('L0H1')")
    bench.page.locator("header").get_by_role("button", name="L2H1", exact=True).last.tap()
    words = bench.page.get_by_role("region", name="Edits").locator("li .words")
    expect(words).to_have_text(["silence L0H0", "silence L0H1"])
    expect(bench.page.locator("li .moves").first).to_have_css("opacity", "1")
    bench.button("Move down: silence L0H0").tap()
    expect(words).to_have_text(["silence L0H1", "silence L0H0"])


def test_tools_leave_the_picture_its_room_on_a_phone(bench_with: Callable[..., Workbench]) -> None:
    bench = bench_with(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    bench.open(text=TEXT, view="neuron", at="L2H1")
    tools = bench.page.get_by_role("toolbar", name="How it is drawn").bounding_box()
    assert tools and tools["height"] < 0.15 * 844
    bench.page.get_by_label("Sort neurons by").select_option(
        "contribution"
    )  # the labels are still those of the controls
    bench.links_to(neurons="contribution")


def test_tools_of_a_head_take_four_rows_on_a_phone(bench_with: Callable[..., Workbench]) -> None:
    bench = bench_with(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    bench.open(text=TEXT, view="head", at="L2H1", heads="1")
    tools = bench.page.get_by_role("toolbar", name="How it is drawn").bounding_box()
    assert tools and tools["height"] < 5 * 40  # fingers' rows of 40 px, with the gaps between four
